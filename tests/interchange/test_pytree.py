"""Trees: containers and leaves, round trips, specs, mapping over several trees, prefixes, errors that name the place."""

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest

import cygrad as cg
from cygrad.pytree import broadcast_prefix, tree_flatten, tree_map, tree_unflatten

Point = namedtuple("Point", "x y")


@dataclass
class Layer:
    weight: Any
    bias: Any = None


@dataclass(frozen=True, slots=True)
class Frozen:
    first: Any
    second: Any


@dataclass
class Checked:
    value: float
    double: float = field(init=False)

    def __post_init__(self):
        self.double = 2.0 * self.value


class ListLike(list):
    pass


CONTAINERS = [
    ([1, 2], [1, 2], "[*, *]"),
    ((1,), [1], "(*,)"),
    ((), [], "()"),
    ([], [], "[]"),
    ({}, [], "{}"),
    ({"b": 1, "a": 2}, [1, 2], "{'b': *, 'a': *}"),
    ({0: (1, 2), None: [3]}, [1, 2, 3], "{0: (*, *), None: [*]}"),
    (OrderedDict(b=1, a=(2,)), [1, 2], "OrderedDict({'b': *, 'a': (*,)})"),
    (defaultdict(list, a=[1]), [1], "defaultdict(<class 'list'>, {'a': [*]})"),
    (Point(1, [2]), [1, 2], "Point(x=*, y=[*])"),
    (Layer(1), [1, None], "Layer(weight=*, bias=*)"),
    (Frozen((1, 2), {"a": 3}), [1, 2, 3], "Frozen(first=(*, *), second={'a': *})"),
    (Checked(1.0), [1.0, 2.0], "Checked(value=*, double=*)"),
    ([None, [None]], [None, None], "[*, [*]]"),
]


@pytest.mark.cases(("tree", "leaves", "text"), CONTAINERS, ids=[text for _, _, text in CONTAINERS])
def test_containers(tree, leaves, text):
    flat, spec = tree_flatten(tree)
    assert flat == leaves
    assert repr(spec) == f"TreeSpec({text})"
    assert spec.num_leaves == len(spec.paths()) == len(leaves)
    again = tree_unflatten(flat, spec)
    assert again == tree
    assert type(again) is type(tree)
    assert tree_flatten(again)[1] == spec


LEAVES = [None, 1, "text", b"bytes", {1, 2}, range(3), cg.Size([1, 2]), ListLike([1]), Layer, Point, iter([1])]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: type(leaf).__name__)
def test_anything_else_is_a_leaf(leaf):
    leaves, spec = tree_flatten(leaf)
    assert leaves[0] is leaf
    assert len(leaves) == 1
    assert repr(spec) == "TreeSpec(*)"
    assert spec.unflatten([leaf]) is leaf


def test_tensors_are_leaves_and_pairs_of_results_are_not():
    x = cg.tensor([[1.0, 3.0], [2.0, 0.0]])
    assert tree_flatten(x)[0][0] is x
    pair = x.max(dim=1)
    again = tree_map(lambda tensor: tensor * 2, pair)
    assert type(again) is type(pair)
    assert (again.values.tolist(), again.indices.tolist()) == ([6, 4], [2, 0])


def test_a_defaultdict_keeps_its_factory():
    tree = tree_map(str, defaultdict(list, a=1))
    assert tree["new"] == []
    assert tree["a"] == "1"


def test_a_dataclass_is_made_again_without_its_own_code():
    """A leaf may be a value that __post_init__ would refuse, such as an entry of in_dims."""
    tree = tree_map(lambda value: None, Checked(1.0))
    assert type(tree) is Checked
    assert (tree.value, tree.double) == (None, None)


# ----- Specs -----
def structure(tree):
    return tree_flatten(tree)[1]


