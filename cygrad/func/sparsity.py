"""Which elements of a function's result depend on which of its argument: by index sets that go through its operators.

Each element of a tensor on the way has the set of elements of x that it may depend on: a row of a sparse matrix of bools. A mode sees each
operator, computes it, and finds the rows of its result by how the operator uses elements, never by their values:

- an elementwise row of the table unites the sets of its operands, masks and all;
- an operator that moves elements is found by two runs on random labels: it has the same labels at the same places in both;
- one that adds them, by two runs of its gradient on labels, if it is declared as linear;
- one along a dim unites slices; matrix products unite rows with columns; operators composed of others are seen as these;
- any other depends on all: the pattern may be larger than it need be, and never misses an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from cygrad._core.entry.special import over_tensors, tensors_of
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.autograd import enable_grad, grad
from cygrad.autograd.arguments import given_tensor
from cygrad.operators._language.batches import named_arguments
from cygrad.operators._language.tangents import bilinear, filling, first_linear, joining, linear
from cygrad.operators._sparse.rules import answer
from cygrad.operators._sparse.scipy_matrices import scipy_module
from cygrad.ops import ELEMENTWISE
from cygrad.overrides import TorchFunctionMode
from cygrad.tensor import Tensor

MOST_ENTRIES = 50_000_000       # of the result of an operator


class _Sets:
    """The sets of a tensor's elements, while its memory stays as it is."""

    def __init__(self, tensor: Tensor, matrix: Any) -> None:
        self.tensor, self.matrix, self.version = tensor, matrix, tensor._version


class _Labels:
    """Different numbers for the elements of some tensors, and the elements by these numbers."""

    def __init__(self, tensors: list[Tensor], seed: int) -> None:
        sizes = [tensor.numel() for tensor in tensors]
        numbers = np.random.default_rng(seed).permutation(sum(sizes)) + np.random.default_rng(seed).uniform(0.25, 0.75, sum(sizes))
        self.numbers, self.order = numbers, np.argsort(numbers)
        parts = np.split(numbers, np.cumsum(sizes)[:-1])
        self.tensors = {id(tensor): from_array(part.copy()).reshape(tensor.shape) for tensor, part in zip(tensors, parts, strict=True)}

    def sources(self, result: np.ndarray) -> np.ndarray:
        """Return the element that each number of a result is, -1 where it is none."""
        ordered = self.numbers[self.order]
        at = np.searchsorted(ordered, result).clip(max=max(len(ordered) - 1, 0))
        return np.where(ordered[at] == result, self.order[at], -1) if len(ordered) else np.full(result.shape, -1)


