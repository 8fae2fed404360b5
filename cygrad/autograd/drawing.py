"""Drawings of the graph: Graphviz text, and its picture where the program `dot` is installed."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from cygrad._core.graph.history import AccumulateGrad
from cygrad._core.graph.node import Node
from cygrad._core.graph.tensor import TensorImpl


class Drawing(str):
    """Text in Graphviz' language, which notebooks show as a picture."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_svg_(self) -> str | None:
        """Return the picture, or None where there is no `dot`: then notebooks show the text."""
        program = shutil.which("dot")
        if program is None:
            return None
        return subprocess.run([program, "-Tsvg"], input=str(self), capture_output=True, text=True, check=True).stdout


def draw(outputs: Any, params: dict[str, Any] | None) -> Drawing:
    """Draw the graph behind tensors, nodes or GradientEdges; gradients flow against the arrows."""
    one = isinstance(outputs, (TensorImpl, Node)) or hasattr(outputs, "ownership_token")
    roots = (outputs,) if one else tuple(outputs)
    names = {id(tensor): name for name, tensor in (params or {}).items()}
    numbers: dict[Node, int] = {}
    lines, arrows = [], []
    stack = [_node_of(root) for root in reversed(roots)]
    while stack:
        node = stack.pop()
        if node in numbers:
            continue
        numbers[node] = len(numbers)
        lines.append(f"n{numbers[node]} [{_describe(node, names)}]")
        sources = [source for source, _ in node.next_functions if source is not None]
        arrows += [(source, node) for source in sources]
        stack += reversed(sources)
    lines += [f"n{numbers[source]} -> n{numbers[node]}" for source, node in arrows]
    for number, root in enumerate(roots):
        if isinstance(root, TensorImpl):
            lines += [f"t{number} [{_label(names.get(id(root), 'output'), root.shape)}, fillcolor=palegreen]",
                      f"n{numbers[_node_of(root)]} -> t{number}"]
    head = ["rankdir=BT", "node [shape=box, fontname=monospace, fontsize=10, style=filled, fillcolor=white]"]
    return Drawing("\n  ".join(["digraph {", *head, *lines]) + "\n}")


def _node_of(root: Any) -> Node:
    if isinstance(root, TensorImpl):
        if not root.requires_grad:
            raise RuntimeError("there is nothing to draw: the tensor does not require grad and does not have a grad_fn")
        return root._gradient_edge()[0]
    node = root[0] if isinstance(root, tuple) else root
    if not isinstance(node, Node):
        raise TypeError(f"to_dot(): expected tensors, nodes or GradientEdges, got {type(node).__name__}")
    return node


def _describe(node: Node, names: dict[int, str]) -> str:
    if isinstance(node, AccumulateGrad):
        return f"{_label(names.get(id(node.variable), 'leaf'), node.variable.shape)}, fillcolor=lightblue"
    return _label(node.name())


def _label(name: str, shape: tuple[int, ...] | None = None) -> str:
    text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'label="{text}"' if shape is None else f'label="{text}\\n({", ".join(map(str, shape))})"'
