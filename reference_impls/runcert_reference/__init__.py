"""Stores that pass: memory, SQL; and, under ``faulty``, stores that must not."""
