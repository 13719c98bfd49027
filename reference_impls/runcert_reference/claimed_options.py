"""What is said of a reference store, as the options of its adapter."""

from __future__ import annotations

from typing import Any

from runcert_contract import Claims

__all__ = ["claimed_options"]


def claimed_options(claims: Claims) -> dict[str, Any]:
    """Give the options of ``runcert.adapter`` that say what is claimed; hooks and the other form come on top.

    Args:
        claims: what is said of the store.
    """
    names = ("scope", "handles", "durability", "capabilities", "limits", "topology")
    return {name: getattr(claims, name) for name in names}
