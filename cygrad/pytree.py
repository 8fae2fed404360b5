"""Trees of values: nested dicts, lists, tuples, named tuples and dataclasses, taken apart into leaves and put together again.

Containers are dict, OrderedDict, defaultdict, list and tuple (of these very types), named tuples, and instances of dataclasses, field
by field. Anything else is a leaf, None too, as in torch.utils._pytree. The leaves come in the order of the containers: the order of
insertion in a dict. A tree may be 256 levels deep.

>>> from cygrad.pytree import tree_flatten, tree_map
>>> leaves, spec = tree_flatten({"layers": [(1, 2), 3], "bias": None})
>>> leaves
[1, 2, 3, None]
>>> spec
TreeSpec({'layers': [(*, *), *], 'bias': *})
>>> spec.paths("input")
["input['layers'][0][0]", "input['layers'][0][1]", "input['layers'][1]", "input['bias']"]
>>> spec.unflatten("abcd")
{'layers': [('a', 'b'), 'c'], 'bias': 'd'}
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cygrad._core.graph.tensor import TensorImpl

__all__ = ["TreeSpec", "broadcast_prefix", "tree_flatten", "tree_map", "tree_unflatten"]

DEEPEST = 256                       # containers in containers; it also ends a walk through a container that holds itself
_DICTS = (dict, OrderedDict, defaultdict)


class TreeSpec:
    """The structure of a tree: the containers without the leaves.

    Specs are equal if type, keys and children of all containers are, in the same order. `num_leaves` counts the leaves.

    >>> from cygrad.pytree import tree_flatten
    >>> tree_flatten([1, (2,)])[1] == tree_flatten([3, (4,)])[1]
    True
    """

    __slots__ = ("kind", "keys", "children", "default_factory", "num_leaves")

    def __init__(self, kind: Any, keys: Any, children: tuple[TreeSpec, ...], default_factory: Any = None) -> None:
        self.kind = kind                            # the container's type; None for a leaf
        self.keys = keys                            # a tuple, of a dict's keys or of names of fields; None for list and tuple
        self.children = children
        self.default_factory = default_factory      # of a defaultdict
        self.num_leaves: int = sum(child.num_leaves for child in children) if kind else 1

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, TreeSpec):
            return self is other
        return (self.kind is other.kind and self.keys == other.keys and self.default_factory == other.default_factory
                and self.children == other.children)

    def __hash__(self) -> int:
        return hash((self.kind, self.keys, self.children))

    def __repr__(self) -> str:
        return f"TreeSpec({self._text()})"

    def _text(self) -> str:
        if self.kind is None:
            return "*"
        children = [child._text() for child in self.children]
        if self.keys is None:
            if self.kind is list:
                return f"[{', '.join(children)}]"
            return f"({', '.join(children)}{',' * (len(children) == 1)})"
        if self.kind not in _DICTS:
            return f"{self.kind.__name__}({', '.join(map('{}={}'.format, self.keys, children))})"
        items = f"{{{', '.join(map('{!r}: {}'.format, self.keys, children))}}}"
        if self.kind is dict:
            return items
        return f"OrderedDict({items})" if self.kind is OrderedDict else f"defaultdict({self.default_factory!r}, {items})"

    def paths(self, name: str = "tree") -> list[str]:
        """Return how to write each leaf, for messages; `name` is the name of the tree.

        >>> from cygrad.pytree import tree_flatten
        >>> tree_flatten([1, {"a": 2}])[1].paths("input")
        ['input[0]', "input[1]['a']"]
        """
        if self.kind is None:
            return [name]
        return [path for number, child in enumerate(self.children) for path in child.paths(self._path(name, number))]

    def _path(self, name: str, number: int) -> str:
        if self.keys is None:
            return f"{name}[{number}]"
        return f"{name}[{self.keys[number]!r}]" if self.kind in _DICTS else f"{name}.{self.keys[number]}"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure that has these leaves; ValueError if they are too many or too few.

        Dataclasses are made without calling their `__init__` or `__post_init__`, so a leaf may be of any type.

        >>> from cygrad.pytree import tree_flatten
        >>> tree_flatten([1, {"a": 2}])[1].unflatten([3, 4])
        [3, {'a': 4}]
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                             f"{self.num_leaves} items ({self})")
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        kind = self.kind
        if kind is None:
            return next(leaves)
        children = [child._build(leaves) for child in self.children]
        if self.keys is None:
            return children if kind is list else tuple(children)
        if kind is defaultdict:
            return defaultdict(self.default_factory, zip(self.keys, children, strict=True))
        if kind in _DICTS:
            return kind(zip(self.keys, children, strict=True))
        if issubclass(kind, tuple):
            return kind._make(children)
        instance = object.__new__(kind)
        for key, child in zip(self.keys, children, strict=True):
            object.__setattr__(instance, key, child)    # a frozen dataclass refuses setattr
        return instance

    def flatten_up_to(self, tree: Any, name: str = "tree") -> list[Any]:
        """Return the parts of `tree` at the leaves of this structure: leaves or whole subtrees.

        ValueError, with the place in `tree`, called `name`, where the two differ. As in torch, dicts of any of the three types match if
        they have the same keys, in any order.

        >>> from cygrad.pytree import tree_flatten
        >>> tree_flatten([0, {"a": 0}])[1].flatten_up_to([(1, 2), {"a": 3}])
        [(1, 2), 3]
        """
        results: list[Any] = []
        self._collect(tree, name, results)
        return results

    def _collect(self, tree: Any, name: str, result: list[Any]) -> None:
        if self.kind is None:
            result.append(tree)
            return
        kind, keys, values = _take_apart(tree)
        dicts = self.kind in _DICTS and kind in _DICTS
        if kind is not self.kind and not dicts:
            keyword = f"a leaf of type {type(tree).__name__}" if kind is None else kind
            raise ValueError(f"Node type mismatch; expected {self.kind!r}, but got {keyword!s} at {name}")
        if dicts and set(tree) != set(self.keys):
            missing = [key for key in self.keys if key not in tree]
            extra = [key for key in tree if key not in (self.keys)]
            parts = [f"{kind} key(s): {keys}" for kind, keys in (("missing", missing), ("extra", extra)) if keys]
            raise ValueError(f"Node keys mismatch; {'; '.join(parts)} at {name}")
        if len(values) != len(self.children):
            raise ValueError(f"Node arity mismatch; expected {len(self.children)}, but got {len(values)} at {name}")
        if dicts and keys != self.keys:
            values = [tree[key] for key in self.keys]
        for number, (child, value) in enumerate(zip(self.children, values, strict=True)):
            child._collect(value, self._path(name, number), result)


_LEAF = TreeSpec(None, None, ())


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree and its structure; ValueError if it is more than 256 levels deep.

    >>> from cygrad.pytree import tree_flatten
    >>> tree_flatten({"a": 1, "b": (2, None)})
    ([1, 2, None], TreeSpec({'a': *, 'b': (*, *)}))
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, DEEPEST)


def tree_unflatten(leaves: Iterable[Any], spec: TreeSpec) -> Any:
    """Return the tree of a structure that has these leaves; ValueError if they are too many or too few.

    >>> from cygrad.pytree import tree_flatten, tree_unflatten
    >>> leaves, spec = tree_flatten({"a": 1, "b": (2, 3)})
    >>> tree_unflatten([-leaf for leaf in leaves], spec)
    {'a': -1, 'b': (-2, -3)}
    """
    return spec.unflatten(leaves)


def tree_map(function: Callable[..., Any], tree: Any, *trees: Any) -> Any:
    """Return the tree of the results of `function` for each leaf and the other trees' parts in its place.

    Where `tree` has a leaf, another tree may have a whole subtree, which the function is given. ValueError, with the place, for trees
    that differ otherwise.

    >>> from cygrad.pytree import tree_map
    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, spec = tree_flatten(tree)
    others = [spec.flatten_up_to(other, f"trees[{number}]") for number, other in enumerate(trees)]
    return spec.unflatten(map(function, leaves, *others))


