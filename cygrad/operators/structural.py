"""Gradients that still stand apart from their functions."""

from cygrad._core.graph.rules import declare_rule as rule

# ----- Views -----
rule("alias", dx=lambda g: g)
rule("enter", dx=lambda g, level: g._leave_or_sum(level), node="ExpandBackward0")

# ----- In-place changes: the gradient of what was there before, then of what was written -----
for _constant in ("fill", "zero"):
    rule(_constant, dx=lambda g: g.new_zeros(g.shape))
rule("copy", dx=lambda g: g.new_zeros(g.shape), dsrc=lambda g, shape, dtype: g.sum_to_size(shape).to(dtype),
     node="CopyBackwards")

# ----- Copies -----
rule("clone", dx=lambda g: g)
rule("to_copy", dx=lambda g, dtype: g.to(dtype))

