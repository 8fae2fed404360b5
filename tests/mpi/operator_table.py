"""The operators with a tensor as result: a call, the shape of a rank's tensor, and the result by NumPy from all ranks' arrays."""

from typing import Any, NamedTuple

from checking import COMM, MPI, RANK, SIZE, mpi, np

LAST = SIZE - 1
RING = COMM.Create_cart([SIZE], [True])
LINE = COMM.Create_cart([SIZE], [False])
GRID = COMM.Create_cart(MPI.Compute_dims(SIZE, 2), [True, False])
NUMBERS = [(r + 1) % 3 for r in range(SIZE)]                    # of rows, by rank
SENT = [[(r + 2 * s) % 3 for s in range(SIZE)] for r in range(SIZE)]        # rows from rank r to rank s


class Case(NamedTuple):
    call: Any           # of a tensor
    shape: Any          # of a rank's tensor, by its rank
    expected: Any       # the result on this rank, of the arrays of all ranks


def equal(*shape):
    return lambda rank: shape


def only_at(rank, result):
    """Return a result that a rank has; zeros of its shape stand on the others."""
    return result if rank == RANK else np.zeros_like(result)


def rows_from(parts, counts):
    """Return this rank's rows of all ranks' arrays, of which `counts[r][s]` go from rank r to rank s."""
    starts = [sum(row[:RANK]) for row in counts]
    return np.concatenate([part[start:start + row[RANK]] for part, start, row in zip(parts, starts, counts, strict=True)])


def assembled(parts, comm, shape):
    """Return the whole field of a grid of parts."""
    dims = tuple(comm.dims)
    field = np.zeros([count * size for count, size in zip(dims, shape, strict=False)] + [*shape[len(dims):]], parts[0].dtype)
    for rank, part in enumerate(parts):
        place = comm.Get_coords(rank)
        field[tuple([slice(at * size, (at + 1) * size) for at, size in zip(place, shape, strict=False)])] = part
    return field


def with_halo(parts, comm, shape, widths):
    """Return this rank's part with its halo, cut from the padded whole field."""
    field = assembled(parts, comm, shape)
    for d, (width, periodic) in enumerate(zip(widths, comm.periods, strict=True)):
        pad = [(width, width) if k == d else (0, 0) for k in range(field.ndim)]
        field = np.pad(field, pad, mode="wrap" if periodic else "constant")
    place = comm.Get_coords(RANK)
    return field[tuple([slice(at * size, (at + 1) * size + 2 * width) for at, size, width in zip(place, shape, widths, strict=False)])]


CASES = {
    "allreduce": Case(lambda x: mpi.allreduce(x), equal(2, 3), lambda parts: sum(parts)),
    "allreduce of rows": Case(lambda x: mpi.allreduce(x, reproducible=True), lambda r: (NUMBERS[r], 3),
                              lambda parts: np.concatenate(parts).sum(0)),
    "total": Case(lambda x: mpi.total(x), equal(2, 3), lambda parts: sum(parts)),
    "total of rows": Case(lambda x: mpi.total(x, reproducible=True), lambda r: (NUMBERS[r], 2), lambda parts: np.concatenate(parts).sum(0)),
    "replicate": Case(lambda x: mpi.replicate(x), equal(4), lambda parts: parts[RANK]),
    "replicate in rows": Case(lambda x: mpi.replicate(x, rows=RANK + 1), equal(4), lambda parts: np.stack([parts[RANK]] * (RANK + 1))),
    "reduce": Case(lambda x: mpi.reduce(x, root=LAST), equal(3), lambda parts: only_at(LAST, sum(parts))),
    "reduce_scatter": Case(lambda x: mpi.reduce_scatter(x), equal(SIZE, 3), lambda parts: sum(parts)[RANK]),
    "bcast": Case(lambda x: mpi.bcast(x, root=LAST), equal(3, 2), lambda parts: parts[LAST]),
    "gather": Case(lambda x: mpi.gather(x, root=LAST), equal(3), lambda parts: np.stack(parts)[:SIZE * (RANK == LAST)]),
    "gather of numbers": Case(lambda x: mpi.gather(x), equal(), lambda parts: np.stack(parts)[:SIZE * (RANK == 0)]),
    "allgather": Case(lambda x: mpi.allgather(x), equal(2, 2), lambda parts: np.stack(parts)),
    "scatter": Case(lambda x: mpi.scatter(x, root=LAST), equal(SIZE, 3), lambda parts: parts[LAST][RANK]),
    "scatter of rows that most ranks lack": Case(lambda x: mpi.scatter(x), lambda r: (SIZE if r == 0 else 0, 3),
                                                 lambda parts: parts[0][RANK]),
    "alltoall": Case(lambda x: mpi.alltoall(x), equal(SIZE, 2), lambda parts: np.stack([part[RANK] for part in parts])),
    "gatherv": Case(lambda x: mpi.gatherv(x), lambda r: (NUMBERS[r], 2),
                    lambda parts: np.concatenate(parts) if RANK == 0 else np.zeros((0, 2), parts[0].dtype)),
    "allgatherv": Case(lambda x: mpi.allgatherv(x), lambda r: (NUMBERS[r], 2), lambda parts: np.concatenate(parts)),
    "scatterv": Case(lambda x: mpi.scatterv(x, NUMBERS, root=LAST), lambda r: (sum(NUMBERS), 2),
                     lambda parts: np.split(parts[LAST], np.cumsum(NUMBERS[:-1]))[RANK]),
    "alltoallv": Case(lambda x: mpi.alltoallv(x, SENT[RANK]), lambda r: (sum(SENT[r]), 2), lambda parts: rows_from(parts, SENT)),
    "sendrecv around": Case(lambda x: mpi.sendrecv(x, (RANK + 1) % SIZE, (RANK - 1) % SIZE, sendtag=3, recvtag=3), equal(2),
                            lambda parts: parts[RANK - 1]),
    "sendrecv along": Case(lambda x: mpi.sendrecv(x, RANK + 1 if RANK < LAST else None, RANK - 1 if RANK else None), equal(2),
                           lambda parts: parts[RANK - 1] if RANK else np.zeros_like(parts[0])),
    "sendrecv of other shapes": Case(
        lambda x: mpi.sendrecv(x, (RANK + 1) % SIZE, (RANK - 1) % SIZE, shape=((RANK - 1) % SIZE + 1, 2)), lambda r: (r + 1, 2),
        lambda parts: parts[RANK - 1]),
    "halo_exchange in a ring": Case(lambda x: mpi.halo_exchange(x, RING, 2), equal(3), lambda parts: with_halo(parts, RING, (3,), (2,))),
    "halo_exchange on a line": Case(lambda x: mpi.halo_exchange(x, LINE, 1), equal(1, 2),
                                    lambda parts: with_halo(parts, LINE, (1, 2), (1,))),
    "halo_exchange of a plane": Case(lambda x: mpi.halo_exchange(x, GRID, (2, 1)), equal(3, 2),
                                     lambda parts: with_halo(parts, GRID, (3, 2), (2, 1))),
    "halo_exchange of components": Case(lambda x: mpi.halo_exchange(x, GRID, (0, 2)), equal(2, 2, 3),
                                        lambda parts: with_halo(parts, GRID, (2, 2, 3), (0, 2))),
}
