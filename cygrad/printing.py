"""Text of tensors: `repr`, `format` and their options, character by character as torch prints them.

Works on the tensor's memory as a NumPy array, so nothing here is recorded or dispatched. Imported at the
first `repr`. The options belong to the process: change them from one thread.
"""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.levels.batches import batched_level
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.levels.tangents import dual_levels, tangent_of
from cygrad._core.operands.arrays import to_array
from cygrad._core.operands.operands import common_dtype
from cygrad.data.creation import get_default_dtype

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


__all__ = ["PrintOptions", "set_printoptions"]

@dataclasses.dataclass
class PrintOptions:
    """The settings of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Args:
        precision: digits after the point of floating-point numbers (4).
        threshold: number of elements above which only the edges are printed (1000).
        edgeitems: elements printed at each edge of each dimension then (3).
        linewidth: columns after which a line is broken (80).
        profile: `"default"`, `"short"` or `"full"`; the other arguments override it.
        sci_mode: scientific notation always (True), never (False) or chosen by the values (None). As in torch
            it returns to None unless given.

    Raises:
        ValueError: an unknown profile, or a number below zero.

    Example:
        >>> import cygrad
        >>> cygrad.set_printoptions(precision=2)
        >>> cygrad.tensor([1.12345])
        tensor([1.12])
        >>> cygrad.set_printoptions(profile="default")
        >>> cygrad.tensor([1.12345])
        tensor([1.1235])
    """
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"Unknown print profile {profile!r}: expected one of {', '.join(map(repr, PROFILES))}")
    numbers = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    overrides: dict[str, float] = {name: number for name, number in numbers.items() if number is not None}
    for name, number in overrides.items():
        if not number >= 0:
            raise ValueError(f"set_printoptions(): {name} must be a number of at least 0, got {number!r}")
    for name, number in (PROFILES.get(profile or "", {}) | overrides).items():
        setattr(options, name, number)
    options.sci_mode = sci_mode


def tensor_repr(tensor: Tensor) -> str:
    """Return the text of `tensor` with its dtype and history where they are not the default."""
    level = batched_level(tensor)
    if level is not None:       # it has the values of all examples
        inner = tensor_repr(level.enter(tensor)).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={level.number}, bdim=0, value=\n    {inner}\n)"
    class_name = type(tensor).__name__
    prefix = "tensor(" if class_name == "Tensor" else class_name + "("
    part = sparse_part(tensor)
    if part is not None:
        return _sparse_text(tensor, part, prefix)
    array = to_array(tensor.detach())
    default_dtype = get_default_dtype()
    suffixes = []
    if array.size == 0:
        if array.ndim != 1:
            suffixes.append(f"size={array.shape}")
        # no element shows that the dtype is int64 or bool
        dtype_is_evident = tensor.dtype == default_dtype
    else:
        if not options.edgeitems:
            suffixes.append(f"size={array.shape}")
        dtype_is_evident = array.dtype in (np.int64, np.bool_) or tensor.dtype in (default_dtype, common_dtype(0j, 0j))
    if not dtype_is_evident:
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes += _history(tensor)
    tangents = [tangent_of(tensor, level) for level in reversed(dual_levels((tensor,)))]
    suffixes += [f"tangent={tensor_repr(tangent)}" for tangent in tangents[:1]]
    return _join_suffixes(prefix + _array_text(array, indent=len(prefix)), suffixes, indent=len(prefix))


def _sparse_text(tensor: Tensor, part: Any, prefix: str) -> str:
    """Return the text of a sparse tensor: its index tensors and its values, then all else."""
    pattern, indent = part.pattern, len(prefix)
    texts = []
    for name, item in zip((*pattern.index_names, "values"), (*pattern.indices, part.inner.detach()), strict=True):
        opening = f"{name}=tensor("
        size = f", size={tuple(item.shape)}" if not item.numel() else ""
        texts.append(opening + _array_text(to_array(item), indent + len(opening)) + size + ")")
    suffixes = [f"size={tuple(tensor.shape)}", f"nnz={pattern.entries}"]
    if tensor.dtype.kind != "b" and tensor.dtype not in (get_default_dtype(), common_dtype(0j, 0j), common_dtype(0, 0)):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes += [f"layout={pattern.layout!r}", *_history(tensor)]
    texts += [suffixes.pop(0)] if tensor.is_sparse else []
    return _join_suffixes(prefix + (",\n" + " " * indent).join(texts), suffixes, indent)


