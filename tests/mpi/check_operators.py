"""Values, transposes, tangents, batches, dtypes, layouts and sizes of all operators, on each rank."""

from checking import COMM, MPI, RANK, SIZE, cg, drawn, mpi, np, refused, run
from cygrad.operators._messages import agreement, transport
from operator_table import CASES

DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")


def arrays(case, seed=0, dtype="float64"):
    """Return the arrays of all ranks."""
    return [drawn(case.shape(rank), rank, seed, dtype) for rank in range(SIZE)]


def tensor(case, seed=0, dtype="float64"):
    return cg.tensor(arrays(case, seed, dtype)[RANK])


def same(tensor, array):
    assert tuple(tensor.shape) == np.shape(array), (tensor.shape, np.shape(array))
    np.testing.assert_array_equal(tensor.detach().numpy(), array)


def over_ranks(number):
    return COMM.allreduce(number)


def inner(a, b):
    return float((a.detach() * b.detach()).sum())


def check_values_in_every_dtype():
    for name, case in CASES.items():
        for dtype in DTYPES:
            result = case.call(tensor(case, dtype=dtype))
            assert result.dtype.name == dtype, name
            same(result, case.expected(arrays(case, dtype=dtype)))


def check_a_gradient_is_the_transpose():
    """The sum over ranks of <w, f(x)> is the sum over ranks of <f'(w), x>."""
    for name, case in CASES.items():
        x = tensor(case).requires_grad_()
        y = case.call(x)
        w = cg.tensor(drawn(tuple(y.shape), seed=5))
        (gradient,) = cg.autograd.grad(y, x, w)
        assert gradient.shape == x.shape, name
        if name in ("total", "replicate", "total of rows", "replicate in rows"):
            continue        # of one tensor that all ranks have a copy of
        assert over_ranks(inner(w, y)) == over_ranks(inner(gradient, x)), name


def check_gradients_of_copies():
    """`total` hands a gradient on, `replicate` sums it."""
    for call, expected in ((mpi.total, lambda w: w[RANK]), (mpi.replicate, lambda w: sum(w))):
        x = cg.ones(3, dtype=cg.float64, requires_grad=True)
        (gradient,) = cg.autograd.grad(call(x), x, cg.tensor(drawn((3,), seed=2)))
        same(gradient, expected([drawn((3,), rank, 2) for rank in range(SIZE)]))
    x = cg.ones(2, 3, dtype=cg.float64, requires_grad=True)
    (gradient,) = cg.autograd.grad(mpi.total(x, reproducible=True), x, cg.tensor(drawn((3,), seed=2)))
    same(gradient, np.stack([drawn((3,), seed=2)] * 2))
    x = cg.ones(3, dtype=cg.float64, requires_grad=True)
    (gradient,) = cg.autograd.grad(mpi.replicate(x, rows=2), x, cg.tensor(drawn((2, 3), seed=2)))
    same(gradient, sum(drawn((2, 3), rank, 2).sum(0) for rank in range(SIZE)))


def check_second_derivatives_are_the_operator_again():
    for case in CASES.values():
        x = tensor(case).requires_grad_()
        y = case.call(x)
        w = cg.tensor(drawn(tuple(y.shape), seed=5), requires_grad=True)
        (gradient,) = cg.autograd.grad(y, x, w, create_graph=True)
        v = cg.tensor(drawn(tuple(x.shape), seed=6))
        (second,) = cg.autograd.grad(gradient, w, v)
        same(second, case.call(v).numpy())


def check_squares_have_second_derivatives():
    """Of the sum over ranks of sum(f(x)**2) / 2 the Hessian is f' f."""
    for case in CASES.values():
        x = tensor(case).requires_grad_()
        y = case.call(x)
        (gradient,) = cg.autograd.grad((y * y).sum() / 2, x, create_graph=True)
        v = cg.tensor(drawn(tuple(x.shape), seed=6))
        (product,) = cg.autograd.grad(gradient, x, v)
        u = v.clone().requires_grad_()
        z = case.call(u)
        (expected,) = cg.autograd.grad(z, u, z.detach())
        same(product, expected.numpy())


