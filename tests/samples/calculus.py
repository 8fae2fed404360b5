"""Integrals and derivatives by samples."""

import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

SAMPLES = {
    "trapezoid": [
        sample(lambda y: cg.trapezoid(y), (2, 4), numpy=np.trapezoid, kinds="f"),
        sample(lambda y: cg.trapezoid(y, dx=0.5, dim=0), (3, 2), numpy=lambda a: np.trapezoid(a, dx=0.5, axis=0), kinds="f"),
        sample(lambda y, x: cg.trapezoid(y, x, dim=0), (3, 2), (3,), numpy=lambda a, b: np.trapezoid(a, b, axis=0), kinds="f"),
        sample(lambda y, x: cg.trapezoid(y, x), (2, 3), (2, 3), numpy=np.trapezoid, kinds="f"),
    ],
    "cumulative_trapezoid": [
        sample(lambda y: cg.cumulative_trapezoid(y, dx=2.0, dim=0), (3, 2),
               numpy=lambda a: np.cumsum(a[1:] + a[:-1], 0), kinds="f"),
        sample(lambda y, x: cg.cumulative_trapezoid(y, x), (2, 4), (4,)),
    ],
    "gradient": [
        sample(lambda x: cg.gradient(x), (3, 4), numpy=lambda a: tuple(np.gradient(a)), kinds="f"),
        sample(lambda x: cg.gradient(x, spacing=0.5, dim=1, edge_order=2), (2, 4),
               numpy=lambda a: (np.gradient(a, 0.5, axis=1, edge_order=2),), kinds="f"),
        *refused_otherwise([sample(lambda x, t: cg.gradient(x, spacing=(t,), dim=0, edge_order=2), (4, 2), (4,))]),
        sample(lambda x, t: cg.gradient(x, spacing=[t.exp(), 2.0], dim=(0, 1)), (3, 2), (3,)),
    ],
}
