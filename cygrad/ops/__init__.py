"""The tables of mathematics: data only, standard library only, importable before anything is built.

`elementwise`, `reduction` and `structural` hold the rows; `formula` reads their expressions; `dtypes` lists the element types.
"""

from .elementwise import ELEMENTWISE, Elementwise
from .reduction import REDUCTIONS, Reduction
from .structural import DATA, RULES, Rule

__all__ = ["DATA", "ELEMENTWISE", "REDUCTIONS", "RULES", "Elementwise", "Reduction", "Rule"]
