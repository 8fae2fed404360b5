"""QR decompositions, and products of Householder's reflections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cygrad._core.compute.matrices import our_loop
from cygrad._core.graph.modes import is_grad_enabled
from cygrad.operators import public_name
from cygrad.operators._language.arguments import delivered, delivered_together, shown_as
from cygrad.operators._language.batches import matrices
from cygrad.operators._language.declaration import operator, recorded, recorded_together
from cygrad.operators._language.matrices import check_dims, checked_matrix
from cygrad.operators.joining import cat
from cygrad.operators.solving import linalg_solve_triangular
from cygrad.ops.refusals import NOT_FLOATING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor

_geqrf, _product = our_loop("geqrf"), our_loop("householder_product")
_apply = {False: our_loop("ormqr"), True: our_loop("ormqr_adjoint")}


# ----- QR -----
@shown_as("linalg_qr")
class QR(NamedTuple):
    """The results of `linalg.qr`."""

    Q: Tensor
    R: Tensor


@shown_as("qr")
class OlderQR(NamedTuple):
    """The results of `qr`."""

    Q: Tensor
    R: Tensor


def _qr_gradient(gs: list[Any], y: Tensor, y1: Tensor, mode: str) -> Tensor:
    """Return (gQ + Q sym(gR R^H - Q^H gQ)) R^-H, where sym(X) has the upper triangle of X, its adjoint below, and a real diagonal.

    Of wide matrices the first columns, a square [X | Y] = Q [U | V], have that with gQ + Y gV^H, and Y has Q gV. Where R is singular it is
    not finite. Source: Roberts and Roberts 2020, QR and LQ decomposition matrix backpropagation algorithms for square, wide, and deep
    matrices.
    """
    gQ, gR = gs
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
                           "mode='reduced') if you are going to differentiate through linalg.qr.")
    m, n = y.shape[-2], y1.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    R, last = y1, None
    if m < n:
        R = y1[..., :m]
        gV = y1.new_zeros((*y1.shape[:-1], n - m)) if gR is None else gR[..., m:]
        last, turned = y @ gV, y @ y1[..., m:] @ gV.mH
        gR, gQ = None if gR is None else gR[..., :m], turned if gQ is None else gQ + turned
    inner: Any = 0 if gR is None else gR @ R.mH
    if gQ is not None:
        inner = inner - y.mH @ gQ
    symmetric = inner.triu() + inner.triu(1).mH
    if symmetric.is_complex():
        symmetric = symmetric - (symmetric.diagonal(0, -2, -1).imag * 1j).diag_embed()
    product = y @ symmetric
    gradient = linalg_solve_triangular(R.mH, product if gQ is None else gQ + product, upper=False, left=False)
    return gradient if last is None else cat([gradient, last], -1)


@operator(dA=_qr_gradient, adjoints=True, batch=matrices,
          refuses={"biu": NOT_FLOATING}, loop="geqrf_cpu")
def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Sequence[Tensor] | None = None) -> QR:
    """Q with orthonormal columns and R, upper triangular, of matrices in the last two dims, A = Q R.

    "reduced" gives as many columns as the smaller size is, "complete" a square Q, "r" R alone and an empty Q. The diagonal of R has any
    signs. The gradient holds for matrices whose first columns are independent; "complete" of tall ones and "r" have none.

    >>> import cygrad
    >>> cygrad.linalg.qr(cygrad.tensor([[0., 2.], [-1., 0.]])).R.abs()
    tensor([[1., 0.],
            [0., 2.]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    a = checked_matrix(linalg_qr, A)
    factors, tau = _geqrf(a)
    m, n = a.shape[-2:]
    rows = m if mode == "complete" else min(m, n)
    if mode == "r":
        Q = a.new_empty(0)
    elif rows <= n:
        Q = _product(factors if rows == n else factors[..., :rows], tau)
    else:
        Q = _product(cat([factors, factors.new_zeros((*a.shape[:-1], rows - n))], -1), tau)
    R = (factors if rows == m else factors[..., :rows, :]).mT.tril().mT        # column-major, as Q is
    return delivered_together(QR, recorded_together(linalg_qr, (a,), (Q, R), mode=mode), out)


@operator
def qr(input: Tensor, some: bool = True, *, out: Sequence[Tensor] | None = None) -> OlderQR:
    """Q with orthonormal columns and R, upper triangular, of matrices in the last two dims; Q is square without `some`.

    >>> import cygrad
    >>> cygrad.qr(cygrad.tensor([[0., 2.], [-1., 0.]])).R.abs()
    tensor([[1., 0.],
            [0., 2.]])
    """
    return delivered_together(OlderQR, linalg_qr(input, "reduced" if some else "complete"), out)


# ----- Householder's reflections -----
@shown_as("geqrf")
class Geqrf(NamedTuple):
    """The results of `geqrf`."""

    a: Tensor
    tau: Tensor


@operator(batch=matrices)
def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> Geqrf:
    """QR decomposition of matrices in the last two dims as LAPACK has it: R, and below its diagonal reflections with their scales tau.

    `linalg.householder_product` makes Q of them. There is no derivative: `linalg.qr` has one.

    >>> import cygrad
    >>> cygrad.geqrf(cygrad.tensor([[3., 0.], [4., 5.]])).a[0].abs()
    tensor([5., 4.])
    """
    a = checked_matrix(geqrf, input, "input")
    if a.requires_grad and is_grad_enabled():
        raise NotImplementedError("the derivative for 'geqrf' is not implemented: use linalg.qr, or detach() the matrices")
    return delivered_together(Geqrf, _geqrf(a), out)


def _reflections_gradient(g: Tensor, A: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of the first columns of Q = I - V T V^H for V, below its diagonal of ones, and tau.

    T^-1 = diag(tau)^-1 + S, where S is V^H V above the diagonal (Joffrain et al. 2006, Accumulating Householder transformations,
    revisited); with M = I + diag(tau) S it is T = M^-1 diag(tau), where tau may be 0. `g` has the columns of Q that there are.
    """
    columns, reflections = g.shape[-1], tau.shape[-1]
    ones = tau.new_ones(tau.shape)
    V = A[..., :reflections].tril(-1) + _leading(ones.diag_embed(), A.shape[-2])
    S = (V.mH @ V).triu(1)
    M = tau.unsqueeze(-1) * S
    T = linalg_solve_triangular(M, tau.diag_embed(), upper=True, unitriangular=True)
    first = V[..., :columns, :]
    gT = -(V.mH @ g @ first)
    gV = -(g @ (first @ T.mH)) - _leading(g.mH @ (V @ T), A.shape[-2])
    gS = -(T.mH @ gT @ T.mH).triu(1)
    gV = gV + V @ (gS + gS.mH)
    inner = linalg_solve_triangular(M.mH, gT, upper=False, unitriangular=True)
    return gV.tril(-1), (inner * (ones.diag_embed() - S @ T).conj()).sum(-1)


def _leading(rows: Tensor, size: int) -> Tensor:
    """Return rows with zeros below them."""
    return rows if rows.shape[-2] == size else cat([rows, rows.new_zeros((*rows.shape[:-2], size - rows.shape[-2], rows.shape[-1]))], -2)


def _leading_columns(columns: Tensor, size: int) -> Tensor:
    return _leading(columns.mT, size).mT


def _check_reflections(operator: Any, A: Tensor, tau: Tensor) -> None:
    name = public_name(operator.name)
    if tau.ndim != A.ndim - 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
                           f"input.ndim is equal to {A.ndim}")
    if tau.shape[:-1] != A.shape[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}")
    if tau.dtype != A.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype} does not match input dtype {A.dtype}")


@operator(shared=_reflections_gradient, dA=lambda shared, A_shape: _leading_columns(shared[0], A_shape[-1]), dtau=lambda shared: shared[1],
          adjoints=True, batch=matrices,
          loop="orgqr_cpu")
def linalg_householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """First columns of the product of reflections I - tau v v^H, whose vectors v stand below the diagonal of A, with ones on it.

    >>> import cygrad
    >>> cygrad.linalg.householder_product(cygrad.tensor([[0.], [1.]]), cygrad.tensor([1.]))
    tensor([[ 0.],
            [-1.]])
    """
    a = checked_matrix(linalg_householder_product, A)
    if a.shape[-2] < a.shape[-1]:
        raise RuntimeError("linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.ndim and a.shape[-1] < tau.shape[-1]:
        raise RuntimeError("linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_reflections(linalg_householder_product, a, tau)
    return delivered(recorded(linalg_householder_product, (a, tau), _product(a, tau)), out)


@operator
def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """First columns of a product of reflections, as `linalg.householder_product`.

    >>> import cygrad
    >>> cygrad.orgqr(*cygrad.geqrf(cygrad.eye(2))).abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return linalg_householder_product(input, tau, out=out)


def _applied_gradient(g: Tensor, input: Tensor, tau: Tensor, other: Tensor, transpose: bool) -> tuple[Tensor, Tensor]:
    return _reflections_gradient(other @ g.mH if transpose else g @ other.mH, input, tau)


def _from_the_right(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Any:
    return NotImplemented if left else ormqr(input, tau, other.mH, True, not transpose).mH


def _applied_to_the_gradient(g: Tensor, input: Tensor, tau: Tensor, transpose: bool) -> Tensor:
    return ormqr(input, tau, g, True, not transpose)


@operator(shared=_applied_gradient, dinput=lambda shared, input_shape: _leading_columns(shared[0], input_shape[-1]),
          dtau=lambda shared: shared[1], dother=_applied_to_the_gradient, adjoints=True, batch=matrices, parts=_from_the_right)
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Product of the square Q that `geqrf` gives as reflections and another matrix: Q C, or C Q without `left`; of Q^H with `transpose`.

    >>> import cygrad
    >>> cygrad.ormqr(*cygrad.geqrf(cygrad.eye(2)), cygrad.ones(2, 1)).abs()
    tensor([[1.],
            [1.]])
    """
    a, c = input, other
    check_dims(ormqr, a, "input")
    check_dims(ormqr, c, "other")
    side = -2 if left else -1
    if c.shape[side] != a.shape[-2]:
        raise RuntimeError(f"{ormqr.__name__}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.ndim and tau.shape[-1] > min(c.shape[side], a.shape[-1]):
        raise RuntimeError(f"{ormqr.__name__}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _check_reflections(ormqr, a, tau)
    if c.shape[:-2] != a.shape[:-2]:
        raise RuntimeError(f"{ormqr.__name__}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
                           f"{list(c.shape[:-2])}")
    if c.dtype != a.dtype:
        raise RuntimeError(f"{ormqr.__name__}: Expected input and other to have the same dtype, but input has dtype {a.dtype} and "
                           f"other has dtype {c.dtype}")
    checked_matrix(ormqr, a, "input")
    if not left:
        return delivered(_from_the_right(a, tau, c, False, transpose), out)
    result = _apply[bool(transpose)](a[..., :tau.shape[-1]], tau, c)
    return delivered(recorded(ormqr, (a, tau, c), result, transpose=bool(transpose)), out)
