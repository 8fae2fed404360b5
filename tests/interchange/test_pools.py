"""Gradients in workers of multiprocessing, joblib, dask and ray have the bits of the caller's; tensors travel; threads are shared."""

import concurrent.futures
import multiprocessing
import os
import sys
from importlib.util import find_spec

import pytest

import cygrad as cg

JOBS = 2


def work(x):
    """Return a value, its gradient, and the threads that the worker computes with."""
    x = x.detach().requires_grad_()
    y = (x.sin() * x.exp()).sum() / x.numel()
    y.backward()
    return y.detach(), x.grad, cg.get_num_threads()


def arguments():
    cg.manual_seed(0)
    return [cg.randn(30_000, dtype=cg.float64) * (k + 1) for k in range(4)]


def in_pool(method):
    with multiprocessing.get_context(method).Pool(JOBS) as pool:
        return pool.map(work, arguments(), chunksize=2)


def in_threads():
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(work, arguments()))


def by_joblib(backend):
    from joblib import Parallel, delayed
    return Parallel(n_jobs=JOBS, backend=backend)(delayed(work)(x) for x in arguments())


def by_dask(scheduler):
    import dask
    return dask.compute(*[dask.delayed(work)(x) for x in arguments()], scheduler=scheduler, num_workers=JOBS)


def by_ray():
    import ray
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")      # else it writes a token into the home
    ray.init(num_cpus=JOBS, include_dashboard=False, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}})
    try:
        return ray.get([ray.remote(work).remote(x) for x in arguments()])
    finally:
        ray.shutdown()


POOLS = {
    "fork": (None, lambda: in_pool("fork")),
    "threads": (None, in_threads),
    "joblib threads": ("joblib", lambda: by_joblib("threading")),
    "dask threads": ("dask", lambda: by_dask("threads")),
    "spawn": (None, lambda: in_pool("spawn")),
    "forkserver": (None, lambda: in_pool("forkserver")),
    "joblib loky": ("joblib", lambda: by_joblib("loky")),
    "joblib multiprocessing": ("joblib", lambda: by_joblib("multiprocessing")),
    "dask processes": ("dask", lambda: by_dask("processes")),
    "ray": ("ray", by_ray),
}
QUICK = ("fork", "threads", "joblib threads", "dask threads")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in POOLS])
def test_workers_give_the_same_bits(name):
    package, run = POOLS[name]
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    results, expected = list(run()), [work(x) for x in arguments()]
    for (value, gradient, threads), (own_value, own_gradient, own_threads) in zip(results, expected, strict=True):
        assert value.item() == own_value.item()
        assert gradient.numpy().tobytes() == own_gradient.numpy().tobytes() and gradient.dtype == own_gradient.dtype
        assert 1 <= threads <= own_threads


def test_arrays_of_dask_hold_tensors():
    dask_array = pytest.importorskip("dask.array")
    x = arguments()[0][:600].reshape(30, 20)
    lazy = dask_array.from_array(x, chunks=(10, 20))
    assert lazy.shape == (30, 20) and lazy.numblocks == (3, 1)
    assert isinstance(lazy.sum().compute(scheduler="sync"), cg.Tensor)
    assert cg.allclose(lazy.sum().compute(scheduler="sync"), x.sum())
    assert cg.equal((lazy * 2).compute(scheduler="sync"), x * 2)
    gradients = dask_array.map_blocks(lambda block: work(block)[1], lazy, dtype=lazy.dtype, meta=lazy._meta).compute(scheduler="sync")
    assert cg.equal(gradients, cg.cat([work(block)[1] for block in x.split(10)]))


def test_files_of_joblib_hold_tensors(tmp_path):
    joblib = pytest.importorskip("joblib")
    x = arguments()[0].requires_grad_()
    joblib.dump({"x": x}, tmp_path / "x.joblib")
    y = joblib.load(tmp_path / "x.joblib")["x"]
    assert cg.equal(x, y) and y.requires_grad and y.dtype == x.dtype
