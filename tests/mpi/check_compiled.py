"""Captured functions that send messages: each message is sent once in each call, on each rank, whichever ranks replay."""

import warnings

from check_operators import same, tensor
from checking import COMM, MPI, RANK, SIZE, cg, drawn, mpi, refused, run
from operator_table import CASES


def check_operators_replay():
    for name, case in CASES.items():
        function = cg.compile(case.call, fullgraph=True)
        for seed in range(3):
            same(function(tensor(case, seed)), case.call(tensor(case, seed)).numpy())
        assert function.cache_info()[:3] == (2, 1, 0), name


def check_gradients_in_a_function_replay():
    for name, case in CASES.items():
        def gradient(x, w, case=case):
            x = x.detach().requires_grad_()
            return cg.autograd.grad(case.call(x), x, w)[0]

        function = cg.compile(gradient, fullgraph=True)
        for seed in range(3):
            x = tensor(case, seed)
            w = cg.tensor(drawn(tuple(case.call(x).shape), seed=5 + seed))
            same(function(x, w), gradient(x, w).numpy())
        assert function.cache_info()[:3] == (2, 1, 0), name


def check_ranks_that_replay_meet_ranks_that_do_not():
    """One rank has no program for the second call, and one runs the function itself."""
    def summed(x, unused):
        return mpi.allreduce(x.exp(), comm=COMM) * 2

    function = summed if RANK == SIZE - 1 else cg.compile(summed)
    for number in range(3):
        x = cg.tensor(drawn((3,), seed=number)) / 8
        same(function(x, number if RANK == 0 else 0), summed(x, 0).numpy())


def check_a_send_and_its_receive_replay():
    def handed_on(x):
        into = cg.zeros(2, dtype=cg.float64)
        if RANK % 2 == 0 and RANK + 1 < SIZE:
            mpi.send(x * 2, RANK + 1)
        elif RANK % 2:
            mpi.recv(into, RANK - 1)
        return into

    function = cg.compile(handed_on, fullgraph=True)
    for seed in range(3):
        expected = 2 * drawn((2,), RANK - 1, seed) if RANK % 2 else [0, 0]
        same(function(cg.tensor(drawn((2,), seed=seed))), expected)
    assert function.cache_info().hits == 2


def check_a_tape_in_a_function():
    def gradient(x):
        x = x.detach().requires_grad_()
        with mpi.Tape() as tape:
            total = mpi.reduce(x * x)
        return tape.grad(total.sum() if RANK == 0 else (), x)[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        function = cg.compile(gradient)
        for seed in range(3):
            x = cg.tensor(drawn((2,), seed=seed))
            same(function(x), 2 * x.numpy())


def check_functions_run_as_they_are_in_a_tape():
    """A program has no token for a message."""
    function = cg.compile(lambda x: mpi.sendrecv(x, (RANK + 1) % SIZE, (RANK - 1) % SIZE), fullgraph=True)
    x = cg.tensor(drawn((2,)))
    function(x)
    with mpi.Tape() as tape:
        y = function(x)
    assert y.requires_grad
    tape.backward()


def check_messages_that_would_be_sent_twice_are_not_captured():
    x, leaf = cg.tensor(drawn((2,))), cg.ones(2, dtype=cg.float64, requires_grad=True)

    def branches(x):
        return mpi.allreduce(x) + (1 if x[0] > RANK else 2)

    class Sends(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return mpi.allreduce(g)

    refused(RuntimeError, lambda: cg.compile(branches, fullgraph=True)(x), "checks values after it")
    refused(RuntimeError, lambda: cg.compile(mpi.allreduce, fullgraph=True)(leaf), "compute the gradients in it")
    refused(RuntimeError, lambda: cg.compile(Sends.apply, fullgraph=True)(leaf), "it sends a message")
    assert mpi.allreduce(cg.tensor(1)).item() == SIZE        # no message is left over


def check_other_messages_are_not_captured():
    def pending(x):
        return mpi.iallreduce(x).wait()

    def barrier(x):
        mpi.barrier()
        return x * 2

    for function in (pending, barrier):
        refused(RuntimeError, lambda function=function: cg.compile(function, fullgraph=True)(cg.ones(2)), "cannot be captured")


def check_a_message_on_a_freed_communicator():
    comm = COMM.Dup()
    function = cg.compile(lambda x: mpi.allreduce(x, comm=comm), fullgraph=True)
    function(cg.ones(2))
    comm.Free()
    refused(ValueError, lambda: function(cg.ones(2)), "communicator")


if __name__ == "__main__":
    assert MPI.Is_initialized()
    run(globals())
