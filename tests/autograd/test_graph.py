"""The graph as users see it: nodes, edges in the place of tensors, metadata, drawings."""

import shutil
import subprocess

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function
from cygrad.autograd.graph import GradientEdge, Node, get_gradient_edge, to_dot

ONES = cg.ones(2)


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


# ----- Nodes -----
NODES = {
    "elementwise": (lambda x: (x * 2).grad_fn, "MulBackward0"),
    "reduction": (lambda x: x.sum().grad_fn, "SumBackward0"),
    "structural": (lambda x: x.reshape(2, 1).grad_fn, "ViewBackward0"),
    "user's": (lambda x: Double.apply(x).grad_fn, "DoubleBackward"),
    "leaf's": (lambda x: (x * 2).grad_fn.next_functions[0][0], "AccumulateGrad"),
}


@pytest.mark.parametrize("kind", list(NODES))
def test_the_attributes_of_every_node(x, kind):
    make, name = NODES[kind]
    node = make(x)
    assert isinstance(node, Node)
    assert issubclass(type(node), Node)
    assert Node not in type(node).__mro__
    assert node.name() == name or kind == "structural"
    assert repr(node) == f"<{node.name()}>"
    assert isinstance(node._sequence_nr(), int)
    assert node.metadata == {}
    node.metadata["mine"] = node        # a cycle, which the garbage collector sees
    assert node.metadata["mine"] is node
    assert node == node and node != 5 and {node: 1}[node] == 1


def test_nodes_keep_their_identity(x):
    y = x * 2
    z = y.sum()
    assert z.grad_fn.next_functions[0][0] is y.grad_fn
    assert y.grad_fn.next_functions[0][0] is (x * 3).grad_fn.next_functions[0][0]
    y.grad_fn.metadata["note"] = "kept"
    node = y.grad_fn
    del y
    assert z.grad_fn.next_functions[0][0] is node
    assert node.metadata == {"note": "kept"}


def test_sequence_numbers_grow_and_leaves_come_last(x):
    y = x * 2
    z = y * 2
    leaf = y.grad_fn.next_functions[0][0]
    assert y.grad_fn._sequence_nr() < z.grad_fn._sequence_nr() < leaf._sequence_nr() == 2**64 - 1


def test_nodes_are_not_made_by_their_class():
    with pytest.raises(TypeError, match="cannot create"):
        type((cg.ones(1, requires_grad=True) * 2).grad_fn)()
    with pytest.raises(TypeError, match="abstract class"):
        Node()


def test_a_freed_graph_still_shows_its_nodes(x):
    y = x * x
    z = (y * y).sum()
    z.backward()
    (inner, _), *_ = z.grad_fn.next_functions
    assert [node.name() for node, _ in inner.next_functions] == ["MulBackward0", "MulBackward0"]
    assert inner.next_functions[0][0] is y.grad_fn


# ----- Edges -----
def edge(tensor):
    return get_gradient_edge(tensor)


def test_an_edge_names_node_and_output(x):
    parts = x.unbind()
    y = x * 2
    assert edge(y) == (y.grad_fn, 0, None)
    assert edge(x).node.variable is x
    assert [part.grad_fn is edge(part).node and part.output_nr == edge(part).output_nr for part in parts] == [True, True]


IN_THE_PLACE_OF_TENSORS = {
    "input of grad, non-leaf": (lambda x, y: autograd.grad((y * 3).sum(), edge(y)), [[3, 3]]),
    "input of grad, leaf": (lambda x, y: autograd.grad((y * 3).sum(), edge(x)), [[6, 6]]),
    "inputs of both kinds": (lambda x, y: autograd.grad((y * 3).sum(), [edge(y), x]), [[3, 3], [6, 6]]),
    "output with its weight": (lambda x, y: autograd.grad(edge(y), x, ONES), [[2, 2]]),
    "scalar output": (lambda x, y: autograd.grad(edge(y.sum()), x), [[2, 2]]),
    "made by hand": (lambda x, y: autograd.grad(GradientEdge(y.grad_fn, 0), x, ONES), [[2, 2]]),
    "leaf as output": (lambda x, y: autograd.grad(edge(x), x, ONES), [[1, 1]]),
    "batched": (lambda x, y: autograd.grad(edge(y), x, cg.eye(2), is_grads_batched=True), [[[2, 0], [0, 2]]]),
    "weight of another dtype": (lambda x, y: autograd.grad(edge(y), x, ONES.double()), [[2, 2]]),
}


@pytest.mark.parametrize("name", list(IN_THE_PLACE_OF_TENSORS))
def test_edges_in_the_place_of_tensors(x, name):
    call, expected = IN_THE_PLACE_OF_TENSORS[name]
    gradients = call(x, x * 2)
    assert [gradient.tolist() for gradient in gradients] == expected
    assert {gradient.dtype for gradient in gradients} == {cg.float32}


@pytest.mark.parametrize(("inputs", "expected"), [(lambda x, y: [edge(x)], [6, 6]), (lambda x, y: [edge(y)], None)])
def test_edges_as_inputs_of_backward(x, inputs, expected):
    y = x * 2
    (y * 3).sum().backward(inputs=inputs(x, y))
    assert (None if x.grad is None else x.grad.tolist()) == expected


