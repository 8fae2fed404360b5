"""Calls of NumPy's functions beyond shapes, sums and products: order and sets, statistics, samples, polynomials, elements written."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows

import cygrad as cg
from interchange.numpy_samples import MASK, PLACES, of_axes, of_several_axes, sample


def holes(a):
    """Return an array with NaN where elements are between two numbers; integers as they are."""
    return np.where((a > -0.6) & (a < -0.2), np.nan, a)


def beside_nan(function, **keywords):
    """Return calls of a function that skips NaN, with and without NaN among the elements."""
    return [*of_several_axes(function, **keywords),
            *(sample(lambda a, axis=axis: function(holes(a), axis), (3, 4)) for axis in (0, -1, None))]


def of_copies(write):
    """Return a call that writes into a copy of its first array, and returns that; beside tensors the copy is one."""
    def written(a, *others):
        copy = np.copy(a) if type(a) is not np.ndarray or all(type(other) is np.ndarray for other in others) else cg.from_numpy(a.copy())
        write(copy, *others)
        return copy

    return written


def indices_of(function):
    """Return a function whose first results are in an order that is not determined, as one that sorts them."""
    return lambda *arrays: np.sort(function(*arrays))


def quantiles(function, scale, methods):
    fractions = [0.0, 0.3, 0.5, 1.0]
    return [
        *of_several_axes(lambda a, axis=None, **keywords: function(a, 0.3 * scale, axis, **keywords)),
        *(sample(lambda a, method=method: function(a, np.array([fractions, fractions[::-1]]) * scale, 1, method=method), (2, 5))
          for method in methods),
        *(sample(lambda a, method=method: function(a, 0.4 * scale, method=method), (5,)) for method in methods),
        sample(lambda a: function(a, [0.25 * scale, 0.75 * scale], axis=(0, 2), keepdims=True), (2, 3, 2)),
        sample(lambda a, b: function(a, np.abs(b) % 1 * scale, 0), (3, 2), (2,)), sample(lambda a: function(a, 0.2 * scale), (1,))]


METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
MORE_METHODS = (*METHODS, "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
                "median_unbiased", "normal_unbiased")

STATISTICS = {
    np.median: [*of_several_axes(np.median), sample(np.median, (2, 2)), sample(lambda a: np.median(a, (1, -3), keepdims=True), (3, 4, 2))],
    np.nanmedian: beside_nan(np.nanmedian),
    np.quantile: quantiles(np.quantile, 1, MORE_METHODS),
    np.percentile: quantiles(np.percentile, 100, ("linear",)),
    np.nanquantile: [*quantiles(np.nanquantile, 1, METHODS), sample(lambda a: np.nanquantile(holes(a), [0.2, 0.5], 1), (3, 4))],
    np.nanpercentile: quantiles(np.nanpercentile, 100, ("linear",)),
    np.nanprod: beside_nan(np.nanprod),
    np.nanmax: [*beside_nan(np.nanmax), sample(lambda a: np.nanmax(holes(a), 0, initial=0.1, where=a > -0.9), (3, 4))],
    np.nanmin: [*beside_nan(np.nanmin), sample(lambda a: np.nanmin(holes(a), initial=0.1), (3, 4))],
    np.nanargmax: [*of_axes(np.nanargmax, keepdims=True), sample(lambda a: np.nanargmax(holes(a), 0), (3, 4))],
    np.nanargmin: [*of_axes(np.nanargmin, keepdims=True), sample(lambda a: np.nanargmin(holes(a)), (3, 4))],
    np.nancumsum: [*of_axes(np.nancumsum, dtype=np.float32), sample(lambda a: np.nancumsum(holes(a), 0), (3, 4))],
    np.nancumprod: [*of_axes(np.nancumprod, dtype=np.float32), sample(lambda a: np.nancumprod(holes(a), 0), (3, 4))],
    np.nanvar: [*beside_nan(np.nanvar), sample(lambda a: np.nanvar(holes(a), 0, ddof=1), (5, 2)),
                sample(lambda a: np.nanvar(a, 0, correction=0.5), (3, 2))],
    np.nanstd: [*beside_nan(np.nanstd, dtype=np.float32), sample(lambda a: np.nanstd(holes(a), ddof=1, keepdims=True), (5, 2))],
    np.cov: [sample(np.cov, (2, 4)), sample(np.cov, (4,)), sample(lambda a, b: np.cov(a, b, False), (4, 2), (4, 2)),
             sample(lambda a, b: np.cov(a, b, ddof=0), (4,), (4,)), sample(lambda a: np.cov(a, bias=True, dtype=np.float32), (2, 4)),
             sample(lambda a, w: np.cov(a, fweights=[1, 2, 0, 1], aweights=np.abs(w)), (2, 4), (4,))],
    np.corrcoef: [sample(np.corrcoef, (2, 4)), sample(lambda a, b: np.corrcoef(a, b), (4,), (4,)), sample(np.corrcoef, (3,)),
                  sample(lambda a: np.corrcoef(a, rowvar=False), (4, 2))],
    np.bincount: [sample(lambda w: np.bincount(np.array([0, 2, 2, 1]), w), (4,)), sample(lambda a: np.bincount((a > 0) * 1), (4,)),
                  sample(lambda a: np.bincount((a > 0) * 2, minlength=5), (4,))],
    np.digitize: [sample(lambda a: np.digitize(a, [-0.5, 0.0, 0.5]), (2, 3)), sample(lambda a: np.digitize(a, a[:1], right=True), (3,)),
                  sample(lambda a: np.digitize(a, [0.5, 0.0, -0.5], True), (2, 3))],
    np.histogram: [sample(np.histogram, (2, 4)), sample(lambda a: np.histogram(a, 3, (-0.5, 0.5)), (2, 4)),
                   sample(lambda a, w: np.histogram(a, 3, weights=w * w), (5,), (5,)), sample(lambda a: np.histogram(a, "sturges"), (9,)),
                   sample(lambda a, w: np.histogram(a, 2, (-1, 1.1), True, np.abs(w)), (5,), (5,)),
                   sample(lambda a: np.histogram(a, [-0.5, 0.0, 0.25, 2.0], density=True), (6,)),
                                                     sample(lambda a: np.histogram(a, 2), (1,))],
    np.histogram_bin_edges: [sample(np.histogram_bin_edges, (2, 4)), sample(lambda a: np.histogram_bin_edges(a, 3, (0, 1)), (4,)),
                             sample(lambda a: np.histogram_bin_edges(a, "fd"), (9,))],
    np.histogramdd: [sample(lambda a: np.histogramdd(a, 3, [(-1, 1.1), (-2, 1)])[0], (5, 2)),
                     sample(lambda a: np.histogramdd(a, (2, 3))[1][1], (5, 2)),
                     sample(lambda a, b, w: np.histogramdd((a, b), [3, [-1.0, 0.0, 2.0]], weights=w)[0], (5,), (5,), (5,)),
                     sample(lambda a: np.histogramdd(a, 2, [(-1, 1), (-1, 1)], True)[0], (5, 2))],
    np.histogram2d: [sample(lambda a, b: np.histogram2d(a, b, (3, 4))[1:], (5,), (5,)),
                     sample(lambda a, b: np.histogram2d(a, b, 3), (5,), (5,)),
                     sample(lambda a, b: np.histogram2d(a, b, [-1.0, 0.0, 1.5], density=True), (5,), (5,))],
}

OF_ORDER = {
    np.lexsort: [sample(lambda a, b: np.lexsort((a, b > 0)), (5,), (5,)), sample(lambda a: np.lexsort(a), (2, 5)),
                 sample(lambda a, b: np.lexsort((a, np.round(b)), axis=0), (3, 2), (3, 2))],
    np.partition: [sample(lambda a: np.take(np.partition(a, 1, 0), 1, 0), (3, 2)), sample(lambda a: np.partition(a, (0, 1, 2)), (2, 3)),
                   sample(lambda a: np.partition(a, -1, None)[-1], (2, 3))],
    np.argpartition: [sample(lambda a: np.take(np.argpartition(a, 1, axis=0), 1, 0), (3, 2)),
                      sample(lambda a: np.argpartition(a, 0, None)[0], (2, 3))],
    np.sort_complex: [sample(np.sort_complex, (2, 3)), sample(lambda a: np.sort_complex(np.round(a)), (4,))],
    np.unique: [sample(np.unique, (2, 3)), sample(lambda a: np.unique(np.round(a), True, True, True), (2, 3)),
                sample(lambda a: np.unique(np.round(a), axis=0, return_inverse=True), (3, 2)),
                sample(lambda a: np.unique(holes(a), return_counts=True, equal_nan=False)[1], (5,))],
    np.unique_all: [sample(lambda a: np.unique_all(np.round(a)), (2, 3))],
    np.unique_counts: [sample(lambda a: np.unique_counts(np.round(a)), (2, 3))],
    np.unique_inverse: [sample(lambda a: np.unique_inverse(np.round(a)), (2, 3))],
    np.unique_values: [sample(lambda a: np.sort(np.unique_values(np.round(a))), (2, 3))],
    np.union1d: [sample(np.union1d, (2, 3), (2,)), sample(lambda a: np.union1d(a, a[:1]), (3,))],
    np.intersect1d: [sample(lambda a, b: np.intersect1d(a, np.append(b, a[1:])), (3,), (2,)),
                     sample(lambda a: np.intersect1d(a, a[::-1].copy() if isinstance(a, np.ndarray) else np.flip(a), True, True), (3,))],
    np.setdiff1d: [sample(lambda a, b: np.setdiff1d(a, np.append(b, a[1:])), (3,), (2,)),
                   sample(lambda a, b: np.setdiff1d(a, b, assume_unique=True), (3,), (2,))],
    np.setxor1d: [sample(lambda a, b: np.setxor1d(a, np.append(b, a[1:])), (3,), (2,)), sample(lambda a: np.setxor1d(a, [0.5]), (3,))],
}

OF_CHOICES = {
    np.select: [sample(lambda a, b: np.select([a > 0.3, a < -0.3], [a, b * b], 0.5), (2, 3), (2, 3)),
                sample(lambda a: np.select([a > 0, a > -0.5], [a, 2 * a]), (2, 3)),
                sample(lambda a, b: np.select([a > 0], [b], default=a), (2, 3), (3,))],
    np.choose: [sample(lambda a, b: np.choose([0, 1, 1], [a, b]), (3,), (2, 3)), sample(lambda a: np.choose([[1], [0]], a), (2, 3)),
                sample(lambda a, b: np.choose([-1, 5, 0], [a, b], mode="clip"), (3,), (3,)),
                sample(lambda a, b: np.choose([-1, 5, 0], [a, b], mode="wrap"), (3,), (3,))],
    np.piecewise: [sample(lambda a: np.piecewise(a, [a < 0, a >= 0.4], [lambda x: -x, lambda x: x * x]), (2, 3)),
                   sample(lambda a: np.piecewise(a, [a < 0], [1, lambda x, k: k * x], 3), (4,)),
                   sample(lambda a: np.piecewise(a, a < 0, [2.5]), (4,))],
    np.apply_along_axis: [sample(lambda a: np.apply_along_axis(np.sum, 0, a), (2, 3)),
                          sample(lambda a: np.apply_along_axis(lambda x, k: np.cumsum(x) * k, 1, a, 2), (2, 3, 2)),
                          sample(lambda a: np.apply_along_axis(lambda x: np.outer(x, x), -2, a), (2, 3, 2))],
    np.apply_over_axes: [sample(lambda a: np.apply_over_axes(np.sum, a, [0, -1]), (2, 3, 2)),
                         sample(lambda a: np.apply_over_axes(np.cumsum, a, 1), (2, 3))],
    np.extract: [sample(lambda a: np.extract(MASK, a), (2, 3)), sample(lambda a: np.extract(a > 0, a * a), (2, 3))],
}

OF_SAMPLES = {
    np.interp: [sample(lambda x, f: np.interp(x, [-1.0, -0.2, 0.3, 0.6], f), (2, 3), (4,)),
                sample(lambda x, xp, f: np.interp(x, np.sort(xp), f, left=-1.0, right=f[0]), (4,), (3,), (3,)),
                sample(lambda x, f: np.interp(x, [-1.0, -0.2, 0.3, 0.6], f, period=1.3), (5,), (4,)),
                sample(lambda x, f: np.interp(x, [0.5], f), (4,), (1,)), sample(lambda x: np.interp(0.21, [-2.0, 2.0], x), (2,))],
    np.gradient: [sample(np.gradient, (4,)), sample(np.gradient, (3, 4)), sample(lambda a: np.gradient(a, 0.5, axis=1), (2, 4)),
                  sample(lambda a: np.gradient(a, 2, [0.0, 1.0, 1.5, 3.0], edge_order=2), (3, 4)),
                  sample(lambda a, x: np.gradient(a, np.cumsum(x + 1.5)), (4,), (4,)),
sample(lambda a: np.gradient(a, axis=(1, 0)), (3, 2)),
                  sample(lambda a: np.gradient(a, edge_order=2), (3,))],
    np.ediff1d: [sample(np.ediff1d, (2, 3)), sample(lambda a, b: np.ediff1d(a, b, a[0]), (3,), (2, 2))],
    np.unwrap: [sample(lambda a: np.unwrap(a * 9), (2, 5)), sample(lambda a: np.unwrap(a, 0.7, 0, period=0.83), (4, 2)),
                *(sample(lambda a, period=period: np.unwrap(np.argsort(a) * 2, period=period), (5,)) for period in (2, 3))],
    np.convolve: [sample(lambda a, b, mode=mode: np.convolve(a, b, mode), shape, other) for mode in ("full", "same", "valid")
                  for shape, other in (((5,), (3,)), ((2,), (4,)), ((3,), (2,)), ((1,), (1,)))] + [sample(np.convolve, (3,), ())],
    np.correlate: [sample(lambda a, b, mode=mode: np.correlate(a, b, mode), shape, other) for mode in ("full", "same", "valid")
                   for shape, other in (((5,), (3,)), ((2,), (5,)), ((2,), (4,)), ((3,), (3,)))] + [sample(np.correlate, (3,), (2,))],
    np.linspace: [sample(lambda a, b: np.linspace(a, b, 4), (), ()), sample(lambda a, b: np.linspace(a, b, 3, False, True), (2,), (3, 2)),
                  sample(lambda a: np.linspace(a, 2, num=3, axis=-1), (2, 2)), sample(lambda a: np.linspace(0.0, a, 1), (2,)),
                  sample(lambda a: np.linspace(a, a + 9, 4, dtype=np.int64), (2,)), sample(lambda a: np.linspace(0.0, a, 0), (2,))],
    np.logspace: [sample(lambda a, b: np.logspace(a, b, 4), (), ()), sample(lambda a: np.logspace(a, 2, 3, False, 2.0, axis=1), (2,)),
                  sample(lambda a, b: np.logspace(a, 1, 3, base=np.abs(b) + 1), (2,), (2,))],
    np.geomspace: [sample(lambda a, b: np.geomspace(a * a + 0.1, np.abs(b) + 1, 4), (2,), (2,)),
                   sample(lambda a: np.geomspace(-1.0 - np.abs(a * 1.0), -9, 3, False, axis=-1), (2,)),
                   sample(lambda a: np.geomspace(np.abs(a) + 1, 3, 1), (2,))],
    np.vander: [sample(np.vander, (3,)), sample(lambda a: np.vander(a, 2, increasing=True), (3,)), sample(lambda a: np.vander(a, 0), (3,))],
}

OF_UFUNCS = {
    **{function: [sample(function, (2, 3)), sample(function, ())] for function in (np.degrees, np.radians, np.fabs, np.cbrt)},
    np.heaviside: [sample(lambda a, b: np.heaviside(np.round(a), b), (2, 3), (3,)), sample(lambda a: np.heaviside(a, 0.5), (2, 3))],
    np.divmod: [sample(lambda a, b: np.divmod(a, b * 2), (2, 3), (3,)), sample(lambda a: np.divmod(a * 5, 2), (3,))],
    np.modf: [sample(lambda a: np.modf(a * 3.3), (2, 3))],
    np.frexp: [sample(lambda a: np.frexp(a * 5), (2, 3))],
    np.ldexp: [sample(lambda a: np.ldexp(a, [-3, 0, 7]), (2, 3)), sample(lambda a: np.ldexp(a, 4), (3,))],
    np.spacing: [sample(lambda a: np.spacing(a * 1e300), (2, 3))],
    np.float_power: [sample(lambda a, b: np.float_power(np.abs(a * 1.0), b), (2, 3), (3,)), sample(lambda a: np.float_power(a, 2), (3,)),
                     sample(lambda a: np.float_power(2, a), (3,))],
    np.bitwise_count: [sample(lambda a: np.bitwise_count(np.argsort(a) * 7), (5,))],
}

OF_POLYNOMIALS = {
    np.polyval: [sample(np.polyval, (3,), (2, 2)), sample(lambda p: np.polyval(p, 2.0), (3,)), sample(np.polyval, (0,), (2,))],
    np.polyadd: [sample(np.polyadd, (3,), (2,)), sample(np.polyadd, (2,), (4,)), sample(np.polyadd, (), (2,))],
    np.polysub: [sample(np.polysub, (3,), (2,))],
    np.polymul: [sample(np.polymul, (3,), (2,)), sample(lambda p, q: np.polymul(np.append([0.0, 0.0], p), q * 0), (2,), (2,))],
    np.polydiv: [sample(np.polydiv, (4,), (2,)), sample(np.polydiv, (2,), (3,)),
                 sample(lambda p, q: np.polydiv(np.polymul(p, q), q), (3,), (2,))],
    np.polyder: [sample(np.polyder, (4,)), sample(lambda p: np.polyder(p, 2), (4,)), sample(lambda p: np.polyder(p, m=0), (2,)),
                 sample(np.polyder, (1,))],
    np.polyint: [sample(np.polyint, (3,)), sample(lambda p: np.polyint(p, 2, p[:2]), (3,)), sample(lambda p: np.polyint(p, 2, 1.5), (3,)),
                 sample(lambda p: np.polyint(p, 0), (3,))],
    np.roots: [sample(lambda p: np.sort(np.abs(np.roots(np.append(np.append([3.0], p), [0.0])))), (3,)),
               sample(lambda p: np.roots(np.append([1.0], np.append(p, [0.0]))), (1,)), sample(lambda p: np.roots(p), (1,)),
               sample(lambda p: np.roots(p * 0), (3,))],
    np.poly: [sample(np.poly, (3,)), sample(lambda a: np.poly(a @ np.swapaxes(np.conj(a), 0, 1)).real, (2, 2)),
              sample(lambda a: np.poly(np.append(a + 1j, a - 1j)), (2,))],
    np.polyfit: [sample(lambda x, y: np.polyfit(x, y, 2), (5,), (5,)),
                 sample(lambda x, y: np.polyfit(x, y, 1, w=[1.0, 2, 1, 1, 3]), (5,), (5, 2)),
                 sample(lambda x, y: np.polyfit(x, y, 1, full=True)[:2], (5,), (5,)),
                 sample(lambda x, y: np.polyfit(x, y, 1, cov=True), (5,), (5,)),
                 sample(lambda x, y: np.polyfit(x, y, 1, cov="unscaled")[1], (5,), (5, 2))],
}

OF_PLACES = {
    np.delete: [sample(lambda a: np.delete(a, 1, 0), (3, 2)), sample(lambda a: np.delete(a, [0, -1], axis=1), (2, 3)),
                sample(lambda a: np.delete(a, slice(1, None, 2)), (2, 3)),
                sample(lambda a: np.delete(a, np.array([True, False, True])), (3,))],
    np.insert: [sample(lambda a, b: np.insert(a, 1, b, 0), (3, 2), (2,)), sample(lambda a: np.insert(a, [0, 2, 2], 9.0), (2, 3)),
                sample(lambda a, b: np.insert(a, slice(0, 2), b, axis=1), (2, 3), (2, 2)),
                sample(lambda a, b: np.insert(a, -1, b), (3,), ())],
    np.resize: [sample(lambda a: np.resize(a, (2, 4)), (3,)), sample(lambda a: np.resize(a, 2), (2, 3)),
                sample(lambda a: np.resize(a, 2), (0,))],
    np.trim_zeros: [sample(lambda a, trim=trim: np.trim_zeros(a * (np.arange(6) % 3 == 2), trim), (6,)) for trim in ("fb", "f", "B")] + [
        sample(lambda a: np.trim_zeros(a * 0), (3,))],
    np.pad: [sample(lambda a: np.pad(a, 1), (2, 3)),
             sample(lambda a: np.pad(a, ((0, 2), (1, 0)), constant_values=((1, 2), (3, 4))), (2, 3)),
             sample(lambda a: np.pad(a, (1, 2), "constant", constant_values=a[1]), (3,)),
             *(sample(lambda a, mode=mode: np.pad(a, (2, 3), mode), shape) for mode in ("edge", "wrap", "reflect", "symmetric")
               for shape in ((3,), (2, 2))),
             sample(lambda a: np.pad(a, ((1, 2), (0, 3)), "linear_ramp", end_values=(4, -2)), (2, 3)),
             *(sample(lambda a, mode=mode: np.pad(a, ((2, 1), (0, 2)), mode), (3, 2)) for mode in ("maximum", "minimum", "mean", "median")),
             sample(lambda a: np.pad(a, 2, "mean", stat_length=((2, 1), (1, 9))), (3, 3))],
    np.ix_: [sample(lambda a: np.ix_(a, [1, 2]), (3,)), sample(lambda a: np.ix_(a > 0, a), (3,))],
    windows: [sample(lambda a: windows(a, 2), (5,)), sample(lambda a: windows(a, (2, 3)), (3, 4)),
              sample(lambda a: windows(a, (2, 2), (0, 0)), (4, 2)), sample(lambda a: windows(a, 1, axis=-1), (2, 3)),
              sample(lambda a: windows(a, 0, axis=1), (2, 3))],
    np.rollaxis: [sample(lambda a, axis=axis, start=start: np.rollaxis(a, axis, start), (2, 3, 4)) for axis, start in (
        (2, 0), (0, 3), (-1, 1), (1, -1))],
    np.tril_indices_from: [sample(np.tril_indices_from, (2, 3)), sample(lambda a: np.tril_indices_from(a, -1), (3, 3))],
    np.triu_indices_from: [sample(np.triu_indices_from, (2, 3)), sample(lambda a: np.triu_indices_from(a, k=1), (3, 3))],
    np.diag_indices_from: [sample(np.diag_indices_from, (3, 3))],
    np.ravel_multi_index: [sample(lambda a: np.ravel_multi_index((a > 0) * 1, (2, 2)), (2, 3)),
                           sample(lambda a: np.ravel_multi_index(((a > 0) * 5, (a < 0) * 1), (2, 2), mode="wrap", order="F"), (3,))],
    np.unravel_index: [sample(lambda a: np.unravel_index((a > 0) * 5, (2, 3)), (3,)),
                       sample(lambda a: np.unravel_index(np.argmax(a), a.shape, order="F"), (2, 3))],
    np.packbits: [sample(lambda a: np.packbits(a > 0), (10,)), sample(lambda a: np.packbits(a > 0, 0, bitorder="little"), (10, 2))],
    np.unpackbits: [sample(lambda a: np.unpackbits(np.packbits(a > 0)), (10,)),
                    sample(lambda a: np.unpackbits(np.packbits(a > 0, 1), axis=1, count=3), (2, 10))],
    np.real_if_close: [sample(np.real_if_close, (3,)), sample(lambda a: np.real_if_close(a + 0j), (3,)),
                       sample(lambda a: np.real_if_close(a + 1e-3j, tol=1e-2), (3,))],
    np.copyto: [sample(of_copies(lambda a, b: np.copyto(a, b)), (2, 3), (3,)),
                sample(of_copies(lambda a: np.copyto(a, 2, where=a > 0)), (2, 3)),
                sample(of_copies(lambda a, b: np.copyto(a, b, "unsafe", MASK)), (2, 3), (2, 3))],
    np.put: [sample(of_copies(lambda a, b: np.put(a, [0, -1, 3], b)), (2, 3), (2,)),
             sample(of_copies(lambda a: np.put(a, [9, -9], 1.5, mode="wrap")), (2, 3)),
             sample(of_copies(lambda a: np.put(a, [9, -9], [1, 2], "clip")), (2, 3))],
    np.put_along_axis: [sample(of_copies(lambda a, b: np.put_along_axis(a, PLACES, b, 1)), (2, 3), (2, 2)),
                        sample(of_copies(lambda a: np.put_along_axis(a, np.argmax(a, 0, keepdims=True), 0, axis=0)), (2, 3)),
                        sample(of_copies(lambda a, b: np.put_along_axis(a, np.array([4, 0]), b, None)), (2, 3), (2,))],
    np.putmask: [sample(of_copies(lambda a, b: np.putmask(a, a > 0, b)), (2, 3), (2, 3)),
                 sample(of_copies(lambda a, b: np.putmask(a, MASK, b)), (2, 3), (2,))],
    np.place: [sample(of_copies(lambda a, b: np.place(a, MASK, b)), (2, 3), (2,)),
               sample(of_copies(lambda a: np.place(a, a > 0, [1, 2])), (2, 3))],
    np.fill_diagonal: [sample(of_copies(lambda a, b: np.fill_diagonal(a, b)), (3, 3), ()),
                       sample(of_copies(lambda a, b: np.fill_diagonal(a, b, wrap=True)), (5, 2), (2,)),
                       sample(of_copies(lambda a: np.fill_diagonal(a, 1)), (2, 2, 2))],
}
if hasattr(np, "unstack"):      # from NumPy 2.1 on
    OF_PLACES[np.unstack] = [sample(np.unstack, (2, 3)), sample(lambda a: np.unstack(a, axis=-1), (2, 3))]
    OF_PLACES[np.astype] = [sample(lambda a: np.astype(a, np.float32), (2, 3)),
    sample(lambda a: np.astype(a, np.int64, copy=False), (2, 3))]
    for function in (np.cumulative_sum, np.cumulative_prod):
        OF_SAMPLES[function] = [sample(function, (3,)),
                                sample(lambda a, function=function: function(a, axis=-1, include_initial=True), (2, 3)),
                                sample(lambda a, function=function: function(a, axis=0, dtype=np.float32), (2, 3))]

SAMPLES_OF_PARTS = STATISTICS | OF_ORDER | OF_CHOICES | OF_SAMPLES | OF_UFUNCS | OF_POLYNOMIALS | OF_PLACES
