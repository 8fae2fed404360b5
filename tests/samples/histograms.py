"""Counts of elements by their value."""

import numpy as np

import cygrad as cg
from samples.sample import ITS_OWN_DTYPE, refused_otherwise, sample

EDGES_FIRST = "torch makes the edges first, where integers and bools fail in several ways"
PLAIN = {
    "histc": refused_otherwise([
        sample(lambda x: x.histc(4), (3, 5), numpy=lambda a: np.histogram(a, 4)[0], kinds="f"),
        sample(lambda x: x.histc(3, -1, 2), (7,), numpy=lambda a: np.histogram(a, 3, (-1, 2))[0], kinds="f"),
    ], EDGES_FIRST),
    "histogram": refused_otherwise([
        sample(lambda x: x.histogram(4), (3, 5), numpy=lambda a: np.histogram(a, 4), kinds="f"),
        sample(lambda x: x.histogram(5, range=(-1, 2), density=True), (9,),
               numpy=lambda a: np.histogram(a, 5, (-1, 2), density=True), kinds="f"),
        sample(lambda x, e: x.histogram(e.sort().values), (6,), (3,), numpy=lambda a, b: np.histogram(a, np.sort(b)), kinds="f"),
    ], EDGES_FIRST),
    "histogramdd": refused_otherwise([
        sample(lambda x: (lambda hist, edges: (hist, *edges))(*cg.histogramdd(x, [2, 3], range=[-4.0, 4.0, -2.0, 2.0])), (7, 2),
               numpy=lambda a: (lambda hist, edges: (hist, *edges))(*np.histogramdd(a, [2, 3], [(-4, 4), (-2, 2)])), kinds="f"),
    ], EDGES_FIRST),
}
SAMPLES = {
    "bincount": [
        sample(lambda w: cg.tensor([0, 2, 2, 1]).bincount(w, minlength=5), (4,), numpy=lambda b: np.bincount([0, 2, 2, 1], b, 5), kinds="f",
               exempt=ITS_OWN_DTYPE | {"complex numbers": "weights are real"}),
    ],
}
