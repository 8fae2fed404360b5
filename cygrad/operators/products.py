"""Products of matrices and batches of them: matmul, addmm, kron, tensordot, einsum and their kin."""

from __future__ import annotations

import math
import string
from types import EllipsisType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cygrad._core.compute import products as compiled
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import from_array
from cygrad._core.operands.operands import common_dtype
from cygrad.operators._language.arguments import check_ndim, checked_tensor, delivered, read_factor
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.flops import of_product
from cygrad.operators._language.narrow_floats import widened
from cygrad.operators._language.tangents import bilinear
from cygrad.operators.vectors import outer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Number


# ----- Of matrices, vectors and batches -----
def _batched_matmul(level: Any, operator: Any, a: Tensor, b: Tensor) -> Tensor:
    """Multiply batches; by a matrix that is the same for all examples at once."""
    if b.ndim == 2 and a.ndim > 1 and not level.varies(b):
        return level.leave(level.enter(a).matmul(b))
    vector_a, vector_b = a.ndim == 1, b.ndim == 1
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    a, b = level.enter(a), level.enter(b)
    a, b = a.unsqueeze(1) if vector_a else a, b.unsqueeze(2) if vector_b else b
    ndim = max(a.ndim, b.ndim)
    a, b = (x[(slice(None),) + (None,) * (ndim - x.ndim)] for x in (a, b))
    result = a.matmul(b)
    result = result.squeeze(-1) if vector_b else result
    return level.leave(result.squeeze(-1 if vector_b else -2) if vector_a else result)


def _as_matmul(dims_a: int, dims_b: int) -> Callable[..., Any]:
    """Multiply by matmul where the numbers of dims are right; the operator itself raises the error."""
    def parts(a: Tensor, b: Tensor) -> Any:
        return a.matmul(b) if (a.ndim, b.ndim) == (dims_a, dims_b) else NotImplemented

    return parts


@operator(compiled.matmul, flops=of_product(), dinput=lambda g, other, input_shape: (g @ other.mT).sum_to_size(input_shape),
          dother=lambda g, input, other_shape: (input.mT @ g).sum_to_size(other_shape), node="MmBackward0", tangent=bilinear,
          batch=_batched_matmul,
          loop="addmm_impl_cpu_")
