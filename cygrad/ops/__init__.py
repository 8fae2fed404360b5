"""The tables of mathematics: data only, standard library only, importable before anything is built.

`elementwise`, `reduction` and `structural` hold the rows; `formula` reads their expressions; `dtypes` lists the element types.
"""

from .elementwise import ELEMENTWISE, Elementwise
from .reduction import REDUCTIONS, Reduction
from .structural import RULES, Rule

__all__ = ["ELEMENTWISE", "REDUCTIONS", "RULES", "Elementwise", "Reduction", "Rule"]
