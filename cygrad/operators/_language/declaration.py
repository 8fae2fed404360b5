"""How an operator is declared: once, where its function is.

    @operator(dinput=lambda g, shifts, dims: g.roll(negated(shifts), dims), tangent=linear, batch=shifted("dims"))
    def roll(input: Tensor, shifts: Ints, dims: Ints | None = None) -> Tensor:

From declarations follow the names of the package and the methods of Tensor, the modules that load at first use, the type stubs and the
checks of the test suite; `python -m building.operators` writes the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from cygrad._core.compute.inplace import apply_in_place, change_in_place, change_values, check_disjoint
from cygrad._core.entry.operator_object import COMPOSED, Declaration, LazySignature, make_operator, signature_without_out
from cygrad._core.entry.special import over_tensors
from cygrad._core.exchange.replacement import rearrange_in_place
from cygrad._core.graph.modes import _set_grad_enabled, is_grad_enabled
from cygrad._core.graph.rule_nodes import record_several
from cygrad._core.graph.rule_nodes import recorded as recorded
from cygrad._core.graph.rules import declare_rule, rule_of
from cygrad._core.memory.formats import contiguous_format
from cygrad._core.operands.arrays import to_array
from cygrad.operators import public_name
from cygrad.operators._language.arguments import delivered, delivered_together
from cygrad.ops.refusals import refuse

if TYPE_CHECKING:
    import numpy as np

methods: dict[Any, Any] = {}        # by operator: its method, where that has its parameters in another order
F = TypeVar("F", bound=Callable[..., Any])


@overload
def operator(function: F, /) -> F: ...
@overload
def operator(
    compiled: Callable[..., Any] | None = None, /, *, tangent: Callable[..., Any] | str | None = None,
    batch: Callable[..., Any] | None = None, parts: Callable[..., Any] | None = None, each: Callable[..., Any] | None = None,
    node: str = "", flops: Callable[..., int] | None = None, function: bool = True, method: bool | Callable[..., Any] = True,
    property: bool = False, in_place: bool | Callable[[Any], Any] = False, copy: bool | str = False, aliases: Sequence[str] = (),
    special: bool = True, place: Callable[..., Any] | None = None, into: Callable[..., Any] | None = None, adjoints: bool = False,
    shared: Callable[..., Any] | None = None, refuses: Mapping[str, Exception] = {}, loop: str = "", forms: bool = False,
    **gradients: Callable[..., Any] | None,
) -> Callable[[F], F]: ...
def operator(
    compiled: Any = None, /, *, tangent: Any = None, batch: Any = None, parts: Any = None, each: Any = None, node: str = "",
    flops: Any = None, function: bool = True, method: Any = True, property: bool = False, in_place: Any = False, copy: bool | str = False,
    aliases: Sequence[str] = (), special: bool = True, place: Any = None, into: Any = None, adjoints: bool = False,
    shared: Any = None, refuses: Mapping[str, Exception] = {}, loop: str = "", forms: bool = False, **gradients: Any,
) -> Any:
    """Declare an operator, by the function that computes it.

    compiled: a function of the core that is called in place of the one that is written here, which then has the signature and the
        documentation only.
    dinput=, dsrc=, ..., each=, node=: its gradients and the name of its node (see `declare_rule`), where it is recorded as one node.
    place=, into=: where, in the gradient of its input, its own gradient belongs.
    shared: the common beginning of the gradients of several inputs, computed once for all that name it.
    adjoints: whether its gradients are written for complex numbers, so that the values they read are not conjugated for them.
    tangent: the tangent of the result from (tangent_of, operator, result, *arguments); see `tangents`. An operator with
        gradients alone gets it from these, by transposition.
    batch: the computation for all examples, from (level, operator, *arguments); see `batches`.
    parts: its replacement where an argument has a tangent or is one example of many; NotImplemented where it does not apply.
    flops: the floating-point operations that a profile counts, from the shapes of its arguments; see `flops`.
    function, method: whether it is a function of the package, and a method; a name with an underscore at an end is a method only.
        A method with its parameters in another order is a function, which calls the operator.
    property: whether it is a property of Tensor, and neither function nor method.
    in_place: whether there is a method `name_` that computes it into its tensor; of a view, `rearranging`; of an operator that
        writes a part of a copy, `changing`.
    copy: whether there is a function `name_copy`, a copy of the view that it gives, or `out` with it; "method": a method, too.
    aliases: other names.
    refuses, loop: torch's exceptions by kinds of dtype that it does not take, and the name of its loop there; see `ops/refusals.py`.
    forms: whether torch has several signatures, and lists them where an argument has a wrong type.
    special: whether it takes tensors that have a tangent or are one example of many; without that they are refused.

    Without any of them (`@operator`) it is composed of other operators, which do all that.
    """
    if isinstance(compiled, FunctionType):
        return operator()(compiled)

    def declare(described: Any) -> Any:
        name, namespace = described.__name__, described.__globals__
        refuse(name, refuses, loop, forms)
        rule = None
        if gradients or each:
            kind = namespace.get(described.__annotations__.get("return"))       # a named tuple, of an operator of several results
            rule = declare_rule(name.strip("_"), each=each, node=node, place=place, into=into, adjoints=adjoints,
                                results=getattr(kind, "_fields", ()), shared=shared, **gradients)
        forward = "transposed" if rule is not None and tangent is None else tangent
        declaration = Declaration(rule, forward, batch, parts, flops)
        namespace_name, _, short_name = public_name(name).rpartition(".")
        if namespace_name:
            described.__module__, described.__qualname__ = f"cygrad.{namespace_name}", short_name
        declared = make_operator(name, described if compiled is None else compiled, declaration if special else None, described)
        for alias in aliases:
            namespace[alias] = declared
        if isinstance(method, FunctionType):
            methods[declared] = make_operator(name, method, COMPOSED)
        if in_place:
            changing = overwriting(declared) if in_place is True else in_place(declared)
            namespace.update({f"{each_name}_": changing for each_name in (name, *aliases)})
        if copy:
            namespace[f"{name}_copy"] = copying(declared)
        return declared

    return declare


def recorded_together(operator: Any, inputs: tuple[Any, ...], results: tuple[Any, ...], /, **params: Any) -> Any:
    """Return several results of one operator, recorded as the outputs of one node."""
    return record_several(rule_of(operator), inputs, results, **params)


IN_PLACE: Any = object()        # as `out`: the result takes the place of the first input


def changed(operator: Any, inputs: tuple[Any, ...], write: Callable[[np.ndarray], Any], out: Any, /, **params: Any) -> Any:
    """Return the first of the inputs, which may be None otherwise, with its array changed by `write`, recorded.

    It is done to a row-major copy, which `out` takes; where that is IN_PLACE, to the input itself.
    """
    return changed_numbers(operator, inputs, lambda numbers: write(to_array(numbers)), out, **params)


def changed_numbers(operator: Any, inputs: tuple[Any, ...], change: Callable[[Any], Any], out: Any, /, **params: Any) -> Any:
    """Do as `changed` does, by a function of a tensor, which records nothing; of 16-bit floats it has the numbers in float32."""
    input, *others = inputs
    if out is IN_PLACE:
        check_disjoint(input, tuple(others))
        return change_in_place(rule_of(operator), inputs, change, **params)
    result = input.detach().clone(memory_format=contiguous_format)
    change_values(result, change)
    return delivered(recorded(operator, inputs, result, **params), out)


def unrecorded(compute: Callable[[], Any]) -> Any:
    """Compute without recording."""
    before = is_grad_enabled()
    _set_grad_enabled(False)
    try:
        return compute()
    finally:
        _set_grad_enabled(before)


# ----- Other forms -----
def copying(operator: Any) -> Any:
    """Return the form of a view that copies."""
    def function(*arguments: Any, out: Any = None, **keywords: Any) -> Any:
        results = over_tensors(lambda view: view.clone(memory_format=contiguous_format), operator(*arguments, **keywords))
        if isinstance(results, tuple | list):
            return delivered_together(lambda *tensors: type(results)(tensors), results, out)
        return delivered(results, out)

    def read_signature() -> Signature:
        view = signature_without_out(operator.__wrapped__)
        kind = "Tensor" if view.return_annotation == "Tensor" else "Sequence[Tensor]"
        out = Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=f"{kind} | None")
        return view.replace(parameters=sorted([*view.parameters.values(), out], key=attrgetter("kind")))

    return _form(operator, "_copy", function, f"Do as `{operator.name}` does, and copy the result.", COMPOSED, read_signature)


def overwriting(operator: Any) -> Any:
    """Return the in-place form of an operator: its result, written into its tensor."""
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        _refuse_out(operator, keywords)
        return apply_in_place(operator, self, *arguments, **keywords)

    return _form(operator, "_", method, f"Do as `{operator.name}` does, in place.", Declaration(parts=_copied_back(operator)))


def changing(operator: Any) -> Any:
    """Return the in-place form of an operator that ends in `changed` or `changed_numbers`, or hands its `out` on to one that does."""
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        _refuse_out(operator, keywords)
        return operator.function(self, *arguments, out=IN_PLACE, **keywords)

    return _form(operator, "_", method, f"Do as `{operator.name}` does, in place.", Declaration(parts=_copied_back(operator)))


def _refuse_out(operator: Any, keywords: dict[str, Any]) -> None:
    if "out" in keywords:
        raise TypeError(f"{operator.name}_() got an unexpected keyword argument 'out': the tensor takes the result")


def _copied_back(operator: Any) -> Callable[..., Any]:
    """Return the parts of an in-place form: the operator's result, copied into its tensor."""
    return lambda self, *arguments, **keywords: self.copy_(operator(self.clone(), *arguments, **keywords))


def rearranging(operator: Any) -> Any:
    """Return the in-place form of a view."""
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return rearrange_in_place(operator, self, *arguments, **keywords)

    doc = f"Do as `{operator.name}` does, in place: the tensor takes on the view's sizes, strides and history."
    return _form(operator, "_", method, doc, COMPOSED)


def _form(operator: Any, ending: str, function: Callable[..., Any], doc: str, declaration: Declaration,
          read_signature: Callable[[], Signature] | None = None) -> Any:
    """Return another form of an operator, with its parameters but `out`, or with the signature that is read."""
    function.__name__ = operator.name + ending
    function.__qualname__ = operator.__qualname__ + ending      # in its namespace, if it has one
    function.__module__, function.__doc__ = operator.__module__, doc
    function.__wrapped__ = operator.__wrapped__  # type: ignore[attr-defined]
    read_signature = read_signature or (lambda: signature_without_out(operator.__wrapped__))
    function.__signature__ = LazySignature(read_signature)  # type: ignore[attr-defined]
    return make_operator(operator.name + ending, function, declaration)
