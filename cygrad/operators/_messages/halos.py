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
    for d, width in enumerate(message.widths):
        n, region = target.shape[d] - 2 * width, _interior(message, target, d + 1)
        below, above = message.comm.Shift(d, 1)
        target[_slab(region, d, 0, width)] = _exchanged(message, target[_slab(region, d, n, width)], above, below, kind)
        target[_slab(region, d, width + n, width)] = _exchanged(message, target[_slab(region, d, width, width)], below, above, kind)


def add(message: Message, source: np.ndarray, target: np.ndarray, kind: Any) -> None:
    """Add each rank's halos to the edges of the neighbours they came from, and leave the middle in the target."""
    work = source.copy()
    for d, width in reversed([*enumerate(message.widths)]):
        n, region = work.shape[d] - 2 * width, _interior(message, work, d + 1)
        below, above = message.comm.Shift(d, 1)
        # Both are received before either is added: where a field is narrow, a halo holds elements of both edges.
        from_above = _exchanged(message, work[_slab(region, d, 0, width)], below, above, kind)
        from_below = _exchanged(message, work[_slab(region, d, width + n, width)], above, below, kind)
        work[_slab(region, d, n, width)] += from_above
        work[_slab(region, d, width, width)] += from_below
    target[...] = work[_interior(message, work, 0)]


def _interior(message: Message, field: np.ndarray, first: int) -> tuple[slice, ...]:
    """Return the region without the halos of the dims from `first` on."""
    return tuple([slice(None) if d < first else slice(width, field.shape[d] - width) for d, width in enumerate(message.widths)])


def _slab(region: tuple[slice, ...], dim: int, start: int, width: int) -> tuple[slice, ...]:
    return (*region[:dim], slice(start, start + width), *region[dim + 1:])


def _exchanged(message: Message, slab: np.ndarray, dest: int, source: int, kind: Any) -> np.ndarray:
    """Return the slab that comes from one neighbour while another is sent; zeros where there is no neighbour."""
    sent = np.ascontiguousarray(slab)
    if not sent.size:
        return sent
    received = np.empty_like(sent) if source != mpi().PROC_NULL else np.zeros_like(sent)
    message.comm.Sendrecv((sent, kind), dest, 0, (received, kind), source, 0)
    return received
