"""Fields that are spread over a Cartesian communicator: their halos, copies of the neighbours' edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad.operators._language.arguments import integers
from cygrad.operators._language.declaration import operator
from cygrad.operators._messages.checks import checked_communicator, words_for
from cygrad.operators._messages.library import mpi
from cygrad.operators._messages.message import Message, Side
from cygrad.operators.transfers import sent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


@operator
def mpi_halo_exchange(input: Tensor, comm: Any, width: int | Sequence[int] = 1) -> Tensor:
    """This rank's part of a field with its halo around it: the edges of the neighbours, corners included; zeros where there is none.

    `comm` is a Cartesian communicator (`MPI.COMM_WORLD.Create_cart(dims, periods)`), whose dims are the first dims of `input`; further ones
    hold components. `width` is the number of elements of the halo on either side, for all dims or one for each. The gradient is
    `halo_add`. Raises ValueError for a communicator that is not Cartesian, and a field narrower than its halo.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> from mpi4py import MPI
    >>> ring = MPI.COMM_SELF.Create_cart([1], [True])
    >>> mpi.halo_exchange(cygrad.tensor([1, 2, 3]), ring, 1)
    tensor([3, 1, 2, 3, 1])
    """
    comm, widths = _checked(mpi_halo_exchange, input, comm, width)
    shape = tuple(input.shape)
    for size, count in zip(shape, widths, strict=False):
        if size < count:
            raise ValueError(f"{words_for(mpi_halo_exchange)}(): the halo is {count} wide, but this rank's part of the field has the shape "
                             f"{list(shape)}: give each rank at least as many elements as the halo is wide")
    padded = (*(size + 2 * count for size, count in zip(shape, widths, strict=False)), *shape[len(widths):])
    return sent(input, Message("halo_exchange", comm, Side(shape), Side(padded), widths=widths))


@operator
def mpi_halo_add(input: Tensor, comm: Any, width: int | Sequence[int] = 1) -> Tensor:
    """This rank's part of a field without its halo, after each element of a halo was added to the neighbour's element that it copies.

    The transpose of `halo_exchange`, which has the same arguments: it assembles the sums that ranks have around their parts.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> from mpi4py import MPI
    >>> ring = MPI.COMM_SELF.Create_cart([1], [True])
    >>> mpi.halo_add(cygrad.tensor([10, 1, 2, 3, 20]), ring, 1)
    tensor([21,  2, 13])
    """
    comm, widths = _checked(mpi_halo_add, input, comm, width)
    shape = tuple(input.shape)
    inner = (*(size - 2 * count for size, count in zip(shape, widths, strict=False)), *shape[len(widths):])
    for size, count in zip(inner, widths, strict=False):
        if size < count:
            raise ValueError(f"{words_for(mpi_halo_add)}(): the halo is {count} wide, but a field of the shape {list(shape)} has only "
                             f"{size} elements inside of it")
    return sent(input, Message("halo_add", comm, Side(shape), Side(inner), widths=widths))


def _checked(operator: Any, input: Tensor, comm: Any, width: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the communicator and the width for each of its dims; refuse others."""
    comm = checked_communicator(operator, comm)
    if comm.Get_topology() != mpi().CART:
        raise ValueError(f"{words_for(operator)}(): the communicator is not Cartesian: make one by comm.Create_cart(dims, periods)")
    comm = comm if isinstance(comm, mpi().Cartcomm) else mpi().Cartcomm(comm)
    widths = (width,) * comm.ndim if isinstance(width, int) else integers(width)
    if len(widths) != comm.ndim or any(count < 0 for count in widths):
        raise ValueError(f"{words_for(operator)}(): width={width!r} must be a number from 0 on, or one for each of the {comm.ndim} dims")
    if input.ndim < comm.ndim:
        raise ValueError(f"{words_for(operator)}(): a tensor of {input.ndim} dims has no part on a communicator of {comm.ndim}")
    return comm, widths
