"""User-defined Functions in forward mode and inside of vmap: their `jvp` and `vmap`, or ones made of `forward` and `backward`.

Loaded when a Function meets a special tensor first.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from cygrad._core.entry.special import over_tensors
from cygrad._core.levels.batches import batched_level
from cygrad._core.levels.level import enter_level, exit_level, out_of_sight
from cygrad._core.levels.tangents import dual_levels, set_tangent, tangent_of, tangent_to_write, without_overlap, without_tangent
from cygrad.autograd.forward_ad import is_dual_level
from cygrad.pytree import broadcast_prefix, tree_flatten, tree_unflatten
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from cygrad.autograd.function import Function, FunctionCtx


class VmapInfo(NamedTuple):
    """The first argument of a Function's `vmap`: the number of examples, and how random functions behave."""

    batch_size: int
    randomness: str


def apply_special(base: type[Function], function: type[Function], arguments: tuple[Any, ...]) -> Any:
    """Apply a Function of which an argument has a tangent or is one example of many; NotImplemented where none is.

    `base` is the class Function itself: a Function inherits the methods that it does not define.
    """
    levels = [level for level in map(batched_level, arguments) if level is not None]
    if levels:
        level = max(levels, key=lambda level: level.number)
        return _generated(base, function, level, arguments) if _has_rule(base, function) else _by_vmap(function, level, arguments)
    levels = dual_levels(tuple(argument for argument in arguments if isinstance(argument, Tensor)))
    return _by_jvp(function, levels, arguments) if levels else NotImplemented


# ----- Forward mode -----
def _by_jvp(function: type[Function], levels: list[Any], arguments: tuple[Any, ...]) -> Any:
    """Apply the Function with its tangents out of sight, then call its jvp for the tangents of each level, the lowest first."""
    with out_of_sight(levels[0]):
        result, ctx = function._apply(arguments)
    outputs = result if isinstance(result, tuple) else (result,)
    # Outputs that are inputs, or views of them, have tangents of their own; inputs that were changed in place share them with their views.
    outputs = tuple(without_overlap(without_tangent(output, levels[0])) if isinstance(output, Tensor) and id(output) not in ctx._changed
                    else output for output in outputs)
    for level in levels:
        with out_of_sight(level):
            input_tangents = tuple(_tangent(ctx, argument, level) for argument in arguments)
            ctx._in_jvp = True
            try:
                results = function.jvp(ctx, *input_tangents)
                results = results if isinstance(results, tuple) else (results,)
                _check_jvp(ctx, outputs, results)
                _check_relations(ctx, level, arguments, input_tangents, result if isinstance(result, tuple) else (result,), results)
                _attach(ctx, level, outputs, results)
            finally:
                ctx._in_jvp = False
    return outputs if isinstance(result, tuple) else outputs[0]


def _tangent(ctx: FunctionCtx, argument: Any, level: Any) -> Any:
    if not isinstance(argument, Tensor) or not argument.dtype.is_differentiable:
        return None
    tangent = tangent_of(argument, level)
    if tangent is None:
        return argument.detach().new_zeros(argument.shape) if ctx._materialize else None
    return tangent.clone() if id(argument) in ctx._changed else tangent     # jvp may change it in place, too


def _check_jvp(ctx: FunctionCtx, outputs: tuple[Any, ...], tangents: tuple[Any, ...]) -> None:
    """Check the result of jvp; None stands for a tangent of zeros."""
    if len(tangents) != len(outputs):
        raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
                           f"{len(tangents)}): {ctx._function.__name__}.jvp must return one for each output")
    for number, (output, tangent) in enumerate(zip(outputs, tangents, strict=True)):
        if tangent is None:
            continue
        if not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}. "
                               f"{ctx._function.__name__}.jvp must return a tensor for each output that is differentiable")
        if not isinstance(output, Tensor) or not output.dtype.is_differentiable or id(output) in ctx._non_differentiable:
            raise RuntimeError(f"Function's jvp returned a gradient at position {number}, but  the corresponding forward output is not a "
                               "differentiable Tensor.You should return None at that position instead.")
        if tangent.shape != output.shape or tangent.dtype != output.dtype:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                               f"supported. {ctx._function.__name__}.jvp returned shape {list(tangent.shape)} and dtype {tangent.dtype} "
                               f"for output {number}, which has shape {list(output.shape)} and dtype {output.dtype}")


