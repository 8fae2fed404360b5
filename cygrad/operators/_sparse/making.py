"""Makers of sparse tensors. All index tensors are checked when a tensor is made, so that no operator reads or writes outside of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.sparse_rows import first_dim_outside
from cygrad._core.engine.derivatives import without_history
from cygrad._core.graph.notes import note_places
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import refuse_special
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import Layout, sparse_coo, sparse_csc, sparse_csr
from cygrad._core.memory.sizes import Size, integers
from cygrad._core.memory.storage import resolve_dtype
from cygrad._core.operands.arrays import to_array
from cygrad.data.creation import as_tensor, finished, int64, tensor
from cygrad.data.creation import empty as empty_tensor
from cygrad.device import resolve_device
from cygrad.operators._sparse.pattern import COMPRESSED, Pattern, unnoted

if TYPE_CHECKING:
    from cygrad.device import device as Device
    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike


def _values(values: Any, dtype: DTypeLike | None, device: Any) -> Any:
    """Return values as a tensor: over the memory of a tensor, on its tape if it has one."""
    resolve_device(device)
    if not isinstance(values, TensorImpl):
        return as_tensor(values, dtype=dtype)
    if dtype is not None and values.dtype != resolve_dtype(dtype):
        return values.to(dtype)
    return values.view_as(values) if values.requires_grad else without_history(values)


def _index(index: Any, name: str) -> Any:
    """Return an index tensor of int64 or int32; it may not differ among the examples of a vmap."""
    index = index if isinstance(index, TensorImpl) else tensor(index)
    if not index.numel() and index.dtype.kind == "f":      # an empty list has no integers
        index = index.to(dtype=int64)
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name} must be an int64 or int32 tensor, but got {index.dtype}")
    refuse_special(index, f"a sparse tensor by {name} that differ among examples, or have a tangent,")
    note_places(index)
    return index


def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, *, dtype: DTypeLike | None = None,
                      device: str | Device | None = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None, is_coalesced: bool | None = None) -> Tensor:
    """Return the sparse tensor of values at coordinates; all other elements are 0, and values at one place count by their sum.

    `indices` are int64 or int32, (dims, entries); `values` are (entries, *dense dims), of any dtype, and stay on their tape: gradients
    are theirs. `size` has a size for each dim of both; without it, it is as small as the indices allow. A size alone gives a tensor of
    zeros. `is_coalesced=True` says that the places are distinct and in their order, which is checked. `check_invariants` changes
    nothing: indices are always checked. RuntimeError for indices outside of the size and for sizes that do not fit.

    >>> import cygrad
    >>> cygrad.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 4.]),
           size=(2, 3), nnz=2, layout=cygrad.sparse_coo)
    """
    if values is None:
        size = indices if size is None else size
        if size is None:
            raise TypeError("sparse_coo_tensor() missing required arguments: give 'indices' and 'values', or 'size', a tuple of ints")
        shape = integers(size)
        indices, values = empty_tensor(len(shape), 0, dtype=int64), []
    coordinates, entries = _index(indices, "indices"), _values(values, dtype, device)
    if coordinates.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(coordinates.shape)}")
    count = entries.shape[0] if entries.ndim else 1
    if coordinates.shape[1] != count or not entries.ndim:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {coordinates.shape[1]}, nnz from values: "
                           f"{count}")
    return finished(_coo_pattern(coordinates, entries, size, is_coalesced).around(entries), requires_grad)


@unnoted
def _coo_pattern(coordinates: Tensor, values: Tensor, size: Any, is_coalesced: bool | None) -> Pattern:
    """Return the pattern of coordinates, which are checked."""
    if coordinates.dtype.name != "int64":
        coordinates = coordinates.to(int64)
    shape = _inferred(coordinates, values) if size is None else integers(size)
    _check_coordinates(coordinates, values, shape)
    pattern = Pattern(sparse_coo, Size(shape), (coordinates.detach(),), False)
    pattern.is_coalesced = coordinates.shape[1] < 2 if is_coalesced is None else bool(is_coalesced)
    if is_coalesced and not (np.diff(pattern.keys) > 0).all():
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    return pattern


def _inferred(coordinates: Tensor, values: Tensor) -> tuple[int, ...]:
    """Return the smallest size that has all coordinates."""
    largest = (to_array(coordinates).max(1) + 1).tolist() if coordinates.shape[1] else [0] * coordinates.shape[0]
    return (*(max(size, 0) for size in largest), *values.shape[1:])


def _check_coordinates(coordinates: Tensor, values: Tensor, shape: tuple[int, ...]) -> None:
    dims = coordinates.size(0)
    if len(shape) != dims + values.ndim - 1:
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {dims}, "
                           f"dense_dim = {values.ndim - 1}")
    if shape and min(shape) < 0:
        raise RuntimeError(f"a size cannot be negative: {list(shape)}")
    if values.ndim > 1 and tuple(values.shape[1:]) != tuple(shape[dims:]):
        raise RuntimeError(f"values has incorrect size, expected {[values.shape[0], *shape[dims:]]}, got {list(values.shape)}")
    outside = first_dim_outside(coordinates, shape)
    if outside >= 0:
        line = to_array(coordinates)[outside]
        if line.min() < 0:
            raise RuntimeError(f"found negative index {line.min()} for dim {outside}")
        raise RuntimeError(f"size is inconsistent with indices: for dim {outside}, size is {shape[outside]} but found index {line.max()}")


# ----- Parts, for copies and files -----
def parts_of(input: Tensor) -> tuple[Any, ...]:
    """Return the layout, the shape, whether all places are distinct and in order, the index tensors and the values of a sparse tensor."""
    part = sparse_part(input)
    pattern = part.pattern
    return pattern.layout, tuple(pattern.shape), pattern.is_coalesced, *pattern.indices, part.inner


def from_parts(layout: Layout, shape: tuple[int, ...], is_coalesced: bool, *parts: Tensor) -> Tensor:
    """Return the sparse tensor of such parts, which are checked: a leaf that requires a gradient if its values do."""
    *index, values = parts
    numbers, requires_grad = values.detach(), values.requires_grad
    if layout is sparse_coo:
        coordinates, = index
        return sparse_coo_tensor(coordinates, numbers, shape, requires_grad=requires_grad, is_coalesced=is_coalesced)
    compressed, plain = index
    return sparse_compressed_tensor(compressed, plain, numbers, shape, layout=layout, requires_grad=requires_grad)


# ----- Compressed layouts -----
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: DTypeLike | None = None,
                             layout: Layout | None = None, device: str | Device | None = None, pin_memory: bool = False,
                             requires_grad: bool = False, check_invariants: bool | None = None) -> Tensor:
    """Return the sparse matrix of a compressed `layout`, `cygrad.sparse_csr` or `cygrad.sparse_csc`: see `sparse_csr_tensor`.

    >>> import cygrad
    >>> cygrad.sparse_compressed_tensor([0, 1, 2], [2, 0], [3., 4.], (2, 3), layout=cygrad.sparse_csr).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if layout not in COMPRESSED:
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout or 'none'}")
    names = COMPRESSED[layout]
    compressed, plain = _index(compressed_indices, names.compressed), _index(plain_indices, names.plain)
    entries = _values(values, dtype, device)
    return finished(_compressed_pattern(layout, compressed, plain, entries, size).around(entries), requires_grad)


