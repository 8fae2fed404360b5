"""Calls of NumPy's functions that have a row: for each function, calls with arrays of some shapes. Elements are drawn around 0."""

from typing import Any, NamedTuple

import numpy as np


class Sample(NamedTuple):
    """A call of a function of NumPy's with arrays or tensors of these shapes."""
    call: Any
    shapes: tuple[tuple[int, ...], ...]


def sample(call, *shapes):
    return Sample(call, shapes)


MASK = np.array([[True, False, True], [False, True, True]])
PLACES = np.array([[0, 2], [-1, 1]])


def of_axes(function, **keywords):
    """Return calls of a function of an array along some axes, with some of its arguments."""
    axes = [{}, {"axis": 0}, {"axis": -1, **keywords}, {"axis": None}]
    return [sample(lambda a, options=options: function(a, **options), (2, 3)) for options in axes]


def of_several_axes(function, **keywords):
    tuples = [{"axis": (0, 2)}, {"axis": (), **keywords}, {"axis": (-1,), "keepdims": True}, {"keepdims": True}]
    return [*of_axes(function, **keywords), *(sample(lambda a, options=options: function(a, **options), (2, 3, 2)) for options in tuples),
            sample(lambda a: function(a), ()), sample(lambda a: function(a, 0), (3, 1))]


def masked(function, initial):
    return [sample(lambda a: function(a, axis=0, initial=initial), (2, 3)), sample(lambda a: function(a, initial=initial), (2, 3)),
            sample(lambda a: function(a, axis=1, where=MASK, initial=initial), (2, 3))]


def joining(function):
    return [sample(lambda *arrays: function(arrays), (2, 3), (2, 3)), sample(lambda a: function(a), (3, 2, 2)),
            sample(lambda a, b: function([a, b], dtype=np.float32), (2, 3), (2, 3)), sample(lambda a, b: function([a, b]), (3,), (3,))]