class Tracer(TorchFunctionMode):
    """A mode in which the results of operators have sets."""

    def __init__(self, x: Tensor) -> None:
        self.sparse = scipy_module("sparsity", "scipy.sparse")
        self.size = x.numel()
        self.sets: dict[int, _Sets] = {}
        self.start = self.sparse.identity(self.size, bool, "csr")
        self.pairs = self.empty(self.size)      # of elements of x that an operator joins other than linearly: the Hessian's pattern
        self.note(x, self.start)

    # ----- Sets -----
    def note(self, tensor: Tensor, matrix: Any) -> None:
        """Give a tensor its sets."""
        self.sets[id(tensor)] = _Sets(tensor, matrix)

    def of(self, tensor: Any) -> Any:
        """Return the sets of a tensor, None where it depends on nothing; all of x where it came another way than by operators."""
        sets = self.sets.get(id(tensor))
        if sets is None and tensor.requires_grad:
            self.pairs = self.sparse.csr_matrix(np.ones((self.size, self.size), bool))
            self.note(tensor, self.rows_of(self.united(self.start, np.zeros(self.size, int), 1), np.zeros(tensor.numel(), int)))
            return self.of(tensor)
        if sets is not None and sets.version != tensor._version:
            raise NotImplementedError("sparsity(): the memory of a tensor was changed in place by way of another tensor: a view, or its "
                                      "base. Write to the tensor itself, or compute a new one")
        return None if sets is None else sets.matrix

    def empty(self, rows: int) -> Any:
        """Return sets without elements."""
        return self.sparse.csr_matrix((rows, self.size), dtype=bool)

    def rows_of(self, matrix: Any, places: np.ndarray) -> Any:
        """Return the sets of elements by their places, empty ones for -1."""
        sizes = np.append(np.diff(matrix.indptr), 0)
        check_size(int(sizes[places].sum()))
        padded = self.sparse.vstack([matrix, self.empty(1)], format="csr")
        return padded[places.reshape(-1)]

    def united(self, matrix: Any, groups: np.ndarray, count: int) -> Any:
        """Return the union of the sets of each group; an element with the group -1 is in none."""
        groups = groups.reshape(-1)
        inside = groups >= 0
        adding = self.sparse.csr_matrix((np.ones(inside.sum(), bool), (groups[inside], np.flatnonzero(inside))), (count, len(groups)))
        return (adding @ matrix).astype(bool)

    # ----- Operators -----
    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        every = tensors_of(args) + tensors_of(kwargs.values())
        if any(sparse_part(tensor) is not None for tensor in every):
            with self:
                return answer(func, args, kwargs)
        operands = [tensor for tensor in {id(tensor): tensor for tensor in every}.values() if self.of(tensor) is not None]
        if not operands:
            return func(*args, **kwargs)
        operator: Any = func
        name = str(getattr(operator, "name", None) or getattr(operator, "__name__", ""))
        if name in ("detach", "detach_"):
            return func(*args, **kwargs)
        declaration = getattr(func, "declaration", None)
        if declaration is not None and name not in _RULES and name.removesuffix("_") not in ELEMENTWISE:
            if declaration.parts is not None:
                with self:
                    result = declaration.parts(*args, **kwargs)
                if result is not NotImplemented:
                    return result
            elif declaration.forward is declaration.batch is None and declaration.rule is None:
                with self:
                    return operator.function(*args, **kwargs)
        return self.traced(func, name, declaration, operands, args, kwargs)

    def traced(self, func: Any, name: str, declaration: Any, operands: list[Tensor], args: Any, kwargs: Any) -> Any:
        """Compute an operator, and give its results their sets."""
        rule = _RULES.get(name) or (_elementwise if name.removesuffix("_") in ELEMENTWISE else None)
        is_masked = rule is None and any(tensor.dtype.kind == "b" for tensor in tensors_of(args) + tensors_of(kwargs.values()))
        moved = None if rule is not None or is_masked else self.moved(func, operands, args, kwargs)
        before = [self.of(operand) for operand in operands]
        result = func(*args, **kwargs)
        results = tensors_of((result,)) if result is not None else [args[0]]
        joins = not (moved is not None or is_linear(name, declaration, operands, args))
        for number, item in enumerate(results):
            if not item.dtype.is_differentiable:
                continue
            if is_masked:       # whose values are not to count
                matrix = _masked(self, operands, before, item, args, kwargs, func)
            elif rule is not None:
                matrix = rule(self, operands, before, item, args, kwargs, func)
            elif moved is not None:
                matrix = self.rows_of(self.sparse.vstack(before, format="csr"), moved[number])
            else:
                matrix = self.otherwise(func, declaration, operands, before, item, len(results), args, kwargs)
            self.note(item, matrix)
            if joins:
                check_size(int((np.diff(matrix.indptr).astype(np.int64) ** 2).sum()))
                self.pairs = self.pairs + (matrix.T @ matrix).astype(bool)
        return result

    def moved(self, func: Any, operands: list[Tensor], args: Any, kwargs: Any) -> list[np.ndarray] | None:
        """Return the element that each element of the results is, -1 where it is another number; None where it is computed."""
        runs = []
        for seed in (1, 2):
            labels = _Labels(operands, seed)

            def labelled(tensor: Tensor, labels: _Labels = labels) -> Tensor:
                own = labels.tensors.get(id(tensor))
                return own.clone() if own is not None else tensor.clone() if tensor.dtype.is_differentiable else tensor

            try:
                labelled_args = over_tensors(labelled, args)
                result = func(*labelled_args, **{key: over_tensors(labelled, value) for key, value in kwargs.items()})
            except (RuntimeError, TypeError, ValueError, IndexError):       # of float64 beside another dtype, or of labels it refuses
                return None
            numbers = [to_array(item.detach()) for item in (tensors_of((result,)) if result is not None else [labelled_args[0]])]
            runs.append([(labels.sources(item), item) for item in numbers])
        for (first, one), (second, other) in zip(*runs, strict=True):
            if first.shape != second.shape or (first != second).any() or (one != other)[first < 0].any():
                return None
        return [sources for sources, _ in runs[0]]

    def otherwise(self, func: Any, declaration: Any, operands: list[Tensor], before: list[Any], result: Tensor, results: int, args: Any,
                  kwargs: Any) -> Any:
        """Return the sets of a result that is computed: of sums of elements, of slices along a dim, or of all."""
        total = self.empty(result.numel())
        may_add = declaration is not None and declaration.forward in _LINEAR
        for operand, matrix in zip(operands, before, strict=True):
            groups = self.added(func, operand, args, kwargs) if may_add and results == 1 else None
            slices = self.along(func, operand, result, args, kwargs) if groups is None else None
            if groups is not None:
                total = total + self.united(matrix, *groups)
            elif slices is not None:
                total = total + self.spread(matrix, *slices)
            else:
                total = total + self.all_of(matrix, result)
        return total

    def added(self, func: Any, operand: Tensor, args: Any, kwargs: Any) -> tuple[np.ndarray, int] | None:
        """Return the element of the result that each element of an operand is added to, and their number; None if there are several."""
        runs = []
        for seed in (1, 2):
            leaf = operand.detach().clone().requires_grad_()

            def replaced(tensor: Tensor, leaf: Tensor = leaf) -> Tensor:
                return leaf if tensor is operand else tensor.detach()

            with enable_grad():
                result = func(*over_tensors(replaced, args), **{key: over_tensors(replaced, value) for key, value in kwargs.items()})
            labels = _Labels([result], seed)
            weights = labels.tensors[id(result)].to(result.dtype)
            labels.numbers = to_array(weights).real.astype(np.float64).reshape(-1)
            labels.order = np.argsort(labels.numbers)
            gradient, = grad(result, leaf, weights)
            numbers = to_array(gradient).real.astype(np.float64)
            runs.append((labels.sources(numbers), numbers))
        (first, one), (second, _) = runs
        if (first != second).any() or one[first < 0].any():
            return None
        return first, result.numel()

    def along(self, func: Any, operand: Tensor, result: Tensor, args: Any, kwargs: Any) -> tuple[np.ndarray, int, np.ndarray] | None:
        """Return the slice along the operator's dim that each element of an operand is in, their number, and the slice of each result."""
        try:
            arguments = named_arguments(func, args, kwargs).arguments
        except (TypeError, ValueError):
            return None
        dims = arguments.get("dim", ())
        if not (isinstance(dims, int) or isinstance(dims, tuple | list) and dims and all(isinstance(dim, int) for dim in dims)):
            return None
        along = {dim % max(operand.ndim, 1) for dim in (dims if isinstance(dims, tuple | list) else (dims,))}
        other_sizes = [size for d, size in enumerate(operand.shape) if d not in along]
        slices = np.arange(int(np.prod(other_sizes))).reshape([1 if d in along else size for d, size in enumerate(operand.shape)])
        if result.ndim == operand.ndim - len(along):
            of_result = slices.reshape(other_sizes)
        elif result.ndim == operand.ndim:
            of_result = slices
        else:
            return None
        if any(size not in (1, own) for size, own in zip(of_result.shape, result.shape, strict=True)):
            return None
        return (np.broadcast_to(slices, tuple(operand.shape)), slices.size, np.broadcast_to(of_result, tuple(result.shape)))

    def spread(self, matrix: Any, groups: np.ndarray, count: int, of_result: np.ndarray) -> Any:
        """Return the union of each group, for each element of the result that belongs to it."""
        return self.rows_of(self.united(matrix, groups, count), of_result)

    def all_of(self, matrix: Any, result: Tensor) -> Any:
        """Return the union of all sets for each element of a result."""
        union = self.united(matrix, np.zeros(matrix.shape[0], int), 1)
        return self.rows_of(union, np.zeros(result.numel(), int))


