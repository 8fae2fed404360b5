"""Operators on sparse tensors: a pattern, which says where values are, and rules that compute with values, which carry the graph.

`pattern` has the places, `making` the makers, `rules` the table that the core asks; a rule for each operator stands in its family.
"""

# The families, which fill the table.
from cygrad.operators._sparse import conversion, elementwise, places, products, reductions, scipy_matrices  # noqa: F401
from cygrad.tensor import override_answers

override_answers()
