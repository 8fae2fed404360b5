"""Whole programs."""
from __future__ import annotations

from cygrad.bench.work import Work


def works(quick: bool) -> list[Work]:
    """Return the programs, of their full sizes or quick ones."""
    return []