SAMPLES = {
    # Reductions
    np.sum: [*of_several_axes(np.sum), *masked(np.sum, 2.0), sample(lambda a: np.sum(a, dtype=np.float32), (2, 3)),
             sample(lambda a: np.sum(a, 0, where=MASK), (2, 3)), sample(lambda a: np.sum(a, 0), (0, 3))],
    np.prod: [*of_several_axes(np.prod), *masked(np.prod, 2.0), sample(lambda a: np.prod(a, where=MASK), (2, 3))],
    np.max: [*of_several_axes(np.max), *masked(np.max, -0.5)],
    np.min: [*of_several_axes(np.min), *masked(np.min, 0.5)],
    np.amax: [sample(lambda a: np.amax(a, (0, 1)), (2, 3))],
    np.amin: [sample(lambda a: np.amin(a, 0), (2, 3))],
    np.any: [*of_several_axes(np.any), sample(lambda a: np.any(a, 0, where=MASK), (2, 3))],
    np.all: [*of_several_axes(np.all), sample(lambda a: np.all(a, 0, where=MASK), (2, 3))],
    np.nansum: of_several_axes(np.nansum, dtype=np.float64),
    np.nanmean: of_several_axes(np.nanmean),
    np.count_nonzero: of_several_axes(np.count_nonzero),
    np.ptp: of_several_axes(np.ptp),
    np.argmax: [*of_axes(np.argmax, keepdims=True), sample(lambda a: np.argmax(a, keepdims=True), (2, 3))],
    np.argmin: [*of_axes(np.argmin, keepdims=True), sample(lambda a: np.argmin(a, keepdims=True), (2, 3))],
    np.mean: of_several_axes(np.mean, dtype=np.float32),
    np.var: [*of_several_axes(np.var, ddof=1), sample(lambda a: np.var(a, 0, correction=0.5), (3, 2))],
    np.std: [*of_several_axes(np.std, dtype=np.float32), sample(lambda a: np.std(a, ddof=1), (3, 2))],
    np.average: [*of_several_axes(np.average), sample(lambda a, w: np.average(a, weights=w * w), (2, 3), (2, 3)),
                 sample(lambda a, w: np.average(a, -2, w * w + 1, returned=True), (2, 3, 2), (3,))],
    np.cumsum: [*of_axes(np.cumsum, dtype=np.float32), sample(lambda a: np.cumsum(a), ())],
    np.cumprod: of_axes(np.cumprod, dtype=np.float32),
    np.diff: [sample(lambda a: np.diff(a), (2, 3)), sample(lambda a: np.diff(a, 2, 0), (3, 2)),
              sample(lambda a, b: np.diff(a, axis=0, prepend=b, append=0.0), (2, 3), (1, 3)),
              sample(lambda a: np.diff(a, prepend=1.0), (2, 3))],
    np.trapezoid: [sample(lambda y: np.trapezoid(y), (2, 3)), sample(lambda y, x: np.trapezoid(y, x, axis=0), (3, 2), (3,)),
                   sample(lambda y, x: np.trapezoid(y, x), (2, 3), (2, 3)), sample(lambda y: np.trapezoid(y, dx=0.5, axis=0), (3, 2))],
    # Products
    np.dot: [sample(np.dot, *shapes) for shapes in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((3,), (3, 2)), ((2, 3), ()),
                                                    ((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (3,)), ((0,), (0,)), ((3,), (2, 3, 2)))],
    np.inner: [sample(np.inner, *shapes) for shapes in (((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((), (3,)))],
    np.outer: [sample(np.outer, (2,), (3,)), sample(np.outer, (2, 2), ())],
    np.vdot: [sample(np.vdot, (3,), (3,)), sample(np.vdot, (2, 3), (2, 3))],
    np.vecdot: [sample(np.vecdot, (2, 3), (3,)), sample(lambda a, b: np.vecdot(a, b, axis=0), (3, 2), (3, 2))],
    np.tensordot: [sample(np.tensordot, (2, 3, 2), (3, 2, 2)), sample(lambda a, b: np.tensordot(a, b, 0), (2,), (3,)),
                   sample(lambda a, b: np.tensordot(a, b, axes=([1, 0], [0, 1])), (2, 3), (3, 2)),
                   sample(lambda a, b: np.tensordot(a, b, (0, -1)), (3, 2), (2, 3))],
    np.einsum: [sample(lambda a, b: np.einsum("ij,jk", a, b), (2, 3), (3, 2)), sample(lambda a: np.einsum("ii", a), (3, 3)),
                sample(lambda a, b, c: np.einsum("ij,jk,k->i", a, b, c, optimize=True), (2, 3), (3, 2), (2,)),
                sample(lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]), (2, 3), (3, 2)),
                sample(lambda a: np.einsum(a, [0, 0]), (3, 3)),
                sample(lambda a, b: np.einsum("...i,...i->...", a, b, dtype=np.complex128), (2, 3), (2, 3)),
                sample(lambda a: np.einsum("i->", a, dtype=np.float32, casting="same_kind"), (3,))],
    np.kron: [sample(np.kron, (2, 2), (1, 3)), sample(np.kron, (2,), (2, 2))],
    np.cross: [sample(np.cross, (3,), (3,)), sample(np.cross, (2, 3), (3,)), sample(lambda a, b: np.cross(a, b, axis=0), (3, 2), (3, 2)),
               sample(lambda a, b: np.cross(a, b, 0, -1, 0), (3, 2), (2, 3))],
    np.trace: [sample(np.trace, (3, 3)), sample(lambda a: np.trace(a, 1, 2, 0, np.float32), (3, 2, 3))],
    # Shapes
    np.shape: [sample(np.shape, (2, 3))],
    np.ndim: [sample(np.ndim, (2, 3))],
    np.size: [sample(np.size, (2, 3)), sample(lambda a: np.size(a, -1), (2, 3))],
    np.reshape: [sample(lambda a, s=s: np.reshape(a, s), (2, 3)) for s in (6, (3, 2), (-1,), [3, -1])] + [
        sample(lambda a, s=s: np.reshape(a, s, order="F"), (2, 3)) for s in ((3, 2), -1, (1, 6))] + [
        sample(lambda a: np.reshape(a, ()), (1, 1))],
    np.ravel: [sample(np.ravel, (2, 3)), sample(lambda a: np.ravel(a, order="F"), (2, 3)), sample(np.ravel, ())],
    np.squeeze: [sample(np.squeeze, (1, 3, 1)), sample(lambda a: np.squeeze(a, 0), (1, 3, 1)),
                 sample(lambda a: np.squeeze(a, (0, -1)), (1, 3, 1))],
    np.expand_dims: [sample(lambda a, axis=axis: np.expand_dims(a, axis), (2, 3)) for axis in (0, -1, (0, 2), [-1, 0], ())],
    np.transpose: [sample(np.transpose, (2, 3, 2)), sample(lambda a: np.transpose(a, (2, 0, -2)), (2, 3, 2)), sample(np.transpose, ())],
    np.matrix_transpose: [sample(np.matrix_transpose, (2, 3, 2))],
    np.swapaxes: [sample(lambda a: np.swapaxes(a, 0, -1), (2, 3, 2))],
    np.moveaxis: [sample(lambda a: np.moveaxis(a, 0, -1), (2, 3, 2)), sample(lambda a: np.moveaxis(a, [0, 1], [-1, 0]), (2, 3, 2))],
    np.broadcast_to: [sample(lambda a: np.broadcast_to(a, (2, 2, 3)), (2, 3)), sample(lambda a: np.broadcast_to(a, 3), ())],
    np.broadcast_arrays: [sample(np.broadcast_arrays, (2, 3), (3,)), sample(lambda a: np.broadcast_arrays(a, [[1.0], [2.0]]), (3,))],
    np.copy: [sample(np.copy, (2, 3))],
    np.flip: [sample(lambda a, axis=axis: np.flip(a, axis), (2, 3)) for axis in (None, 0, (0, 1))],
    np.fliplr: [sample(np.fliplr, (2, 3))],
    np.flipud: [sample(np.flipud, (2, 3))],
    np.roll: [sample(lambda a: np.roll(a, 2), (2, 3)), sample(lambda a: np.roll(a, -1, 0), (2, 3)),
              sample(lambda a: np.roll(a, 1, (0, 1)), (2, 3)),
              sample(lambda a: np.roll(a, (1, 1), 1), (2, 3)), sample(lambda a: np.roll(a, (1, 1)), (2, 3))],
    np.rot90: [sample(lambda a, k=k: np.rot90(a, k), (2, 3)) for k in (0, 1, 2, 3, -1)] + [
        sample(lambda a: np.rot90(a, 1, (2, 1)), (2, 3, 2))],
    np.tile: [sample(lambda a: np.tile(a, 2), (2, 3)), sample(lambda a: np.tile(a, (2, 1, 2)), (2, 3)),
              sample(lambda a: np.tile(a, (2,)), ())],
    np.repeat: [sample(lambda a: np.repeat(a, 2), (2, 3)), sample(lambda a: np.repeat(a, [1, 0, 2], axis=1), (2, 3)),
                sample(lambda a: np.repeat(a, np.array([2]), axis=0), (2, 3))],
    np.diag: [sample(np.diag, (3,)), sample(lambda a: np.diag(a, 1), (3, 3)), sample(lambda a: np.diag(a, k=-1), (2,))],
    np.diagflat: [sample(lambda a: np.diagflat(a, 1), (2, 2))],
    np.diagonal: [sample(np.diagonal, (3, 3)), sample(lambda a: np.diagonal(a, 1, 2, 0), (3, 2, 3))],
    np.tril: [sample(np.tril, (3, 3)), sample(lambda a: np.tril(a, -1), (2, 3, 3))],
    np.triu: [sample(np.triu, (3, 3)), sample(lambda a: np.triu(a, 1), (3, 3))],
    # Joined and cut
    np.concatenate: [*joining(np.concatenate), sample(lambda a, b: np.concatenate([a, b], axis=None), (2, 3), (2,)),
                     sample(lambda a, b: np.concatenate((a, b, [[1.0, 2.0]]), -2), (1, 2), (2, 2)),
                     sample(lambda a, b: np.concatenate([a, b], 1), (2, 0), (2, 1)), sample(lambda a: np.concatenate([a, [0.5]]), (2,))],
    np.stack: [*joining(np.stack), sample(lambda a, b: np.stack([a, b], -1), (2, 3), (2, 3)),
               sample(lambda a, b: np.stack([a, b]), (), ())],
    np.vstack: [*joining(np.vstack), sample(lambda a, b: np.vstack([a, b]), (3,), (2, 3)), sample(lambda a: np.vstack([a, 1.0]), ())],
    np.hstack: [*joining(np.hstack), sample(lambda a, b: np.hstack([a, b]), (), (3,))],
    np.dstack: [sample(lambda a, b: np.dstack([a, b]), shape, shape) for shape in ((), (3,), (2, 3), (2, 3, 2))],
    np.column_stack: [sample(lambda a, b: np.column_stack([a, b]), (3,), (3, 2))],
    np.append: [sample(lambda a, b: np.append(a, b), (2, 3), (2,)), sample(lambda a, b: np.append(a, b, axis=0), (2, 3), (1, 3)),
                sample(lambda a: np.append(a, [1.0, 2.0]), (2,))],
    np.block: [sample(lambda a, b: np.block([a, b]), (3,), (2,)), sample(lambda a, b: np.block([[a, b], [b, a]]), (2, 2), (2, 2)),
               sample(lambda a: np.block([[a, np.zeros((2, 1))], [np.ones((1, 2)), 5.0]]), (2, 2)), sample(lambda a: np.block(a), (2,)),
               sample(lambda a, b: np.block([[[a]], [[b]]]), (2, 2, 2), (1, 2, 2))],
    np.split: [sample(lambda a: np.split(a, 3), (3, 2)), sample(lambda a: np.split(a, [1, 2], axis=1), (2, 3))],
    np.array_split: [sample(lambda a: np.array_split(a, 2), (3, 2)), sample(lambda a: np.array_split(a, [1, 5]), (3,))],
    np.hsplit: [sample(lambda a: np.hsplit(a, 3), (2, 3)), sample(lambda a: np.hsplit(a, [1]), (3,))],
    np.vsplit: [sample(lambda a: np.vsplit(a, 2), (2, 3))],
    np.dsplit: [sample(lambda a: np.dsplit(a, 2), (1, 3, 2))],
    np.meshgrid: [sample(lambda a, b: np.meshgrid(a, b), (2,), (3,)), sample(lambda a, b: np.meshgrid(a, b, indexing="ij"), (2,), (3,)),
                  sample(lambda a: np.meshgrid(a), (2,))],
    # Elements
    np.where: [sample(lambda a, b: np.where(a > 0, a, b), (2, 3), (2, 3)), sample(lambda a: np.where(a > 0, a, 0.0), (2, 3)),
               sample(lambda a: np.where(MASK, 1.0, a), (2, 3)), sample(lambda a: np.where(a > 0, 1.0, 0.0), (2, 3)),
               sample(lambda a: np.where(a > 0), (2, 3)), sample(lambda a: np.where(a, a, [1.0, 2.0, 3.0]), (2, 3))],
    np.clip: [sample(lambda a: np.clip(a, -0.5, 0.5), (2, 3)), sample(lambda a, b: np.clip(a, b, 1.0), (2, 3), (3,)),
              sample(lambda a, b, c: np.clip(a, b, c), (2, 3), (3,), ()), sample(lambda a: np.clip(a, None, 0.25), (2, 3)),
              sample(lambda a: np.clip(a, a_min=0.5, a_max=-0.5), (2, 3)),
              sample(lambda a: np.clip([0.1, 2.0, -3.0], -1.0, a), (3,))],
    np.take: [sample(lambda a: np.take(a, [3, -1]), (2, 3)), sample(lambda a: np.take(a, PLACES, axis=1), (2, 3)),
              sample(lambda a: np.take(a, 1, axis=0), (2, 3))],
    np.take_along_axis: [sample(lambda a: np.take_along_axis(a, PLACES, 1), (2, 3)),
                         sample(lambda a: np.take_along_axis(a, np.array([4, 0]), None), (2, 3)),
                         sample(lambda a: np.take_along_axis(a, np.argsort(a, 0), axis=0), (2, 3))],
    np.compress: [sample(lambda a: np.compress([True, False, True], a, axis=1), (2, 3)),
                  sample(lambda a: np.compress([False, True], a), (2, 3))],
    np.nonzero: [sample(lambda a: np.nonzero(a > 0), (2, 3))],
    np.flatnonzero: [sample(lambda a: np.flatnonzero(a > 0), (2, 3))],
    np.argwhere: [sample(lambda a: np.argwhere(a > 0), (2, 3))],
    np.sort: of_axes(np.sort, kind="stable"),
    np.argsort: of_axes(lambda a, **options: np.argsort(a, **{"kind": "stable", **options}), kind="mergesort"),
    np.searchsorted: [sample(lambda a, v: np.searchsorted(np.sort(a), v, side="right"), (4,), (2, 3)),
                      sample(lambda a, v: np.searchsorted(a, v, sorter=np.argsort(a)), (4,), (3,))],
    np.isclose: [sample(lambda a, b: np.isclose(a, b * 0 + a, atol=0.1), (2, 3), (3,)),
                 sample(lambda a: np.isclose(a, 0, 0.0, 0.5), (2, 3))],
    np.isin: [sample(lambda a: np.isin(a, a[0]), (2, 3)), sample(lambda a, b: np.isin(a, np.append(b, 0.07), invert=True), (2, 3), (2,))],
    np.isposinf: [sample(lambda a: np.isposinf(np.where(a > 0, np.inf, a)), (2, 3))],
    np.isneginf: [sample(lambda a: np.isneginf(np.where(a > 0, -np.inf, a)), (2, 3))],
    np.isreal: [sample(np.isreal, (3,))],
    np.iscomplex: [sample(np.iscomplex, (3,))],
    np.round: [sample(lambda a: np.round(a * 7.3), (2, 3)), sample(lambda a: np.round(a, 1), (2, 3))],
    np.around: [sample(lambda a: np.around(a, decimals=2), (2, 3))],
    np.fix: [sample(lambda a: np.fix(a * 7.3), (2, 3))],
    np.nan_to_num: [sample(lambda a: np.nan_to_num(np.where(a > 0, a, np.nan), nan=1.0), (2, 3)),
                    sample(lambda a: np.nan_to_num(np.where(a > 0, a, -np.inf), posinf=2.0, neginf=-2.0), (2, 3)),
                    sample(np.nan_to_num, (2, 3))],
    np.sinc: [sample(np.sinc, (2, 3))],
    np.i0: [sample(np.i0, (2, 3))],
    np.real: [sample(np.real, (3,))],
    np.imag: [sample(np.imag, (3,))],
    np.angle: [sample(np.angle, (3,)), sample(lambda a: np.angle(a, deg=True), (3,))],
    np.zeros_like: [sample(np.zeros_like, (2, 3)), sample(lambda a: np.zeros_like(a, np.int64, shape=4), (2, 3))],
    np.ones_like: [sample(np.ones_like, (2, 3)), sample(lambda a: np.ones_like(a, shape=(3, 1)), (2, 3))],
    np.empty_like: [sample(lambda a: np.empty_like(a) * 0 == 0, (0, 3))],
    np.full_like: [sample(lambda a: np.full_like(a, 2.5), (2, 3)), sample(lambda a: np.full_like(a, [1, 2, 3], dtype=float), (2, 3))],
}


