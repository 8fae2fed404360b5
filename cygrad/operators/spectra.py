"""Eigenvalues and singular values of matrices, and their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.compute.matrices import first_failure, first_nonfinite, our_loop
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.levels.batches import batched_level
from cygrad.operators._language.arguments import delivered, delivered_together, shown_as
from cygrad.operators._language.batches import matrices
from cygrad.operators._language.declaration import operator, recorded_together
from cygrad.operators._language.matrices import by_size, check_converged, check_finite, checked_matrix, failure, numpys_loop
from cygrad.operators.solving import linalg_solve
from cygrad.ops.refusals import NOT_FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor


def _needs_gradient(x: Tensor) -> bool:
    return x.requires_grad and is_grad_enabled()


def _without_vectors(decomposition: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return the parts of an operator that gives the values alone, whose derivatives need the vectors, too."""
    def parts(A: Tensor, *arguments: Any, **keywords: Any) -> Any:
        return NotImplemented if batched_level(A) is not None else decomposition(A, *arguments, **keywords)[number]

    return parts


def _one_of(loop: Callable[[Tensor], Any], number: int) -> Callable[[Tensor], Any]:
    return lambda A: loop(A)[number]


def _check_phases(words: str, inner: Tensor) -> None:
    """Refuse a loss that depends on the phases of complex vectors, which are given up to these; inside of vmap this is not checked."""
    if batched_level(inner) is None and not (inner.diagonal(0, -2, -1).detach().imag.abs() <= 0.01).all():
        raise RuntimeError(words)


def _differences(values: Tensor) -> Tensor:
    """Return the differences of values, of the later one and the earlier one of a pair, with ones on the diagonal."""
    differences = values.unsqueeze(-2) - values.unsqueeze(-1)
    differences.diagonal(0, -2, -1).fill_(1)
    return differences


# ----- Of Hermitian matrices -----
_eigh_loops = {"L": our_loop("eigh_lower"), "U": our_loop("eigh_upper")}
_eigh = {triangle: by_size(loop, numpys_loop("(m,m)->(m),(m,m)", f"eigh_{end}", lambda A, L=triangle: tuple(np.linalg.eigh(A, L))),
                          loop, "stedc")
         for (triangle, loop), end in zip(_eigh_loops.items(), ("lo", "up"), strict=True)}
_eigvalsh = {triangle: by_size(_one_of(loop, 0), our_loop(f"eigvalsh_{end}"))
             for (triangle, loop), end in zip(_eigh_loops.items(), ("lower", "upper"), strict=True)}


@shown_as("linalg_eigh")
class Eigh(NamedTuple):
    """The results of `linalg.eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _of_triangle(loops: dict[str, Any], A: Tensor, UPLO: str, less: int) -> Any:
    """Return the result of a loop that reads one triangle; LinAlgError where that is not finite, with LAPACK's number."""
    triangle = UPLO.upper() if isinstance(UPLO, str) else UPLO
    if triangle not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    element, results = first_nonfinite(A, 1 if triangle == "U" else -1), None
    if element is None:
        results = loops[triangle](A)
        element = first_failure(results if less > 1 else results[0], 1)
    if element is not None:
        raise failure(linalg_eigh, A.ndim - 2, element, "The algorithm failed to converge because the input matrix is ill-conditioned or "
                      f"has too many repeated eigenvalues (error code: {max(A.shape[-1] - less, 1)}).")
    return results


def _eigh_gradient(gs: list[Any], y: Tensor, y1: Tensor) -> Tensor:
    """Return V (diag(gL) + skew(V^H gV) / E) V^H with E_ij = L_j - L_i, which is Hermitian (Giles 2008, 3.1; Boeddeker et al. 2017).

    Where eigenvalues are equal their vectors have no derivative, and it is not finite.
    """
    gL, gV = gs
    if gV is None:
        return y1 * gL.unsqueeze(-2) @ y1.mH
    inner = y1.mH @ gV
    if inner.is_complex():
        _check_phases("linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
                      "specified loss function depends on this quantity, so it is ill-defined.", inner)
    middle = 0.5 * (inner - inner.mH) / _differences(y)
    if gL is not None:
        middle = middle + gL.diag_embed()
    return y1 @ middle @ y1.mH


@operator(dA=_eigh_gradient, adjoints=True, batch=matrices)
def linalg_eigh(A: Tensor, UPLO: str = "L", *, out: Sequence[Tensor] | None = None) -> Eigh:
    """Eigenvalues L, in ascending order, and eigenvectors V, in columns, of Hermitian matrices in the last two dims, A = V diag(L) V^H.

    One triangle is read, "L" the lower one, "U" the upper one. The gradient is Hermitian; the gradient of vectors of equal eigenvalues is
    not finite, and a loss that depends on the phase of complex ones is refused. LinAlgError where a matrix is not finite.

    >>> import cygrad
    >>> cygrad.linalg.eigh(cygrad.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    a = checked_matrix(linalg_eigh, A, square=True)
    results = _of_triangle(_eigh, a, UPLO, 1)
    return delivered_together(Eigh, recorded_together(linalg_eigh, (a,), results), out)


@operator(batch=matrices, parts=_without_vectors(linalg_eigh, 0))
def linalg_eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of Hermitian matrices in the last two dims, in ascending order; one triangle is read, as by `linalg.eigh`.

    >>> import cygrad
    >>> cygrad.linalg.eigvalsh(cygrad.tensor([[2., 0.], [0., 1.]]))
    tensor([1., 2.])
    """
    a = checked_matrix(linalg_eigh, A, square=True)
    return delivered(linalg_eigh(a, UPLO).eigenvalues if _needs_gradient(a) else _of_triangle(_eigvalsh, a, UPLO, 2), out)


