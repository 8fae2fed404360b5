"""Generators of random numbers: a seed, and a stream of NumPy's with a state.

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
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.noted_calls import declare_plain
from cygrad._core.graph.notes import is_noting, note_draw
from cygrad._core.memory.looks import look
from cygrad.data.creation import from_numpy
from cygrad.device import resolve_device
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from cygrad.device import device as Device

    Rng = int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator

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
        look("the seed of a generator was set")
        self._begin(resolve_device(device), DEFAULT_SEED)

    def _begin(self, device: Device, seed: int) -> None:
        self.device = device
        self._start(seed)
        _note(self)

    def _start(self, seed: int) -> None:
        self._seed, self._stream = seed, np.random.default_rng(seed)

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
        look("the seed of a generator was set")
        self._start(seed % 2**64)
        return self

    def seed(self) -> int:
        """Start a stream from the system's entropy and return its seed."""
        return self.manual_seed(entropy()).initial_seed()

    def initial_seed(self) -> int:
        """Return the seed the present stream started from."""
        look("the seed of a generator was asked for")
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as a uint8 tensor, for `set_state`."""
        look("the state of a generator was asked for")
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
        look("the state of a generator was set")
        self._seed, self._stream = seed, stream
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (), self.get_state()

    def _unlock(self) -> None:
        """Release the lock, whose thread is gone, as Python does with its own locks; NumPy's state cannot be read while it is held."""
        self._stream.bit_generator.lock._at_fork_reinit()   # type: ignore[attr-defined]

    def __setstate__(self, state: Tensor) -> None:
        self.set_state(state)


declare_plain(Generator)     # calls of programs draw from it again


def entropy() -> int:
    """Return a seed from the system."""
    return int.from_bytes(os.urandom(8), "little")


def position_of(generator: Generator) -> tuple[int, Any]:
    """Return the seed, and how far the stream is: the numbers from there on are the same again after `go_to`."""
    return generator._seed, generator._stream.bit_generator.state


def go_to(generator: Generator, position: tuple[int, Any]) -> None:
    """Have a generator continue from a position of its own."""
    if is_noting():
        note_draw(generator, position_of(generator))
    generator._seed, generator._stream.bit_generator.state = position


def positions_of(generators: Iterable[Generator]) -> dict[Generator, tuple[int, Any]]:
    """Return where some generators are."""
    return {generator: position_of(generator) for generator in generators}


def go_back(positions: dict[Generator, tuple[int, Any]]) -> None:
    """Have generators continue from where they were."""
    for generator, position in positions.items():
        go_to(generator, position)


_default: dict[str, Generator] = {}


def default_generator() -> Generator:
    generator = _default.get("generator")
    if generator is None:
        generator = Generator.__new__(Generator)        # in the middle of a capture perhaps, whose replays have it as well
        generator._begin(resolve_device("cpu"), entropy())
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
        return default_generator().manual_seed(int(seed))
    except OverflowError:
        raise ValueError(f"manual_seed expected a finite number, but got {seed}") from None


def seed() -> int:
    """Seed the default generator from the system's entropy and return the seed."""
    return default_generator().seed()


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return default_generator().initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator as a uint8 tensor."""
    return default_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator to one that `get_rng_state` returned."""
    default_generator().set_state(new_state)


def source_of(generator: Generator | None, rng: Rng | None) -> Callable[[], np.random.Generator]:
    """Return a function that returns the stream of `generator` or `rng` as it is then."""
    return functools.partial(stream_of, generator, rng)


def stream_of(generator: Generator | None, rng: Rng | None) -> np.random.Generator:
    """Return NumPy's stream behind `generator`, of which None is the default one, or of `rng`."""
    if rng is not None:
        if generator is not None:
            raise TypeError("generator and rng were both given: give one of them")
        return np.random.default_rng(rng)
    if generator is None:
        generator = default_generator()
    elif not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be Generator, not {type(generator).__name__}: a seed goes to rng=")
    if is_noting():
        note_draw(generator, position_of(generator))
    return generator._stream