def tensor_html(tensor: Tensor) -> str | None:
    """Return a table of the elements for notebooks, below shape, dtype and history; None for a sparse tensor, and inside of vmap, where a
    tensor has no values.

    Of more than two dims it is the first matrix. Of a long dim the ends are shown.
    """
    if batched_level(tensor) is not None or sparse_part(tensor) is not None:
        return None
    array = to_array(tensor.detach())
    while array.ndim > 2 and array.size:
        array = array[0]
    shape = " x ".join(map(str, tensor.shape)) or "0 dims"
    hidden = tensor.dim() - array.ndim
    words = [shape, str(tensor.dtype).rpartition(".")[2], *_history(tensor), *[f"[{'0, ' * hidden}:, :]"] * bool(hidden)]
    caption = f"<caption>{html.escape(', '.join(words))}</caption>"
    if array.size == 0:
        return f"<table>{caption}</table>"
    matrix = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    rows, columns = (_shown(length) for length in matrix.shape)
    text, _ = _element_format(matrix[np.ix_(*([place for place in places if place is not None] for places in (rows, columns)))])

    def line(cells: list[str], kind: str, title: str) -> str:
        return f"<tr><th>{title}</th>{''.join(f'<{kind}>{cell}</{kind}>' for cell in cells)}</tr>"

    lines = [line([_GAP if column is None else str(column) for column in columns], "th", "")]
    for row in rows:
        cells = [_GAP if row is None or column is None else html.escape(text(matrix[row, column].item()).strip()) for column in columns]
        lines.append(line(cells, "td", "" if array.ndim < 2 else _GAP if row is None else str(row)))
    return f"<table>{caption}{''.join(lines)}</table>"


_GAP = "&#8943;"        # three dots


def _shown(length: int) -> list[int | None]:
    """Return the places of a dim that a table shows; None stands for the ones between."""
    edge = max(options.edgeitems, 5)
    return [*range(edge), None, *range(length - edge, length)] if length > 4 * edge else [*range(length)]


def tensor_format(tensor: Tensor, spec: str) -> str:
    """Return `format(tensor, spec)`: a 0-d tensor formats like its number, any other takes no `spec`."""
    if tensor.dim() == 0 and batched_level(tensor) is None:
        return format(tensor.item(), spec)
    return object.__format__(tensor, spec)


def _history(tensor: Tensor) -> list[str]:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view whose base was changed in a way that leaves it without a history
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name()}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _join_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _array_text(array: np.ndarray, indent: int) -> str:
    if array.size == 0:
        return "[]"
    summarize = array.size > options.threshold
    text, width = _element_format(_edges(array) if summarize else array)

    def nested(part: np.ndarray, indent: int) -> str:
        if part.ndim == 0:
            return text(part.item())
        edge = options.edgeitems
        shortened = summarize and len(part) > 2 * edge
        if part.ndim > 1:
            rows = [*range(edge), *range(len(part) - edge, len(part))] if shortened else range(len(part))
            texts = [nested(part[row], indent + 1) for row in rows]
            if shortened:
                texts.insert(edge, "...")
            return "[" + ("," + "\n" * (part.ndim - 1) + " " * (indent + 1)).join(texts) + "]"
        if summarize and not edge:
            texts = ["..."]
        elif shortened:
            texts = [*map(text, part[:edge].tolist()), " ...", *map(text, part[-edge:].tolist())]
        else:
            texts = list(map(text, part.tolist()))
        per_line = max(1, (options.linewidth - indent) // (width + len(", ")))
        lines = (", ".join(texts[start : start + per_line]) for start in range(0, len(texts), per_line))
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    return nested(array, indent)


def _edges(array: np.ndarray) -> np.ndarray:
    """Return the elements a summary shows: they alone are read, and decide the format."""
    edge = options.edgeitems
    return array[np.ix_(*([*range(edge), *range(length - edge, length)] if length > 2 * edge else range(length) for length in array.shape))]


def _element_format(array: np.ndarray) -> tuple[Callable[[Any], str], int]:
    """Return the function that writes one element of `array`, and the width it pads to; of complex numbers, each part has its own."""
    if array.dtype.kind == "c":
        (real, real_width), (imaginary, imaginary_width) = _element_format(array.real), _element_format(array.imag)

        def both(element: complex) -> str:
            behind = imaginary(element.imag).lstrip()
            return f"{real(element.real)}{'' if behind.startswith('-') else '+'}{behind}j"

        return both, real_width + imaginary_width + len("j")
    if array.dtype.kind == "f":
        array = array[np.isfinite(array) & (array != 0)]
        write = _float_format(array)
    else:
        write = str
    width = max(map(len, map(write, array.ravel().tolist())), default=1)
    return lambda element: write(element).rjust(width), width


def _float_format(nonzero: np.ndarray) -> Callable[[float], str]:
    precision = options.precision
    integral = bool((nonzero == np.ceil(nonzero)).all())
    if nonzero.size == 0:
        scientific = False
    elif options.sci_mode is None:
        magnitudes = np.abs(nonzero.astype(np.float64))
        smallest, largest = magnitudes.min().item(), magnitudes.max().item()
        scientific = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
    else:
        scientific = options.sci_mode

    if scientific:
        return lambda number: f"{number:.{precision}e}"
    if integral:
        return lambda number: f"{number:.0f}." if math.isfinite(number) else f"{number:.0f}"
    return lambda number: f"{number:.{precision}f}"
