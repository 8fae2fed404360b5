"""Sorting, ranks, and elements of a rank."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "sort": [
        sample(lambda x: x.sort(0, descending=True), (3, 2)),
        sample(lambda x: x.sort(), ()),
        sample(lambda x: x.msort(), (4,)),
    ],
    "topk": [sample(lambda x: x.topk(2, 1), (2, 4)), sample(lambda x: x.topk(2, largest=False), (4,))],
    "kthvalue": [sample(lambda x: x.kthvalue(2), (2, 3)), sample(lambda x: x.kthvalue(1, 0, keepdim=True), (3, 2))],
    "median": [sample(lambda x: x.median(1), (2, 4)), sample(lambda x: x.median(0, keepdim=True), (3,)), sample(lambda x: x.median(0), ())],
    "nanmedian": [sample(lambda x: x.nanmedian(-1), (2, 4))],
    "median_of_all": [sample(lambda x: x.median(), (2, 3))],
    "nanmedian_of_all": [sample(lambda x: x.nanmedian(), (3,))],
}

# Without a gradient.
PLAIN = {
    "argsort": [sample(lambda x: x.argsort(stable=True), (2, 3), numpy=lambda a: a.argsort(kind="stable"))],
    "isin": [sample(lambda x, y: cg.isin(x, y), (2, 3), (2,), numpy=np.isin, kinds="if")],
    "searchsorted": [
        sample(lambda x, y: cg.searchsorted(x.sort().values, y), (4,), (2, 3), numpy=lambda a, b: np.searchsorted(np.sort(a), b)),
    ],
    "bucketize": [sample(lambda x, y: cg.bucketize(y, x.sort().values), (4,), (2, 3), numpy=lambda a, b: np.searchsorted(np.sort(a), b))],
    "unique_consecutive": [sample(lambda x: x.unique_consecutive(), (5,), numpy=lambda a: a[np.append(True, a[1:] != a[:-1])])],
}
