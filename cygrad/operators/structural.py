"""Gradients that still stand apart from their functions."""


from cygrad._core.graph.rules import declare_rule as rule
from cygrad.ops.gradients import (
    keep_dims,
    one_hot_mask,
    per_deviation,
    variance_gradient,
    with_mean,
)

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

# ----- Reductions that are more than a fold -----
for _extremum in ("max", "min"):
    rule(_extremum, dx=lambda g, indices, shape, dim: keep_dims(g, shape, (dim,)).where(one_hot_mask(indices, shape, dim), 0.0),
         dindices=None)
rule("logsumexp", dx=lambda g, x, y, dim: keep_dims(g, x.shape, dim) * (x - keep_dims(y, x.shape, dim)).exp())
rule("softmax", dx=lambda g, y, dim: y * (g - (g * y).sum(dim, keepdim=True)))
rule("log_softmax", dx=lambda g, y, dim: g - y.exp() * g.sum(dim, keepdim=True))
rule("var", dx=variance_gradient)
rule("std", dx=lambda g, x, y, dim, scale: variance_gradient(per_deviation(g, y), x, dim, scale))
rule("var_mean", dx=lambda gs, x, dim, scale: with_mean(gs[0], gs[1], x, dim, scale))
rule("std_mean", dx=lambda gs, x, y, dim, scale: with_mean(None if gs[0] is None else per_deviation(gs[0], y), gs[1], x, dim, scale))