def test_backward_from_an_edge(x):
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda gradient: gradient * 5)
    autograd.backward(edge(y), ONES)
    assert (x.grad.tolist(), y.grad.tolist()) == ([10, 10], [5, 5])


def test_an_edge_keeps_the_graph_alive(x):
    root = edge(Double.apply(x * 3))
    assert autograd.grad(root, x, ONES)[0].tolist() == [6, 6]


REFUSED = {
    "no gradient": (lambda x, y: edge(ONES), RuntimeError, "It is not possible to get the gradient edge for a Tensor that does not"),
    "no weight": (lambda x, y: autograd.grad(edge(y), x), RuntimeError, "grad can be implicitly created only for scalar outputs"),
    "no weight, unknown shape": (
        lambda x, y: autograd.grad(GradientEdge(y.sum().grad_fn, 0), x),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs; this one is of an unknown shape",
    ),
    "weight of another shape": (
        lambda x, y: autograd.grad(edge(y), x, cg.ones(3)),
        RuntimeError,
        r"Mismatch in shape: grad_output\[0\] has a shape of .*\[3\].* and output\[0\] has a shape of .*\[2\]",
    ),
    "another shape, unknown": (lambda x, y: autograd.grad(GradientEdge(y.grad_fn, 0), x, cg.ones(3)), RuntimeError, "shape"),
    "no node as input": (
        lambda x, y: autograd.grad(y.sum(), GradientEdge(5, 0)),
        RuntimeError,
        r"GradientEdge's first object must be an autograd\.graph\.Node but got int",
    ),
    "no node as output": (lambda x, y: autograd.grad(GradientEdge(5, 0), x, ONES), RuntimeError, "GradientEdge's first object must be"),
    "no such output": (lambda x, y: autograd.grad(GradientEdge(y.grad_fn, 7), x, ONES), IndexError, "names output 7"),
    "negative output": (lambda x, y: autograd.grad(GradientEdge(y.grad_fn, -1), x, ONES), IndexError, "names output -1"),
    "no such output as input": (lambda x, y: autograd.grad(y.sum(), GradientEdge(y.grad_fn, 7)), RuntimeError, "at index 0 appears to not"),
    "zeros of an edge": (
        lambda x, y: autograd.grad(y.sum(), [edge(x * 2)], materialize_grads=True),
        RuntimeError,
        "materialize_grads cannot be used when the given input is a GradientEdge",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_edges_refused(x, name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call(x, x * 2)
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


# ----- Drawings -----
def lines(text):
    return [line.strip() for line in text.splitlines()]


def test_a_drawing_names_leaves_operators_and_outputs(x):
    w = cg.ones(2, requires_grad=True)
    text = lines(to_dot((x * w).sum(), {"x": x}))
    assert text[0] == "digraph {" and text[-1] == "}"
    assert r'n2 [label="x\n(2)", fillcolor=lightblue]' in text
    assert r'n3 [label="leaf\n(2)", fillcolor=lightblue]' in text
    assert [line for line in text if "->" in line] == ["n1 -> n0", "n2 -> n1", "n3 -> n1", "n0 -> t0"]
    assert r't0 [label="output\n()", fillcolor=palegreen]' in text


def test_shared_nodes_are_drawn_once(x):
    y = x * 2
    text = lines(to_dot([y * y, y + 1]))
    assert sum("MulBackward0" in line for line in text) == 2
    assert sum("lightblue" in line for line in text) == 1
    assert sum("palegreen" in line for line in text) == 2


@pytest.mark.parametrize("make", [lambda y: y, lambda y: [y], lambda y: y.grad_fn, edge], ids=["tensor", "list", "node", "edge"])
def test_tensors_lists_nodes_and_edges_can_be_drawn(x, make):
    assert 'label="MulBackward0"' in to_dot(make(x * 2))


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "ä <b>", '"];}'])
def test_names_are_escaped(x, name):
    text = to_dot(x * 2, {name: x})
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert rf'label="{escaped}\n(2)"' in text
    assert len(lines(text)) == len(lines(to_dot(x * 2)))


def test_a_deep_graph_is_drawn(x):
    y = x
    for _ in range(10_000):
        y = y * 2
    assert to_dot(y).count("MulBackward0") == 10_000


def test_drawings_refused(x):
    with pytest.raises(RuntimeError, match="there is nothing to draw"):
        to_dot(ONES)
    with pytest.raises(TypeError, match=r"to_dot\(\): expected tensors, nodes or GradientEdges, got int"):
        to_dot([5])


def test_notebooks_get_a_picture_where_graphviz_is(x, monkeypatch):
    drawing = to_dot(x * 2)
    if shutil.which("dot"):
        assert "<svg" in drawing._repr_svg_()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert drawing._repr_svg_() is None
    assert repr(drawing) == str(drawing)
    calls = []
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: calls.append((a, k)) or subprocess.CompletedProcess(a, 0, "<svg/>"))
    assert drawing._repr_svg_() == "<svg/>"
    assert calls[0][0] == (["/bin/dot", "-Tsvg"],) and calls[0][1]["input"] == drawing
