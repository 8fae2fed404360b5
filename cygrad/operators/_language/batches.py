"""How operators treat many examples at once, by the words that declarations use.

The examples lie along dim 0, which `level.enter` shows and `level.leave` hides. Each function takes (level, operator, *arguments) and
returns the operator's result for one example of many. Methods of tensors only, so that batches nest.
"""

from functools import cache
from inspect import signature
from operator import index as integer

from cygrad._core.entry.special import over_tensors
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim

_signature = cache(signature)


# ----- Arguments -----
def is_tensor(value):
    return isinstance(value, TensorImpl)


def named_arguments(operator, arguments, keywords):
    """Return arguments by name, defaults included."""
    bound = _signature(operator).bind(*arguments, **keywords)
    bound.apply_defaults()
    return bound


def left(level, result):
    return over_tensors(level.leave, result)


def entered(level, value):
    return over_tensors(level.enter, value)


def entered_keywords(level, keywords):
    return {name: entered(level, value) for name, value in keywords.items()}


def behind(dim, ndim):
    """Return a dim of an example as one of all examples."""
    return normalized_dim(dim, ndim) + 1


def sizes_of(arguments, keywords):
    """Return sizes given as one sequence, as several ints or by keyword."""
    values = (*arguments, *keywords.values())
    return tuple(map(integer, values[0] if len(values) == 1 and not hasattr(values[0], "__index__") else values))


# ----- Operators with dims among their arguments -----
def same(level, operator, *arguments, **keywords):
    """Apply an operator that treats each element by itself."""
    return left(level, operator(*entered(level, arguments), **entered_keywords(level, keywords)))


def in_any_order(level, operator, *arguments, memory_format=None, **keywords):
    """Apply an operator that treats each element by itself; the order of an example's dims is not visible."""
    return same(level, operator, *arguments, **keywords)


def vectors(level, operator, x, *arguments, **keywords):
    """Apply an operator to the last dim; an example without dims is refused."""
    if not x.ndim:
        raise RuntimeError(f"{operator.name}: input tensor must have at least 1 dimension")
    return same(level, operator, x, *arguments, **keywords)


def matrices(level, operator, x, *arguments, **keywords):
    """Apply an operator to the last two dims; an example of fewer is refused."""
    if x.ndim < 2:
        raise RuntimeError(f"{operator.name}: input tensor must have at least 2 dimensions")
    return same(level, operator, x, *arguments, **keywords)


def aligned_matrices(level, operator, *arguments, **keywords):
    """Apply an operator to the last two dims of all its tensors, of `pivots` to the last; the dims in front of them broadcast."""
    bound = named_arguments(operator, arguments, keywords)
    own = {name: 1 if name == "pivots" else 2 for name in bound.arguments}
    outer = [x.ndim - own[name] for name, x in bound.arguments.items() if is_tensor(x)]
    if min(outer) < 0:
        raise RuntimeError(f"{operator.name}: input tensors must have at least 2 dimensions")

    def aligned(x, own):
        examples = level.enter(x)
        return examples[(slice(None),) + (None,) * (max(outer) + own + 1 - examples.ndim)] if level.varies(x) else x

    bound.arguments.update({name: aligned(x, own[name]) for name, x in bound.arguments.items() if is_tensor(x)})
    return left(level, operator(*bound.args, **bound.kwargs))


def shifted(*names, extra=0, flattened=False, none=False):
    """Apply an operator with dims in the arguments so named; None means all dims.

    `extra`: by how many dims they count more; `flattened`: without dims it is applied to the elements as a vector; `none`: no dims are
    none, not all.
    """
    def batch(level, operator, *arguments, **keywords):
        bound = named_arguments(operator, arguments, keywords)
        for name, value in bound.arguments.items():
            if name not in names:
                bound.arguments[name] = entered(level, value)
        x = next(iter(bound.arguments.values()))
        if flattened and bound.arguments[names[0]] in (None, (), []):
            example = level.leave(x)
            bound.arguments.update({next(iter(bound.arguments)): example.reshape(-1), names[0]: 0})
            return operator(*bound.args, **bound.kwargs).reshape(example.shape)
        ndim, scalar = x.ndim - 1 + extra, x.ndim == 1 and not extra
        if scalar:      # a dim for a 0-d tensor: dim 0 of a 0-d tensor
            for name, value in bound.arguments.items():
                bound.arguments[name] = over_tensors(lambda item: item.unsqueeze(1) if item.ndim == 1 else item, value)
        for name in names:
            dims = bound.arguments.get(name)
            if dims is None or isinstance(dims, (tuple, list)) and not dims and name == "dim" and not none:
                bound.arguments[name] = tuple(range(1, max(ndim, 1) + 1))
            elif isinstance(dims, (tuple, list)):
                bound.arguments[name] = tuple(behind(dim, ndim) for dim in dims)
            else:
                bound.arguments[name] = behind(dims, ndim)
        result = operator(*bound.args, **bound.kwargs)
        if scalar:
            result = over_tensors(lambda item: item.squeeze(1) if item.ndim > 1 else item, result)
        return left(level, result)

    return batch


def samples_together(level, operator, *arguments):
    """Apply an operator of tensors whose first dim is of samples to the samples of all examples at once."""
    arguments = entered(level, arguments)
    sizes = tuple(arguments[0].shape[:2])
    return level.leave(operator(*over_tensors(lambda tensor: tensor.flatten(0, 1), arguments)).unflatten(0, sizes))


def dynamic_shape(level, operator, *arguments, **keywords):
    raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape, another for each example: use where(). "
                       f"Attempted to vmap over {operator.name}().")


# ----- Look-up along a dim -----
def along_index(scatter):
    """Apply an operator whose index is a vector for a dim; where it differs among examples, as the operator `scatter` of whole indices."""
    def batch(level, operator, x, dim, index, *others, alpha=None, **keywords):
        others = (*others, *keywords.values())
        if not level.holds(index) and x.ndim and not any(is_tensor(other) and not other.ndim for other in others):
            alpha = {} if alpha is None else {"alpha": alpha}
            return level.leave(operator(level.enter(x), behind(dim, x.ndim), index, *entered(level, others), **alpha))
        rows = x if x.ndim else x.reshape(1)
        d = behind(dim, x.ndim) - 1
        shape = [index.numel() if k == d else size for k, size in enumerate(rows.shape)]
        if any(is_tensor(other) and other.ndim and list(other.shape) != shape for other in others):
            raise RuntimeError(f"{operator.name}(): the source must have the shape {shape}")
        places = index.reshape([-1 if k == d else 1 for k in range(rows.ndim)]).expand(shape)
        sources = [other.expand(shape) if is_tensor(other) else other for other in others]
        result = getattr(rows, scatter)(d, places, *(sources if alpha is None else [source * alpha for source in sources]))
        return result if x.ndim else result.reshape(())

    return batch
