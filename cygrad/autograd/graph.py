"""The graph as users see it: nodes, edges, hooks on several gradients, a drawing."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from cygrad._core.engine.backward import RunContext, run_context, will_run
from cygrad._core.graph.handles import RemovableHandle
from cygrad._core.graph.node import Node as _NativeNode
from cygrad._imports import at_first_use
from cygrad.autograd.derivatives import GradientEdge
from cygrad.tensor import Tensor

__all__ = ["GradientEdge", "Node", "RemovableHandle", "get_gradient_edge", "increment_version", "register_multi_grad_hook", "to_dot"]

__getattr__, __dir__ = at_first_use(globals(), dict.fromkeys(
    ("allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "save_on_disk", "saved_tensors_hooks"),
    "cygrad.autograd.saved_tensors"))


class Node(ABC):
    """The type of all nodes for `isinstance` and `issubclass`: of operators, of leaves, and the `ctx` of a Function.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> isinstance((x * 2).grad_fn, cygrad.autograd.graph.Node)
    True
    """

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return cls is Node and issubclass(subclass, _NativeNode) or NotImplemented

    @abstractmethod
    def name(self) -> str:
        """Return the name, such as `MulBackward0`."""

    @property
    @abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The (node, output number) pairs that the gradients of the inputs go to; None where an input needs no gradient."""

    @property
    @abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for notes on the node."""

    @abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node has computed; returned gradients of inputs replace those."""

    @abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node computes; returned gradients replace those."""


# ----- Edges -----
def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the edge that a tensor's gradient goes to, which keeps the graph alive but not the tensor.

    RuntimeError for a tensor that requires no gradient.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> edge = cygrad.autograd.graph.get_gradient_edge(y)
    >>> cygrad.autograd.grad(y.sum(), edge)
    (tensor([1., 1.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*tensor._gradient_edge())


# ----- Hooks on several tensors -----
class _MultiHandle(RemovableHandle):
    """The handles of one hook on several tensors."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take the hook away from all tensors."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., None], *, mode: str = "all") -> RemovableHandle:
    """Call `fn` once in each backward that reaches some of the tensors.

    Mode "all": when the last gradient is there, with a list of all; None for tensors that the backward does not reach. "any": when
    the first one is there, with it. Returns a handle with `remove()`. ValueError for another mode.

    >>> import cygrad
    >>> a, b = cygrad.ones(1, requires_grad=True), cygrad.ones(1, requires_grad=True)
    >>> handle = cygrad.autograd.graph.register_multi_grad_hook((a, b), print)
    >>> (a * 2 + b * 3).sum().backward()
    [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        tensors = [tensor for tensor in tensors if tensor.requires_grad]
        hooks = [_first_of_each_run(fn)] * len(tensors)
    else:
        hooks = _last_of_each_run(fn, tensors)
    return _MultiHandle(tuple(tensor.register_hook(hook) for tensor, hook in zip(tensors, hooks, strict=True)))


def _first_of_each_run(fn: Callable[[Any], None]) -> Callable[[Any], None]:
    called: WeakSet[RunContext] = WeakSet()

    @functools.wraps(fn)
    def hook(gradient: Any) -> None:
        if run_context() not in called:
            called.add(run_context())
            fn(gradient)

    return hook


def _last_of_each_run(fn: Callable[[list[Any]], None], tensors: Sequence[Any]) -> list[Callable[[Any], None]]:
    for number, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            raise AssertionError("Expected gradient function to be set: the hook waits for the gradients of all tensors, and tensor "
                                 f"{number} requires none")
    nodes = [get_gradient_edge(tensor).node for tensor in tensors]
    gathered: WeakKeyDictionary[RunContext, tuple[list[Any], set[int]]] = WeakKeyDictionary()   # each run is in one thread

    def gather(number: int, gradient: Any) -> None:
        run = run_context()
        if run not in gathered:
            gathered[run] = [None] * len(nodes), {place for place, node in enumerate(nodes) if will_run(node)}
        gradients, missing = gathered[run]
        gradients[number] = gradient
        missing.remove(number)
        if not missing:
            fn(gradients)

    return [functools.partial(gather, number) for number in range(len(nodes))]


# ----- Drawing -----
def to_dot(outputs: Any, params: dict[str, Any] | None = None) -> Any:
    """Return the graph of one or more tensors (or nodes) as text for Graphviz, which notebooks draw where `dot` is installed.

    `params` names leaves, as `dict(model.named_parameters())` does. Needs no package.

    >>> import cygrad
    >>> w = cygrad.ones(2, requires_grad=True)
    >>> print(cygrad.autograd.graph.to_dot(w.exp(), {"w": w}))
    digraph {
      rankdir=BT
      node [shape=box, fontname=monospace, fontsize=10, style=filled, fillcolor=white]
      n0 [label="ExpBackward0"]
      n1 [label="w\\n(2)", fillcolor=lightblue]
      n1 -> n0
      t0 [label="output\\n(2)", fillcolor=palegreen]
      n0 -> t0
    }
    """
    from cygrad.autograd.drawing import draw
    return draw(outputs, params)


# ----- Versions -----
def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a change of a tensor, or of several, that was made by other means than in-place operators.

    Saved values of the same memory count as changed then.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> cygrad.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for item in (tensor,) if isinstance(tensor, Tensor) else tensor:
        item._increment_version()