def matmul(input: Tensor | np.ndarray, other: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor:
    """Return the matrix product; vectors, matrices and batches that broadcast, as NumPy's `@`.

    RuntimeError where the shapes do not fit or the dtypes of tensors differ; beside a NumPy array they promote.

    >>> import cygrad
    >>> cygrad.eye(2) @ cygrad.tensor([1., 2.])
    tensor([1., 2.])
    """


@operator
def linalg_matmul(input: Tensor | np.ndarray, other: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor:
    """Return the matrix product, as `cygrad.matmul` does.

    >>> import cygrad
    >>> cygrad.linalg.matmul(cygrad.eye(2), cygrad.ones(2))
    tensor([1., 1.])
    """
    return matmul(input, other, out=out)


@operator(compiled.mm, flops=of_product(), parts=_as_matmul(2, 2))
def mm(input: Tensor | np.ndarray, mat2: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor:
    """Return the product of two matrices.

    >>> import cygrad
    >>> cygrad.mm(cygrad.eye(2), cygrad.ones(2, 1)).shape
    cygrad.Size([2, 1])
    """


@operator(compiled.bmm, flops=of_product(), parts=_as_matmul(3, 3))
def bmm(input: Tensor | np.ndarray, mat2: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor:
    """Return the products of two batches of matrices.

    >>> import cygrad
    >>> cygrad.bmm(cygrad.ones(3, 2, 4), cygrad.ones(3, 4, 1)).shape
    cygrad.Size([3, 2, 1])
    """


@operator(compiled.mv, flops=of_product(), parts=_as_matmul(2, 1))
def mv(input: Tensor | np.ndarray, vec: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor:
    """Return the product of a matrix and a vector.

    >>> import cygrad
    >>> cygrad.mv(cygrad.eye(2), cygrad.ones(2))
    tensor([1., 1.])
    """


@operator
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of products over the last dims of two tensors; their product where one is 0-d.

    >>> import cygrad
    >>> cygrad.inner(cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.]))
    tensor(11.)
    """
    if input.ndim == 0 or other.ndim == 0:
        return delivered(input * other, out)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"{inner.__name__}() the last dimension must match on both input tensors but got shapes "
                           f"{list(input.shape)} and {list(other.shape)}")
    return delivered(tensordot(input, other, ([-1], [-1])), out)


# ----- Matrices -----
@operator
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix.

    >>> import cygrad
    >>> cygrad.trace(cygrad.eye(3))
    tensor(3.)
    """
    check_ndim(trace.__name__ + ": expected a matrix, but got tensor with dim {}", input, 2)
    return input.diagonal().sum()


def _check_same_dtype(operator: Any, input: Tensor, product: Tensor) -> None:
    if input.dtype != product.dtype:
        raise RuntimeError(f"{operator.name}: self and mat2 must have the same dtype, but got {input.dtype} and {product.dtype}")


def _factors(operator: Any, input: Tensor, product: Tensor, beta: Number, alpha: Number) -> Any:
    """Return both factors as Python numbers."""
    return read_factor(operator, "beta", beta, input, product), read_factor(operator, "alpha", alpha, input, product)


def _scaled(tensor: Tensor, factor: Number) -> Tensor:
    """Return a tensor times a factor, which has no say in the dtype."""
    return tensor if factor == 1 else tensor * (bool(factor) if tensor.dtype.kind == "b" else factor)


def _plus(input: Tensor, beta: Number, product: Tensor, alpha: Number) -> Tensor:
    """Return beta * input + alpha * product; an input with beta 0 is not read."""
    product = _scaled(product, alpha)
    return product if beta == 0 else product + _scaled(input.expand(product.shape), beta)


def _add_product(operator: Any, words: tuple[str, str], ndim: int, input: Tensor, a: Tensor, b: Tensor, beta: Number, alpha: Number,
                 out: Tensor | None) -> Tensor:
    """Return beta * input + alpha * (a @ b); `words`: the function's names of a and b."""
    for word, matrix in zip(words, (a, b), strict=True):
        check_ndim(f"{word} must be a {'matrix' if ndim == 2 else '3D tensor'}, got {{}}-D tensor", matrix, ndim)
    if ndim == 3 and tuple(b.shape[:2]) != (a.shape[0], a.shape[2]):
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but "
                           f"got: {list(b.shape[:2])}.")
    _check_same_dtype(operator, input, b)
    beta, alpha = _factors(operator, input, b, beta, alpha)

    def compute() -> Tensor:
        operands = [x.detach() for x in (input, a, b)]
        wide = widened(operands)        # recorded results are rounded once
        own, left, right = wide.arguments if wide else operands
        return _plus(own, beta, (mm if ndim == 2 else bmm)(left, right), alpha)

    result = unrecorded(compute)
    return delivered(recorded(operator, (input, a, b), result, beta=beta, alpha=alpha), out)


def _addmm_parts(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Any:
    if mat1.ndim != 2 or mat2.ndim != 2:
        return NotImplemented
    beta, alpha = _factors(addmm, input, mat1, beta, alpha)
    return _plus(input, beta, mat1.matmul(mat2), alpha)


def _baddbmm_parts(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Any:
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0]:
        return NotImplemented
    beta, alpha = _factors(baddbmm, input, batch1, beta, alpha)
    return _plus(input, beta, batch1.matmul(batch2), alpha)


@operator(dinput=lambda g, beta, input_shape: (g * beta).sum_to_size(input_shape), dmat1=lambda g, mat2, alpha: g @ mat2.mT * alpha,
          dmat2=lambda g, mat1, alpha: mat1.mT @ g * alpha, parts=_addmm_parts, flops=of_product(1, 2), in_place=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum with a product of matrices, `beta * input + alpha * (mat1 @ mat2)`; the input broadcasts.

    >>> import cygrad
    >>> x = cygrad.ones(1, 1)
    >>> cygrad.addmm(x, x, x).item()
    2.0
    """
    return _add_product(addmm, ("mat1", "mat2"), 2, input, mat1, mat2, beta, alpha, out)


@operator(dinput=lambda g, beta, input_shape: (g * beta).sum_to_size(input_shape), dbatch1=lambda g, batch2, alpha: g @ batch2.mT * alpha,
          dbatch2=lambda g, batch1, alpha: batch1.mT @ g * alpha, parts=_baddbmm_parts, flops=of_product(1, 2), in_place=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum with products of two batches of matrices, `beta * input + alpha * (batch1 @ batch2)`; the input broadcasts.

    >>> import cygrad
    >>> x = cygrad.ones(1, 1, 1)
    >>> cygrad.baddbmm(x, x, x).item()
    2.0
    """
    return _add_product(baddbmm, ("batch1", "batch2"), 3, input, batch1, batch2, beta, alpha, out)


def _sum_with(operator: Any, input: Tensor, beta: Number, product: Tensor, alpha: Number) -> Tensor:
    """Return beta * input + alpha * product; elements that beta is 0 for may be NaN, and get a gradient of 0."""
    beta, alpha = _factors(operator, input, product, beta, alpha)
    dtype = common_dtype(input, product)
    input, product = input.to(dtype), product.to(dtype)
    remaining = input.where(from_array(np.array(False)), False) if beta == 0 else _scaled(input, beta)
    return _scaled(product, alpha) + remaining.expand(product.shape)


@operator(flops=of_product(1, 2), in_place=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum with a product of a matrix and a vector, `beta * input + alpha * (mat @ vec)`.

    >>> import cygrad
    >>> cygrad.addmv(cygrad.zeros(2), cygrad.eye(2), cygrad.ones(2))
    tensor([1., 1.])
    """
    if wide := widened((input, mat, vec)):
        return delivered(addmv(*wide.arguments, beta=beta, alpha=alpha).to(wide.dtype), out)
    product = mv(mat, vec)
    _check_same_dtype(addmv, input, product)
    return delivered(_sum_with(addmv, input, beta, product, alpha), out)


@operator(in_place=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum with an outer product, `beta * input + alpha * outer(vec1, vec2)`.

    >>> import cygrad
    >>> cygrad.addr(cygrad.zeros(1, 2), cygrad.ones(1), cygrad.ones(2))
    tensor([[1., 1.]])
    """
    if wide := widened((input, vec1, vec2)):
        return delivered(addr(*wide.arguments, beta=beta, alpha=alpha).to(wide.dtype), out)
    check_ndim(addr.__name__ + ": Expected 1-D argument vec1, but got {}-D", vec1, 1)
    check_ndim(addr.__name__ + ": Expected 1-D argument vec2, but got {}-D", vec2, 1)
    product = outer(vec1, vec2)
    return delivered(_sum_with(addr, input.expand(product.shape), beta, product, alpha), out)


@operator(flops=of_product(1, 2), in_place=True)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """Sum with all products of two batches of matrices, `beta * input + alpha * sum(batch1 @ batch2)`.

    >>> import cygrad
    >>> cygrad.addbmm(cygrad.zeros(1, 1), cygrad.ones(3, 1, 1), cygrad.ones(3, 1, 1))
    tensor([[3.]])
    """
    if wide := widened((input, batch1, batch2)):
        return delivered(addbmm(*wide.arguments, beta=beta, alpha=alpha).to(wide.dtype), out)
    products = bmm(batch1, batch2)
    _check_same_dtype(addbmm, input, products)
    return delivered(_sum_with(addbmm, input, beta, products.sum(0, dtype=products.dtype), alpha), out)


@operator
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Kronecker product: each element of `input` times all of `other`.

    >>> import cygrad
    >>> cygrad.kron(cygrad.tensor([1, 10]), cygrad.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    ndim = max(input.ndim, other.ndim)
    a, b = ((1,) * (ndim - tensor.ndim) + tuple(tensor.shape) for tensor in (input, other))
    left = input.reshape([part for size in a for part in (size, 1)])
    right = other.reshape([part for size in b for part in (1, size)])
    return delivered((left * right).reshape([m * n for m, n in zip(a, b, strict=True)]), out)


# ----- Contractions -----
@operator(method=False)
def tensordot(a: Tensor, b: Tensor, dims: int | tuple[Sequence[int] | int, Sequence[int] | int] | Sequence[Sequence[int]] = 2,
              out: Tensor | None = None) -> Tensor:
    """Sum of products over the last `dims` dims of `a` and the first of `b`, or over those in two lists.

    >>> import cygrad
    >>> cygrad.tensordot(cygrad.ones(2, 3), cygrad.ones(3, 4), 1).shape
    cygrad.Size([2, 4])
    """
    if a.dtype != b.dtype:
        raise RuntimeError(f"both inputs should have same dtype, but got {a.dtype} and {b.dtype}")
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims {'>= 0' if dims < 0 else '< ndim_a or ndim_b'}, but got dims={dims}")
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    of_a, of_b = ([normalized_dim(dim, tensor.ndim) for dim in ((item,) if isinstance(item, int) else item)]
                  for item, tensor in zip(dims, (a, b), strict=True))
    if len(of_a) != len(of_b):
        raise RuntimeError(f"both dimension lists should have same length: {len(of_a)} and {len(of_b)}")
    for first, second in zip(of_a, of_b, strict=True):
        if a.shape[first] != b.shape[second] and 1 not in (a.shape[first], b.shape[second]):
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a.shape[first]} in dim {first} and second has "
                               f"size {b.shape[second]} in dim {second}")
    labels_a, labels_b = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    for first, second in zip(of_a, of_b, strict=True):
        labels_b[second] = first
    remaining = [label for label in labels_a if label not in of_a] + [label for label in labels_b if label not in of_a]
    return delivered(_contracted(a, labels_a, b, labels_b, remaining), out)


def _sized(tensor: Tensor, labels: list[int], sizes: dict[int, int]) -> Tensor:
    """Repeat dims of size 1 without a copy where a label has another size."""
    shape = [sizes[label] for label in labels]
    return tensor if list(tensor.shape) == shape else tensor.expand(shape)


def _summed(tensor: Tensor, labels: list[int], remaining: Any) -> tuple[Tensor, list[int]]:
    """Sum over the dims whose labels are not kept."""
    gone = tuple(d for d, label in enumerate(labels) if label not in remaining)
    return (tensor.sum(gone) if gone else tensor), [label for label in labels if label in remaining]


def _contracted(a: Tensor, labels_a: list[int], b: Tensor, labels_b: list[int], remaining: list[int]) -> Tensor:
    """Return the sum of products of two tensors over the labels that are not kept, with the dims in the order of `remaining`; by matmul."""
    a, labels_a = _summed(a, labels_a, {*labels_b, *remaining})
    b, labels_b = _summed(b, labels_b, {*labels_a, *remaining})
    sizes: dict[int, int] = {}
    for tensor, labels in ((a, labels_a), (b, labels_b)):
        for label, size in zip(labels, tensor.shape, strict=True):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    common = [label for label in labels_a if label in labels_b]
    batch, shared = ([label for label in common if (label in remaining) == there] for there in (True, False))
    only_a, only_b = ([label for label in labels if label not in common] for labels in (labels_a, labels_b))
    left = _sized(a, labels_a, sizes).permute([labels_a.index(label) for label in batch + only_a + shared])
    right = _sized(b, labels_b, sizes).permute([labels_b.index(label) for label in batch + shared + only_b])
    many, rows, inside, columns = (math.prod(sizes[label] for label in group) for group in (batch, only_a, shared, only_b))
    if shared:
        shape = [many] if batch else []
        product = left.reshape(*shape, rows, inside) @ right.reshape(*shape, inside, columns)
    else:
        product = left.reshape(many, rows, 1) * right.reshape(many, 1, columns)
    labels = batch + only_a + only_b
    return product.reshape([sizes[label] for label in labels]).permute([labels.index(label) for label in remaining])


def _subscripts(text: str, operand: int, at: int) -> list[str]:
    """Return the labels of one operand; an ellipsis is one of them."""
    results = []
    while text:
        if text.startswith("..."):
            results.append("...")
            text, at = text[3:], at + 3
        elif text[0] in string.ascii_letters:
            results.append(text[0])
            text, at = text[1:], at + 1
        else:
            raise RuntimeError(f"{einsum.__name__}(): invalid subscript given at index {at} in the equation string, subscripts must be "
                               "in [a-zA-Z]")
    if results.count("...") > 1:
        raise RuntimeError(f"{einsum.__name__}(): found '...' for operand {operand} for which an ellipsis was already found")
    return results


def _parsed(arguments: tuple[Any, ...]) -> tuple[list[list[Any]], list[Any] | None, list[Any]]:
    """Return the labels of the operands, the labels of the result if given, and the operands."""
    if not arguments:
        raise ValueError(f"{einsum.__name__}(): must specify the equation string and at least one operand")
    if isinstance(arguments[0], str):
        equation, operands = arguments[0].replace(" ", ""), arguments[1:]
        if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
            operands = tuple(operands[0])
        text, arrow, result = equation.partition("->")
        terms = text.split(",")
        starts = [sum(len(term) + 1 for term in terms[:k]) for k in range(len(terms))]
        labels: list[list[Any]] = [list(_subscripts(term, k, start)) for k, (term, start) in enumerate(zip(terms, starts, strict=True))]
        output = list(_subscripts(result, len(terms), len(text) + 2)) if arrow else None
    else:
        operands = arguments[0:len(arguments) // 2 * 2:2]
        labels = [["..." if item is ... else item for item in term] for term in arguments[1::2]]
        output = ["..." if item is ... else item for item in arguments[-1]] if len(arguments) % 2 else None
    if not operands:
        raise ValueError(f"{einsum.__name__}(): must specify the equation string and at least one operand")
    if len(labels) != len(operands):
        fewer = "fewer" if len(operands) < len(labels) else "more"
        raise RuntimeError(f"{einsum.__name__}(): {fewer} operands were provided than specified in the equation: {len(operands)} for "
                           f"{len(labels)} terms")
    return labels, output, list(operands)


def _without_repeats(tensor: Any, labels: list[Any], operand: int) -> tuple[Any, list[Any]]:
    """Replace dims of one label by their diagonal."""
    for label in [label for k, label in enumerate(labels) if label in labels[:k]]:
        first, second = [d for d, other in enumerate(labels) if other == label][:2]
        if tensor.shape[first] != tensor.shape[second]:
            raise RuntimeError(f"{einsum.__name__}(): subscript {label} is repeated for operand {operand} but the sizes don't match, "
                               f"{tensor.shape[second]} != {tensor.shape[first]}")
        tensor = tensor.diagonal(0, first, second)
        labels = [other for d, other in enumerate(labels) if d not in (first, second)] + [label]
    return tensor, labels


@overload
def einsum(equation: str, /, *operands: Tensor | Sequence[Tensor]) -> Tensor: ...
@overload
def einsum(operand: Tensor, labels: Sequence[int | EllipsisType], /, *more: Tensor | Sequence[int | EllipsisType]) -> Tensor: ...
@operator(method=False)
def einsum(*arguments: Any) -> Tensor:
    """Sum of products of tensors by Einstein's convention: `einsum("ij,jk->ik", a, b)`, or `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Labels that the result lacks are summed over; without "->" it has those that occur once, in order. "..." stands for dims that
    broadcast; a label twice on one operand takes its diagonal. Pairs are contracted by matrix products, in a good order.

    >>> import cygrad
    >>> cygrad.einsum("ij,ij->i", cygrad.ones(2, 3), cygrad.ones(2, 3))
    tensor([3., 3.])
    """
    terms, output, operands = _parsed(arguments)
    widest = 0
    for k, (labels, tensor) in enumerate(zip(terms, operands, strict=True)):
        checked_tensor(einsum, tensor)
        named_dims, ellipsis = len(labels) - ("..." in labels), "..." in labels
        if named_dims > tensor.ndim or not ellipsis and named_dims != tensor.ndim:
            raise RuntimeError(f"{einsum.__name__}(): the number of subscripts in the equation ({named_dims}) "
                               f"{'is more than' if ellipsis else 'does not match'} the number of dimensions ({tensor.ndim}) for operand "
                               f"{k}{'' if ellipsis else ' and no ellipsis was given'}")
        if ellipsis:
            widest = max(widest, tensor.ndim - named_dims)
    spread = [("...", place) for place in range(widest)]     # the dims of the ellipsis, aligned at the last

    def filled(labels: list[Any], ndim: int) -> list[Any]:
        if "..." not in labels:
            return labels
        place = labels.index("...")
        return labels[:place] + spread[widest - (ndim - len(labels) + 1):] + labels[place + 1:]

    terms = [filled(labels, tensor.ndim) for labels, tensor in zip(terms, operands, strict=True)]
    every = [label for labels in terms for label in labels]
    if output is None:
        once = sorted((label for label in set(every) if label not in spread and every.count(label) == 1), key=str)
        output = [*spread, *once]
    else:
        output = filled(output, widest + len(output) - 1)
    for place, label in enumerate(output):
        if label in output[:place]:
            raise RuntimeError(f"{einsum.__name__}(): output subscript {label} appears more than once in the output")
        if label not in every:
            raise RuntimeError(f"{einsum.__name__}(): output subscript {label} does not appear in the equation for any input operand")
    numbers = {label: number for number, label in enumerate(dict.fromkeys(every))}
    prepared, sizes = [], dict[Any, int]()
    for k, (tensor, labels) in enumerate(zip(operands, terms, strict=True)):
        tensor, labels = _without_repeats(tensor, labels, k)
        for label, size in zip(labels, tensor.shape, strict=True):
            if size != 1 and sizes.setdefault(label, size) != size:
                raise RuntimeError(f"{einsum.__name__}(): subscript {label} has size {size} for operand {k} which does not broadcast with "
                                   f"previously seen size {sizes[label]}")
        prepared.append((tensor, [numbers[label] for label in labels]))
    return _reduced(prepared, [numbers[label] for label in output])


def _reduced(operands: list[tuple[Tensor, list[int]]], output: list[int]) -> Tensor:
    """Contract operands pair by pair, and bring the dims of the last into the order of the result."""
    for pair in _order(operands, output):
        chosen = [operands.pop(place) for place in sorted(pair, reverse=True)][::-1]
        if len(chosen) == 1:
            operands.append(chosen[0])
            continue
        (a, labels_a), (b, labels_b) = chosen
        others = {label for _, labels in operands for label in labels}.union(output)
        remaining = [label for label in dict.fromkeys(labels_a + labels_b) if label in others]
        operands.append((_contracted(a, labels_a, b, labels_b, remaining), remaining))
    (tensor, labels), = operands
    tensor, labels = _summed(tensor, labels, set(output))
    return tensor.permute([labels.index(label) for label in output])


def _order(operands: list[tuple[Any, list[int]]], output: list[int]) -> list[tuple[int, ...]]:
    """Return which operands to contract in turn: NumPy's greedy order where there are several and letters suffice."""
    used = {label for _, labels in operands for label in labels}
    if len(operands) < 3 or len(used) > len(string.ascii_letters):
        return [(0, 1)] * (len(operands) - 1)
    letters = dict(zip(sorted(used), string.ascii_letters, strict=False))
    terms = ",".join("".join(letters[label] for label in labels) for _, labels in operands)
    shapes = [np.broadcast_to(np.empty(()), tuple(tensor.shape)) for tensor, _ in operands]
    path = np.einsum_path(f"{terms}->{''.join(letters[label] for label in output)}", *shapes, optimize="greedy")[0][1:]
    return [pair for pair in path if len(pair) == 2] if all(len(pair) <= 2 for pair in path) else [(0, 1)] * (len(operands) - 1)