def _check_relations(ctx: FunctionCtx, level: Any, arguments: tuple[Any, ...], input_tangents: tuple[Any, ...], outputs: tuple[Any, ...],
                     tangents: tuple[Any, ...]) -> None:
    """Refuse a jvp that does not treat tangents as forward treats memory: change them in place, or (in `forward_ad`) give views of them.

    `cygrad.func` takes any tangent of a view, as torch's does.
    """
    places = {id(argument): place for place, argument in enumerate(arguments)
              if isinstance(argument, Tensor) and tangent_of(argument, level) is not None}
    bases = {id(argument if argument._base is None else argument._base): place for place, argument in enumerate(arguments)
             if id(argument) in places}
    for output, tangent in zip(outputs, tangents, strict=True):
        if not isinstance(output, Tensor):
            continue
        if id(output) in ctx._changed:
            if id(output) in places and tangent is not input_tangents[places[id(output)]]:
                raise RuntimeError("An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                                   "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace.")
        elif is_dual_level(level) and (id(output) in places or id(output._base) in bases):
            whole = input_tangents[places[id(output)] if id(output) in places else bases[id(output._base)]]
            if tangent is None or not tangent._is_view():
                raise RuntimeError("A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a "
                                   "view. Return a view of the tangent given, or clone() in forward.")
            if tangent._base is not (whole if whole._base is None else whole._base):
                of = "given grad input" if whole._base is None else "same base as the given grad input"
                raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of the {of}.")


def _attach(ctx: FunctionCtx, level: Any, outputs: tuple[Any, ...], tangents: tuple[Any, ...]) -> None:
    """Give the outputs the tangents that jvp returned."""
    for output, tangent in zip(outputs, tangents, strict=True):
        if tangent is None:
            continue
        if id(output) in ctx._changed:
            tangent_to_write(output, level, tangent)[...] = tangent
        else:
            set_tangent(output, level, tangent)


# ----- vmap -----
def _has_rule(base: type[Function], function: type[Function]) -> bool:
    """Return True if the Function is to be batched by its forward and backward."""
    own = function.vmap is not base.vmap
    if function.generate_vmap_rule and own:
        raise RuntimeError(f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overridden "
                           "vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
                           "ambiguity.")
    if not function.generate_vmap_rule and not own:
        raise NotImplementedError(f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and "
                                  "implement the vmap staticmethod or set generate_vmap_rule=True.")
    return function.generate_vmap_rule


def _by_vmap(function: type[Function], level: Any, arguments: tuple[Any, ...]) -> Any:
    """Call the Function's vmap with all examples."""
    leaves, spec = tree_flatten(arguments)
    dims = tree_unflatten([0 if level.holds(leaf) else None for leaf in leaves], spec)
    examples = tree_unflatten([level.enter(leaf) if level.holds(leaf) else leaf for leaf in leaves], spec)
    result = function.vmap(VmapInfo(level.size, level.randomness), dims, *examples)
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
        raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
                           f"with the output. Got {got} instead")
    outputs, out_dims = result
    leaves, spec = tree_flatten(outputs)
    try:
        places = broadcast_prefix(out_dims, outputs)
    except ValueError:
        raise RuntimeError("The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                           f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
                           f"{tree_flatten(out_dims)[1]} but output has structure {spec}.") from None
    return tree_unflatten([leaf if dim is None else level.leave(leaf.movedim(dim, 0))
                           for leaf, dim in zip(leaves, places, strict=True)], spec)


class _Context:
    """A context as one example sees it: saved tensors stand for one of many, all else is the context's own."""

    def __init__(self, ctx: FunctionCtx, saved: tuple[Any, ...]) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "saved_tensors", saved)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def _seen(many: tuple[int, str], call: Any, values: Any) -> Any:
    """Call with tensors that stand for one of so many examples, and return all examples."""
    level = enter_level(*many)
    try:
        return over_tensors(level.enter, call(level, over_tensors(level.leave, values)))
    finally:
        exit_level(level)


def _generated(base: type[Function], function: type[Function], level: Any, arguments: tuple[Any, ...]) -> Any:
    """Apply a Function to all examples by the one whose forward, backward and jvp are its own, seen by one example of many."""
    if function.setup_context is base.setup_context:
        raise RuntimeError(f"You tried to vmap over {function.__name__} with generate_vmap_rule=True, which needs forward without ctx and "
                           "a setup_context staticmethod.")
    if "_for_all_examples" not in function.__dict__:
        function._for_all_examples = _for_all_examples(base, function)  # type: ignore[attr-defined]
    batched = function.__dict__["_for_all_examples"]
    return over_tensors(level.leave, batched.apply(level.size, level.randomness, *over_tensors(level.enter, arguments)))


def _for_all_examples(base: type[Function], function: type[Function]) -> type[Function]:
    """Return the Function of (number of examples, randomness, all examples of each argument)."""

    class Batched(base):  # type: ignore[misc, valid-type]
        generate_vmap_rule = True

        @staticmethod
        def forward(size: int, randomness: str, *inputs: Any) -> Any:
            return _seen((size, randomness), lambda level, examples: function.forward(*examples), inputs)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            inner = ctx.inner = function._backward_cls(function, ctx.needs_input_grad[2:])

            def setup(level: Any, values: Any) -> Any:
                function.setup_context(inner, *values)
                ctx.shapes = [item.shape if isinstance(item, Tensor) else None for item in values[0]]
                constant = [id(item) in inner._non_differentiable for item in (values[1] if isinstance(output, tuple) else values[1:])]
                return inner._to_save, inner.saved_for_forward, tuple(inner._dirty.values()), constant

            ctx.many = inputs[:2]
            for_backward, for_forward, dirty, constant = _seen(ctx.many, setup, (inputs[2:], output))
            ctx.save_for_backward(*for_backward)
            if for_forward is not None:
                ctx.save_for_forward(*for_forward)
            ctx.mark_dirty(*dirty)
            ctx.mark_non_differentiable(*itertools.compress(output if isinstance(output, tuple) else (output,), constant))
            inner._to_save, inner.saved_for_forward, inner._dirty = (), None, {}
            ctx.set_materialize_grads(inner._materialize)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            def call(level: Any, values: Any) -> Any:
                result = function._call_backward(_Context(ctx.inner, values[0]), *values[1])  # type: ignore[arg-type]
                result = result if isinstance(result, tuple) else (result,)
                return tuple(part.sum_to_size(shape) if isinstance(part, Tensor) and shape not in (None, part.shape) else part
                             for part, shape in itertools.zip_longest(result, ctx.shapes[:len(result)]))

            return None, None, *_seen(ctx.many, call, (ctx.saved_tensors, grads))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            def call(level: Any, values: Any) -> Any:
                return function.jvp(_Context(ctx.inner, values[0]), *values[1])

            return _seen(ctx.many, call, (ctx.saved_tensors, tangents[2:]))

    Batched.__name__ = Batched.__qualname__ = f"Vmapped{function.__name__}"
    if function.jvp is base.jvp:
        Batched.jvp = base.jvp  # type: ignore[method-assign]
    return Batched
