"""Sums of multiples of arrays: one loop in place of several, where programs add, subtract and scale one array after the other.

Terms are added in the order of the steps, so the bits are the same: `start` is -0, to which every number is added exactly, or 0.
"""

from .elementwise import Elementwise

LONGEST = 4


def sum_of(terms: int) -> Elementwise:
    """Return the row of so many terms: from the third on, the sum so far is `carried` by a factor."""
    y, params = "start + factor0 * x0", {"start": 0.0, "factor0": 1.0}
    for k in range(1, terms):
        y = f"{y} + factor1 * x1" if k == 1 else f"carried{k} * ({y}) + factor{k} * x{k}"
        params |= {"factor1": 1.0} if k == 1 else {f"carried{k}": 1.0, f"factor{k}": 1.0}
    return Elementwise(name=f"sum_{terms}", doc="", y=y, operands=tuple(f"x{k}" for k in range(terms)), partials={}, conjugates={},
                       params=params)


SUMS = [sum_of(terms) for terms in range(1, LONGEST + 1)]
