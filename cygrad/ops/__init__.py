"""The tables of mathematics: data only, standard library only, importable before anything is built.

`elementwise`, `special` and `reduction` hold the rows; `formula` reads their expressions; `gradients` has functions that gradients share;
`dtypes` lists the element types.
"""

from . import special
from .elementwise import ELEMENTWISE, Elementwise
from .reduction import REDUCTIONS, Reduction

__all__ = ["ELEMENTWISE", "REDUCTIONS", "Elementwise", "Reduction", "special"]
