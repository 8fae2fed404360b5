"""Data-parallel training: gradients of replicated parameters, averaged after a backward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from cygrad._core.graph.tensor import TensorImpl
from cygrad.autograd.grad_mode import no_grad
from cygrad.operators._messages.checks import checked_communicator
from cygrad.operators.collectives import mpi_total
from cygrad.operators.joining import cat

BUCKET_BYTES = 1 << 25


def average_gradients(parameters: Iterable[Any], comm: Any = None, *, bucket_bytes: int = BUCKET_BYTES) -> None:
    """Replace the `.grad` of parameters by its mean over all ranks; call it between `backward()` and the step.

    All ranks give the same parameters in the same order. A parameter without a gradient on this rank counts with zeros, and has a gradient
    afterwards. Gradients of one dtype travel together, up to `bucket_bytes` in a message. Messages during the backward, by hooks, did not
    gain time (docs/mpi.md). Raises TypeError for a parameter that is no tensor, RuntimeError for one that requires no gradient.

    >>> import cygrad
    >>> w = cygrad.ones(2, requires_grad=True)
    >>> (w * w).sum().backward()
    >>> cygrad.mpi.average_gradients([w])
    >>> w.grad
    tensor([2., 2.])
    """
    comm = checked_communicator(average_gradients, comm)
    parameters = [parameters] if isinstance(parameters, TensorImpl) else list(parameters)
    for parameter in parameters:
        if not isinstance(parameter, TensorImpl):
            raise TypeError(f"mpi.average_gradients(): parameters must be Tensors, not {type(parameter).__name__}")
        if not parameter.requires_grad:
            raise RuntimeError("mpi.average_gradients(): a parameter does not require a gradient")
    if bucket_bytes <= 0:
        raise ValueError(f"mpi.average_gradients(): bucket_bytes={bucket_bytes} must be a number of bytes above 0")
    with no_grad():
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = parameter.new_zeros(parameter.shape)
        by_dtype = sorted(parameters, key=lambda parameter: parameter.dtype.name)       # the order within a dtype stays
        for _, group in groupby(by_dtype, key=lambda parameter: parameter.dtype.name):
            for bucket in _buckets(group, bucket_bytes):
                gradients = [parameter.grad for parameter in bucket]
                mean = mpi_total(cat([gradient.reshape(-1) for gradient in gradients]), comm=comm).div_(comm.size)
                for gradient, part in zip(gradients, mean.split([gradient.numel() for gradient in gradients]), strict=True):
                    gradient.copy_(part.reshape(gradient.shape))


def _buckets(parameters: Iterable[Any], limit: int) -> Iterator[list[Any]]:
    """Yield parameters in groups of few bytes, at least one in each."""
    bucket: list[Any] = []
    size = 0
    for parameter in parameters:
        if bucket and size + parameter.nbytes > limit:
            yield bucket
            bucket, size = [], 0
        bucket.append(parameter)
        size += parameter.nbytes
    if bucket:
        yield bucket