def definite(a):
    return a @ np.swapaxes(np.conj(a), -1, -2) + 2 * np.eye(a.shape[-1])


def regular(a):
    return a + 9 * np.eye(a.shape[-1])


def of_matrices(call, *shapes):
    return [sample(call, *(shapes or ((3, 3),))), sample(call, *((2, *shape) for shape in shapes or ((3, 3),)))]


# Results that are unique up to sign or phase are mapped to unique ones.
OF_MATRICES = {
    np.linalg.inv: [*of_matrices(lambda a: np.linalg.inv(regular(a))), sample(np.linalg.inv, (0, 0))],
    np.linalg.det: [*of_matrices(np.linalg.det), sample(np.linalg.det, (2, 0, 0))],
    np.linalg.slogdet: of_matrices(np.linalg.slogdet),
    np.linalg.solve: [*of_matrices(lambda a, b: np.linalg.solve(regular(a), b), (3, 3), (3, 2)),
                      sample(lambda a, b: np.linalg.solve(regular(a), b), (3, 3), (3,)),
                      sample(lambda a, b: np.linalg.solve(regular(a), b), (2, 3, 3), (3,)),
                      sample(lambda a, b: np.linalg.solve(regular(a), b), (3, 3, 3), (3, 3))],
    np.linalg.tensorsolve: [sample(lambda a, b: np.linalg.tensorsolve(np.reshape(regular(a), (2, 2, 4)), b), (4, 4), (2, 2))],
    np.linalg.tensorinv: [sample(lambda a: np.linalg.tensorinv(np.reshape(regular(a), (4, 2, 2)), ind=1), (4, 4))],
    np.linalg.lstsq: [sample(np.linalg.lstsq, (4, 2), (4,)), sample(lambda a, b: np.linalg.lstsq(a, b, 1e-6), (4, 2), (4, 3)),
                      sample(lambda a, b: np.linalg.lstsq(a, b, rcond=-1), (2, 3), (2, 2)),
                      sample(lambda a, b: np.linalg.lstsq(a * 0 + a[:, :1], b), (4, 2), (4,))],
    np.linalg.cholesky: [*of_matrices(lambda a: np.linalg.cholesky(definite(a))),
                         sample(lambda a: np.linalg.cholesky(definite(a), upper=True), (3, 3))],
    np.linalg.eigh: [*of_matrices(lambda a: np.linalg.eigh(definite(a))[0]),
                     *of_matrices(lambda a: np.abs(np.linalg.eigh(definite(a), "U").eigenvectors))],
    np.linalg.eigvalsh: [*of_matrices(lambda a: np.linalg.eigvalsh(definite(a))),
                          sample(lambda a: np.linalg.eigvalsh(definite(a), UPLO="U"), (3, 3))],
    np.linalg.eig: [sample(lambda a: np.sort(np.abs(np.linalg.eig(definite(a))[0])), (3, 3)),
                    sample(lambda a: np.sum(np.linalg.eig(a)[0] ** 2, -1).real, (3, 3)),
                    sample(lambda a: np.sort(np.linalg.eig(np.swapaxes(definite(a), 0, 1)).eigenvalues.real), (3, 3))],
    np.linalg.eigvals: [sample(lambda a: np.sort(np.abs(np.linalg.eigvals(a))), (3, 3)),
                        sample(lambda a: np.sort(np.linalg.eigvals(definite(a)).real), (3, 3))],
    np.linalg.svd: [*of_matrices(lambda a: np.linalg.svd(a)[1], (2, 3)), *of_matrices(lambda a: np.linalg.svd(a, compute_uv=False), (3, 2)),
                    sample(lambda a: np.abs(np.linalg.svd(a, full_matrices=False).Vh), (2, 3))],
    np.linalg.svdvals: of_matrices(np.linalg.svdvals, (2, 3)),
    np.linalg.qr: [*of_matrices(lambda a: np.abs(np.linalg.qr(a).R), (3, 2)), sample(lambda a: np.abs(np.linalg.qr(a, "r")), (3, 3)),
                   sample(lambda a: np.abs(np.linalg.qr(a, mode="reduced")[0]), (3, 2))],
    np.linalg.pinv: [*of_matrices(np.linalg.pinv, (3, 2)), sample(lambda a: np.linalg.pinv(a, 1e-3), (2, 3)),
                     sample(lambda a: np.linalg.pinv(definite(a), rtol=None, hermitian=True), (3, 3))],
    np.linalg.norm: [sample(lambda a, p=p: np.linalg.norm(a, p), (3, 2)) for p in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)] + [
        sample(lambda a, p=p: np.linalg.norm(a, p), (4,)) for p in (None, 0, 1, 2, 3, -1, np.inf, -np.inf)] + [
        sample(lambda a: np.linalg.norm(a), (2, 3, 2)), sample(lambda a: np.linalg.norm(a, axis=1, keepdims=True), (2, 3)),
        sample(lambda a: np.linalg.norm(a, 1, (0, 2)), (2, 3, 2))],
    np.linalg.matrix_norm: [*of_matrices(np.linalg.matrix_norm, (3, 2)), *of_matrices(lambda a: np.linalg.matrix_norm(a, ord=2), (3, 2)),
                            sample(lambda a: np.linalg.matrix_norm(a, ord="nuc", keepdims=True), (3, 2))],
    np.linalg.vector_norm: [sample(np.linalg.vector_norm, (3, 2)), sample(lambda a: np.linalg.vector_norm(a, axis=0, ord=1), (3, 2)),
                            sample(lambda a: np.linalg.vector_norm(a, axis=(0, -1), keepdims=True, ord=3), (3, 2, 2))],
    np.linalg.cond: [sample(lambda a: np.linalg.cond(a * 0), (2, 2)), *of_matrices(lambda a: np.linalg.cond(regular(a))),
                     sample(lambda a: np.abs(np.linalg.cond(regular(a), 1)), (3, 3)),
                     sample(lambda a: np.linalg.cond(a, -2), (3, 2)), sample(lambda a: np.abs(np.linalg.cond(regular(a), "fro")), (3, 3))],
    np.linalg.matrix_rank: [*of_matrices(np.linalg.matrix_rank, (3, 2)), sample(lambda a: np.linalg.matrix_rank(a, 0.9), (3, 3)),
                            sample(lambda a: np.linalg.matrix_rank(a, rtol=0.5), (3, 3)), sample(np.linalg.matrix_rank, (3,)),
                            sample(lambda a: np.linalg.matrix_rank(definite(a), hermitian=True), (3, 3))],
    np.linalg.matrix_power: [sample(lambda a, n=n: np.linalg.matrix_power(regular(a), n), (3, 3)) for n in (0, 1, 2, 5, -1, -2)],
    np.linalg.multi_dot: [sample(lambda *arrays: np.linalg.multi_dot(arrays), (2, 3), (3, 2), (2, 4)),
                          sample(lambda *arrays: np.linalg.multi_dot(arrays), (3,), (3, 2), (2,))],
    np.linalg.cross: [sample(np.linalg.cross, (2, 3), (2, 3)), sample(lambda a, b: np.linalg.cross(a, b, axis=0), (3, 2), (3, 2))],
    np.linalg.vecdot: [sample(np.linalg.vecdot, (2, 3), (3,)), sample(lambda a, b: np.linalg.vecdot(a, b, axis=0), (3, 2), (3, 2))],
    np.linalg.outer: [sample(np.linalg.outer, (2,), (3,))],
    np.linalg.matmul: [sample(np.linalg.matmul, (2, 3), (3, 2)), sample(np.linalg.matmul, (2, 2, 3), (3, 2))],
    np.linalg.tensordot: [sample(np.linalg.tensordot, (2, 3, 2), (3, 2, 2)),
                          sample(lambda a, b: np.linalg.tensordot(a, b, axes=1), (2, 3), (3, 2))],
    np.linalg.diagonal: [*of_matrices(np.linalg.diagonal), sample(lambda a: np.linalg.diagonal(a, offset=1), (2, 3, 3))],
    np.linalg.trace: [*of_matrices(np.linalg.trace), sample(lambda a: np.linalg.trace(a, offset=-1, dtype=np.float32), (2, 3, 3))],
    np.linalg.matrix_transpose: of_matrices(np.linalg.matrix_transpose, (2, 3)),
    **{function: [sample(function, (2, 5)), sample(lambda a, function=function: function(a, 4, 0, "ortho"), (3, 2))]
       for function in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)},
    **{function: [sample(function, (2, 3)), sample(lambda a, function=function: function(a, (4, 2), (2, 0), "forward"), (3, 2, 2))]
       for function in (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn, np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2)},
    **{function: [sample(function, (2, 5)), sample(lambda a, function=function: function(a, axes=0), (3, 2))]
       for function in (np.fft.fftshift, np.fft.ifftshift)},
}
if hasattr(np, "matvec"):       # from NumPy 2.2 on
    SAMPLES[np.matvec] = [sample(np.matvec, (2, 2, 3), (3,))]
    SAMPLES[np.vecmat] = [sample(np.vecmat, (3,), (2, 3, 2))]
if hasattr(np, "unstack"):      # from NumPy 2.1 on
    SAMPLES[np.clip] += [sample(lambda a: np.clip(a, min=-0.25), (2, 3)), sample(lambda a: np.clip(a, None, None), (2, 3)),
                         sample(lambda a, b: np.clip(a, min=-0.25, max=b), (2, 3), (2, 3))]
