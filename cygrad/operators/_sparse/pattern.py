"""The pattern of a sparse tensor: its layout, its shape, and the places of its values. It is data, and holds no value.

All that is computed from the places alone (their order, their sums by rows, the transposed pattern) is computed once, when it is first
needed, and serves each operator, gradient and solve with any values at these places. No captured program has steps that compute it: a
program holds for one pattern, whose tensors it reads as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.compute.sparse_rows import rows_of
from cygrad._core.graph.noted_calls import declare_plain
from cygrad._core.graph.notes import Notes, fixed, is_noting, note_pattern
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.sparse import sparse_part, sparse_tensor
from cygrad._core.memory.formats import Layout, sparse_coo, sparse_csc, sparse_csr
from cygrad._core.memory.storage import dtype_by_name
from cygrad._core.operands.arrays import from_array, to_array

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

int32 = dtype_by_name["int32"]
INT32_LIMIT = 1 << 31       # fewer bytes are read where indices are below it


class Rows(NamedTuple):
    """A matrix by rows: row r has the entries `starts[r]` to `starts[r + 1]`. `order` has the places of their values, None as they lie."""

    starts: Tensor
    columns: Tensor
    order: Tensor | None


class Compression(NamedTuple):
    """A compressed layout: the dim whose indices are compressed, and the names of both index tensors and of the lines."""

    dim: int
    compressed: str
    plain: str
    line: str


COMPRESSED = {
    sparse_csr: Compression(0, "crow_indices", "col_indices", "row"),
    sparse_csc: Compression(1, "ccol_indices", "row_indices", "column"),
}


def unnoted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function compute from places alone: its steps are in no program that is being captured, which may read its pattern."""
    @wraps(function)
    def compute(*arguments: Any) -> Any:
        if not is_noting():
            return function(*arguments)
        with Notes():
            result = function(*arguments)
        if isinstance(result, Pattern):
            note_pattern(result)
        return result

    return compute


