"""The table of servers that can be had here."""

from __future__ import annotations

from collections.abc import Sequence

from runcert.servers.offers import Offer

__all__ = ["server_table"]


def server_table(offers: Sequence[Offer]) -> str:
    """Give the offers as a table, one line each; a star marks the way that a run takes."""
    rows = [(offer.server, offer.way, offer.version or "-", _rest(offer), "*" if offer.chosen else " ") for offer in offers]
    titles = ("server", "way", "version", "where, or why not", " ")
    widths = [max(len(row[column]) for row in [titles, *rows]) for column in range(3)]
    lines = [_line(row, widths) for row in [titles, *rows]]
    return "\n".join([*lines, "", _conclusion(offers)])


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
    return f"{row[4]} {cells}  {row[3]}".rstrip()


def _rest(offer: Offer) -> str:
    return offer.path if offer.available else f"no: {offer.reason}"


def _conclusion(offers: Sequence[Offer]) -> str:
    names = list(dict.fromkeys(offer.server for offer in offers))
    chosen = {offer.server: offer.way for offer in offers if offer.chosen}
    parts = [f"{name} by {chosen[name]}" if name in chosen else f"no {name}" for name in names]
    return f"* is what a run takes: {', '.join(parts)}. Another way: --server NAME=URL, or --server NAME=wheel, system, containers."
