"""How operators treat many examples at once, by the words that declarations use.

The examples lie along dim 0, which `level.enter` shows and `level.leave` hides. Each function takes (level, operator, *arguments) and
returns the operator's result for one example of many. Methods of tensors only, so that batches nest.
"""

from inspect import signature
from operator import index as integer

from cygrad._core.compute.indexing import is_several_indices


# ----- Arguments -----
def is_tensor(value):
    return hasattr(value, "requires_grad")


def over_tensors(function, value):
    """Return a value with a function applied to the tensors in it: itself, or those in tuples and lists, named ones included."""
    if is_tensor(value):
        return function(value)
    if isinstance(value, tuple | list):
        items = [over_tensors(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def named_arguments(operator, arguments, keywords):
    """Return arguments by name, defaults included."""
    bound = signature(operator).bind(*arguments, **keywords)
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
    limit, dim = max(ndim, 1), integer(dim)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim % limit + 1


def sizes_of(arguments, keywords):
    """Return sizes given as one sequence, as several ints or by keyword."""
    given = (*arguments, *keywords.values())
    return tuple(map(integer, given[0] if len(given) == 1 and not hasattr(given[0], "__index__") else given))


# ----- Operators with dims among their arguments -----
def same(level, operator, *arguments, **keywords):
    """Apply an operator that treats each element by itself."""
    return left(level, operator(*entered(level, arguments), **entered_keywords(level, keywords)))


def in_any_order(level, operator, *arguments, memory_format=None, **keywords):
    """Apply an operator that treats each element by itself; in which order the dims of one example lie, nobody can see."""
    return same(level, operator, *arguments, **keywords)


def matrices(level, operator, x, *arguments, **keywords):
    """Apply an operator to the last two dims."""
    if x.ndim < 2:
        raise RuntimeError(f"{operator.__name__}: input tensor must have at least 2 dimensions")
    return same(level, operator, x, *arguments, **keywords)


def shifted(*names, extra=0, flattened=False):
    """Apply an operator with dims in the arguments so named; None means all dims.

    `extra`: by how many dims they count more; `flattened`: without dims it is applied to the elements as a vector.
    """
    def batch(level, operator, *arguments, **keywords):
        bound = named_arguments(operator, arguments, keywords)
        for name, value in bound.arguments.items():
            if name not in names:
                bound.arguments[name] = entered(level, value)
        x = next(iter(bound.arguments.values()))
        if flattened and bound.arguments[names[0]] == ():
            example = level.leave(x)
            bound.arguments.update({next(iter(bound.arguments)): example.reshape(-1), names[0]: 0})
            return operator(*bound.args, **bound.kwargs).reshape(example.shape)
        ndim, scalar = x.ndim - 1 + extra, x.ndim == 1 and not extra
        if scalar:      # a dim for what counts as one: dim 0 of a 0-d tensor
            for name, value in bound.arguments.items():
                bound.arguments[name] = over_tensors(lambda item: item.unsqueeze(1) if item.ndim == 1 else item, value)
        for name in names:
            dims = bound.arguments.get(name)
            if dims is None or isinstance(dims, tuple | list) and not dims and name == "dim":
                bound.arguments[name] = tuple(range(1, max(ndim, 1) + 1))
            elif isinstance(dims, tuple | list):
                bound.arguments[name] = tuple(behind(dim, ndim) for dim in dims)
            else:
                bound.arguments[name] = behind(dims, ndim)
        result = operator(*bound.args, **bound.kwargs)
        if scalar:
            result = over_tensors(lambda item: item.squeeze(1) if item.ndim > 1 else item, result)
        return left(level, result)

    return batch


def dynamic_shape(level, operator, *arguments, **keywords):
    raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape, another for each example: use where(). "
                       f"Attempted to vmap over {operator.__name__}().")


# ----- Shapes -----
def batched_repeat(level, operator, x, *repeats, **keywords):
    x, repeats = level.enter(x), sizes_of(repeats, keywords)
    if len(repeats) < x.ndim - 1:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return level.leave(operator(x[(slice(None),) + (None,) * (len(repeats) + 1 - x.ndim)], 1, *repeats))


def batched_new(level, operator, x, *size, **keywords):
    """Make a tensor for each example; a number to fill it with comes last, if there is one."""
    values = size[1:] if operator.__name__ == "new_full" else ()
    size = size[:1] if values else size or (keywords.pop("size"),)
    return level.leave(operator(level.enter(x), (level.size, *sizes_of(size, {})), *values, **keywords))


def batched_flip(level, operator, x, *dims, **keywords):
    x = level.enter(x)
    return level.leave(operator(x, *(behind(dim, x.ndim - 1) for dim in sizes_of(dims, keywords))) if x.ndim > 1 else x.clone())


# ----- Indices -----
def is_array(item):
    """Say whether an item of an index looks elements up: not an int, slice, None or Ellipsis."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return False
    return not hasattr(item, "__index__") or isinstance(item, bool) or getattr(item, "ndim", 0) > 0 or "bool" in dtype_name(item)


def dtype_name(item):
    return str(getattr(item, "dtype", ""))


def is_mask(item):
    return isinstance(item, bool) or "bool" in dtype_name(item) or is_tensor(item) and "uint8" in dtype_name(item)


def lookup(level, x, ndim_of_example, key):
    """Return an index into all examples of a tensor, and where its dims go in the result: all examples first, then one's dims."""
    items = key if isinstance(key, tuple) else tuple(key) if isinstance(key, list) and is_several_indices(key) else (key,)
    if all(isinstance(item, slice) for item in items):
        return (slice(None), *items), None
    items = [x.new_tensor(item, dtype=None) if isinstance(item, tuple | list | range) and item else item for item in items]
    arrays = [item for item in items if is_array(item)]
    held = next(filter(level.holds, items), None)
    if held is None:
        places = [k for k, item in enumerate(items) if is_array(item) or arrays and hasattr(item, "__index__")]
        if not arrays or places[-1] - places[0] == len(places) - 1:
            return (slice(None), *items), None
        # Dims of index arrays that stand apart come first, before those of the examples.
        dims = max(1 if is_mask(item) else getattr(item, "ndim", 1) for item in arrays)
        return (slice(None), *items), (dims, *range(dims))
    if any(map(is_mask, items)):
        raise RuntimeError("vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing "
                           "with a boolean mask: use where().")
    if any(item is Ellipsis for item in items):
        place = next(k for k, item in enumerate(items) if item is Ellipsis)
        used = sum(item is not None and item is not Ellipsis for item in items)
        items[place:place + 1] = [slice(None)] * (ndim_of_example - used)
    kinds = [is_array(item) or hasattr(item, "__index__") for item in items]
    ndim = max(getattr(item, "ndim", 1 if is_array(item) else 0) for item, kind in zip(items, kinds, strict=True) if kind)
    looked = []
    for item, kind in zip(items, kinds, strict=True):
        if kind and level.holds(item):
            item = level.enter(item)
            item = item.reshape([level.size] + [1] * (ndim + 1 - item.ndim) + list(item.shape[1:]))
        looked.append(item)
    examples = held.new_arange(level.size).reshape([level.size] + [1] * ndim)
    first, last = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
    before = first if all(kinds[first:last + 1]) else 0
    order = None if not before else (0, *range(1 + ndim, 1 + ndim + before), *range(1, 1 + ndim))
    return (examples, *looked), order


def in_order(result, order):
    """Return a result with the dims named by `order` in front."""
    return result if order is None else result.permute(*order, *range(len(order), result.ndim))


def batched_item(level, operator, x, key):
    index, order = lookup(level, x, x.ndim, key)
    return level.leave(in_order(operator(level.enter(x), index), order))


def batched_set_item(level, operator, x, key, value):
    check_target(level, operator, x, value, *(key if isinstance(key, tuple) else (key,)))
    index, order = lookup(level, x, x.ndim, key)
    x = level.enter(x)
    if not is_tensor(value) and hasattr(value, "__len__"):
        value = x.new_tensor(value)
    if is_tensor(value):        # which must not broadcast to the examples
        value, ndim = level.enter(value), x[index].ndim
        while value.ndim > ndim and value.shape[1] == 1:
            value = value.squeeze(1)
        value = value[(slice(None),) + (None,) * (ndim - value.ndim)]
        if order is not None:
            value = value.permute([(*order, *range(len(order), ndim)).index(d) for d in range(ndim)])
    operator(x, index, value)


def check_target(level, operator, x, *others):
    if not level.holds(x) and any(map(level.holds, others)):
        raise RuntimeError("vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                           "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` "
                           f"not being vmapped over in a vmap. Please try to use out-of-place operators instead of {operator.__name__}.")


def leading_zeros(level, operator, x, shape, key, accumulate):
    """Put the examples of a gradient where an index has taken them from."""
    x, zeros = level.enter(x), None
    index, order = lookup(level, x, len(shape), key)
    if order is not None:
        zeros = x.permute([(*order, *range(len(order), x.ndim)).index(d) for d in range(x.ndim)])
    return level.leave(operator(x if zeros is None else zeros, (level.size, *shape), index, accumulate))


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
            raise RuntimeError(f"{operator.__name__}(): the source must have the shape {shape}")
        places = index.reshape([-1 if k == d else 1 for k in range(rows.ndim)]).expand(shape)
        sources = [other.expand(shape) if is_tensor(other) else other for other in others]
        result = getattr(rows, scatter)(d, places, *(sources if alpha is None else [source * alpha for source in sources]))
        return result if x.ndim else result.reshape(())

    return batch
