"""class Tensor: the methods that run once per user call; everything per element or per node is in the core."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from cygrad._core.compute.copies import warn_of_parts
from cygrad._core.compute.dispatch import ops
from cygrad._core.entry.operator_object import Declaration
from cygrad._core.entry.operators import TensorBase
from cygrad._core.entry.special import tensors_of
from cygrad._core.exchange import dlpack
from cygrad._core.exchange.aliases import as_instance
from cygrad._core.graph.handles import HookTable, RemovableHandle, hook_table, register, register_among, set_hook_table
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.rule_nodes import record_rule
from cygrad._core.graph.rules import RuleOp, rule_op
from cygrad._core.graph.tensor import product_of_scipy, set_tensor_type
from cygrad._core.levels import batches, tangents
from cygrad._core.levels.overrides import overrides_off
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import Layout, MemoryFormat, preserve_format, sparse_coo, sparse_csr, strided
from cygrad._core.memory.storage import DType, dtype_by_name
from cygrad._core.memory.upward import fill
from cygrad._core.operands.arrays import memory_of
from cygrad.data import creation
from cygrad.device import CPU, resolve_device
from cygrad.operators import find, modules_of
from cygrad.operators._written import registry
from cygrad.operators.elementwise import functions, in_place_methods
from cygrad.ops.dtypes import DTYPES

if TYPE_CHECKING:
    from cygrad.typing import Operand


class _LateMethod:
    """A method or property whose module is imported when it is first asked for; then `loaded` is in its place."""

    def __init__(self, name: str, module: str, kind: Callable[[Any], Any] | None = None) -> None:
        self.name, self.module, self.kind = name, module, kind
        self.loaded: Any = None

    def __get__(self, instance: Any, owner: type) -> Any:
        _load(self.module)
        return getattr(owner if instance is None else instance, self.name)


def _load(module: str) -> None:
    """Import a module of operators, and give Tensor all its methods: while Python shuts down nothing can be imported."""
    from cygrad.operators._language.declaration import methods
    family = import_module(module)
    for name, method in [*vars(Tensor).items()]:
        if isinstance(method, _LateMethod) and method.module == module:
            function = getattr(family, name)
            function = methods.get(function, function)
            method.loaded = function if method.kind is None else method.kind(function)
            setattr(Tensor, name, method.loaded)


_backward: Callable[..., None]      # `autograd.backward`
_T = TypeVar("_T", bound="Tensor")
_Class = type[_T]


def set_backward(function: Callable[..., None]) -> None:
    """Set the function that `Tensor.backward` calls, from the module above: an import at each call would fail while Python shuts down."""
    global _backward
    _backward = function


class Tensor(TensorBase):
    """An n-dimensional array of one dtype that records how it was computed.

    Made by `cygrad.tensor`, `cygrad.zeros` and the other factories.

    >>> import cygrad
    >>> x = cygrad.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ()
    __array_priority__ = 1000

    if TYPE_CHECKING:
        def __new__(cls, *data: Any, device: Any = None) -> Self: ...

    # ----- Gradients -----
    def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:
        """Add the gradient of this tensor to the `.grad` of the leaves it was computed from; see `autograd.backward`."""
        _backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` whenever this tensor's gradient is computed; a tensor it returns takes the gradient's place.

        Returns a handle with `remove()`. Inside of vmap the hook sees the gradient of one example.
        """
        level = batches.batched_level(self)
        if level is not None:
            def see_one(grad: Tensor) -> Tensor | None:
                result = hook(level.leave(grad))
                return None if result is None else level.enter(result)

            return level.enter(self).register_hook(see_one)
        part = sparse_part(self)
        if part is not None:
            def see_sparse(grad: Tensor) -> Tensor | None:
                result = hook(part.around(grad))
                return None if result is None else part.pattern.values_at(result)

            return part.inner.register_hook(see_sparse)
        hooks, output_nr = self._hooks()
        return register(hooks.tensor.setdefault(output_nr, HookTable()), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` each time after this leaf's `.grad` was added to.

        Returns a handle with `remove()`. RuntimeError for a tensor that is no leaf or requires no gradient.

        >>> import cygrad
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x * 3).sum().backward()
        tensor([3., 3.])
        """
        hooks, _ = self._hooks()
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return register_among(hooks, "accumulated", hook)

    @property
    def _backward_hooks(self) -> dict[Any, Callable[[Tensor], Tensor | None]] | None:
        """The hooks on this tensor's gradient by their numbers, or None; a dict that is assigned takes their place."""
        return hook_table(self)

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: dict[Any, Callable[[Tensor], Tensor | None]] | None) -> None:
        set_hook_table(self, hooks)

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed! Assign None.")

    @property
    def _grad_fn(self) -> Any:
        """The node that `grad_fn` gives."""
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def output_nr(self) -> int:
        """The number of this tensor among the results of its node; 0 for a leaf."""
        return 0 if self.grad_fn is None else super().output_nr

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Change whether operations on this leaf are recorded."""
        if not isinstance(requires_grad, bool):
            raise TypeError("requires_grad_(): argument 'requires_grad' (position 1) must be bool, "
                            f"not {type(requires_grad).__name__}")
        setattr(self, "requires_grad", requires_grad)  # noqa: B010 - a slot of the base, which mypy does not see
        return self

    # ----- Conversion -----
    def to(self, *arguments: Any, dtype: Any = None, device: Any = None, other: Tensor | None = None, copy: bool = False,
           non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        """Return the tensor with a dtype, on a device (the CPU), or as another tensor has them; itself if nothing changes.

        `memory_format` gives the order in which the dims of the result lie.

        >>> import cygrad
        >>> cygrad.ones(2).to(cygrad.int64)
        tensor([1, 1])
        """
        for argument in arguments if other is None else (*arguments, other):
            if isinstance(argument, Tensor):
                dtype = argument.dtype
            elif isinstance(argument, (DType, type, np.dtype)):
                dtype = argument
            elif isinstance(argument, bool):
                continue
            else:
                device = argument
        resolve_device(device)
        result = self._convert(self.dtype if dtype is None else dtype, copy)
        if self.is_complex():
            warn_of_parts(self.dtype, result.dtype, 2)
        return result if memory_format is None or memory_format is preserve_format else result.contiguous(memory_format=memory_format)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the tensor in another dtype, also by the type's name; without an argument, the name of its own.

        >>> import cygrad
        >>> cygrad.ones(2).type()
        'cygrad.FloatTensor'
        >>> cygrad.ones(2).type(cygrad.LongTensor)
        tensor([1, 1])
        """
        from cygrad.torch_names.tensor_types import dtype_of, type_name
        return type_name(self.dtype) if dtype is None else self.to(dtype_of(dtype))

    def cpu(self, memory_format: Any = None) -> Tensor:
        """Return the tensor itself: it is on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        """Refuse: there is no other device than the CPU."""
        return self.to(device="cuda")

    @property
    def device(self) -> Any:
        """The CPU."""
        return CPU

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Return the tensor, which is on the only device there is, as the array API standard asks for it."""
        if stream is not None:
            raise ValueError(f"to_device(): the CPU has no streams, got stream={stream!r}")
        resolve_device(device)
        return self

    is_cpu = True
    is_cuda = is_ipu = is_maia = is_meta = is_mkldnn = is_mps = is_mtia = is_vulkan = is_xla = is_xpu = False
    is_nested = is_quantized = False

    @property
    def layout(self) -> Layout:
        """How elements are stored: `cygrad.strided`, or a sparse layout."""
        part = sparse_part(self)
        return strided if part is None else part.pattern.layout

    @property
    def is_sparse(self) -> bool:
        """Whether the tensor has the layout `cygrad.sparse_coo`."""
        return self.layout is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the tensor has the layout `cygrad.sparse_csr`."""
        return self.layout is sparse_csr

    def get_device(self) -> int:
        """Return -1, the number of the CPU."""
        return -1

    def pin_memory(self, device: Any = None) -> Self:
        """Return the tensor itself: pinned memory is for copies to other devices, and there are none. Changes nothing."""
        resolve_device(device)
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Say no: memory is not pinned where there is no other device."""
        resolve_device(device)
        return False

    def share_memory_(self) -> Self:
        """Move the elements into memory that processes forked from this one share; returns the tensor.

        Tensors and arrays that shared the old memory keep that. A pickle, as queues between processes send it, is a copy.

        >>> import cygrad
        >>> cygrad.ones(2).share_memory_().is_shared()
        True
        """
        from cygrad.torch_names.sharing import share
        return share(self)

    def is_shared(self) -> bool:
        """Return True if `share_memory_` has moved the elements to memory that forked processes share."""
        from cygrad.torch_names.sharing import is_shared
        return is_shared(self)

    def is_distributed(self) -> bool:
        """Say no: the elements lie in the memory of one process."""
        return False

    # ----- NumPy -----
    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return an array over the same memory; changes are visible both ways.

        RuntimeError for a tensor that requires grad, unless `force` or where grad mode is off.
        """
        if self.requires_grad and not force and is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if not force:
            tangents.refuse_tangent(self, "numpy()")
        return memory_of(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        product = product_of_scipy(sys._getframe().f_back)
        if product is not None:     # SciPy leaves it to factors that are objects; in `dot` it looks whether they have dims
            return np.array(None if product == "__matmul__" else [None], object)
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"cannot give a {array.dtype} tensor as {dtype} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Keep NumPy's functions on the tape: those that are operators here; the others are refused, never computed blindly."""
        from cygrad.numpy_functions.ufuncs import call
        return call(ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Keep NumPy's other functions on the tape as well; functions without a row are refused."""
        from cygrad.numpy_functions.dispatch import call
        return call(function, types, arguments, keywords)

    # ----- Array API -----
    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """Return `cygrad.array_api`; ValueError for a version of the standard that it does not have."""
        namespace = import_module("cygrad.array_api")
        if api_version is not None and api_version not in namespace.VERSIONS:
            raise ValueError(f"cygrad.array_api has the versions {', '.join(namespace.VERSIONS)} of the standard, not {api_version!r}")
        return namespace

    # ----- DLPack -----
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:
        if stream is not None and not isinstance(stream, int):
            raise TypeError(f"stream must be ``int`` or ``none``, got {type(stream).__name__}")
        if stream not in (None, -1):
            raise AssertionError(f"stream should be None on cpu, got {stream}")
        for name, pair in ("max_version", max_version), ("dl_device", dl_device):
            if pair is not None and not (isinstance(pair, tuple) and len(pair) == 2):
                raise TypeError(f"__dlpack__(): argument {name!r} must be a tuple of two ints, not {pair!r}")
        if dl_device is not None and dl_device != dlpack.CPU_DEVICE:
            raise BufferError(f"unsupported device requested: tensors are on the CPU, {dlpack.CPU_DEVICE}, got {dl_device}")
        batches.refuse_special(self, "__dlpack__()", BufferError)
        return dlpack.export(self.clone() if copy else self, max_version is not None and max_version[0] >= 1, bool(copy))

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU_DEVICE

    # ----- Python -----
    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self[creation.arange(len(self) - 1, -1, -1)] if self.ndim else self

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (Tensor, int, float, complex, np.number, np.bool_)):
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
        return bool(functions["eq"](self, element).any())

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from cygrad.printing import tensor_repr
        with overrides_off():
            return tensor_repr(self)

    def _repr_html_(self) -> str | None:
        from cygrad.printing import tensor_html
        with overrides_off():
            return tensor_html(self)

    def __format__(self, spec: str) -> str:
        from cygrad.printing import tensor_format
        with overrides_off():
            return tensor_format(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__()})

    def __copy__(self) -> Self:
        from cygrad.copying import shallow_copy
        return shallow_copy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        from cygrad.copying import deep_copy
        return deep_copy(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from cygrad.copying import reduce
        with overrides_off():
            return reduce(self, protocol)

    # ----- Subclasses -----
    def as_subclass(self, cls: _Class[_T]) -> _T:
        """Return a view of all elements that is an instance of a subclass.

        Operators keep the class: see `cygrad.overrides`. TypeError for any other class.

        >>> import cygrad
        >>> class Field(cygrad.Tensor):
        ...     def peak(self):
        ...         return self.max().item()
        >>> cygrad.tensor([1., 3.]).as_subclass(Field).peak()
        3.0
        """
        instance = as_instance(self, cls, view=True)
        record_rule(rule_op("alias"), (self,), instance)
        return instance

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Compute a function of which an argument is an instance of a subclass, as for plain tensors, and give its results the subclass.

        Subclasses override it, as in torch: they are asked in an operator's place; see `cygrad.overrides`.
        """
        return import_module("cygrad.overrides").keeping_class(cls, func, types, args, kwargs)

    @staticmethod
    def _make_subclass(cls: _Class[_T], data: Tensor, require_grad: bool = False) -> _T:
        from cygrad.copying import make_subclass
        return make_subclass(cls, data, require_grad)

    # ----- Parts -----
    @property
    def real(self) -> Tensor:
        """The view of real parts, or the tensor itself where its numbers are real. Assigned values are written there."""
        return self.view_as_real().select(-1, 0) if self.is_complex() else self

    @real.setter
    def real(self, value: Operand) -> None:
        self.real.copy_(value)

    @property
    def imag(self) -> Tensor:
        """The view of imaginary parts. Assigned values are written there."""
        if not self.is_complex():
            raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
        return self.view_as_real().select(-1, 1)

    @imag.setter
    def imag(self, value: Operand) -> None:
        self.imag.copy_(value)

    # ----- Other names -----
    def ndimension(self) -> int:
        """Return the number of dims."""
        return self.ndim

    def is_nonzero(self) -> bool:
        """Return True if the only element is not 0; RuntimeError for none or several."""
        return bool(self)

    def is_same_size(self, other: Tensor) -> bool:
        """Return True if another tensor has the same shape."""
        from cygrad.torch_names.asking import is_same_size
        return is_same_size(self, other)

    def is_set_to(self, tensor: Tensor) -> bool:
        """Return True if another tensor has the same memory, and the same shape and strides there."""
        from cygrad.torch_names.asking import is_set_to
        return is_set_to(self, tensor)

    def nelement(self) -> int:
        """Return the number of elements."""
        return self.numel()

    # ----- New tensors of this dtype -----
    def new(self, *data: Any, device: Any = None) -> Tensor:
        """Return a new tensor of this dtype: not set, of the sizes given, or with a copy of a sequence; torch's former way.

        >>> import cygrad
        >>> cygrad.ones(2, dtype=cygrad.int64).new([1, 2])
        tensor([1, 2])
        """
        from cygrad.copying import construct
        return construct(Tensor, data, device, self.dtype)

    def new_tensor(self, data: Any, **keywords: Any) -> Tensor:
        """Return new data in the dtype of this tensor."""
        if keywords.get("dtype") is None:
            keywords["dtype"] = self.dtype
        return creation.tensor(data, **keywords)

    def new_arange(self, end: int) -> Tensor:
        """Return the int64 numbers below `end`."""
        return creation.arange(end)


def new(cls: type[_T], *data: Any, device: Any = None) -> _T:
    from cygrad.copying import construct
    return construct(cls, data, device)


def _attach_methods() -> None:
    """Give Tensor the functions as methods, the in-place forms, the conversions and the factories."""
    for name, function in (functions | in_place_methods).items():
        if name not in Tensor.__dict__ and not (name in ops and not ops[name].row.method and name != "clamp"):
            setattr(Tensor, name, function)
    for row in DTYPES:
        for name in row.conversions:
            setattr(Tensor, name, _conversion(name, dtype_by_name[row.name]))
    for table, kind in (registry.METHODS, None), (registry.PROPERTIES, property):
        for name, module in modules_of(table).items():
            setattr(Tensor, name, _LateMethod(name, module, kind))


def _declaration_of(name: str) -> Declaration | None:
    """Return the declaration of an operator of the core."""
    operator = find(name)
    return None if operator is None else operator.declaration


@cache
def override_answers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions that answer calls for classes and modes, and for sparse tensors; called before such tensors exist, as nothing
    is imported while Python ends.
    """
    return import_module("cygrad.overrides").answer, import_module("cygrad.operators._sparse.rules").answer


def _override(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], is_sparse: bool = False) -> Any:
    """Return the answer of the classes and modes that have a say in a call of an operator, else of the rules of sparse tensors.

    NotImplemented where no argument is of such a class, or sparse. `is_sparse`: one is sparse, and the others were asked before.
    """
    of_classes, of_sparse_tensors = override_answers()
    if is_sparse:
        return of_sparse_tensors(operator, arguments, keywords)
    result = of_classes(operator, arguments, keywords)
    if result is NotImplemented and any(map(sparse_part, tensors_of((*arguments, *keywords.values())))):
        return of_sparse_tensors(operator, arguments, keywords)
    return result


