"""Tapes, messages that are waited for later, and messages of pairs: gradients where the graphs of ranks differ."""

from checking import MPI, RANK, SIZE, cg, drawn, mpi, np, refused, run

LAST = SIZE - 1


def leaf(seed=0, shape=(3,)):
    return cg.tensor(drawn(shape, seed=seed), requires_grad=True)


def of_rank(rank, seed=0, shape=(3,)):
    return drawn(shape, rank, seed)


def close(tensor, array):
    np.testing.assert_allclose(tensor.detach().numpy(), array, rtol=1e-12, atol=1e-12)


def check_a_loss_on_some_ranks_only():
    """The loss of the last rank reads sums that all ranks take part in; the others have none."""
    x = leaf()
    with mpi.Tape() as tape:
        total = mpi.allreduce(x * x)
        first = mpi.bcast(x, root=0)
        mpi.gather(x, root=0)           # leads to no loss at all
    tape.backward((total * total).sum() + first.sum() if RANK == LAST else ())
    square_sum = sum(of_rank(r) ** 2 for r in range(SIZE))
    close(x.grad, 4 * square_sum * of_rank(RANK) + (RANK == 0))


def check_data_without_a_gradient_on_some_ranks():
    x = leaf()
    mine = x if RANK == 0 else cg.tensor(drawn((3,)))
    with mpi.Tape() as tape:
        y = mpi.allreduce(mine)
    tape.backward((y * y).sum())
    if RANK == 0:
        close(x.grad, 2 * SIZE * sum(of_rank(r) for r in range(SIZE)))
    else:
        assert x.grad is None


def check_send_and_recv():
    """Each rank sends to the next one, which squares; the last has the loss."""
    x = leaf()
    with mpi.Tape() as tape:
        y = x * 2
        if RANK:
            y = y + mpi.recv(cg.zeros(3, dtype=cg.float64), RANK - 1, tag=7) ** 2
        if RANK < LAST:
            mpi.send(y, RANK + 1, tag=7)
    tape.backward(y.sum() if RANK == LAST else ())
    values, slopes = [], np.ones(3)
    for r in range(SIZE):
        values.append(of_rank(r) * 2 + (values[-1] ** 2 if r else 0))
    for r in reversed(range(RANK, LAST)):
        slopes = slopes * 2 * values[r]
    close(x.grad, slopes * 2)


def check_received_into_a_part_of_a_tensor():
    x = leaf()
    with mpi.Tape() as tape:
        field = cg.zeros(2, 3, dtype=cg.float64)
        if RANK % 2 == 0:
            mpi.send(x, RANK + 1)
        else:
            part = field[1]
            assert mpi.recv(part, RANK - 1) is part
    version = field._version
    assert version == RANK % 2
    tape.backward((field * field).sum() if RANK % 2 else ())
    close(x.grad if x.grad is not None else cg.zeros(3, dtype=cg.float64), 2 * of_rank(RANK) if RANK % 2 == 0 else np.zeros(3))


def check_exchanges_that_block_in_no_order():
    """All ranks start to receive, then to send, far more than MPI buffers; also backwards."""
    n = 200_000
    x = leaf(shape=(n,))
    with mpi.Tape() as tape:
        received = mpi.irecv(cg.zeros(n, dtype=cg.float64), (RANK - 1) % SIZE)
        sent = mpi.isend(x * 3, (RANK + 1) % SIZE)
        y = received.wait()
        sent.wait()
    assert received.wait() is y and received.test()
    close(y, 3 * of_rank((RANK - 1) % SIZE, shape=(n,)))
    tape.backward((y * y).sum() / 2)
    close(x.grad, 9 * of_rank(RANK, shape=(n,)))


def check_iallreduce():
    x = leaf()
    handle = mpi.iallreduce(x * x)
    other = mpi.iallreduce(x)
    y = handle.wait() * other.wait()
    y.sum().backward()
    s, q = sum(of_rank(r) for r in range(SIZE)), sum(of_rank(r) ** 2 for r in range(SIZE))
    close(y, s * q)
    close(x.grad, SIZE * (s * 2 * of_rank(RANK) + q))
    with mpi.Tape() as tape:
        y = mpi.iallreduce(x).wait()
    x.grad = None
    tape.backward(y.sum() if RANK == 0 else ())
    close(x.grad, np.ones(3))
    z, tangent = cg.func.jvp(lambda t: mpi.iallreduce(t).wait(), (x.detach(),), (cg.ones(3, dtype=cg.float64),))
    close(tangent, np.full(3, SIZE))
    assert cg.func.vmap(lambda t: mpi.iallreduce(t).wait())(cg.ones(2, 3)).tolist() == [[float(SIZE)] * 3] * 2