def broadcast_prefix(prefix: Any, tree: Any, name: str = "tree") -> list[Any]:
    """Return a value for each leaf of `tree` (a tree, or the spec of one): a leaf of `prefix` holds for all that is below its place.

    ValueError, with the place in the tree, called `name`, if the prefix goes deeper than the tree or has other containers.

    >>> from cygrad.pytree import broadcast_prefix
    >>> broadcast_prefix((0, None), ([1, 2], {"a": 3}))
    [0, 0, None]
    """
    values, spec = tree_flatten(prefix)
    whole = tree if isinstance(tree, TreeSpec) else tree_flatten(tree)[1]
    result = [None] * whole.num_leaves
    places = whole.unflatten(range(whole.num_leaves))       # dicts of prefix and tree may differ in their order
    for value, subtree in zip(values, spec.flatten_up_to(places, name), strict=True):
        for place in tree_flatten(subtree)[0]:
            result[place] = value
    return result


def _take_apart(tree: Any) -> tuple[type | None, tuple[Any, ...] | None, Any]:
    """Return type, keys and values of a container; the type of a leaf is None."""
    kind = type(tree)
    if kind is list or kind is tuple:
        return kind, None, tree
    if kind in _DICTS:
        return kind, tuple(tree), tree.values()
    if isinstance(tree, TensorImpl):
        return None, None, ()
    if isinstance(tree, tuple):
        names = getattr(kind, "_fields", None)
        if isinstance(names, tuple) and hasattr(kind, "_make"):
            return kind, names, tree
    elif hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields
        names = tuple(field.name for field in fields(tree))
        return kind, names, [getattr(tree, name) for name in names]
    return None, None, ()


def opened(tree: Any) -> tuple[list[Any], TreeSpec | None]:
    """Return the items of a container and its structure without theirs; of a leaf, no items and None.

    >>> from cygrad.pytree import opened
    >>> opened((1, [2]))
    ([1, [2]], TreeSpec((*, *)))
    """
    kind, keys, values = _take_apart(tree)
    if kind is None:
        return [], None
    return [*values], TreeSpec(kind, keys, (_LEAF,) * len(values), tree.default_factory if kind is defaultdict else None)


def _flatten(tree: Any, leaves: list[Any], levels: int) -> TreeSpec:
    kind, keys, values = _take_apart(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    if not levels:
        raise ValueError(f"tree_flatten(): the tree is more than {DEEPEST} levels deep, or a {kind.__name__} in it contains itself")
    children = tuple([_flatten(value, leaves, levels - 1) for value in values])
    return TreeSpec(kind, keys, children, tree.default_factory if kind is defaultdict else None)