def _prepare_rule(rule: RuleOp) -> None:
    """Load the declarations of an operator's gradients, of the methods that they name, and of all that these name in turn."""
    if not rule.declared:
        _load(modules_of(registry.RULES)[rule.name])
    results = [function for function in (*rule.functions, rule.shared, rule.place) if function is not None]
    seen: set[str] = set()
    while results:
        function = results.pop()
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            for name in {*code.co_names} - seen:
                seen.add(name)
                is_late = isinstance(vars(Tensor).get(name), _LateMethod)
                named: Any = getattr(Tensor, name) if is_late else function.__globals__.get(name)
                called = inspect.unwrap(named)
                if isinstance(called, FunctionType):
                    results.append(called)


def _conversion(name: str, dtype: DType) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor, memory_format: MemoryFormat = preserve_format) -> Tensor:
        if self.is_complex():
            warn_of_parts(self.dtype, dtype, 2)
        result = self._convert(dtype)
        return result if memory_format is preserve_format else result.contiguous(memory_format=memory_format)

    method.__name__, method.__doc__ = name, f"Return the tensor as {dtype.name}."
    return method


_attach_methods()
set_tensor_type(Tensor)
fill(prepare=_prepare_rule, declaration_of=_declaration_of, override=_override)
# Calling the class. Set only now: the core keeps the way in which it makes tensors, which is not this one.
Tensor.__new__ = new  # type: ignore[method-assign]
Tensor.__init__ = lambda self, *_, **__: None  # type: ignore[method-assign]