def check_second_derivatives_through_a_tape():
    """Of the loss sum((2 x_0)**3) on rank 1, whose graph begins with a received tensor."""
    for nonblocking in (False, True):
        x = leaf()
        with mpi.Tape() as tape:
            y = cg.zeros(3, dtype=cg.float64)
            if RANK == 0:
                if nonblocking:
                    mpi.isend(x * 2, 1).wait()
                else:
                    mpi.send(x * 2, 1)
            if RANK == 1:
                y = mpi.irecv(y, 0).wait() if nonblocking else mpi.recv(y, 0)
        (gradient,) = tape.grad((y ** 3).sum() if RANK == 1 else (), x, create_graph=True)
        if RANK == 0:
            close(gradient, 24 * of_rank(0) ** 2)
        (second,) = tape.grad(gradient.sum() if RANK == 0 else (), x)
        if RANK == 0:
            close(second, 48 * of_rank(0))


def check_tapes_and_examples():
    x = cg.tensor(drawn((4, 3)), requires_grad=True)
    with mpi.Tape() as tape:
        y = cg.func.vmap(mpi.allreduce)(x)
    tape.backward(y.sum() if RANK == 0 else ())
    close(x.grad, np.ones((4, 3)))
    with mpi.Tape() as tape:
        y = mpi.allreduce(cg.arange(3))         # without gradients
        with cg.no_grad():
            mpi.allreduce(x)
    tape.backward()
    assert not y.requires_grad


def check_checkpoints_send_again():
    x = leaf()
    y = cg.checkpoint.checkpoint(lambda t: mpi.allreduce(t * t).exp(), x / 100, use_reentrant=False)
    y.sum().backward()
    q = sum((of_rank(r) / 100) ** 2 for r in range(SIZE))
    close(x.grad, SIZE * np.exp(q) * 2 * of_rank(RANK) / 100 / 100)


def check_misuse_is_refused():
    x = leaf()
    refused(RuntimeError, lambda: mpi.send(x, 0), "mpi.Tape")
    refused(RuntimeError, lambda: mpi.isend(x, 0), "mpi.Tape")
    refused(RuntimeError, lambda: mpi.recv(x, RANK), "leaf Variable")
    refused(ValueError, lambda: mpi.send(x.detach(), SIZE), "dest=")
    refused(ValueError, lambda: mpi.recv(x.detach(), MPI.ANY_SOURCE), "ANY_SOURCE")
    refused(ValueError, lambda: mpi.recv(x.detach(), 0, tag=1 << 20), "tag=")
    refused(RuntimeError, lambda: cg.func.vmap(lambda t: mpi.isend(t, 0))(cg.ones(2, 2)), "isend")
    tape = mpi.Tape()
    with tape:
        refused(RuntimeError, lambda: tape.backward(), "after the block")
    refused(RuntimeError, lambda: tape.__enter__(), "entered once")


def check_without_gradients_no_tape_is_needed():
    for dtype in (cg.float64, cg.bfloat16, cg.int16, cg.bool):
        x = cg.arange(6).reshape(2, 3).to(dtype)
        y = cg.zeros(3, 2, dtype=dtype).T           # strided
        handle = mpi.isend(x, (RANK + 1) % SIZE)
        version = y._version
        assert mpi.recv(y, (RANK - 1) % SIZE) is y and y._version == version + 1
        assert handle.wait() is x and y.tolist() == x.tolist(), (dtype, x, y)
        dense = cg.zeros(2, 3, dtype=dtype)
        waiting = mpi.irecv(dense, (RANK - 1) % SIZE)
        mpi.send(x, (RANK + 1) % SIZE)
        assert waiting.wait() is dense and dense._version == 1 and dense.tolist() == x.tolist()


if __name__ == "__main__":
    run(globals())