@unnoted
def _compressed_pattern(layout: Layout, compressed: Tensor, plain: Tensor, values: Tensor, size: Any) -> Pattern:
    """Return the pattern of index tensors of a compressed layout, which are checked."""
    names = COMPRESSED[layout]
    if compressed.dtype != plain.dtype:
        raise RuntimeError(f"{names.compressed} and {names.plain} must have the same dtype, but got {compressed.dtype} and {plain.dtype}, "
                           "respectively")
    for name, index in (names.compressed, compressed), (names.plain, plain):
        if index.ndim != 1:
            raise RuntimeError(f"{name} must have dimensionality 1, as there are no batches of sparse matrices, but got {index.ndim}")
    if size is None:
        across = int(to_array(plain).max()) + 1 if plain.numel() else 0
        lines = max(compressed.shape[0] - 1, 0)
        size = (lines, across) if names.dim == 0 else (across, lines)
    shape = integers(size)
    _check_compressed(layout, compressed, plain, values, shape)
    return Pattern(layout, Size(shape), (compressed.detach(), plain.detach()), True)


def _check_compressed(layout: Layout, compressed: Tensor, plain: Tensor, values: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse index tensors that are none of a compressed layout, in torch's words."""
    names = COMPRESSED[layout]
    if len(shape) != 2 or values.ndim != 1:
        raise RuntimeError("tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + 0) but got "
                           f"{len(shape)}: there are no batches of sparse matrices, and their values are numbers")
    lines, across = shape[names.dim], shape[1 - names.dim]
    other = COMPRESSED[sparse_csc if layout is sparse_csr else sparse_csr].line
    if compressed.shape[0] != lines + 1:
        raise RuntimeError(f"{names.compressed}.shape[-1] must be equal to the number of {names.line}s + 1 (={lines + 1}), but got "
                           f"{compressed.shape[0]}")
    if plain.shape[0] != values.shape[0]:
        raise RuntimeError(f"{names.plain}.shape[-1] must be equal to nnz (={values.shape[0]}) as defined by values.shape[0], but got "
                           f"{plain.shape[0]}")
    starts, places = to_array(compressed), to_array(plain)
    counts, steps = np.diff(starts), np.diff(places)
    inside = np.ones(max(len(places) - 1, 0), bool)         # whether a step is between entries of one line
    ends = starts[1:-1]
    inside[ends[(ends > 0) & (ends < len(places))] - 1] = False
    size = f"n{other[:3]}s"
    conditions = [
        (f"`0 <= {names.plain} < {size}`", first_dim_outside(plain.unsqueeze(0), (across,)) < 0),
        (f"`{names.compressed}[..., 0] == 0`", starts[0] == 0),
        (f"`{names.compressed}[..., -1] == nnz`", starts[-1] == len(places)),
        (f"`0 <= {names.compressed}[..., 1:] - {names.compressed}[..., :-1] <= {size}`", ((counts >= 0) & (counts <= across)).all()),
        (f"`{names.plain}[..., {names.compressed}[..., i - 1]:{names.compressed}[..., i]] for all i = 1, ..., n{names.line[:3]}s are "
         "sorted and distinct along the last dimension values`", (steps[inside] > 0).all()),
    ]
    for text, holds in conditions:
        if not holds:
            raise RuntimeError(f"{text} is not satisfied.")


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: DTypeLike | None = None,
                      device: str | Device | None = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:
    """Return the sparse matrix by rows: row i has the values `crow_indices[i]` to `crow_indices[i + 1]`, at columns that increase.

    Index tensors are int64 or int32, both the same; `values` are a vector of any dtype, and stay on their tape. RuntimeError for indices
    that break one of these rules, always: `check_invariants` changes nothing.

    >>> import cygrad
    >>> A = cygrad.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3., 4., 5.], (2, 3))
    >>> A @ cygrad.ones(3)
    tensor([3., 9.])
    """
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, dtype=dtype, layout=sparse_csr, device=device,
                                    requires_grad=requires_grad)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: DTypeLike | None = None,
                      device: str | Device | None = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> Tensor:
    """Return the sparse matrix by columns: as `sparse_csr_tensor`, with rows and columns exchanged.

    >>> import cygrad
    >>> cygrad.sparse_csc_tensor([0, 1, 1, 2], [1, 0], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 4.],
            [3., 0., 0.]])
    """
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, dtype=dtype, layout=sparse_csc, device=device,
                                    requires_grad=requires_grad)
