"""Functions of square matrices, chains of products, and Vandermonde matrices."""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING, Any

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.formats import contiguous_format
from cygrad.operators._language.arguments import checked_operand, delivered
from cygrad.operators._language.batches import matrices
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.matrices import check_dims
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.joining import cat
from cygrad.operators.solving import linalg_inv, linalg_solve_ex
from cygrad.ops.refusals import NOT_FLOATING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


# ----- The exponential -----
# Degrees of Padé approximants, and the 1-norms up to which their error is below the rounding of a dtype (Higham 2005, tables 2.3 and 3.1).
DEGREES = {
    "float64": {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1, 9: 2.097847961257068, 13: 5.371920351148152},
    "float32": {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660},
}


def _approximant(a: Tensor, degree: int) -> Tensor:
    """Return Padé's diagonal approximant of the exponential of matrices."""
    coefficients = [float(math.comb(degree, k) * math.factorial(2 * degree - k) // math.factorial(degree)) for k in range(degree + 1)]
    square = a @ a
    powers = [a.new_ones(a.shape[-1]).diag().expand(a.shape), square]
    while len(powers) <= min(degree // 2, 4 if degree < 13 else 3):
        powers.append(powers[-1] @ square)

    def polynomial(coefficients: list[float]) -> Tensor:
        """Return the polynomial of the square with these coefficients, the first ones from the powers there are."""
        low, high = ([c * power for c, power in zip(part, start, strict=False)]
                     for part, start in ((coefficients, powers), (coefficients[len(powers):], powers[1:])))
        return sum(low[1:], low[0]) + (powers[-1] @ sum(high[1:], high[0]) if high else 0)

    odd, even = a @ polynomial(coefficients[1::2]), polynomial(coefficients[::2])
    return linalg_solve_ex(even - odd, even + odd)[0]


def _exponential(a: Tensor) -> Tensor:
    """Return the exponentials of matrices by scaling and squaring, each matrix with the degree and scale that its norm asks for."""
    if a.dtype.itemsize < 4:
        return _exponential(a.float()).to(a.dtype)
    if not a.numel():
        return a.clone()
    flat = a.reshape(-1, *a.shape[-2:])
    result = flat.clone()
    norms = flat.abs().sum(-2).amax(-1).tolist()
    degrees = DEGREES[a.dtype.to_real().name]
    plans: dict[tuple[int, int], list[int]] = {}
    for place, norm in enumerate(norms):
        degree = next((degree for degree, bound in degrees.items() if norm <= bound), max(degrees))
        excess = norm / degrees[degree]
        plans.setdefault((degree, math.ceil(math.log2(excess)) if 1 < excess < math.inf else 0), []).append(place)
    for (degree, squarings), places in plans.items():
        whole = len(places) == len(flat)
        y = _approximant((flat if whole else flat[places]) * 0.5 ** squarings, degree)
        for _ in range(squarings):
            y = y @ y
        if whole:
            return y.reshape(a.shape)
        result[places] = y
    return result.reshape(a.shape)


def _derivative(a: Tensor, direction: Tensor) -> Tensor:
    """Return the derivative of the exponential at matrices in a direction: a block of the exponential of a block matrix (Mathias 1996).

    The direction is brought to the size of 1: as a large one it would have the matrix scaled until nothing of it is left.
    """
    n = a.shape[-1]
    size = direction.detach().abs().sum(-2, keepdim=True).sum(-1, keepdim=True)
    size = size.where((size > 0) & (size < math.inf), 1.0)
    a = a.expand(direction.shape)
    blocks = cat([cat([a, direction / size], -1), cat([a.new_zeros(()).expand(a.shape), a], -1)], -2)
    return linalg_matrix_exp(blocks)[..., :n, n:] * size


def _exponential_tangent(tangent_of: Any, operator: Any, result: Tensor, a: Tensor) -> Tensor | None:
    t = tangent_of(a)
    return None if t is None else _derivative(a, t)


@operator(dA=lambda g, A: _derivative(A.mT, g), tangent=_exponential_tangent, batch=matrices, aliases=("matrix_exp",),
          refuses={"biu": NOT_FLOATING})
def linalg_matrix_exp(A: Tensor) -> Tensor:
    """Exponential of square matrices in the last two dims: the sum of A^k / k!.

    By scaling and squaring with Padé's approximants (Higham, SIAM J. Matrix Anal. Appl. 26, 2005). Its derivative is a block of the
    exponential of a block matrix (Mathias, ibid. 17, 1996; Al-Mohy and Higham, ibid. 30, 2009). 16-bit numbers are computed in float32.

    >>> import cygrad
    >>> cygrad.linalg.matrix_exp(cygrad.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_dims(linalg_matrix_exp, A, square=True)
    a = checked_operand(linalg_matrix_exp, A)
    return recorded(linalg_matrix_exp, (a,), unrecorded(lambda: _exponential(a.detach()).contiguous()))


# ----- Powers -----
@operator(aliases=("matrix_power",))
def linalg_matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Power of square matrices in the last two dims, by repeated squaring; of a negative `n`, of the inverse.

    LinAlgError where n < 0 and a matrix is singular.

    >>> import cygrad
    >>> cygrad.linalg.matrix_power(cygrad.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    check_dims(linalg_matrix_power, A, square=True)
    exponent = index(n)
    if exponent == 0:
        return delivered(A.clone(memory_format=contiguous_format).copy_(A.new_ones(A.shape[-1]).diag()), out)      # its gradient is 0
    result = _power(linalg_inv(A) if exponent < 0 else A, abs(exponent))
    return delivered(result.clone(memory_format=contiguous_format) if result is A else result, out)


@rounded_once
def _power(A: Tensor, exponent: int) -> Tensor:
    square = A
    while not exponent & 1:
        square, exponent = square @ square, exponent >> 1
    result = square
    while exponent := exponent >> 1:
        square = square @ square
        if exponent & 1:
            result = result @ square
    return result


# ----- Chains of products -----
def _chain_order(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split each run of a chain of matrices for the fewest multiplications (Cormen et al., matrix-chain multiplication)."""
    count = len(sizes) - 1
    cost = {(k, k): 0 for k in range(count)}
    split = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            cost[first, last], split[first, last] = min(
                (cost[first, k] + cost[k + 1, last] + sizes[first] * sizes[k + 1] * sizes[last + 1], k) for k in range(first, last))
    return split


@operator
def linalg_multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Product of two or more matrices, in the order that takes the fewest multiplications; the first and the last may be vectors.

    >>> import cygrad
    >>> cygrad.linalg.multi_dot([cygrad.ones(2), cygrad.eye(2), cygrad.ones(2, 1)])
    tensor([2.])
    """
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{linalg_multi_dot.__name__}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")
    if len(tensors) < 2:
        raise RuntimeError(f"{linalg_multi_dot.__name__}(): expected at least 2 tensors but got {len(tensors)}")
    for k, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorImpl):
            raise TypeError(f"{linalg_multi_dot.__name__}(): expected Tensor as element {k} in argument 0, but got {type(tensor).__name__}")
        end = {0: "the first tensor", len(tensors) - 1: "the last tensor"}.get(k)
        if tensor.ndim != 2 and (end is None or tensor.ndim != 1):
            raise RuntimeError(f"{linalg_multi_dot.__name__}(): {end or f'tensor {k}'} must be {'1D or 2D' if end else '2D'} but got "
                               f"{tensor.ndim}D")
        if tensor.dtype != tensors[0].dtype:
            raise RuntimeError(f"{linalg_multi_dot.__name__}(): all tensors must have be the same dtype but tensor 0 is "
                               f"{tensors[0].dtype} and tensor {k} {tensor.dtype}")
        if k and tensor.shape[0] != tensors[k - 1].shape[-1]:
            raise RuntimeError(f"{linalg_multi_dot.__name__}(): tensors {k - 1} and {k} with shapes {list(tensors[k - 1].shape)} and "
                               f"{list(tensor.shape)} cannot be multiplied")
    sizes = [tensors[0].shape[0] if tensors[0].ndim == 2 else 1, *(tensor.shape[0] for tensor in tensors[1:]),
             tensors[-1].shape[-1] if tensors[-1].ndim == 2 else 1]
    split = _chain_order(sizes)

    @rounded_once
    def chain(*factors: Tensor) -> Tensor:
        def product(first: int, last: int) -> Tensor:
            if first == last:
                return factors[first]
            middle = split[first, last]
            return product(first, middle) @ product(middle + 1, last)

        return product(0, len(factors) - 1)

    return delivered(chain(*tensors), out)


@operator(method=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of matrices, in the order that takes the fewest multiplications; see `linalg.multi_dot`.

    >>> import cygrad
    >>> cygrad.chain_matmul(cygrad.eye(2), cygrad.ones(2, 1), cygrad.ones(1, 2)).shape
    cygrad.Size([2, 2])
    """
    if not matrices:
        raise RuntimeError(f"{chain_matmul.__name__}(): Expected one or more matrices")
    return delivered(matrices[0].clone(), out) if len(matrices) == 1 else linalg_multi_dot(matrices, out=out)


# ----- Vandermonde matrices -----
@operator(refuses={"b": RuntimeError("{public} supports floating point, complex, and integer tensors, but got {dtype}")})
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Vandermonde matrices: the powers 0 to N - 1 of each element, along a new last dim; N is by default the last size of `x`.

    >>> import cygrad
    >>> cygrad.linalg.vander(cygrad.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    checked_operand(linalg_vander, x)
    count = (x.shape[-1] if x.ndim else 1) if N is None else index(N)
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return _powers(x if x.ndim else x.reshape(1), count)


def _powers(x: Tensor, count: int) -> Tensor:
    """Return the powers of elements below `count`, along a new last dim."""
    ones = x.new_ones(()).expand(*x.shape, 1)
    return cat([ones, x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)], -1)


@operator(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Vandermonde matrix of a vector: its powers as columns, the highest first unless `increasing`; N columns, by default as many as rows.

    >>> import cygrad
    >>> cygrad.vander(cygrad.tensor([1, 2, 3]), 2)
    tensor([[1, 1],
            [2, 1],
            [3, 1]])
    """
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else index(N)
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = _powers(x, max(count, 1))[:, :count]
    return powers if increasing else powers.flip(1)