def check_tangents_go_by_the_same_message():
    for case in CASES.values():
        x, v = tensor(case), tensor(case, seed=3)
        y, tangent = cg.func.jvp(case.call, (x,), (v,))
        same(y, case.call(x).numpy())
        same(tangent, case.call(v).numpy())


def check_examples_go_in_one_message():
    """And equal the examples one by one."""
    from cygrad.operators._messages import transport
    count, perform = [], transport.OPERATIONS["allreduce"]
    transport.OPERATIONS["allreduce"] = lambda *message: count.append(1) or perform(*message)
    cg.func.vmap(mpi.allreduce)(cg.ones(5, 2))
    transport.OPERATIONS["allreduce"] = perform
    assert len(count) == 1
    for case in CASES.values():
        batch = cg.stack([tensor(case, seed=seed) for seed in range(4)])
        expected = cg.stack([case.call(example) for example in batch])
        same(cg.func.vmap(case.call)(batch), expected.numpy())
        same(cg.func.vmap(case.call, in_dims=-1)(batch.movedim(0, -1)), expected.numpy())
        gradients = cg.func.vmap(cg.func.grad(lambda x, case=case: (case.call(x) ** 2).sum()))(batch)
        assert gradients.shape == batch.shape


def check_layouts_and_empty_tensors():
    wide = cg.tensor(drawn((4, 6)))
    for view in (wide.T, wide[::2, 1::2], wide[1], wide[0, 0], wide[:0], wide[:, :0], wide[:1].expand(3, 6)):
        parts = np.stack(COMM.allgather(view.numpy()))
        same(mpi.allreduce(view), parts.sum(0))
        same(mpi.allgather(view), parts)
        same(mpi.bcast(view, root=SIZE - 1), parts[-1])
        same(mpi.total(view), parts.sum(0))


def check_numbers_that_mpi_lacks_travel():
    for dtype in (cg.float16, cg.bfloat16, cg.bool):
        x = cg.tensor([0.0, 1.0, 2.5, -3.0]).to(dtype)
        assert mpi.bcast(x).dtype == dtype and mpi.allgather(x)[SIZE - 1].tolist() == x.tolist()
        assert mpi.alltoall(x[:1].expand(SIZE)).tolist() == [x[0].item()] * SIZE
    refused(TypeError, lambda: mpi.allreduce(cg.ones(2, dtype=cg.float16)), "no arithmetic of float16")
    refused(TypeError, lambda: mpi.total(cg.ones(2, dtype=cg.bfloat16)), "no arithmetic of bfloat16")
    refused(TypeError, lambda: mpi.allreduce(cg.ones(2, dtype=cg.bool)), "no sum of bool")
    refused(TypeError, lambda: mpi.allreduce(cg.ones(2, dtype=cg.complex64), "max"), "no max of complex64")


def check_reductions():
    parts = [drawn((5,), rank, dtype="int64") for rank in range(SIZE)]
    x = cg.tensor(parts[RANK])
    for name, function in (("max", np.maximum), ("min", np.minimum), ("prod", np.multiply), ("band", np.bitwise_and),
                           ("bor", np.bitwise_or), ("bxor", np.bitwise_xor)):
        for op in (name, getattr(MPI, name.upper())):
            same(mpi.allreduce(x, op), function.reduce(parts))
            same(mpi.reduce(x, op=op), function.reduce(parts) * (RANK == 0))
    same(mpi.allreduce(x > 0, "land"), np.logical_and.reduce([part > 0 for part in parts]))
    own = MPI.Op.Create(lambda a, b, kind: None, commute=True)
    refused(NotImplementedError, lambda: mpi.allreduce(cg.ones(2, requires_grad=True), own), "no derivative")
    own.Free()


def check_other_reductions_have_no_derivative():
    x = cg.ones(3, requires_grad=True)
    for op in ("max", "min", "prod", MPI.MAX):
        refused(NotImplementedError, lambda op=op: mpi.allreduce(x, op), "has no derivative")
        refused(NotImplementedError, lambda op=op: mpi.reduce(x, op), "has no derivative")
        refused(NotImplementedError, lambda op=op: mpi.iallreduce(x, op), "has no derivative")
        refused(NotImplementedError, lambda op=op: cg.func.jvp(lambda t: mpi.allreduce(t, op), (cg.ones(2),), (cg.ones(2),)), "derivative")
        with cg.no_grad():
            assert not mpi.allreduce(x, op).requires_grad
        assert mpi.allreduce(x.detach(), op).tolist() == [1.0] * 3