DIFFERENT = [
    1, [1], (1,), [1, 2], [[1]], {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, OrderedDict(a=1), defaultdict(int, a=1),
    defaultdict(list, a=1), Point(1, 2), Layer(1, 2), Frozen(1, 2),
]


def test_specs_are_equal_where_types_keys_and_children_are():
    specs = [structure(tree) for tree in DIFFERENT]
    for i, spec in enumerate(specs):
        assert [other == spec for other in specs] == [j == i for j in range(len(specs))]
        assert spec == (again := structure(spec.unflatten(range(spec.num_leaves))))
        assert hash(spec) == hash(again)
    assert specs[0] != "*"


def test_paths_are_how_leaves_are_written():
    tree = {"layers": [Layer(1, (2, 3)), Point(4, 5)], 7: 6}
    leaves, spec = tree_flatten(tree)
    paths = spec.paths("input")
    assert paths[0] == "input['layers'][0].weight"
    assert [eval(path, {"input": tree}) for path in paths] == leaves
    assert structure(1).paths("x") == ["x"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_leaves_too_many_or_too_few(count):
    with pytest.raises(ValueError, match=rf"`leaves` has length {count} but the spec refers to a pytree that holds 2 items .*\{{'a'"):
        structure({"a": 1, "b": 2}).unflatten(range(count))


# ----- Several trees -----
def test_map_over_several_trees():
    tree = {"a": (1, 2), "b": Layer(3, 4)}
    result = tree_map(lambda *values: values, tree, tree, {"b": Layer("x", "y"), "a": ([5, 6], None)})
    assert result == {"a": ((1, 1, [5, 6]), (2, 2, None)), "b": Layer((3, 3, "x"), (4, 4, "y"))}


@pytest.mark.parametrize("other", [OrderedDict(b=2, a=1), defaultdict(int, b=2, a=1)])
def test_dicts_match_by_their_keys(other):
    assert tree_map(lambda x, y: (x, y), {"a": 10, "b": 20}, other) == {"a": (10, 1), "b": (20, 2)}


MISMATCHES = [
    ([1, 2], (1, 2), r"Node type mismatch; expected <class 'list'>, but got <class 'tuple'> at trees\[0\]$"),
    ([[1], 2], [3, 4], r"Node type mismatch; expected <class 'list'>, but got a leaf of type int at trees\[0\]\[0\]$"),
    ({"a": [1]}, {"a": None}, r"but got a leaf of type NoneType at trees\[0\]\['a'\]$"),
    ({"a": 1}, [1], r"expected <class 'dict'>, but got <class 'list'>"),
    (Point(1, [2]), Point(1, [2, 3]), r"Node arity mismatch; expected 1, but got 2 at trees\[0\]\.y$"),
    (Point(1, 2), Frozen(1, 2), r"Node type mismatch; expected <class '.*Point'>, but got <class '.*Frozen'> at"),
    ([{"a": 1, "b": 2}], [{"a": 1, "c": 2}], r"Node keys mismatch; missing key\(s\): \['b'\]; extra key\(s\): \['c'\] at trees\[0\]\[0\]$"),
    ({"a": 1}, {}, r"Node keys mismatch; missing key\(s\): \['a'\] at"),
    ({}, {"a": 1}, r"Node keys mismatch; extra key\(s\): \['a'\] at"),
]


@pytest.mark.parametrize(("tree", "other", "message"), MISMATCHES)
def test_mismatches_name_the_place(tree, other, message):
    with pytest.raises(ValueError, match=message):
        tree_map(lambda x, y: None, tree, other)


PREFIXES = [
    (0, [1, {"a": 2}], [0, 0]),
    (None, (1, (2, 3)), [None, None, None]),
    ((0, None), ([1, 2], Layer(3)), [0, 0, None, None]),
    ({"b": 1, "a": (0, 2)}, {"a": (5, [6, 7]), "b": 8}, [0, 2, 2, 1]),
    ((0, 1), ([], 2), [1]),
    ((), (), []),
]


@pytest.mark.cases(("prefix", "tree", "values"), PREFIXES)
@pytest.mark.cases("of_spec", [False, True])
def test_prefixes(prefix, tree, values, of_spec):
    assert broadcast_prefix(prefix, structure(tree) if of_spec else tree) == values


@pytest.mark.parametrize(("prefix", "message"), [
    ((0, (1, 2)), r"Node type mismatch; expected <class 'tuple'>, but got a leaf of type int at args\[1\]$"),
    ((0,), r"Node arity mismatch; expected 1, but got 2 at args$"),
    ([0, 0], r"Node type mismatch; expected <class 'list'>, but got <class 'tuple'> at args$"),
])
def test_a_prefix_that_does_not_fit(prefix, message):
    with pytest.raises(ValueError, match=message):
        broadcast_prefix(prefix, ([1, 2], 3), "args")


# ----- Depth -----
def nested(depth):
    tree = 0
    for _ in range(depth):
        tree = [tree]
    return tree


def test_deep_trees():
    leaves, spec = tree_flatten(nested(256))
    assert leaves == [0]
    assert spec == structure(nested(256))
    assert spec.unflatten([0]) == nested(256)
    assert spec.flatten_up_to(nested(300))[0] == nested(44)
    assert repr(spec).count("[") == 256
    assert spec.paths("x") == ["x" + "[0]" * 256]


@pytest.mark.parametrize("make", [lambda: nested(257), lambda: nested(100_000)])
def test_trees_that_are_too_deep(make):
    with pytest.raises(ValueError, match="the tree is more than 256 levels deep, or a list in it contains itself"):
        tree_flatten(make())


def test_containers_that_hold_themselves():
    tree = {"a": 1}
    tree["b"] = [tree, tree]
    with pytest.raises(ValueError, match="contains itself"):
        tree_flatten(tree)
