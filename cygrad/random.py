"""Random tensors and the generators behind them: NumPy's bit generators filling a tensor's own memory.

The bit generator is PCG64. `numpy.random.default_rng` takes it too, so a seed gives the same numbers there and here; it
can jump ahead, so that blocks of one stream can be drawn apart; and it fills as fast as SFC64, which cannot, within about
30 %. `numpy.random` is imported with the first generator. Threads may share a generator: NumPy locks it for each draw.
A forked child continues a copy of its parent's stream, also if another thread was drawing from it just then.
"""

from __future__ import annotations

import functools
import operator
import os
import struct
import weakref
from collections.abc import Sequence
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.entry.operator_object import LazySignature
from cygrad._core.levels.batches import batched_level
from cygrad._core.operands.arrays import to_array
from cygrad.data.creation import from_numpy, int64, resolve_device, size_from_arguments
from cygrad.data.sampling import (
    at_random,
    check_same,
    checked_template,
    drawn,
    drawn_like,
    integers,
    normal_around,
    permutation,
    require_floating,
    standard_normal,
    uniform,
)
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypedDict, Unpack

    from cygrad._core.memory.storage import DType
    from cygrad.data.sampling import Sample
    from cygrad.device import device as Device

    P = ParamSpec("P")
    Rng = int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator

    class LikeOptions(TypedDict, total=False):
        """The keywords of `drawing_like`."""

        generator: Generator | None
        rng: Rng | None
        dtype: DType | None
        device: Device | str | None
        requires_grad: bool
        layout: Any
        pin_memory: bool
        memory_format: Any

    class Options(TypedDict, total=False):
        """The keywords of `drawing`."""

        generator: Generator | None
        rng: Rng | None
        out: Tensor | None
        dtype: DType | None
        device: Device | str | None
        requires_grad: bool
        layout: Any
        pin_memory: bool

DEFAULT_SEED = 67280421310721  # of a new Generator, as in torch; the default generator starts from entropy
STATE = struct.Struct("<Q16s16sII")  # the seed, then PCG64: state, increment, whether half a draw is kept, that half


