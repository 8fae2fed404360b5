"""Halos of a field on a Cartesian communicator: dim after dim, so that the slabs of each dim hold the halos of the dims before it.

So corners come from diagonal neighbours without messages to them. The transpose does the same backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cygrad.operators._messages.library import mpi
from cygrad.operators._messages.message import Message


def exchange(message: Message, source: np.ndarray, target: np.ndarray, kind: Any) -> None:
    """Copy a field into the middle of the target, and the neighbours' edges around it; zeros where there is no neighbour."""
    target[_interior(message, target, 0)] = source
    for d, (low, high) in enumerate(message.widths):
        n, region = target.shape[d] - low - high, _interior(message, target, d + 1)
        below, above = message.comm.Shift(d, 1)
        _shift(message, target, region, d, (n, low), above, (0, low), below, kind)
        _shift(message, target, region, d, (low, high), below, (low + n, high), above, kind)


def add(message: Message, source: np.ndarray, target: np.ndarray, kind: Any) -> None:
    """Add each rank's halos to the edges of the neighbours they came from, and leave the middle in the target."""
    work = source.copy()
    for d, (low, high) in reversed([*enumerate(message.widths)]):
        n, region = work.shape[d] - low - high, _interior(message, work, d + 1)
        below, above = message.comm.Shift(d, 1)
        # Both are received before either is added: where a field is narrow, a halo holds elements of both edges.
        from_above = _exchanged(message, work[_slab(region, d, 0, low)], below, above, kind)
        from_below = _exchanged(message, work[_slab(region, d, low + n, high)], above, below, kind)
        work[_slab(region, d, n, low)] += from_above
        work[_slab(region, d, low, high)] += from_below
    target[...] = work[_interior(message, work, 0)]


def _interior(message: Message, field: np.ndarray, first: int) -> tuple[slice, ...]:
    """Return the region without the halos of the dims from `first` on."""
    return tuple([slice(None) if d < first else slice(low, field.shape[d] - high) for d, (low, high) in enumerate(message.widths)])


def _slab(region: tuple[slice, ...], dim: int, start: int, width: int) -> tuple[slice, ...]:
    return (*region[:dim], slice(start, start + width), *region[dim + 1:])


def _shift(message: Message, field: np.ndarray, region: tuple[slice, ...], dim: int, sent: tuple[int, int], dest: int,
           received: tuple[int, int], source: int, kind: Any) -> None:
    """Send the slab at one place along a dim to a neighbour, and receive another one from the neighbour on the other side."""
    if sent[1]:
        field[_slab(region, dim, *received)] = _exchanged(message, field[_slab(region, dim, *sent)], dest, source, kind)


def _exchanged(message: Message, slab: np.ndarray, dest: int, source: int, kind: Any) -> np.ndarray:
    """Return the slab that comes from one neighbour while another is sent; zeros where there is no neighbour."""
    sent = np.ascontiguousarray(slab)
    if not sent.size:
        return sent
    received = np.empty_like(sent) if source != mpi().PROC_NULL else np.zeros_like(sent)
    message.comm.Sendrecv((sent, kind), dest, 0, (received, kind), source, 0)
    return received
