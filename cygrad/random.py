"""Random tensors: functions that draw, and the seeds and states of the generators that they draw from (`cygrad/generator.py`)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.entry.operator_object import LazySignature
from cygrad._core.levels.batches import batched_level
from cygrad._core.memory.sizes import size_from_arguments
from cygrad._core.memory.storage import dtype_by_name
from cygrad._imports import at_first_use
from cygrad.data import sampling
from cygrad.data.creation import int64
from cygrad.generator import Generator as Generator
from cygrad.generator import default_generator as _default_generator
from cygrad.generator import get_rng_state as get_rng_state
from cygrad.generator import initial_seed as initial_seed
from cygrad.generator import manual_seed as manual_seed
from cygrad.generator import seed as seed
from cygrad.generator import set_rng_state as set_rng_state
from cygrad.generator import source_of
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypedDict, Unpack

    from cygrad._core.memory.storage import DType
    from cygrad.autograd.gamma_numbers import beta as beta
    from cygrad.autograd.gamma_numbers import dirichlet as dirichlet
    from cygrad.autograd.gamma_numbers import standard_gamma as standard_gamma
    from cygrad.data.sampling import Sample
    from cygrad.device import device as Device
    from cygrad.generator import Rng as Rng

    P = ParamSpec("P")

    class LikeOptions(TypedDict, total=False):
        """The keywords of `_drawing_like`."""

        generator: Generator | None
        rng: Rng | None
        dtype: DType | None
        device: Device | str | None
        requires_grad: bool
        layout: Any
        pin_memory: bool
        memory_format: Any

    class Options(TypedDict, total=False):
        """The keywords of `_drawing`."""

        generator: Generator | None
        rng: Rng | None
        out: Tensor | None
        dtype: DType | None
        device: Device | str | None
        requires_grad: bool
        layout: Any
        pin_memory: bool


# Draws that are differentiable: a Function, which is above this module.
_late, __dir__ = at_first_use(globals(), dict.fromkeys(("standard_gamma", "beta", "dirichlet"), "cygrad.autograd.gamma_numbers"))


def __getattr__(name: str) -> Any:
    if name == "default_generator":  # made on demand: its first use imports numpy.random
        return _default_generator()
    return _late(name)


# ----- Functions that draw -----
class _Plan(NamedTuple):
    """The numbers that a function draws."""

    size: tuple[int, ...]
    sample: Sample
    dtype: DType | None = None                              # where neither `dtype` nor `out` is an argument
    finish: Callable[[Tensor], Any] | None = None           # changes the numbers, where they are not the result


def _drawing(plan: Callable[P, _Plan]) -> Callable[P, Tensor]:
    """Return the function that draws a plan's numbers: it has the plan's parameters, and these keywords."""
    def draw(*args: Any, generator: Generator | None = None, rng: Rng | None = None, out: Tensor | None = None, dtype: DType | None = None,
             device: Device | str | None = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
             **own: Any) -> Tensor:
        size, sample, usual, finish = plan(*args, **_known(plan, own))
        dtype = usual if dtype is None and out is None else dtype
        result = sampling.drawn(size, sample, source_of(generator, rng), out, dtype, device, requires_grad)
        if finish is not None:
            finish(result.detach())
        return result

    return _described(draw, plan)


def _drawing_like(plan: Callable[P, tuple[Tensor, Sample]]) -> Callable[P, Tensor]:
    """Return the function that draws numbers like a tensor: it has the plan's parameters, and these keywords."""
    def draw_like(*args: Any, generator: Generator | None = None, rng: Rng | None = None, dtype: DType | None = None,
                  device: Device | str | None = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
                  memory_format: Any = None, **own: Any) -> Tensor:
        template, sample = plan(*args, **_known(plan, own))
        return sampling.drawn_like(template, sample, source_of(generator, rng), dtype, device, requires_grad)

    return _described(draw_like, plan)


