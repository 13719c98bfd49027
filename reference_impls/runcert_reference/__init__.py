"""Stores that pass: memory, file, SQL; and, under ``faulty``, stores that must not."""