_LINEAR = (linear, first_linear, joining, filling)


def check_size(entries: int) -> None:
    """Refuse sets that are too large together: of an operator that is taken to depend on all."""
    if entries > MOST_ENTRIES:
        raise RuntimeError(f"sparsity(): the result of an operator is taken to depend on all elements of its operand, or of slices of it: "
                           f"these are {entries} entries, and {MOST_ENTRIES} are allowed. Compute it by other operators")


def is_linear(name: str, declaration: Any, operands: list[Tensor], args: Any) -> bool:
    """Return True if an operator is linear in operands, all at once; False where that is not declared."""
    row = ELEMENTWISE.get(name.removesuffix("_"))
    if row is not None:
        tracked = {word for word, argument in zip(row.operands, args, strict=False) if any(argument is operand for operand in operands)}
        return len(tracked) == len(operands) and all(
            word not in row.partials or not row.saved(word) & (tracked | {"y"}) for word in tracked)
    words = _LINEAR if len(operands) > 1 else (*_LINEAR, bilinear)
    return declaration is not None and declaration.forward in words


# ----- Rules of operators -----
def _elementwise(tracer: Tracer, operands: list[Tensor], before: list[Any], result: Tensor, args: Any, kwargs: Any, func: Any) -> Any:
    total = tracer.empty(result.numel())
    for operand, matrix in zip(operands, before, strict=True):
        places = np.broadcast_to(np.arange(operand.numel()).reshape(operand.shape), tuple(result.shape))
        total = total + (matrix if operand.shape == result.shape else tracer.rows_of(matrix, places))
    return total


