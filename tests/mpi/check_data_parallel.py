"""Averaged gradients, SciPy's solvers on replicated parameters, reproducible sums."""

import io
import math
from contextlib import redirect_stderr

from checking import COMM, RANK, SIZE, cg, drawn, mpi, np, refused, run


def check_averages_of_gradients():
    """Of several dtypes, in buckets of any size; where there is none it counts as zeros."""
    for bucket_bytes in (1, 40, 1 << 20):
        weights = [cg.ones(3, dtype=cg.float64, requires_grad=True), cg.ones(2, 2, requires_grad=True),
                   cg.ones(5, dtype=cg.float64, requires_grad=True), cg.tensor(1.0, requires_grad=True)]
        for k, weight in enumerate(weights):
            if k != 2 or RANK == 0:
                (weight * (RANK + k + 1.0)).sum().backward()
        before = [weight.grad for weight in weights]
        mpi.average_gradients(weights, bucket_bytes=bucket_bytes)
        mean = sum(range(SIZE)) / SIZE
        for k, (weight, old) in enumerate(zip(weights, before, strict=True)):
            expected = 3 / SIZE if k == 2 else mean + k + 1
            assert cg.allclose(weight.grad, cg.full_like(weight, expected)), (k, weight.grad)
            assert old is None or weight.grad is old and old._version > 0       # in place
    mpi.average_gradients([])
    refused(TypeError, lambda: mpi.average_gradients([1.0]), "must be Tensors")
    refused(RuntimeError, lambda: mpi.average_gradients([cg.ones(2)]), "does not require a gradient")
    refused(ValueError, lambda: mpi.average_gradients([], bucket_bytes=0), "bucket_bytes")


def check_solvers_run_on_the_same_bits():
    from scipy.optimize import minimize

    rows, targets = np.random.default_rng(0).normal(size=(40, 3)), np.random.default_rng(1).normal(size=40)

    def loss(rows, targets):
        return lambda w: ((cg.tensor(rows) @ w - cg.tensor(targets)) ** 2).sum() + (w ** 4).sum() * (len(rows) / 40)

    f = loss(rows[RANK::SIZE], targets[RANK::SIZE])
    objective = mpi.optimize.value_and_grad(f, np.full(3, float(RANK)))         # the start is rank 0's
    assert not objective.x0.any()
    for method in ("L-BFGS-B", "trust-ncg"):
        products = {"hessp": objective.hessp} if method == "trust-ncg" else {}
        result = minimize(objective, objective.x0, jac=True, method=method, **products)
        points = COMM.allgather((result.x.tobytes(), result.fun, result.nfev))
        assert all(point == points[0] for point in points)
        whole = cg.optimize.value_and_grad(loss(rows, targets), np.zeros(3))
        np.testing.assert_allclose(minimize(whole, np.zeros(3), jac=True, method=method, **({"hessp": whole.hessp} if products else {})).x,
                                   result.x, rtol=1e-4)
    x, p = np.ones(3), np.arange(3.0)
    np.testing.assert_allclose(mpi.optimize.hessp(f, np.zeros(3))(x, p), whole.hessp(x, p), rtol=1e-12)
    assert objective(x)[0] == objective(x)[0]


def check_a_bar_shows_the_sum_on_rank_0():
    shares = (lambda x: (x - RANK).square().sum()), np.zeros(2)
    with redirect_stderr(io.StringIO()) as shown, mpi.optimize.value_and_grad(*shares, progress=True) as objective:
        value, _ = objective(np.ones(2))
    text = shown.getvalue()
    assert f"value {value:.6g}" in text and "gradients: 1" in text if RANK == 0 else not text


def check_reproducible_sums_are_exact_to_the_last_bit_or_so():
    for scale in (1.0, 1e300, 1e-300):
        x = np.random.default_rng(RANK).normal(size=(1000 + RANK, 2)) * scale * [1, 1e-9]
        every = np.concatenate(COMM.allgather(x))
        expected = [math.fsum(column) for column in every.T]
        result = mpi.total(cg.tensor(x), reproducible=True).numpy()
        np.testing.assert_allclose(result, expected, rtol=3e-16 if scale > 1e-300 else 1e-7)


def check_reproducible_sums_of_special_numbers():
    huge = np.finfo(float).max
    first, others = [np.inf, np.nan, -np.inf, huge, 5e-324, 0.0, np.inf], [1.0, 1.0, 1.0, -huge / 2, 5e-324, -0.0, -np.inf]
    with np.errstate(invalid="ignore"):
        result = mpi.total(cg.tensor([others if RANK else first], dtype=cg.float64), reproducible=True).tolist()
    assert result[0] == np.inf and result[2] == -np.inf and np.isnan(result[1]) and (SIZE == 1 or np.isnan(result[6]))
    assert result[3] == huge * (1 - (SIZE - 1) / 2) and result[4] == SIZE * 5e-324 and result[5] == 0
    assert mpi.total(cg.zeros(0, 3), reproducible=True).tolist() == [0.0] * 3
    assert mpi.total(cg.ones(3, 0), reproducible=True).shape == (0,)
    for dtype in (cg.float32, cg.complex64, cg.complex128, cg.int32):
        x = cg.tensor(drawn((7, 2), dtype=dtype.name))
        total = mpi.total(x, reproducible=True)
        assert total.dtype == dtype and total.tolist() == sum(drawn((7, 2), r, dtype=dtype.name) for r in range(SIZE)).sum(0).tolist()


def check_reproducible_sums_do_not_depend_on_the_order():
    """However the rows are dealt out; so `test_reproducible_sums` compares numbers of ranks."""
    rows = np.random.default_rng(3).normal(size=(999, 3)) * np.exp(np.random.default_rng(4).normal(size=(999, 1)) * 8)
    results = set()
    for seed in range(4):
        stream = np.random.default_rng(seed)
        order, bounds = stream.permutation(999), np.sort(stream.integers(0, 999, SIZE - 1))
        mine = cg.tensor(np.split(rows[order], bounds)[RANK], requires_grad=True)
        w = cg.ones(3, dtype=cg.float64, requires_grad=True)
        total = mpi.total((mpi.replicate(w, rows=len(mine)) * mine).tanh(), reproducible=True)
        (total * total).sum().backward()
        results.add((total.detach().numpy().tobytes(), w.grad.numpy().tobytes()))
    assert len(results) == 1
    every = COMM.gather(results.pop())
    if RANK == 0:
        assert len({*every}) == 1
        print("digest", "".join(part.hex() for part in every[0]), flush=True)


if __name__ == "__main__":
    run(globals())
