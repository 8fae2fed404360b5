"""User-defined differentiable operators: `Function`, its context and `once_differentiable`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Set
from types import MappingProxyType
from typing import Any

from cygrad._core.compute.inplace import check_dirty, guard_view, record_dirty, view_as_itself
from cygrad._core.engine.backward import FunctionNode
from cygrad._core.graph.modes import _set_grad_enabled, is_grad_enabled
from cygrad._core.graph.saved import SavedTensor, released_error_of, save_for
from cygrad._core.levels.batches import special_tensors
from cygrad._core.levels.observers import begin_function, end_function
from cygrad.autograd.grad_mode import enable_grad, no_grad
from cygrad.data.creation import zeros
from cygrad.tensor import Tensor

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class FunctionCtx(FunctionNode):
    """The context of one call of a Function, which is the node of the graph too."""

    _function: type[Function]
    _converted: tuple[int, Any, Any] | None = None      # the last gradient that had another dtype than its input, for gradcheck
    # The beginnings of the attributes of a call, which are replaced and never changed.
    _to_save: tuple[Tensor | None, ...] = ()
    _saved: tuple[SavedTensor, ...] = ()
    _non_differentiable: Set[int] = frozenset()
    _dirty: Mapping[int, Tensor] = MappingProxyType({})
    _changed: Set[int] = frozenset()        # ids of inputs that were, for forward mode
    _materialize = _materialize_non_diff_grads = True       # the second is torch's name, which users set
    saved_for_forward: tuple[Tensor | None, ...] | None = None
    _in_jvp = False
    _freed = False
    _outputs: tuple[tuple[Any, Any, bool], ...] = ()      # (shape, dtype, whether differentiable)
    _inputs: tuple[Any, ...] = ()

    def __init__(self, function: type[Function], needs_input_grad: tuple[bool, ...]) -> None:
        self._function, self.needs_input_grad = function, needs_input_grad
        self._input_count = len(needs_input_grad)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, which reads them as `saved_tensors`; call it once, in `forward`."""
        _check_saved("save_for_backward can only save variables", tensors)
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`."""
        _check_saved("save_for_forward can only save tensors", tensors)
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that have no gradient; `backward` still gets a zero gradient for each.

        With `ctx._materialize_non_diff_grads = False` it gets None for them.
        """
        for number, output in enumerate(outputs):
            if not isinstance(output, Tensor):
                raise TypeError(f"mark_non_differentiable only accepts variable arguments, but got {type(output).__name__} as argument "
                                f"{number}")
        self._non_differentiable = {id(output) for output in outputs}

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Declare inputs that `forward` has changed in place; each has to be returned, and takes on the history of this call."""
        for number, tensor in enumerate(inputs):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"mark_dirty can only accept variables, but argument {number} is of type {type(tensor).__name__}")
        self._dirty = {id(tensor): tensor for tensor in inputs}

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` gets zeros (the default) or None for outputs without a gradient."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors of `save_for_backward`, in `jvp` only the tensors of `save_for_forward`; RuntimeError if it was changed or freed."""
        if self._in_jvp:
            return self.saved_for_forward or ()
        return tuple(saved.unpack(self) for saved in self._raw_saved_tensors)

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The former name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The tensors of `save_for_backward`, as objects that take hooks; RuntimeError if it was freed by a backward."""
        if self._freed:
            raise released_error_of()
        return self._saved

    def name(self) -> str:
        """Return the name, such as `ExpBackward`."""
        return f"{self._function.__name__}Backward"

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def _release(self) -> None:
        if self._saved:
            for saved in self._saved:
                saved.free()
            self._saved, self._freed = (), True

    def _run_backward(self, *grads: Tensor | None) -> list[Tensor | None]:
        """Call the user's backward and check its results; the engine's gradients of the tensor inputs."""
        # An output that is no tensor has no dtype, and None as its gradient.
        filled = tuple(zeros(shape, dtype=dtype)
                       if grad is None and dtype and self._materialize and (use or self._materialize_non_diff_grads) else grad
                       for grad, (shape, dtype, use) in zip(grads, self._outputs, strict=True))
        result = self._function._call_backward(self, *filled)
        parts = result if isinstance(result, tuple) else (result,)
        extra = len(parts) - self._input_count
        if extra < 0 or any(part is not None for part in parts[self._input_count:]):
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {self._input_count}, "
                               f"got {len(parts)})")
        for position, (part, described) in enumerate(zip(parts, self._inputs, strict=False), 1):
            if part is not None and described is None:
                raise RuntimeError(f"function {self.name()} returned a gradient different than None at position {position}, but the "
                                   "corresponding forward input was not a Variable")
        return [self._checked(part, described[0], described[1], position) for position, (part, described)
                in enumerate(zip(parts, self._inputs, strict=False), 1) if described is not None]

    def _checked(self, part: Any, shape: tuple[int, ...], dtype: Any, position: int) -> Tensor | None:
        if part is None:
            return None
        if not isinstance(part, Tensor):
            raise TypeError(f"expected Variable or None (got {type(part).__name__}) as gradient {position} of {self.name()}")
        if part.shape != shape:
            try:
                part = part.sum_to_size(shape)
            except RuntimeError:
                raise RuntimeError(f"Function {self.name()} returned an invalid gradient at index {position - 1} - got "
                                   f"{list(part.shape)} but expected shape compatible with {list(shape)}") from None
        if part.dtype == dtype:
            return part
        self._converted = position, part.dtype, dtype
        return part._convert(dtype)


_ContextMethodMixin = FunctionCtx      # its name in older releases of torch


def _check_saved(rule: str, tensors: tuple[Any, ...]) -> None:
    for number, tensor in enumerate(tensors):
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{rule}, but argument {number} is of type {type(tensor).__name__}; keep other objects as attributes of ctx")


def _of_any_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have checkers of types take a user's own, with the arguments that it has and their names."""
    return method