# ----- Of any matrices -----
_eig = numpys_loop("(m,m)->(m),(m,m)", "eig", lambda A: tuple(part.astype(np.result_type(A, 1j)) for part in np.linalg.eig(A)))
_eigvals = numpys_loop("(m,m)->(m)", "eigvals", lambda A: np.linalg.eigvals(A).astype(np.result_type(A, 1j)))


@shown_as("linalg_eig")
class Eig(NamedTuple):
    """The results of `linalg.eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _eig_gradient(gs: list[Any], y: Tensor, y1: Tensor, A_dtype: Any) -> Tensor:
    """Return V^-H (diag(gL) + (V^H gV - V^H V diag(Re(V^H gV))) / conj(E)) V^H with E_ij = L_j - L_i (Boeddeker et al. 2017, eq. 4.77).

    The vectors have norm 1, which the middle term keeps; of real matrices it is the real part.
    """
    gL, gV = gs
    adjoint = y1.mH
    if gV is None:
        right = gL.unsqueeze(-1) * adjoint
    else:
        inner = adjoint @ gV
        _check_phases("linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
                      "specified loss function depends on this quantity, so it is ill-defined.", inner)
        along = inner.diagonal(0, -2, -1).real
        middle = (inner - adjoint @ (y1 * along.unsqueeze(-2))) / _differences(y).conj()
        middle = middle - middle.diagonal(0, -2, -1).diag_embed()
        right = (middle if gL is None else middle + gL.diag_embed()) @ adjoint
    gradient = linalg_solve(adjoint, right)
    return gradient if A_dtype.is_complex else gradient.real


def _check_eig(a: Tensor) -> None:
    check_finite(linalg_eig, a, "input tensor should not contain infs or NaNs.")


_EIG_FAILED = "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues."


@operator(dA=_eig_gradient, adjoints=True, batch=matrices,
          refuses={"biu": RuntimeError("Unknown Complex ScalarType for {dtype}")}, loop="linalg_eig_out_cpu")
def linalg_eig(A: Tensor, *, out: Sequence[Tensor] | None = None) -> Eig:
    """Eigenvalues L and eigenvectors V, in columns of norm 1, of square matrices in the last two dims, A = V diag(L) V^-1; both complex.

    The gradient of vectors of equal eigenvalues is not finite, and a loss that depends on their phase is refused. LinAlgError where a
    matrix is not finite.

    >>> import cygrad
    >>> cygrad.linalg.eig(cygrad.tensor([[0., 1.], [-1., 0.]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    a = checked_matrix(linalg_eig, A, square=True)
    _check_eig(a)
    results = _eig(a)
    check_converged(linalg_eig, results[0].real, _EIG_FAILED)
    return delivered_together(Eig, recorded_together(linalg_eig, (a,), results), out)


@operator(batch=matrices, parts=_without_vectors(linalg_eig, 0))
def linalg_eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of square matrices in the last two dims, complex and in no order.

    >>> import cygrad
    >>> cygrad.linalg.eigvals(cygrad.tensor([[0., 1.], [-1., 0.]]))
    tensor([0.+1.j, 0.-1.j])
    """
    a = checked_matrix(linalg_eig, A, square=True)
    if _needs_gradient(a):
        return delivered(linalg_eig(a).eigenvalues, out)
    _check_eig(a)
    values = _eigvals(a)
    check_converged(linalg_eig, values.real, _EIG_FAILED)
    return delivered(values, out)


# ----- Singular values -----
_svd_loops = {False: our_loop("svd"), True: our_loop("svd_full")}
_svd = {full: by_size(loop, numpys_loop(loop.signature, f"svd_{end}", lambda A, full=full: tuple(np.linalg.svd(A, full))), loop, "bdsdc")
        for (full, loop), end in zip(_svd_loops.items(), ("s", "f"), strict=True)}
_svdvals = by_size(_one_of(_svd_loops[False], 1), numpys_loop("(m,n)->(p)", "svd", lambda A: np.linalg.svd(A, compute_uv=False)),
                   our_loop("svdvals"), "bdsdc")
_NOT_FINITE = "The algorithm failed to converge because the input matrix contained non-finite values."
_SVD_FAILED = "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values."


@shown_as("linalg_svd")
class SVD(NamedTuple):
    """The results of `linalg.svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@shown_as("svd")
class SVDWithV(NamedTuple):
    """The results of `svd`."""

    U: Tensor
    S: Tensor
    V: Tensor


def _svd_gradient(gs: list[Any], y: Tensor, y1: Tensor, y2: Tensor) -> Tensor:
    """Return U (diag(gS) + skew(U^H gU) / E S + S skew(V^H gV) / E) V^H, E_ij = S_j^2 - S_i^2, and the part outside the spaces of U and V.

    Source: Giles 2008, 3.2; Townsend 2016, Differentiating the singular value decomposition; the phases of complex vectors, Wan and Zhang
    2019. Where singular values are equal their vectors have no derivative, and it is not finite; the vectors that `full_matrices` adds
    are given by the others up to a rotation, and have none.
    """
    gU, gS, gVh = gs
    m, n, p = y.shape[-2], y2.shape[-1], y1.shape[-1]
    U, S, Vh = y, y1, y2
    if U.shape[-1] > p:
        U, gU = U[..., :p], None if gU is None else gU[..., :p]
    if Vh.shape[-2] > p:
        Vh, gVh = Vh[..., :p, :], None if gVh is None else gVh[..., :p, :]
    if gU is None and gVh is None:
        return U * gS.unsqueeze(-2) @ Vh
    left, right = None if gU is None else U.mH @ gU, None if gVh is None else Vh @ gVh.mH
    row, column = S.unsqueeze(-2), S.unsqueeze(-1)
    squares = _differences(S) * (row + column)
    squares.diagonal(0, -2, -1).fill_(1)
    middle: Any = 0 if gS is None else gS.diag_embed()
    if U.is_complex():
        _check_phases("svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
                      "specified loss function depends on this phase term, making it ill-defined.",
                      sum(part for part in (left, right) if part is not None))
        if left is not None:
            middle = middle + ((left - left.mH).diagonal(0, -2, -1) / (2 * S)).diag_embed()
    if left is not None:
        middle = middle + (left - left.mH) / squares * row
    if right is not None:
        middle = middle + column * ((right - right.mH) / squares)
    inside = U @ middle
    if gU is not None and m > p:
        outwards = gU / row
        inside = inside + (outwards - U @ (U.mH @ outwards))
    gradient = inside @ Vh
    if gVh is not None and n > p:
        outwards = gVh / column
        gradient = gradient + U @ (outwards - outwards @ Vh.mH @ Vh)
    return gradient


def _check_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError("linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


@operator(dA=_svd_gradient, adjoints=True, batch=matrices,
          refuses={"biu": NOT_FLOATING})
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Sequence[Tensor] | None = None) -> SVD:
    """Singular values S, in descending order, of matrices in the last two dims, with U and Vh of A = U diag(S) Vh.

    The columns of U and the rows of Vh are orthonormal; `full_matrices` makes both square. The gradient of vectors of equal singular
    values is not finite, and a loss that depends on the phase of complex ones is refused. LinAlgError where a matrix is not finite.

    >>> import cygrad
    >>> cygrad.linalg.svd(cygrad.tensor([[0., 2.], [1., 0.]])).S
    tensor([2., 1.])
    """
    a = checked_matrix(linalg_svd, A)
    _check_driver(driver)
    check_finite(linalg_svd, a, _NOT_FINITE)
    results = _svd[bool(full_matrices)](a)
    check_converged(linalg_svd, results[1], _SVD_FAILED)
    return delivered_together(SVD, recorded_together(linalg_svd, (a,), results), out)


@operator(batch=matrices, parts=lambda A, **_: _without_vectors(linalg_svd, 1)(A, False))
def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Singular values of matrices in the last two dims, in descending order.

    >>> import cygrad
    >>> cygrad.linalg.svdvals(cygrad.tensor([[0., 2.], [1., 0.]]))
    tensor([2., 1.])
    """
    a = checked_matrix(linalg_svd, A)
    _check_driver(driver)
    if _needs_gradient(a):
        return delivered(linalg_svd(a, False).S, out)
    check_finite(linalg_svd, a, _NOT_FINITE)
    values = _svdvals(a)
    check_converged(linalg_svd, values, _SVD_FAILED)
    return delivered(values, out)


@operator
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Sequence[Tensor] | None = None) -> SVDWithV:
    """Singular values S of matrices in the last two dims, with U and V of A = U diag(S) V^H; those are zeros without `compute_uv`.

    `some` gives as many columns of U and V as there are singular values.

    >>> import cygrad
    >>> cygrad.svd(cygrad.tensor([[0., 2.], [1., 0.]])).S
    tensor([2., 1.])
    """
    if compute_uv:
        U, S, Vh = linalg_svd(input, not some)
        return delivered_together(SVDWithV, (U, S, Vh.mH), out)
    S = linalg_svdvals(input)
    *batch, m, n = input.shape
    return delivered_together(SVDWithV, (input.new_zeros((*batch, m, m)), S, input.new_zeros((*batch, n, n))), out)