def _masked(tracer: Tracer, operands: list[Tensor], before: list[Any], result: Tensor, args: Any, kwargs: Any, func: Any) -> Any:
    """Unite elements at one place; an operand of another shape may go anywhere."""
    total = tracer.empty(result.numel())
    for number, (operand, matrix) in enumerate(zip(operands, before, strict=True)):
        is_alike = operand.shape == result.shape and (not number or operand.ndim == 0)
        total = total + (matrix if is_alike else tracer.all_of(matrix, result))
    return total


def _matmul(tracer: Tracer, operands: list[Tensor], before: list[Any], result: Tensor, args: Any, kwargs: Any, func: Any) -> Any:
    left, right = args[:2] if len(args) > 1 else (*args, *kwargs.values())
    total = tracer.empty(result.numel())
    for operand, matrix in zip(operands, before, strict=True):
        for side, is_left in ((left, True), (right, False)):
            if side is operand:
                total = total + tracer.spread(matrix, *_lines(operand, result, is_left, left.ndim, right.ndim))
    return total


def _lines(operand: Tensor, result: Tensor, is_left: bool, left: int, right: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Return the row, or the column, of each element of a factor, their number, and the line of each element of the product."""
    axis = operand.ndim - (1 if is_left or operand.ndim == 1 else 2)
    other_sizes = [size for d, size in enumerate(operand.shape) if d != axis]
    lines = np.arange(int(np.prod(other_sizes))).reshape(other_sizes)
    own = lines
    if operand.ndim > 1:        # the place of the line among the dims of the product
        if is_left and right > 1:
            own = lines[..., None]
        if not is_left and left > 1:
            own = lines[..., None, :]
    elif operand.ndim == 1:
        own = lines.reshape([1] * result.ndim)
    return np.broadcast_to(np.expand_dims(lines, axis), tuple(operand.shape)), lines.size, np.broadcast_to(own, tuple(result.shape))


def _through_matrix(tracer: Tracer, matrix: Any, sets: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return the sets of products of a matrix of places with the elements along a dim."""
    before, after = int(np.prod(shape[:dim])), int(np.prod(shape[dim + 1:]))
    pattern = tracer.sparse.csr_matrix(matrix) != 0
    of_rows = tracer.sparse.kron(tracer.sparse.identity(before, bool), pattern)
    whole = tracer.sparse.kron(of_rows, tracer.sparse.identity(after, bool), "csr")
    return (whole.astype(bool) @ sets).astype(bool)


def _product_along(tracer: Tracer, operands: list[Tensor], before: list[Any], result: Tensor, args: Any, kwargs: Any, func: Any) -> Any:
    input, matrix, dim = named_arguments(func, args, kwargs).args
    places = tracer.sparse.coo_matrix(matrix).copy()
    places.data = np.ones(len(places.data), bool)
    return _through_matrix(tracer, places, before[0], tuple(input.shape), dim)


def _sparse_times(tracer: Tracer, operands: list[Tensor], before: list[Any], result: Tensor, args: Any, kwargs: Any, func: Any) -> Any:
    values, dense, pattern = named_arguments(func, args, kwargs).args
    rows, columns = pattern.coordinates
    total, width = tracer.empty(result.numel()), result.numel() // max(result.shape[0], 1)
    for operand, matrix in zip(operands, before, strict=True):
        if operand is values:
            union = tracer.united(matrix, rows, result.shape[0])
            total = total + tracer.rows_of(union, np.repeat(np.arange(result.shape[0]), width))
        if operand is dense:
            places = tracer.sparse.csr_matrix((np.ones(len(rows), bool), (rows, columns)), pattern.shape)
            total = total + _through_matrix(tracer, places, matrix, tuple(dense.shape), 0)
    return total


def _same_place(tracer: Tracer, operands: list[Tensor], before: list[Any], result: Tensor, args: Any, kwargs: Any, func: Any) -> Any:
    return before[0]


_RULES: dict[str, Callable[..., Any]] = {"matmul": _matmul, "_product_along": _product_along, "_sparse_times": _sparse_times,
                                         "_convert": _same_place}


# ----- The function -----
def sparsity(f: Callable[[Any], Any], x: Any) -> Any:
    """Return which elements of f(x) may depend on which elements of x: a sparse array of bools of SciPy's, (elements of f(x), of x).

    It holds for all x for which f runs through the same operators: `where` and products with zero count, branches of Python's do not.
    Operators that are not seen through count as depending on all of their operands, so that no entry is missing. RuntimeError where
    these are too many, NotImplementedError for changes in place by way of views, ImportError without SciPy.

    >>> import cygrad
    >>> cygrad.func.sparsity(lambda x: x[1:] - x[:-1], cygrad.ones(3)).toarray().astype(int)
    array([[1, 1, 0],
           [0, 1, 1]])
    """
    tracer, result = _traced("sparsity", f, x)
    matrix = tracer.of(result)
    return _array(tracer.empty(result.numel()) if matrix is None else matrix)


def hessian_sparsity(f: Callable[[Any], Any], x: Any) -> Any:
    """Return which elements of the Hessian of a scalar function f may differ from 0, as `sparsity` returns the pattern of a Jacobian.

    Two elements of x count as joined where an operator that is not declared as linear has a result that depends on both.

    >>> import cygrad
    >>> cygrad.func.hessian_sparsity(lambda x: (x[1:] * x[:-1]).sum(), cygrad.ones(4)).toarray().astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 1, 0],
           [0, 1, 1, 1],
           [0, 0, 1, 1]])
    """
    tracer, result = _traced("hessian_sparsity", f, x)
    if result.numel() != 1:
        raise RuntimeError(f"hessian_sparsity(f, x): f must return a scalar tensor, but its shape is {list(result.shape)}")
    seen_through = id(result) in tracer.sets or not result.requires_grad
    return _array(tracer.pairs if seen_through else tracer.sparse.csr_matrix(np.ones((tracer.size, tracer.size), bool)))


def _traced(name: str, f: Callable[[Any], Any], x: Any) -> tuple[Tracer, Tensor]:
    """Return a tracer that has seen f at x, and the result."""
    leaf = given_tensor(x).detach().clone().requires_grad_()
    with enable_grad():     # so that a tensor made by other means than operators is seen to depend on x
        start = leaf.view_as(leaf)
        with Tracer(start) as tracer:
            result = f(start)
    if not isinstance(result, Tensor) or sparse_part(result) is not None:
        kind = type(result).__name__ if not isinstance(result, Tensor) else f"one of the layout {result.layout!r}"
        raise TypeError(f"{name}(f, x): f must return a dense tensor, but returned {kind}")
    return tracer, result


def _array(matrix: Any) -> Any:
    return import_module("scipy.sparse").csr_array(matrix)