def _known(plan: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return keywords of a call that are parameters of the plan itself; TypeError for others, which its `options` would take."""
    code = plan.__code__
    for name in keywords:
        if name not in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            raise TypeError(f"{plan.__name__}() got an unexpected keyword argument '{name}'")
    return keywords


def _described(function: Any, plan: Callable[..., Any]) -> Any:
    """Return a function with the name and the documentation of its plan, and the signature of both."""
    keywords = [each for each in signature(function).parameters.values() if each.kind is Parameter.KEYWORD_ONLY]

    def read() -> Signature:
        whole = signature(plan)
        own = [each for each in whole.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        return whole.replace(parameters=[*own, *keywords], return_annotation="Tensor")

    functools.update_wrapper(function, plan)
    del function.__wrapped__
    function.__signature__ = LazySignature(read)
    return function


@_drawing
def rand(*args: Any, size: Sequence[int] | None = None, **options: Unpack[Options]) -> _Plan:
    """Return a tensor of numbers drawn uniformly from [0, 1).

    Args:
        args: the sizes, as integers or as one tuple, which may also be given as `size=`.
        generator: the stream to draw from; None means the default generator.
        rng: in place of `generator`, an argument of `numpy.random.default_rng`: a seed or a NumPy generator.
        out: a tensor of this shape to write to.
        dtype: a floating-point dtype; None means the default dtype.
        device: the CPU.
        requires_grad: whether to record operations on the result.

    Raises:
        NotImplementedError: a dtype that is not floating-point.
        RuntimeError: a negative size, or an `out` of another shape or dtype.

    Example:
        >>> import cygrad
        >>> tuple(cygrad.rand(2, 3, rng=0).shape)
        (2, 3)
    """
    return _Plan(_size(args, size), sampling.uniform)


@_drawing
def randn(*args: Any, size: Sequence[int] | None = None, **options: Unpack[Options]) -> _Plan:
    """Return a tensor of numbers drawn from the normal distribution with mean 0 and standard deviation 1.

    Arguments, dtypes and errors are as in `rand`.

    Example:
        >>> import cygrad
        >>> abs(cygrad.randn(1000, rng=0).mean().item()) < 0.1
        True
    """
    return _Plan(_size(args, size), sampling.standard_normal)


@_drawing
def randint(
    low: int = 0,
    high: int | Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> _Plan:
    """Return a tensor of integers drawn uniformly from `low` to `high - 1`; `randint(high, size)` starts at 0.

    `dtype` is int64 unless given and may be any that holds all these integers. Other arguments are as in `rand`.

    Raises:
        RuntimeError: no integer lies in the range, or `dtype` does not hold them all.

    Example:
        >>> import cygrad
        >>> dice = cygrad.randint(1, 7, (100,), rng=0)
        >>> dice.min().item(), dice.max().item()
        (1, 6)
    """
    first, end = low, high
    if size is None:
        first, end, size = 0, low, high  # type: ignore[assignment]
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    return _Plan(_size((), size), sampling.integers(first, end), int64)


@_drawing
def randperm(n: int, **options: Unpack[Options]) -> _Plan:
    """Return the integers from 0 to `n - 1` in random order.

    `dtype` is int64 unless given and may be any that holds `n - 1`, bool excepted. Other arguments are as in `rand`.

    Raises:
        RuntimeError: a negative `n`, or one too large for `dtype`.

    Example:
        >>> import cygrad
        >>> sorted(cygrad.randperm(4, rng=0).tolist())
        [0, 1, 2, 3]
    """
    return _Plan(_size((), (n,)), sampling.permutation, int64)


@_drawing
def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> _Plan:
    """Return numbers drawn from normal distributions: one for each element of `mean` and `std`, or one for all of `size`.

    Tensors `mean` and `std` broadcast against each other; the result has the dtype of the first that is a tensor. With
    two numbers `size` must be given. A draw does not depend differentiably on its distribution, so the result has no
    history: write `mean + std * cygrad.randn(...)` for a differentiable one. Other arguments are as in `rand`.

    Raises:
        RuntimeError: a negative standard deviation, or shapes that do not broadcast.

    Example:
        >>> import cygrad
        >>> heights = cygrad.normal(170.0, 10.0, (1000,), rng=0)
        >>> 169 < heights.mean().item() < 171
        True
    """
    tensors = [parameter for parameter in (mean, std) if isinstance(parameter, Tensor)]
    if bool(tensors) == (size is not None):
        raise TypeError(
            "normal() received an invalid combination of arguments: expected a size with two numbers, "
            "and none with a tensor, whose shape is taken"
        )
    if isinstance(std, Tensor) and std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if not tensors:
        center, spread = float(mean), float(std)
        if not spread >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        return _Plan(_size((), size), sampling.normal_around(center, spread))
    sampling.check_same(*tensors)
    if isinstance(std, Tensor) and batched_level(std) is None and not (std.detach() >= 0).all():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    scale, shift = (p.detach() if isinstance(p, Tensor) else float(p) for p in (std, mean))
    try:
        shape = np.broadcast_shapes(*(tuple(tensor.shape) for tensor in tensors))
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a {tuple(tensors[0].shape)} must match the size of tensor b {tuple(tensors[-1].shape)}: "
            "mean and std of normal() must broadcast"
        ) from None
    return _Plan(shape, sampling.standard_normal, tensors[0].dtype, lambda numbers: numbers.mul_(scale).add_(shift))


def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    rng: Rng | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a tensor of zeros and ones: each is one with the probability in `input`, or with probability `p` if given.

    The result has the shape and dtype of `input` and no history. Other arguments are as in `rand`.

    Raises:
        RuntimeError: a probability outside [0, 1].

    Example:
        >>> import cygrad
        >>> cygrad.bernoulli(cygrad.tensor([0.0, 1.0]))
        tensor([0., 1.])
    """
    source = source_of(generator, rng)
    if p is not None:
        if not 0 <= float(p) <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
        sample = sampling.at_random(float(p))
        if out is not None:
            return sampling.drawn(tuple(input.shape), sample, source, out, None, None, False)
        return sampling.drawn_like(input, sample, source, None, None, False)
    sampling.check_same(sampling.checked_template(input))
    chances = input.detach()
    sampling.require_floating("bernoulli", input)
    if batched_level(input) is None and not ((chances >= 0) & (chances <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false: input holds probabilities")
    ones = sampling.drawn_like(chances, sampling.uniform, source, dtype_by_name["float64"], None, False) < chances
    return ones.to(input.dtype) if out is None else sampling.checked_out(out, tuple(input.shape), None).copy_(ones)


@_drawing
def log_normal(mean: float = 1.0, std: float = 2.0, size: Sequence[int] = (), **options: Unpack[Options]) -> _Plan:
    """Return exp of numbers drawn from the normal distribution with that mean and standard deviation.

    Arguments and errors are as in `normal` of two numbers; `std` is above 0.

    Example:
        >>> import cygrad
        >>> bool((cygrad.random.log_normal(0.0, 1.0, (1000,)) > 0).all())
        True
    """
    return _Plan(_size((), size), sampling.log_normal(*sampling.numbers_of(log_normal, mean=mean, std=std)))


@_drawing
def exponential(lambd: float = 1.0, size: Sequence[int] = (), **options: Unpack[Options]) -> _Plan:
    """Return numbers drawn from the exponential distribution of rate `lambd`, whose mean is 1 / `lambd`.

    Raises:
        RuntimeError: a rate that is not above 0, or a dtype that is not floating-point. Other arguments are as in `rand`.

    Example:
        >>> import cygrad
        >>> abs(cygrad.random.exponential(2.0, (10000,), rng=0).mean().item() - 0.5) < 0.02
        True
    """
    return _Plan(_size((), size), sampling.exponential(*sampling.numbers_of(exponential, lambd=lambd)))


@_drawing
def cauchy(median: float = 0.0, sigma: float = 1.0, size: Sequence[int] = (), **options: Unpack[Options]) -> _Plan:
    """Return numbers drawn from the Cauchy distribution of that median and half width `sigma`.

    Raises:
        RuntimeError: a half width that is not above 0, or a dtype that is not floating-point. Other arguments are as in `rand`.

    Example:
        >>> import cygrad
        >>> abs(cygrad.random.cauchy(3.0, 1.0, (10000,), rng=0).median().item() - 3) < 0.1
        True
    """
    return _Plan(_size((), size), sampling.cauchy(*sampling.numbers_of(cauchy, median=median, sigma=sigma)))


@_drawing
def geometric(p: float, size: Sequence[int] = (), **options: Unpack[Options]) -> _Plan:
    """Return numbers of trials, 1 or more, up to the first success, which has probability `p` in each.

    `dtype` is int64 unless given. Other arguments are as in `rand`.

    Raises:
        RuntimeError: a probability that is not between 0 and 1.

    Example:
        >>> import cygrad
        >>> cygrad.random.geometric(0.5, (1000,)).min()
        tensor(1)
    """
    return _Plan(_size((), size), sampling.geometric(*sampling.numbers_of(geometric, p=p)), int64)


@_drawing_like
def rand_like(input: Tensor, **options: Unpack[LikeOptions]) -> tuple[Tensor, Sample]:
    """Return `rand` with the shape and, unless given, the dtype of `input`."""
    return input, sampling.uniform


@_drawing_like
def randn_like(input: Tensor, **options: Unpack[LikeOptions]) -> tuple[Tensor, Sample]:
    """Return `randn` with the shape and, unless given, the dtype of `input`."""
    return input, sampling.standard_normal


@_drawing_like
def randint_like(input: Tensor, low: int = 0, high: int | None = None, **options: Unpack[LikeOptions]) -> tuple[Tensor, Sample]:
    """Return `randint` with the shape and, unless given, the dtype of `input`; `randint_like(input, high)` starts at 0."""
    return input, sampling.integers(low, high)


def _size(args: tuple[Any, ...], size: Sequence[int] | None) -> tuple[int, ...]:
    if size is None:
        return size_from_arguments(args)
    if args:
        raise TypeError(f"the size was given twice: as {args} and as size={size}")
    return size_from_arguments((size,))