class Generator:
    """A stream of random numbers with a seed and a state of its own.

    Example:
        >>> import cygrad
        >>> generator = cygrad.Generator().manual_seed(7)
        >>> first = cygrad.rand(3, generator=generator)
        >>> cygrad.equal(first, cygrad.rand(3, generator=generator.manual_seed(7)))
        True
    """

    __slots__ = ("device", "_seed", "_stream", "__weakref__")

    def __init__(self, device: Device | str = "cpu") -> None:
        self.device = resolve_device(device)
        self.manual_seed(DEFAULT_SEED)
        _note(self)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed`, an integer from -2**63 to 2**64 - 1, and return the generator."""
        try:
            seed = operator.index(seed)
        except TypeError:
            raise RuntimeError(
                f"manual_seed expected a long, but got {type(seed).__name__}: give an integer, as in manual_seed(0)"
            ) from None
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: expected a seed from -2**63 to 2**64 - 1, got {seed}")
        self._seed = seed % 2**64
        self._stream = np.random.default_rng(self._seed)
        return self

    def seed(self) -> int:
        """Start a stream from the system's entropy and return its seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def initial_seed(self) -> int:
        """Return the seed the present stream started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as a uint8 tensor, for `set_state`."""
        state: Any = self._stream.bit_generator.state
        words = (state["state"][word].to_bytes(16, "little") for word in ("state", "inc"))
        packed = STATE.pack(self._seed, *words, state["has_uint32"], state["uinteger"])
        return from_numpy(np.frombuffer(bytearray(packed), np.uint8))

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that `get_state` returned, and return the generator."""
        if not isinstance(new_state, Tensor) or new_state.numpy().dtype != np.uint8:
            raise TypeError("RNG state must be a ByteTensor: give the uint8 tensor that get_state() returned")
        if new_state.numel() != STATE.size:
            raise RuntimeError(
                f"Expected a generator state of size {STATE.size} but found the input RNG state size to be "
                f"{new_state.numel()}"
            )
        seed, state, increment, has_half, half = STATE.unpack(new_state.numpy().tobytes())
        words = {"state": int.from_bytes(state, "little"), "inc": int.from_bytes(increment, "little")}
        if words["inc"] % 2 == 0:
            raise RuntimeError("RNG state is damaged: the increment is even, which get_state() never returns")
        if has_half > 1:
            raise RuntimeError(f"RNG state is damaged: the mark of half a draw is {has_half}, and get_state() returns 0 or 1")
        stream = np.random.default_rng(seed)
        stream.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": words,
            "has_uint32": has_half,
            "uinteger": half,
        }
        self._seed, self._stream = seed, stream
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (), self.get_state()

    def _unlock(self) -> None:
        """Release the lock, whose thread is gone, as Python does with its own locks; NumPy's state cannot be read while it is held."""
        self._stream.bit_generator.lock._at_fork_reinit()   # type: ignore[attr-defined]

    def __setstate__(self, state: Tensor) -> None:
        self.set_state(state)


_default: dict[str, Generator] = {}


def _default_generator() -> Generator:
    generator = _default.get("generator")
    if generator is None:
        generator = Generator()
        generator.seed()
        generator = _default.setdefault("generator", generator)     # of threads that come here at once, the first one's
    return generator


_generators: weakref.WeakSet[Generator] = weakref.WeakSet()


def _note(generator: Generator) -> None:
    """Have forked children of this process unlock a generator: the thread that was drawing from it does not exist there."""
    _watch_forks()
    _generators.add(generator)


@functools.cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_unlock_generators)


def _unlock_generators() -> None:
    for generator in _generators:
        generator._unlock()


def __getattr__(name: str) -> Any:
    if name == "default_generator":  # made on demand: its first use imports numpy.random
        return _default_generator()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it.

    Example:
        >>> import cygrad
        >>> seed = cygrad.manual_seed(0).initial_seed()
        >>> first = cygrad.rand(2)
        >>> cygrad.equal(first, cygrad.rand(2, generator=cygrad.manual_seed(seed)))
        True
    """
    try:
        return _default_generator().manual_seed(int(seed))
    except OverflowError:
        raise ValueError(f"manual_seed expected a finite number, but got {seed}") from None


def seed() -> int:
    """Seed the default generator from the system's entropy and return the seed."""
    return _default_generator().seed()


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return _default_generator().initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator as a uint8 tensor."""
    return _default_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator to one that `get_rng_state` returned."""
    _default_generator().set_state(new_state)


# ----- Functions that draw -----
class Plan(NamedTuple):
    """The numbers that a function draws."""

    size: tuple[int, ...]
    sample: Sample
    dtype: DType | None = None                              # where neither `dtype` nor `out` is an argument
    finish: Callable[[Tensor], Tensor] | None = None        # of the numbers, where they are not the result


def drawing(plan: Callable[P, Plan]) -> Callable[P, Tensor]:
    """Return the function that draws a plan's numbers: it has the plan's parameters, and these keywords."""
    def draw(*args: Any, generator: Generator | None = None, rng: Rng | None = None, out: Tensor | None = None, dtype: DType | None = None,
             device: Device | str | None = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
             **own: Any) -> Tensor:
        size, sample, usual, finish = plan(*args, **_known(plan, own))
        dtype = usual if dtype is None and out is None else dtype
        result = drawn(size, sample, _stream(generator, rng), out, dtype, device, requires_grad)
        return result if finish is None else finish(result)

    return _described(draw, plan)


def drawing_like(plan: Callable[P, tuple[Tensor, Sample]]) -> Callable[P, Tensor]:
    """Return the function that draws numbers like a tensor: it has the plan's parameters, and these keywords."""
    def draw_like(*args: Any, generator: Generator | None = None, rng: Rng | None = None, dtype: DType | None = None,
                  device: Device | str | None = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
                  memory_format: Any = None, **own: Any) -> Tensor:
        template, sample = plan(*args, **_known(plan, own))
        return drawn_like(template, sample, _stream(generator, rng), dtype, device, requires_grad)

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


@drawing
def rand(*args: Any, size: Sequence[int] | None = None, **options: Unpack[Options]) -> Plan:
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
    return Plan(_size(args, size), uniform)


@drawing
def randn(*args: Any, size: Sequence[int] | None = None, **options: Unpack[Options]) -> Plan:
    """Return a tensor of numbers drawn from the normal distribution with mean 0 and standard deviation 1.

    Arguments, dtypes and errors are as in `rand`.

    Example:
        >>> import cygrad
        >>> abs(cygrad.randn(1000, rng=0).mean().item()) < 0.1
        True
    """
    return Plan(_size(args, size), standard_normal)


@drawing
def randint(
    low: int = 0,
    high: int | Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> Plan:
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
    if not isinstance(size, tuple | list):
        raise TypeError(f"randint(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    return Plan(_size((), size), integers(first, end), int64)


@drawing
def randperm(n: int, **options: Unpack[Options]) -> Plan:
    """Return the integers from 0 to `n - 1` in random order.

    `dtype` is int64 unless given and may be any that holds `n - 1`, bool excepted. Other arguments are as in `rand`.

    Raises:
        RuntimeError: a negative `n`, or one too large for `dtype`.

    Example:
        >>> import cygrad
        >>> sorted(cygrad.randperm(4, rng=0).tolist())
        [0, 1, 2, 3]
    """
    return Plan(_size((), (n,)), permutation, int64)


@drawing
def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> Plan:
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
    if any(map(batched_level, tensors)):
        check_same(*tensors)
        shape = (tensors[0].detach() + tensors[-1].detach()).shape
        scale, shift = (p.detach() if isinstance(p, Tensor) else p for p in (std, mean))
        return Plan(tuple(shape), standard_normal, tensors[0].dtype, lambda sampled: sampled * scale + shift)
    center, spread = (to_array(p.detach()) if isinstance(p, Tensor) else float(p) for p in (mean, std))
    if np.iscomplexobj(spread):
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if not np.all(np.greater_equal(spread, 0)):
        expected = "all elements of std >= 0.0" if isinstance(std, Tensor) else f"std >= 0.0, but found std {std}"
        raise RuntimeError(f"normal expects {expected}")
    if size is None:
        try:
            size = np.broadcast_shapes(np.shape(center), np.shape(spread))
        except ValueError:
            raise RuntimeError(
                f"The size of tensor a {np.shape(center)} must match the size of tensor b {np.shape(spread)}: "
                "mean and std of normal() must broadcast"
            ) from None
    return Plan(_size((), size), normal_around(center, spread), tensors[0].dtype if tensors else None)


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
    if batched_level(input) is not None:
        check_same(input)
        sampled = rand(*input.shape, generator=generator, rng=rng, dtype=input.dtype if input.is_floating_point() else None)
        return (sampled < (input.detach() if p is None else p)).to(input.dtype)
    chance: Any = to_array(checked_template(input).detach()) if p is None else float(p)
    if p is None:
        require_floating("bernoulli", chance)
        if not np.all((chance >= 0) & (chance <= 1)):
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false: input holds probabilities")
    elif not 0 <= chance <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")

    sample = at_random(chance)
    if out is None:
        return drawn_like(input, sample, _stream(generator, rng), None, None, False)
    return drawn(tuple(input.shape), sample, _stream(generator, rng), out, None, None, False)


@drawing_like
def rand_like(input: Tensor, **options: Unpack[LikeOptions]) -> tuple[Tensor, Sample]:
    """Return `rand` with the shape and, unless given, the dtype of `input`."""
    return input, uniform


@drawing_like
def randn_like(input: Tensor, **options: Unpack[LikeOptions]) -> tuple[Tensor, Sample]:
    """Return `randn` with the shape and, unless given, the dtype of `input`."""
    return input, standard_normal


@drawing_like
def randint_like(input: Tensor, low: int = 0, high: int | None = None, **options: Unpack[LikeOptions]) -> tuple[Tensor, Sample]:
    """Return `randint` with the shape and, unless given, the dtype of `input`; `randint_like(input, high)` starts at 0."""
    return input, integers(low, high)


def _stream(generator: Generator | None, rng: Rng | None) -> np.random.Generator:
    if rng is not None:
        if generator is not None:
            raise TypeError("generator and rng were both given: give one of them")
        return np.random.default_rng(rng)
    if generator is None:
        generator = _default_generator()
    elif not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be Generator, not {type(generator).__name__}: a seed goes to rng=")
    return generator._stream


def _size(args: tuple[Any, ...], size: Sequence[int] | None) -> tuple[int, ...]:
    if size is None:
        return size_from_arguments(args)
    if args:
        raise TypeError(f"the size was given twice: as {args} and as size={size}")
    return size_from_arguments((size,))
