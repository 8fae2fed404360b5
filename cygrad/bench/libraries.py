"""How each library is entered: which are there, arrays in and out, derivatives, threads. One that is not compared with is not imported."""
from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import cygrad

Run = Callable[[], Sequence[Any]]

COMPILED = "compiled"       # programs by cygrad.compile, beside those that run eagerly
PEERS = ("numpy", COMPILED, "torch", "jax", "autograd", "numexpr", "casadi")   # pip installs the others by the names they are imported by
LIKE_TORCH = ("cygrad", "torch")
ONE_THREAD = ("jax", "casadi", "autograd")      # they have no number of threads that can be changed: compared where one computes


def split(names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions of the peers of that name which are installed, and the command that would install the others."""
    result, missing = {}, {}
    for name in names:
        if name not in PEERS:
            raise ValueError(f"unknown library {name!r}: choose from {', '.join(PEERS)}")
        try:        # a folder of that name could be imported, too
            result[name] = cygrad.__version__ if name == COMPILED else version(name)
        except PackageNotFoundError:
            missing[name] = f"pip install {name}"
    return result, missing


def entered(name: str) -> Any:
    """Return the module of a library, ready for doubles and for one thread where that can only be said before it is imported."""
    if name == "jax":
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
        os.environ.setdefault("NPROC", "1")
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        return jax
    return cygrad if name in ("cygrad", COMPILED) else importlib.import_module(name)


def set_threads(names: Iterable[str], threads: int) -> None:
    """Let libraries compute with so many threads, and the BLAS of each."""
    for name in names:
        if name in LIKE_TORCH:
            entered(name).set_num_threads(threads)
        elif name == "numexpr":
            numexpr = entered(name)
            numexpr.set_num_threads(min(threads, numexpr.MAX_THREADS))
    if blas_note() is None:
        importlib.import_module("threadpoolctl").threadpool_limits(threads, user_api="blas")


@contextmanager
def threads_kept() -> Iterator[None]:
    """Leave cygrad and BLAS with as many threads as before."""
    before = cygrad.get_num_threads()
    limits = None if blas_note() else importlib.import_module("threadpoolctl").threadpool_limits()
    try:
        yield
    finally:
        cygrad.set_num_threads(before)
        if limits is not None:
            limits.restore_original_limits()


def blas_note() -> str | None:
    """Return the remark on work of NumPy's BLAS, where nothing can set its threads."""
    if importlib.util.find_spec("threadpoolctl"):
        return None
    return "NumPy's BLAS has threads of its own: threadpoolctl is not installed"


def numpy_dtype(name: str) -> np.dtype[Any] | None:
    """Return NumPy's dtype of that name, None where it has none: bfloat16 is of `ml_dtypes`."""
    try:
        return cygrad.empty(0, dtype=getattr(cygrad, name)).numpy().dtype
    except TypeError:
        return None


def tensor(library: Any, array: np.ndarray, requires_grad: bool = False) -> Any:
    """Return a tensor of cygrad or torch with the values of an array; torch reads none of NumPy's bfloat16."""
    if library is not cygrad and array.dtype.name == "bfloat16":
        return library.tensor(array.astype(np.float32)).to(library.bfloat16).requires_grad_(requires_grad)
    return library.tensor(array, requires_grad=requires_grad)


def array(result: Any) -> np.ndarray:
    """Return a result of any library as an array."""
    if hasattr(result, "detach"):
        result = result.detach()
        if type(result).__module__ == "torch" and str(result.dtype) == "torch.bfloat16":
            result = result.float()
    return np.asarray(result)


def differentiated(library: Any, function: Callable[..., Any], *arrays: np.ndarray, seed: np.ndarray | None = None) -> Run:
    """Return a function that computes a function of leaves, and the gradient of each; a function that is no scalar gets `seed`."""
    leaves = [library.tensor(array, requires_grad=True) for array in arrays]
    weight = None if seed is None else library.tensor(seed)

    def run() -> Sequence[Any]:
        value = function(*leaves)
        value.backward(weight)
        results = [value.detach(), *(leaf.grad for leaf in leaves)]
        for leaf in leaves:
            leaf.grad = None
        return results

    return run
