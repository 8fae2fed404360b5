"""Subclasses of Tensor: how instances are made, types of copies and results, attributes and the cycles they close."""

import copy
import copyreg
import gc
import operator
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import live_bytes
from cygrad.overrides import _disabled_torch_function_impl


class Field(cg.Tensor):
    """A subclass with attributes."""

    def peak(self):
        return self.max().item()


class Slotted(cg.Tensor):
    __slots__ = ("unit",)


class Parameter(cg.Tensor):
    """A subclass that is made as torch's Parameter is."""

    __slots__ = ()
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data, requires_grad=True):
        return cg.Tensor._make_subclass(cls, data, requires_grad)


class Own(cg.Tensor):
    def __reduce__(self):
        return str, ("own",)

    def __copy__(self):
        return "copied"


WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle 2": lambda t: pickle.loads(pickle.dumps(t, 2)),
        "pickle 5": lambda t: pickle.loads(pickle.dumps(t, 5))}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


# ----- Copies -----
@ways
@pytest.mark.parametrize("kind", [Field, Parameter, Slotted])
def test_copies_keep_the_class(way, kind):
    t = kind(cg.tensor([1.0, 2.0])).requires_grad_()
    assert type(way(t)) is kind
    assert way(t).tolist() == [1, 2]
    assert way(t).requires_grad


@ways
def test_copies_keep_attributes(way):
    t, slotted = Field([1.0]), Slotted([1.0])
    t.name, t.parts = "velocity", [cg.ones(2)]
    slotted.unit = ["m"]
    copied = way(t)
    assert copied.name == "velocity" and copied.parts[0].tolist() == [1, 1]
    assert (copied.parts is t.parts) is (way is copy.copy)
    assert way(slotted).unit == ["m"]
    copied.other = 1
    assert not hasattr(t, "other")


def test_a_copied_attribute_may_be_the_tensor_itself():
    t = Field([1.0])
    t.own = [t]
    copied = copy.deepcopy(t)
    assert copied.own[0] is copied is not t


def test_a_subclass_may_copy_itself():
    assert pickle.loads(pickle.dumps(Own([1.0]))) == "own"
    assert copy.copy(Own([1.0])) == "copied"


# ----- Instances and results -----
@pytest.mark.parametrize(("kind", "text"), [(Field, "Field([1., 2.])"), (Parameter, "Parameter([1., 2.], requires_grad=True)")])
def test_repr_names_the_subclass(kind, text):
    assert repr(kind(cg.tensor([1.0, 2.0]))) == text
    assert f"{kind(cg.tensor([1.0, 2.0]))}" == text


def test_as_subclass(x):
    field = x.as_subclass(Field)
    assert type(field) is Field and isinstance(field, cg.Tensor)
    assert field.peak() == 3
    assert (field.grad_fn.name(), field._base is x, field.data_ptr() == x.data_ptr()) == ("AliasBackward0", True, True)
    (field * field).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    plain = cg.ones(2)
    plain.as_subclass(Field).add_(1)
    assert plain.tolist() == [2, 2] and plain._version == 1
    assert type(field.as_subclass(cg.Tensor)) is cg.Tensor


@pytest.mark.parametrize(("cls", "message"), [(int, "does not inherit from Tensor"), (5, r"cls must be a type \(got int\)"),
                                              (cg.Tensor.__base__, "does not inherit from Tensor")])
def test_as_subclass_refuses_other_classes(x, cls, message):
    with pytest.raises(TypeError, match=message):
        x.as_subclass(cls)
    with pytest.raises(TypeError, match=message):
        cg.Tensor._make_subclass(cls, x)


RESULTS = [lambda t: t + 1, lambda t: 1 + t, lambda t: -t, lambda t: t.exp(), cg.exp, lambda t: t[0], lambda t: t.view(-1),
           lambda t: t.sum(), lambda t: t.detach(), lambda t: t.clone(), lambda t: cg.stack([t, t]), lambda t: t.data,
           lambda t: next(iter(t)), lambda t: cg.ones(2) * t]
SELF = [lambda t: t.requires_grad_(), lambda t: t.add_(1), lambda t: t.contiguous(), lambda t: t.float(), lambda t: t.cpu(),
        lambda t: operator.iadd(t, 1), lambda t: +t]


@pytest.mark.parametrize(("kind", "expected"), [(Field, Field), (Slotted, Slotted), (Parameter, cg.Tensor)])
def test_results_keep_the_class(kind, expected):
    """But for torch's Parameter, which switches that off; a method that returns the tensor itself keeps any class."""
    for call in RESULTS:
        assert type(call(kind(cg.ones(2)))) is expected
    for call in SELF:
        t = kind(cg.ones(2)).requires_grad_(False)
        assert call(t) is t


