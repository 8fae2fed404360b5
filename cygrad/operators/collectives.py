"""Messages among all processes of a communicator: sums, copies, and blocks that are put together or dealt out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad.operators._language.declaration import operator
from cygrad.operators._messages.checks import checked_communicator, checked_counts, checked_rank, checked_rows, words_for
from cygrad.operators._messages.library import reduction
from cygrad.operators._messages.message import Message, Side
from cygrad.operators.transfers import sent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


# ----- Sums -----
@operator
def mpi_allreduce(input: Tensor, op: Any = "sum", *, comm: Any = None, reproducible: bool = False) -> Tensor:
    """The reduction of all ranks' tensors, element by element, on each rank.

    `op` is "sum", "max", "min", "prod", "land", "lor", "lxor", "band", "bor", "bxor" or an `MPI.Op`; only sums have a derivative. The
    gradient is the sum of all ranks' gradients, as each rank's result depends on each rank's tensor. Where all ranks compute the same loss
    from the sum, and so count it as often as there are ranks, `total` has the gradient of one loss.

    With `reproducible` the rows are summed, too: dim 0 of `input` is this rank's part of the rows of one array. The bits of the sum depend
    neither on the number of ranks nor on the distribution of rows.

    Raises TypeError where MPI has no such reduction of the dtype or `comm` is no communicator, ValueError for a freed communicator and an
    unknown `op`, NotImplementedError for a gradient of another reduction than a sum, RuntimeError after MPI_Finalize.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> x = cygrad.tensor([1., 2.], requires_grad=True)
    >>> mpi.allreduce(x).tolist()                           # of one process
    [1.0, 2.0]
    """
    comm = checked_communicator(mpi_allreduce, comm)
    if reproducible:
        return mpi_replicate(mpi_total(input, comm=comm, reproducible=_is_sum(op)), comm=comm)
    shape = input.shape
    return sent(input, Message("allreduce", comm, Side(shape), Side(shape), 0, reduction("mpi.allreduce", op)))


def _is_sum(op: Any) -> bool:
    """Return True; refuse other reductions, as their bits depend on no order."""
    if reduction("mpi.allreduce", op).name != "sum":
        raise ValueError("mpi.allreduce(): argument 'reproducible' is for sums; the bits of the other reductions depend on no order")
    return True


@operator
def mpi_total(input: Tensor, *, comm: Any = None, reproducible: bool = False) -> Tensor:
    """The sum of all ranks' tensors as one tensor that the ranks have a copy of each: its gradient is not summed.

    It is the end of data-parallel programs, whose ranks compute the same loss from it; `replicate` is their beginning. With `reproducible`
    the rows are summed as by `allreduce`.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> x = cygrad.ones(3, requires_grad=True)
    >>> mpi.total((x * x).sum()).backward()
    >>> x.grad
    tensor([2., 2., 2.])
    """
    comm, shape = checked_communicator(mpi_total, comm), input.shape
    if not reproducible:
        return sent(input, Message("total", comm, Side(shape), Side(shape)))
    checked_rows(mpi_total, input)
    return sent(input, Message("row_total", comm, Side(shape), Side(shape[1:])))


@operator
def mpi_replicate(input: Tensor, *, comm: Any = None, rows: int | None = None) -> Tensor:
    """The same tensor, of which all ranks have a copy: the gradient is the sum of all ranks' gradients.

    Parameters that all ranks hold go through it once, and each rank computes with its own data. With `rows` the result has that many equal
    rows, one for each row of this rank's data: the gradient is their sum over all ranks, with the same bits for any distribution of rows.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> x = cygrad.tensor(2., requires_grad=True)
    >>> (mpi.replicate(x, rows=3) * cygrad.tensor([1., 2., 3.])).sum().backward()
    >>> x.grad
    tensor(6.)
    """
    comm, shape = checked_communicator(mpi_replicate, comm), input.shape
    if rows is None:
        return sent(input, Message("replicate", comm, Side(shape), Side(shape)))
    if rows < 0:
        raise ValueError(f"{words_for(mpi_replicate)}(): rows={rows} must not be negative")
    return sent(input, Message("rows", comm, Side(shape), Side((rows, *shape))))


@operator
def mpi_reduce(input: Tensor, op: Any = "sum", *, root: int = 0, comm: Any = None) -> Tensor:
    """The reduction of all ranks' tensors on the rank `root`; zeros on the others. Arguments and errors are `allreduce`'s.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.reduce(cygrad.tensor([1, 5]), "max")
    tensor([1, 5])
    """
    comm, shape = checked_communicator(mpi_reduce, comm), input.shape
    root = checked_rank(mpi_reduce, "root", root, comm)
    return sent(input, Message("reduce", comm, Side(shape), Side(shape), root, reduction("mpi.reduce", op)))


@operator
def mpi_reduce_scatter(input: Tensor, op: Any = "sum", *, comm: Any = None) -> Tensor:
    """The reduction of all ranks' tensors, of whose first dim, as long as there are ranks, each rank has its own index.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.reduce_scatter(cygrad.tensor([[1., 2.]]))
    tensor([1., 2.])
    """
    comm = checked_communicator(mpi_reduce_scatter, comm)
    shape = _block_for_each_rank(mpi_reduce_scatter, input, comm)
    return sent(input, Message("reduce_scatter", comm, Side(shape), Side(shape[1:]), 0, reduction("mpi.reduce_scatter", op)))


# ----- Copies -----
@operator
def mpi_bcast(input: Tensor, *, root: int = 0, comm: Any = None) -> Tensor:
    """The tensor of the rank `root`, on each rank. The others give a tensor of the same shape and dtype, whose values are not read.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.bcast(cygrad.tensor([1, 5]))
    tensor([1, 5])
    """
    comm, shape = checked_communicator(mpi_bcast, comm), input.shape
    return sent(input, Message("bcast", comm, Side(shape), Side(shape), checked_rank(mpi_bcast, "root", root, comm)))


@operator
def mpi_gather(input: Tensor, *, root: int = 0, comm: Any = None) -> Tensor:
    """All ranks' tensors on the rank `root`, stacked along a new first dim; on the others a tensor without elements.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.gather(cygrad.tensor([1, 5]))
    tensor([[1, 5]])
    """
    comm, shape = checked_communicator(mpi_gather, comm), input.shape
    root = checked_rank(mpi_gather, "root", root, comm)
    return sent(input, Message("gather", comm, Side(shape), Side((comm.size if comm.rank == root else 0, *shape)), root))


@operator
def mpi_allgather(input: Tensor, *, comm: Any = None) -> Tensor:
    """All ranks' tensors, stacked along a new first dim, on each rank.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.allgather(cygrad.tensor([1, 5]))
    tensor([[1, 5]])
    """
    comm, shape = checked_communicator(mpi_allgather, comm), input.shape
    return sent(input, Message("allgather", comm, Side(shape), Side((comm.size, *shape))))


@operator
def mpi_scatter(input: Tensor, *, root: int = 0, comm: Any = None) -> Tensor:
    """The index of this rank along the first dim of the tensor of the rank `root`.

    The others give a tensor of the same dtype with the same further dims; their first dim may have any length, and its values are not
    read. Raises ValueError where the first dim is not as long as there are ranks.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.scatter(cygrad.tensor([[1, 5]]))
    tensor([1, 5])
    """
    comm = checked_communicator(mpi_scatter, comm)
    root = checked_rank(mpi_scatter, "root", root, comm)
    checked_rows(mpi_scatter, input)
    shape = _block_for_each_rank(mpi_scatter, input, comm) if comm.rank == root else input.shape
    return sent(input, Message("scatter", comm, Side(shape), Side(shape[1:]), root))


@operator
def mpi_alltoall(input: Tensor, *, comm: Any = None) -> Tensor:
    """Index r of the result's first dim is index `rank` of rank r's tensor: the first dim is as long as there are ranks.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.alltoall(cygrad.tensor([[1, 5]]))
    tensor([[1, 5]])
    """
    comm = checked_communicator(mpi_alltoall, comm)
    shape = _block_for_each_rank(mpi_alltoall, input, comm)
    return sent(input, Message("alltoall", comm, Side(shape), Side(shape)))


def _block_for_each_rank(operator: Any, input: Tensor, comm: Any) -> Any:
    """Return the shape of a tensor whose first dim is as long as there are ranks; refuse others."""
    if checked_rows(operator, input) != comm.size:
        raise ValueError(f"{words_for(operator)}(): the first dim must be as long as there are ranks, {comm.size}, but the shape is "
                         f"{list(input.shape)}")
    return input.shape


# ----- Rows -----
@operator
def mpi_gatherv(input: Tensor, *, root: int = 0, comm: Any = None) -> Tensor:
    """The rows of all ranks on the rank `root`, joined along dim 0; on the others a tensor without rows.

    Ranks may have different numbers of rows, which they exchange by a message before.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.gatherv(cygrad.tensor([1, 5]))
    tensor([1, 5])
    """
    comm = checked_communicator(mpi_gatherv, comm)
    root = checked_rank(mpi_gatherv, "root", root, comm)
    counts = tuple(comm.allgather(checked_rows(mpi_gatherv, input)))
    rows = sum(counts) if comm.rank == root else 0
    return sent(input, Message("gatherv", comm, Side(input.shape), Side((rows, *input.shape[1:]), counts), root))


@operator
def mpi_allgatherv(input: Tensor, *, comm: Any = None) -> Tensor:
    """The rows of all ranks, joined along dim 0, on each rank; ranks may have different numbers of rows.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.allgatherv(cygrad.tensor([1, 5]))
    tensor([1, 5])
    """
    comm = checked_communicator(mpi_allgatherv, comm)
    counts = tuple(comm.allgather(checked_rows(mpi_allgatherv, input)))
    return sent(input, Message("allgatherv", comm, Side(input.shape), Side((sum(counts), *input.shape[1:]), counts)))


@operator
def mpi_scatterv(input: Tensor, counts: Sequence[int], *, root: int = 0, comm: Any = None) -> Tensor:
    """This rank's share of the rows of the tensor of the rank `root`, of which rank r has `counts[r]`, in the order of ranks.

    All ranks give all counts. The others give a tensor of the same dtype with the same further dims, of any number of rows.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.scatterv(cygrad.tensor([1, 5]), [2])
    tensor([1, 5])
    """
    comm = checked_communicator(mpi_scatterv, comm)
    root, rows = checked_rank(mpi_scatterv, "root", root, comm), checked_rows(mpi_scatterv, input)
    counts = checked_counts(mpi_scatterv, counts, comm, rows if comm.rank == root else None)
    return sent(input, Message("scatterv", comm, Side(input.shape, counts), Side((counts[comm.rank], *input.shape[1:])), root))


@operator
def mpi_alltoallv(input: Tensor, counts: Sequence[int], *, comm: Any = None) -> Tensor:
    """The rows that all ranks send to this one, joined in the order of ranks; `counts[r]` of this rank's rows go to rank r.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.alltoallv(cygrad.tensor([1, 5]), [2])
    tensor([1, 5])
    """
    comm = checked_communicator(mpi_alltoallv, comm)
    counts = checked_counts(mpi_alltoallv, counts, comm, checked_rows(mpi_alltoallv, input))
    received = tuple(comm.alltoall(counts))
    shape = (sum(received), *input.shape[1:])
    return sent(input, Message("alltoallv", comm, Side(input.shape, counts), Side(shape, received)))