def check_messages_of_more_elements_than_a_count_holds():
    """With a lowered limit: every call is split, and every round smaller than a block."""
    expected = {name: case.call(tensor(case)) for name, case in CASES.items()}
    before, transport.largest_count = transport.largest_count, lambda: 2
    try:
        for name, case in CASES.items():
            same(case.call(tensor(case)), expected[name].numpy())
    finally:
        transport.largest_count = before


def check_debug_ends_with_its_block():
    def fail():
        with mpi.debug(timeout=5):
            raise ValueError("in the block")

    refused(ValueError, fail, "in the block")
    assert agreement.debug.timeout is None


def check_bad_input_is_refused_on_every_rank():
    x, freed = cg.ones(SIZE + 1, 2), COMM.Dup()
    freed.Free()
    for call in (mpi.allreduce, mpi.allgatherv, mpi.iallreduce, lambda x, comm: mpi.halo_exchange(x, comm)):
        refused(ValueError, lambda call=call: call(x, comm=freed), "COMM_NULL")
        refused(TypeError, lambda call=call: call(x, comm=3), "communicator")
    own = COMM.Dup()
    leaf = cg.ones(2, requires_grad=True)
    results = mpi.allreduce(leaf, comm=own), mpi.iallreduce(leaf, comm=own).wait()
    own.Free()
    for result in results:
        refused(ValueError, lambda result=result: result.sum().backward(), "COMM_NULL")
    refused(ValueError, lambda: mpi.allreduce(x, "average"), "argument 'op' must be one of")
    refused(TypeError, lambda: mpi.allreduce(x, 3), "argument 'op'")
    refused(ValueError, lambda: mpi.allreduce(x, "max", reproducible=True), "for sums")
    refused(ValueError, lambda: mpi.allreduce(cg.tensor(1.0), reproducible=True), "0 dims")
    for call in (mpi.reduce, mpi.bcast, mpi.gather, mpi.scatter, mpi.gatherv):
        refused(ValueError, lambda call=call: call(x, root=SIZE), "out of range")
        refused(TypeError, lambda call=call: call(x, root=1.5), "must be int")
    refused(ValueError, lambda: mpi.alltoall(x), "as long as there are ranks")
    refused(ValueError, lambda: mpi.reduce_scatter(x), "as long as there are ranks")
    refused(ValueError, lambda: mpi.scatterv(x, [1] * (SIZE + 1)), "numbers of rows")
    refused(ValueError, lambda: mpi.alltoallv(x, [1] * SIZE), "add up to")
    refused(ValueError, lambda: mpi.alltoallv(x, [-1] * SIZE), "numbers of rows")
    refused(TypeError, lambda: mpi.alltoallv(x, 3), "sequence of ints")
    refused(ValueError, lambda: mpi.sendrecv(x, SIZE, 0), "dest=")
    refused(ValueError, lambda: mpi.sendrecv(x, 0, MPI.ANY_SOURCE), "ANY_SOURCE")
    refused(ValueError, lambda: mpi.sendrecv(x, 0, 0, sendtag=-1), "sendtag")
    refused(ValueError, lambda: mpi.halo_exchange(x, COMM), "not Cartesian")
    grid = COMM.Create_cart([SIZE, 1])
    refused(ValueError, lambda: mpi.halo_exchange(x, grid, (1, 3)), "3 wide")
    refused(ValueError, lambda: mpi.halo_exchange(x[0], grid), "1 dims")
    refused(ValueError, lambda: mpi.halo_exchange(x, grid, (1, 1, 1)), "width=")
    refused(ValueError, lambda: mpi.halo_add(x, grid, 2), "2 wide")
    refused(ValueError, lambda: mpi.replicate(x, rows=-1), "negative")
    refused(TypeError, lambda: mpi.allreduce([1.0]), "must be Tensor")


if __name__ == "__main__":
    run(globals())