class Pattern:
    """The places of values: `indices` of the layout, coordinates (dims, entries) or (compressed, plain). They were checked."""

    def __init__(self, layout: Layout, shape: tuple[int, ...], indices: tuple[Tensor, ...], is_coalesced: bool) -> None:
        self.layout, self.shape, self.indices, self.is_coalesced = layout, shape, indices, is_coalesced

    def around(self, values: Tensor) -> Tensor:
        """Return the sparse tensor of values at these places."""
        return sparse_tensor(values, self)

    # ----- Sizes -----
    @property
    def entries(self) -> int:
        """The number of values."""
        return self.indices[-1].shape[-1]

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the index tensors."""
        return COMPRESSED[self.layout][1:3] if self.layout in COMPRESSED else ("indices",)

    @property
    def sparse_dim(self) -> int:
        """The number of dims that have indices; the others are dims of the values."""
        return self.indices[0].shape[0] if self.layout is sparse_coo else 2

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """The sizes of the dims that have indices."""
        return self.shape[:self.sparse_dim]

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The sizes of the dims of each value."""
        return self.shape[self.sparse_dim:]

    # ----- Places -----
    @cached_property
    @unnoted
    def coordinates(self) -> np.ndarray:
        """The coordinates of all entries, (dims, entries), int64."""
        if self.layout is sparse_coo:
            return to_array(self.indices[0])
        compressed, plain = (to_array(part).astype(np.int64, copy=False) for part in self.indices)
        lines = np.repeat(np.arange(len(compressed) - 1), np.diff(compressed))
        return np.stack([lines, plain] if self.layout is sparse_csr else [plain, lines])

    @cached_property
    @unnoted
    def along(self) -> tuple[Tensor, ...]:
        """The coordinates along each dim, as index tensors."""
        return tuple(from_array(np.ascontiguousarray(line)) for line in self.coordinates)

    @cached_property
    @unnoted
    def keys(self) -> np.ndarray:
        """The number of each entry's place, in row-major order of the dims with indices."""
        if not self.sparse_dim:
            return np.zeros(self.entries, np.int64)
        return np.ravel_multi_index(tuple(self.coordinates), self.sparse_shape) if self.entries else np.zeros(0, np.int64)

    @cached_property
    @unnoted
    def places(self) -> Tensor:
        """The keys as an index tensor."""
        return from_array(self.keys)

    @cached_property
    @unnoted
    def coalescence(self) -> tuple[Pattern, Tensor | None]:
        """The coo pattern of distinct places in their order, and the entry there of each entry here; None if that is the same one."""
        if self.layout is sparse_coo and self.is_coalesced:
            return self, None
        steps = np.diff(self.keys)
        if (steps > 0).all():
            return pattern_of_coordinates(self.coordinates, self.shape), None
        distinct, inverse = np.unique(self.keys, return_inverse=True)
        return pattern_of_keys(distinct, self.shape, self.sparse_dim), from_array(inverse.reshape(-1))

    @cached_property
    @unnoted
    def rows(self) -> Rows:
        """The entries of a matrix by rows."""
        wide = max(self.entries, *self.sparse_shape) >= INT32_LIMIT
        if self.layout is sparse_csr:
            starts, columns = self.indices if wide else (index.to(int32) for index in self.indices)
            return Rows(starts, columns, None)
        coordinates = self.indices[0] if self.layout is sparse_coo else from_array(self.coordinates)
        return Rows(*rows_of(coordinates, self.shape[0], wide))

    @cached_property
    @unnoted
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix; values keep their order."""
        shape = (*self.shape[1::-1], *self.shape[2:])
        if self.layout is sparse_coo:
            result = Pattern(sparse_coo, shape, (self.indices[0].flip(0),), self.is_coalesced and self.entries < 2)
        else:
            result = Pattern(sparse_csc if self.layout is sparse_csr else sparse_csr, shape, self.indices, True)
        return result

    def in_layout(self, layout: Layout) -> tuple[Pattern, Tensor | None]:
        """Return the pattern of the same distinct places in a layout, and the order in which it has the values; None for the same one."""
        if layout is self.layout:
            return self, None
        if layout not in self._in_layouts:
            self._in_layouts[layout] = self._in_other_layout(layout)
        return self._in_layouts[layout]

    @cached_property
    def _in_layouts(self) -> dict[Layout, tuple[Pattern, Tensor | None]]:
        return {}

    @unnoted
    def _in_other_layout(self, layout: Layout) -> tuple[Pattern, Tensor | None]:
        along = self.coordinates if layout is not sparse_csc else self.coordinates[::-1]
        keys = np.ravel_multi_index(tuple(along), [self.shape[d] for d in ((1, 0) if layout is sparse_csc else range(self.sparse_dim))])
        order = None if (np.diff(keys) >= 0).all() else np.argsort(keys, kind="stable")
        ordered = along if order is None else along[:, order]
        if layout is sparse_coo:
            result = pattern_of_coordinates(ordered, self.shape)
        else:
            compressed = starts_of(ordered[0], self.shape[COMPRESSED[layout].dim])
            result = Pattern(layout, self.shape, (from_array(compressed), from_array(np.ascontiguousarray(ordered[1]))), True)
        return result, None if order is None else from_array(order)

    def selected(self, entries: np.ndarray) -> Pattern:
        """Return the coo pattern of some entries, in an order that leaves coalesced ones so."""
        return pattern_of_coordinates(self.coordinates[:, entries], self.shape, self.is_coalesced)

    def tensors(self) -> Iterator[Tensor]:
        """Yield the tensors that this pattern, and the ones computed from it, have by now."""
        waiting, met = [self], set()
        while waiting:
            value = waiting.pop()
            if isinstance(value, TensorImpl):
                yield value
            elif isinstance(value, (tuple, list)):
                waiting += value
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, Pattern) and value not in met:
                met.add(value)
                waiting += vars(value).values()

    # ----- Values of other tensors -----
    def same_places(self, other: Pattern) -> bool:
        """Return True if another pattern has the same entries in the same order."""
        return self is other or (self.sparse_shape == other.sparse_shape and self.entries == other.entries
                                 and np.array_equal(self.coordinates, other.coordinates))

    def values_at(self, tensor: Tensor) -> Tensor:
        """Return the elements of a sparse or dense tensor of this shape at these places, (entries, *dense dims)."""
        if tuple(tensor.shape) != tuple(self.shape):
            raise RuntimeError(f"a tensor of shape {list(tensor.shape)} has no values for a sparse tensor of shape {list(self.shape)}")
        part = sparse_part(tensor)
        if part is None:
            return tensor.reshape(math.prod(self.sparse_shape), *self.dense_shape).index_select(0, self.places)
        if self.same_places(part.pattern):
            return part.inner
        if part.pattern.sparse_dim != self.sparse_dim:
            return self.values_at(tensor.to_dense())
        pattern, inverse = part.pattern.coalescence
        values = summed(part.inner, pattern, inverse)
        if not pattern.entries:
            return values.new_zeros((self.entries, *self.dense_shape))
        inside = np.minimum(np.searchsorted(pattern.keys, self.keys), pattern.entries - 1)
        missing = pattern.keys[inside] != self.keys
        result = values.index_select(0, index_of(inside))
        if not missing.any():
            return result
        return result.masked_fill(index_of(missing.reshape(-1, *(1 for _ in self.dense_shape))), 0)


declare_plain(Pattern)      # a program holds for one


def index_of(array: np.ndarray) -> Tensor:
    """Return the index tensor of an array that was computed from places alone: a constant of programs."""
    return fixed(from_array(array))


def starts_of(lines: np.ndarray, count: int) -> np.ndarray:
    """Return where each of `count` lines begins among entries in the order of their lines, and the number of entries."""
    return np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=count))])


@unnoted
def pattern_of_coordinates(coordinates: np.ndarray, shape: Sequence[int], is_coalesced: bool = True) -> Pattern:
    """Return the coo pattern of coordinates (dims, entries)."""
    return Pattern(sparse_coo, tuple(shape), (from_array(np.ascontiguousarray(coordinates, np.int64)),), is_coalesced)


def pattern_of_keys(keys: np.ndarray, shape: tuple[int, ...], sparse_dim: int) -> Pattern:
    """Return the coo pattern of distinct places in their order, by their numbers."""
    sizes = shape[:sparse_dim]
    coordinates = np.stack(np.unravel_index(keys, sizes)) if sizes else np.zeros((0, len(keys)), np.int64)
    return pattern_of_coordinates(coordinates, shape)


def summed(values: Tensor, pattern: Pattern, inverse: Tensor | None) -> Tensor:
    """Return the values of a coalesced pattern: sums of all values at each place."""
    if inverse is None:
        return values
    return values.new_zeros((pattern.entries, *values.shape[1:])).index_add(0, inverse, values)


def in_order(values: Tensor, order: Any) -> Tensor:
    """Return values in an order, an index tensor; None leaves them."""
    return values if order is None else values.index_select(0, order)