class Function:
    """Base of user-defined differentiable operators: subclass it with static methods `forward` and `backward`.

    `forward(ctx, *arguments)` computes; `backward(ctx, *grad_outputs)` returns one gradient for each argument (None for
    those that are no tensors). Call it by `apply`. With `setup_context(ctx, inputs, output)`, `forward` gets no ctx.

    >>> import cygrad
    >>> class Exp(cygrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         y, = ctx.saved_tensors
    ...         return grad_output * y
    >>> x = cygrad.zeros(2, requires_grad=True)
    >>> Exp.apply(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    _backward_cls: type[FunctionCtx] = FunctionCtx

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._backward_cls = type(f"{cls.__name__}Backward", (FunctionCtx,), {"_function": cls})

    @staticmethod
    def forward(*arguments: Any, **keywords: Any) -> Any:
        """Compute the result; to be overridden."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the values that `backward` needs, where `forward` takes no ctx; to be overridden."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    @_of_any_arguments
    def backward(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        """Return the gradient for each argument of `forward`; to be overridden (or `vjp`)."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it "
                                  "with backward mode AD.")

    vjp = backward

    @staticmethod
    @_of_any_arguments
    def jvp(ctx: FunctionCtx, *grad_inputs: Any) -> Any:
        """Return the tangent of each output, from one for each argument (None for those that are no tensors); to be overridden.

        The tensors of `save_for_forward` are in `ctx.saved_tensors`.
        """
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    generate_vmap_rule = False

    @staticmethod
    @_of_any_arguments
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        """Return (output, out_dims) for all examples at once; to be overridden, or set `generate_vmap_rule` True.

        `info` has `batch_size` and `randomness`; `in_dims` gives the dim of each argument that runs over examples, or None.
        """
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                                  "generate_vmap_rule=True.")

    @classmethod
    def _call_backward(cls, ctx: FunctionCtx, *grads: Any) -> Any:
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one "
                               "of them.")
        method = cls.vjp if cls.backward is Function.backward else cls.backward
        return method(ctx, *grads)

    def __call__(self, *arguments: Any) -> Any:
        """Work as `apply` does, on an instance; methods without @staticmethod get the context as their first argument."""
        return self.apply(*arguments)

    @classmethod
    def apply(cls, *arguments: Any, **keywords: Any) -> Any:
        """Call the operator on its arguments and record it. Keywords stand for arguments of `forward`, at their positions."""
        has_context = cls.setup_context is Function.setup_context
        # Reading a signature costs as much as a small forward.
        if keywords or not has_context and getattr(cls.forward, "__defaults__", True):
            arguments = _by_position(cls, arguments, keywords, has_context)
        if special_tensors():
            from cygrad.autograd.function_transforms import apply_special
            result = apply_special(Function, cls, arguments)
            if result is not NotImplemented:
                return result
        return cls._apply(arguments)[0]

    @classmethod
    def _apply(cls, arguments: tuple[Any, ...]) -> tuple[Any, FunctionCtx]:
        """Return the outputs and the context."""
        tensors = [argument if isinstance(argument, Tensor) else None for argument in arguments]
        needs = tuple([tensor is not None and tensor.requires_grad for tensor in tensors])
        before = is_grad_enabled()
        recorded = before and True in needs
        ctx = cls._backward_cls(cls, needs)
        event = begin_function(cls.__name__, arguments)
        try:
            _set_grad_enabled(False)
            if cls.setup_context is not Function.setup_context:
                result = cls.forward(*arguments)
                cls.setup_context(ctx, arguments, result)
            else:
                result = cls.forward(ctx, *arguments)
            _set_grad_enabled(before)
            return _finished(ctx, tensors, result, recorded), ctx
        finally:
            _set_grad_enabled(before)
            if event:
                end_function(event)


def _by_position(cls: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any], has_context: bool) -> tuple[Any, ...]:
    """Return the arguments of `forward` in its order, with defaults where `setup_context` sees them; TypeError for others than it has."""
    context = (None,) if has_context else ()
    bound = inspect.signature(cls.forward).bind(*context, *arguments, **keywords)
    if not has_context:
        bound.apply_defaults()
    for name in keywords.keys() & bound.kwargs.keys():
        raise TypeError(f"{cls.__name__}.apply() cannot take {name!r} by keyword: forward() must take it by position, and the arguments "
                        "before it must be passed, too")
    return bound.args[len(context):]


class InplaceFunction(Function):
    """The base class in old code of Functions that change an input in place; `Function` does the same."""


def _finished(ctx: FunctionCtx, inputs: list[Tensor | None], result: Any, recorded: bool) -> Any:
    """Return the outputs of `forward`, made outputs of the context's node where the call is recorded."""
    outputs = result if isinstance(result, tuple) else (result,)
    tensors = tuple([tensor for tensor in inputs if tensor is not None])
    edges = {id(tensor): edge for edge, tensor in enumerate(tensors)}
    if ctx._dirty:
        _check_dirty(ctx, outputs, edges, recorded)
    fresh, differentiable, dirty = [], [], []
    for output in outputs:
        identifier, is_tensor = id(output), isinstance(output, Tensor)
        use = recorded and is_tensor and output.dtype.is_differentiable and identifier not in ctx._non_differentiable
        changed = use and identifier in ctx._dirty and identifier in edges
        fresh.append(_unshared(output, identifier in edges, use) if is_tensor and not changed else output)
        differentiable.append(use)
        dirty.append(changed)
    if recorded:
        ctx._outputs = tuple([(output.shape, output.dtype, use) if isinstance(output, Tensor) else ((), None, use)
                              for output, use in zip(fresh, differentiable, strict=True)])
        ctx._inputs = tuple([None if tensor is None else (tensor.shape, tensor.dtype) for tensor in inputs])
        ctx._connect(tensors, tuple([output if use and not changed else None
                                     for output, use, changed in zip(fresh, differentiable, dirty, strict=True)]))
        for number, changed in enumerate(dirty):
            if changed:
                record_dirty(fresh[number], ctx, edges[id(fresh[number])], number)
        ctx._saved = tuple([save_for(ctx, tensor) for tensor in ctx._to_save])
    for output in fresh:
        if isinstance(output, Tensor) and id(output) not in edges and output._is_view():
            guard_view(output, sum(differentiable) > 1)
    if ctx._dirty:
        ctx._changed, ctx._dirty = ctx._dirty.keys() & edges.keys(), {}
    ctx._to_save = ()
    return tuple(fresh) if isinstance(result, tuple) else fresh[0]


def _check_dirty(ctx: FunctionCtx, outputs: tuple[Any, ...], edges: dict[int, int], recorded: bool) -> None:
    """Check the inputs marked as changed in place, and count the change."""
    returned = {id(output): output for output in outputs}
    if not ctx._dirty.keys() <= returned.keys():
        raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                           "modified inplace must all be outputs of the Function.")
    for identifier, tensor in ctx._dirty.items():
        if identifier not in edges:
            warnings.warn("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
                          "passed to ctx.mark_dirty().", UserWarning, stacklevel=4)
        elif recorded:
            check_dirty(tensor)
        tensor._increment_version()


def _unshared(output: Tensor, is_input: bool, use: bool) -> Tensor:
    """Return an output that may get a history, or lose it, without touching an input that it is."""
    if use:
        return view_as_itself(output) if is_input else output
    if not output.requires_grad:
        return output
    return output.detach() if is_input else output if output._is_view() else output.detach_()


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that cannot be differentiated again: doing so raises instead of giving a wrong gradient."""

    @functools.wraps(backward)
    def wrapper(ctx: FunctionCtx, *grads: Any) -> Any:
        recorded = is_grad_enabled()
        with no_grad():
            result = backward(ctx, *grads)
        needs = [grad for grad in grads if isinstance(grad, Tensor) and grad.requires_grad]
        if not recorded or not needs:
            return result
        parts = result if isinstance(result, tuple) else (result,)
        with enable_grad():
            guarded = tuple(_Refuse.apply(part, *needs) if isinstance(part, Tensor) else part for part in parts)
        return guarded if isinstance(result, tuple) else guarded[0]

    return wrapper


class _Refuse(Function):
    """Passes a tensor on and refuses to be differentiated."""

    @staticmethod
    def forward(ctx: FunctionCtx, value: Tensor, *sources: Tensor) -> Tensor:
        return value.detach()

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
