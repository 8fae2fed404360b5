"""Tensors that code reaches otherwise than by a name: as keys, in sets and caches, by weak references and methods."""

import functools
import types
import weakref

import pytest

import cygrad as cg
from capturing import captured

A, B = cg.ones(1), cg.ones(1, requires_grad=True)


@functools.cache
def norm(x):
    return (x * x).sum()


@functools.cache
def total(items):
    return sum(total(item) if type(item) is tuple else item.sum() for item in items)


def with_weak_set(tensor):
    tensors = weakref.WeakSet([tensor])
    return lambda x: x * 2 if x in tensors else x * 3


def with_weak_keys(tensor):
    rates = weakref.WeakKeyDictionary({tensor: 5.0})
    return lambda x: x * rates.get(x, 7.0)


def by_identity(tensor):
    reference = weakref.ref(tensor)
    return lambda x: x * 2 if x is reference() else x * 3


@pytest.mark.parametrize("make", [with_weak_set, with_weak_keys, by_identity, lambda tensor: lambda x: x / norm(x),
                                  lambda tensor: lambda x: x / total(((x, A), tensor)), lambda tensor: lambda x: x / total(items=(x, A))],
                         ids=["a weak set", "weak keys", "a weak reference", "a cache", "a tuple in a cache", "a keyword in a cache"])
def test_an_argument_that_code_looks_for(make):
    first, second = cg.tensor([2.0]), cg.tensor([4.0])
    function = make(first)
    compiled = captured(function)
    for x in (second, second, second, first, first, second, first):
        assert compiled(x).tolist() == function(x).tolist()


def in_a_set(tensor):
    tensors = {A, tensor}
    return lambda x: x * sum(each.requires_grad for each in tensors)


def in_a_dict(tensor):
    rates = {A: 1.0, tensor: 5.0}
    return lambda x: x * sum(rate for each, rate in rates.items() if each.requires_grad)


def of_a_method(tensor):
    method = types.MethodType(lambda self, x: x * 2 if self.requires_grad else x * 3, tensor)
    return lambda x: method(x)


def by_weak_reference(tensor):
    reference = weakref.ref(tensor)
    return lambda x: x * 2 if reference().requires_grad else x * 3


@pytest.mark.parametrize("make", [in_a_set, in_a_dict, of_a_method, by_weak_reference])
def test_a_tensor_that_changes(make):
    tensor = cg.ones(1, requires_grad=True)
    function = make(tensor)
    compiled = captured(function)
    for requires_grad in (True, True, False, False, True):
        tensor.requires_grad_(requires_grad)
        for _ in range(2):
            assert compiled(cg.ones(1)).tolist() == function(cg.ones(1)).tolist()


def test_a_weak_reference_whose_object_dies():
    class Model:
        rate = 2.0

    model = Model()
    reference = weakref.ref(model)
    compiled = captured(lambda x: x * 3 if reference() is None else x * reference().rate)
    assert [compiled(cg.ones(1)).item() for _ in range(3)] == [2.0] * 3
    model.rate = 5.0
    assert [compiled(cg.ones(1)).item() for _ in range(3)] == [5.0] * 3


class Listener:
    def rate(self):
        return 5.0


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("with_loop", [False, True])
def test_weak_references_to_methods(with_loop):
    """They give another method each time."""
    listener = Listener()
    method = weakref.WeakMethod(listener.rate)

    def step(x):
        return x * 0.5 + method()()

    if with_loop:
        assert cg.func.fori_loop(0, 80, lambda i, x: step(x), cg.ones(1, dtype=cg.float64)).item() == pytest.approx(10.0)
    assert [cg.compile(step)(cg.ones(1)).item() for _ in range(3)] == [5.5] * 3


@pytest.mark.filterwarnings("ignore:compile")
def test_the_object_of_a_weak_reference_is_named_in_the_warning():
    objects, number = [Listener()], [0]
    reference = weakref.ref(objects[0])
    compiled = cg.compile(lambda x: x * number[0] if reference() is None else x * (number[0] + 1))
    for number[0] in range(20):     # noqa: PLR1704
        objects[0] = Listener()
        assert compiled(cg.ones(1)).item() == compiled(cg.ones(1)).item()