def test_a_subclass_overrides_operators():
    class Loud(cg.Tensor):
        def __add__(self, other):
            return "left"

        def __radd__(self, other):
            return "right"

        def sum(self):
            return "sum"

    loud = Loud([1.0])
    assert (loud + 1, 1 + loud, cg.ones(1) + loud, loud.sum()) == ("left", "right", "right", "sum")


def test_a_parameter_is_trained():
    p = Parameter(cg.zeros(3))
    assert repr(p) == "Parameter([0., 0., 0.], requires_grad=True)"
    assert p.is_leaf and p._version == 0
    for _ in range(50):
        p.grad = None
        ((p - 2) ** 2).sum().backward()
        with cg.no_grad():
            p -= 0.1 * p.grad
    assert type(p) is Parameter and type(p.grad) is cg.Tensor
    assert cg.allclose(p, cg.full((3,), 2.0), atol=1e-3)


CONSTRUCTED = [((), []), ((3,), 3), ((2, 3), 6), ((cg.Size([2, 2]),), 4), (([1, 2],), [1, 2]), (((),), []), ((np.arange(2),), [0, 1]),
               (([[1], [2]],), [[1], [2]]), ((range(2),), [0, 1])]


@pytest.mark.cases(("arguments", "expected"), CONSTRUCTED, ids=str)
@pytest.mark.cases("kind", [cg.Tensor, Field])
def test_the_class_can_be_called(kind, arguments, expected):
    t = kind(*arguments)
    assert type(t) is kind and t.dtype == cg.float32
    assert (t.numel() if isinstance(expected, int) else t.tolist()) == expected
    assert kind(*arguments, device="cpu").shape == t.shape


def test_the_class_of_a_tensor_is_a_view(x):
    assert cg.Tensor(x).data_ptr() == x.data_ptr() and cg.Tensor(x).grad_fn.name() == "AliasBackward0"
    assert cg.Tensor(cg.tensor([1])).dtype == cg.int64


REFUSED = [((1.5,), {}, TypeError, "new.*: data must be a sequence .*float"), (("text",), {}, TypeError, "new.*: .*str"),
           ((None,), {}, TypeError, "new"), ((1, 2.0), {}, TypeError, "new"), (([1],), {"dtype": cg.int64}, TypeError, "new.*dtype"),
           ((-1,), {}, RuntimeError, "negative dimension"), ((1,), {"device": "cuda"}, AssertionError, "CUDA")]


@pytest.mark.parametrize(("arguments", "keywords", "error", "message"), REFUSED, ids=str)
def test_calls_of_the_class_that_are_refused(arguments, keywords, error, message):
    with pytest.raises(error, match=message):
        cg.Tensor(*arguments, **keywords)


@pytest.mark.parametrize("make", [lambda: cg.Tensor.__new__(int), lambda: object.__new__(cg.Tensor), lambda: object.__new__(Field),
                                  lambda: cg.Tensor.__base__(), lambda: cg.Tensor.__base__.__base__(), lambda: type(cg.float32)(),
                                  lambda: copyreg.__newobj__(cg.Tensor.__base__), lambda: type("Both", (cg.Tensor, int), {})])
def test_no_half_made_tensors(make):
    with pytest.raises(TypeError):
        make()


def test_a_subclass_with_its_own_arguments():
    class Named(cg.Tensor):
        def __new__(cls, data, name):
            return super().__new__(cls, data)

        def __init__(self, data, name):
            super().__init__()
            self.name = name

    assert Named([1.0], "a").name == "a"
    assert Named(cg.ones(2), name="b").tolist() == [1, 1]
    assert copy.deepcopy(Named([1.0], "a")).name == "a"


@pytest.mark.parametrize("close", [
    lambda t: setattr(t, "own", t),
    lambda t: setattr(t, "result", (t.requires_grad_() * t).exp()),
    lambda t: setattr(t, "alias", t.requires_grad_().as_subclass(Field)),
    lambda t: setattr(t, "hook", t.requires_grad_().register_hook(lambda grad: t)),
])
def test_cycles_through_attributes_are_collected(close):
    gc.collect()
    before = live_bytes()
    t = cg.ones(1000).as_subclass(Field)
    close(t)
    gone = weakref.ref(t)
    del t
    gc.collect()
    assert gone() is None
    assert live_bytes() == before


def test_a_subclass_may_be_the_first_thing_that_is_recorded():
    """Its rule is declared in a module that nothing has loaded yet."""
    code = ("import cygrad as cg; x = cg.ones(2, requires_grad=True); y = x.as_subclass(type('Field', (cg.Tensor,), {})); "
            "y.sum().backward(); print(x.grad.tolist())")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[1.0, 1.0]\n"
