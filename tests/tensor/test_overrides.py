"""`__torch_function__`: plain subclasses, subclasses and foreign classes that override, modes, and the functions of `cygrad.overrides`."""

import pickle
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad import overrides
from cygrad.autograd.profiler import profile


class Field(cg.Tensor):
    """A plain subclass."""


class Finer(Field):
    """A subclass of one."""


class Logged(cg.Tensor):
    """A subclass that notes its calls."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types, len(args), kwargs))
        return super().__torch_function__(func, types, args, kwargs)


class Quiet(cg.Tensor):
    """As torch's Parameter: results are plain."""

    __torch_function__ = overrides._disabled_torch_function_impl


class Foreign:
    """A class of its own that answers with the name of the function."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented if func is cg.mul else (func, types, args, kwargs)


def new_field():
    return cg.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Field)


def new_logged():
    Logged.calls.clear()
    return cg.tensor([1.0, 2.0]).as_subclass(Logged)


@pytest.fixture
def field():
    return new_field()


@pytest.fixture
def logged():
    return new_logged()


# ----- Plain subclasses -----
KEEPING = [lambda t: t + 1, lambda t: 1 - t, lambda t: t / t, lambda t: -t, lambda t: t**2, lambda t: 2**t, lambda t: t @ t,
           lambda t: t.exp(), cg.exp, lambda t: t[0], lambda t: t.view(-1), lambda t: t.sum(), lambda t: t.detach(), lambda t: t.clone(),
           lambda t: cg.stack([t, t]), lambda t: cg.cat((cg.ones(2, 2), t)), lambda t: t.data, lambda t: next(iter(t)), lambda t: t.T,
           lambda t: cg.ones(2, 2) * t, lambda t: t > 1, lambda t: t.to(cg.float64), lambda t: t.double(), lambda t: cg.zeros_like(t),
           lambda t: t.sort().values, lambda t: t.split(1)[1], lambda t: cg.linalg.det(t), lambda t: cg.nn.functional.relu(t),
           lambda t: cg.gelu(t, approximate="tanh"), lambda t: cg.add(t, t, alpha=2), lambda t: t.max(0)[1], lambda t: abs(t)]


@pytest.mark.cases("call", KEEPING)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_plain_subclass_is_kept(call, recorded):
    t = new_field().requires_grad_(recorded)
    result, plain = call(t), call(t.as_subclass(cg.Tensor))
    assert type(result) is Field and type(plain) is cg.Tensor
    assert cg.equal(result.as_subclass(cg.Tensor), plain) and result.dtype == plain.dtype
    assert result.requires_grad is plain.requires_grad


@pytest.mark.cases("call", KEEPING)
def test_a_class_that_is_switched_off_has_plain_results(call):
    assert type(call(cg.ones(2, 2).as_subclass(Quiet))) is cg.Tensor


def test_the_tensor_itself_is_returned_as_it_is(field):
    assert field.add_(1) is field and field.contiguous() is field and field.float() is field
    before = field
    field += 1
    assert field is before and type(field) is Field
    field[0] = 7
    assert field.tolist() == [[7, 7], [5, 6]]


def test_the_finer_of_two_classes_is_asked_first(field):
    finer = cg.ones(2, 2).as_subclass(Finer)
    assert type(field + finer) is Finer and type(finer + field) is Finer


def test_gradients_flow_through_a_subclass():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    (x.as_subclass(Field) ** 2).sum().backward()
    assert x.grad.tolist() == [2, 4] and type(x.grad) is cg.Tensor
    leaf = cg.ones(2).as_subclass(Field).requires_grad_()
    grad, = cg.autograd.grad((leaf.exp() * leaf).sum(), leaf, create_graph=True)
    assert cg.allclose(grad.as_subclass(cg.Tensor), cg.full((2,), 2 * 2.718281828459045))


def test_transforms_take_a_subclass(field):
    assert type(cg.func.vmap(lambda row: row * 2)(cg.ones(2, 2))) is cg.Tensor
    assert cg.func.vmap(lambda row: row.sum())(field).tolist() == [3, 7]
    assert cg.func.grad(lambda t: (t * t).sum())(field).tolist() == [[2, 4], [6, 8]]
    assert cg.func.jvp(lambda t: t * t, (field,), (cg.ones(2, 2),))[1].tolist() == [[2, 4], [6, 8]]


def test_a_profile_sees_operators_on_a_subclass(field):
    with profile() as prof:
        field + 1
    assert "aten::add" in {event.name for event in prof.function_events}


def test_text_and_copies_ask_no_class(logged):
    repr(logged), f"{logged}", pickle.loads(pickle.dumps(logged))
    assert Logged.calls == []


# ----- Classes that override -----
CALLS = [(lambda t: t + 1, "add", 2), (lambda t: 1 + t, "add", 2), (lambda t: 1 - t, "sub", 2), (lambda t: t @ t, "matmul", 2),
         (lambda t: t**2, "pow", 2), (lambda t: -t, "neg", 1), (lambda t: t.add_(1), "add_", 2), (lambda t: t == 1, "eq", 2),
         (lambda t: t.sum(), "sum", 1),
         (lambda t: cg.cat([t, t]), "cat", 1), (lambda t: t[0], "__getitem__", 2), (lambda t: cg.linalg.vector_norm(t), "vector_norm", 1),
         (lambda t: cg.add(t, t, alpha=2), "add", 2), (lambda t: cg.div(t, t, rounding_mode="trunc"), "div", 2),
         (lambda t: t.T, "T", 1), (lambda t: cg.where(t > 0, t, 0), "where", 3), (lambda t: t.reshape(2, 1), "reshape", 3),
         (lambda t: cg.clamp(t, 0, 1), "clamp", 3), (lambda t: cg.gelu(t, approximate="tanh"), "gelu", 1),
         (lambda t: t.softmax(0), "softmax", 2), (lambda t: abs(t), "abs", 1)]


@pytest.mark.cases("call, name, count", CALLS, ids=lambda call: call[1])
def test_a_class_is_asked_once_for_a_call(call, name, count):
    call(new_logged())
    function, types, arguments, _ = Logged.calls[-1]
    assert (function.__name__, types, arguments) == (name, (Logged,), count)
    assert len(Logged.calls) == 1 + (name == "where")       # t > 0


def test_functions_are_the_public_ones(logged):
    for call, function in ((lambda t: t + 1, cg.add), (lambda t: t.exp(), cg.exp), (lambda t: t @ t, cg.Tensor.matmul),
                           (lambda t: t**2, cg.pow), (lambda t: t.sum(), cg.sum), (lambda t: t[0], cg.Tensor.__getitem__),
                           (lambda t: t.add_(1), cg.Tensor.add_),
                           (lambda t: cg.linalg.norm(t), cg.linalg.norm), (lambda t: cg.stack([t]), cg.stack)):
        call(logged)
        assert Logged.calls[-1][0] == function


def test_out_is_handed_on(logged):
    out = cg.empty(2)
    cg.add(logged, 1, out=out)
    assert Logged.calls[-1][3]["out"] is out and out.tolist() == [2, 3]


def test_an_override_may_return_anything():
    class Words(cg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    t = cg.ones(2).as_subclass(Words)
    assert (t + 1, t.exp(), cg.add(1, t), t.sum(0)) == ("add", "exp", "add", "sum")
    assert (t @ t, t[0], -t, t > 1) == ("matmul", "__getitem__", "neg", "gt")


def test_the_formulas_of_gradients_are_no_calls(logged):
    logged.requires_grad_()
    y = (logged.exp() * logged).sum()
    Logged.calls.clear()
    y.backward(create_graph=True)
    assert Logged.calls == []


def test_switching_off(logged):
    with overrides.DisableTorchFunctionSubclass():
        assert type(logged + 1) is cg.Tensor and Logged.calls == []
        with overrides.DisableTorchFunction():
            assert type(logged.sum()) is cg.Tensor
        assert type(logged + 1) is cg.Tensor
    assert type(logged + 1) is Logged and len(Logged.calls) == 1
    switch = overrides.DisableTorchFunctionSubclass()
    with switch, switch:
        pass
    assert type(logged + 1) is Logged


def test_switching_off_is_of_a_thread(logged):
    with overrides.DisableTorchFunctionSubclass():
        results = []
        thread = threading.Thread(target=lambda: results.append(type(logged + 1)))
        thread.start()
        thread.join()
    assert results == [Logged]


# ----- Foreign classes -----
FOREIGN = [(lambda t, f: cg.add(t, f), "add"), (lambda t, f: cg.add(f, f), "add"), (lambda t, f: t + f, "add"),
           (lambda t, f: t.add_(f), "add_"), (lambda t, f: cg.exp(f), "exp"), (lambda t, f: cg.sum(f, dim=0), "sum"),
           (lambda t, f: cg.stack([f]), "stack"),
           (lambda t, f: cg.linalg.norm(f), "norm"), (lambda t, f: cg.nn.functional.relu(f), "relu"), (lambda t, f: t @ f, "matmul"),
           (lambda t, f: cg.zeros_like(f), "zeros_like"), (lambda t, f: cg.reshape(f, (2,)), "reshape"),
           (lambda t, f: cg.lerp(t, f, 0.5), "lerp")]


@pytest.mark.cases("call, name", FOREIGN, ids=lambda call: call[1])
def test_a_foreign_class_is_asked(call, name):
    function, types, *_ = call(cg.ones(2), Foreign())
    assert (function.__name__, types) == (name, (Foreign,))


def test_keywords_of_foreign_calls():
    foreign = Foreign()
    assert cg.sum(foreign, dim=0)[2:] == ((foreign,), {"dim": 0})


def test_a_call_that_no_class_computes():
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'cygrad.mul'; all __torch_function__ handlers returned"):
        cg.mul(cg.ones(2), Foreign())
    with pytest.raises(TypeError, match="unsupported operand"):
        cg.ones(2) * Foreign()


class HandingBack:
    """A class of a library with the same protocol: its tensors compute a function by a call of it, as torch's do."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def other_librarys_function(x):
    answer = type(x).__torch_function__(other_librarys_function, (type(x),), (x,), {})
    return "no answer" if answer is NotImplemented else answer


@pytest.mark.cases("call", [lambda other: cg.add(cg.ones(2), other), lambda other: cg.roll(other, 1)])
def test_a_call_that_is_handed_back_ends(call):
    """Two libraries that pass a call to each other stop, and the next call is computed as before."""
    for _ in range(2):
        with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'cygrad.add'|must be Tensor, not HandingBack"):
            call(HandingBack())
        assert cg.add(cg.ones(2), 1).tolist() == [2, 2]


@pytest.mark.cases("kind", [cg.Tensor, Field])
def test_a_function_of_another_library_gets_no_answer(kind):
    """It asks the class of a tensor, which can compute by a call of it only."""
    assert other_librarys_function(cg.ones(2).as_subclass(kind)) == "no answer"
    assert type(new_field() + 1) is Field


def test_other_errors_are_unchanged():
    with pytest.raises(TypeError, match=r"exp\(\): argument 'input' \(position 1\) must be Tensor, not str"):
        cg.exp("x")
    with pytest.raises(TypeError, match=r"add\(\): argument 'other' \(position 2\) must be Tensor, not list"):
        cg.add(cg.ones(2), [1])
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        cg.roll("x", 1)


# ----- Functions of users -----
def test_a_function_of_a_user_asks(logged):
    def double(x, *, factor=2):
        if overrides.has_torch_function_unary(x):
            return overrides.handle_torch_function(double, (x,), x, factor=factor)
        return x * factor

    assert double(cg.ones(1)).item() == 2
    result = double(logged, factor=3)
    assert Logged.calls[0][0] is double and Logged.calls[0][3] == {"factor": 3}
    assert type(result) is Logged and result.tolist() == [3, 6]


def test_a_wrapped_function_asks(logged):
    @overrides.wrap_torch_function(lambda x: (x,))
    def double(x):
        """Twice."""
        return x + x

    assert double.__doc__ == "Twice." and double(cg.ones(1)).item() == 2
    double(logged)
    assert Logged.calls[0][0] is double


def test_a_call_is_computed_without_asking_again():
    """The operators that a function of a user calls ask again: classes while their instances are among the operands, modes always."""
    names = []

    def compute(func, types, args, kwargs):
        names.append(func.__name__)
        return overrides.redispatch_function(func, types, args, kwargs)

    class Named(cg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return compute(func, types, args, kwargs)

    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            with self, overrides.enable_reentrant_dispatch():
                return compute(func, types, args, kwargs)

    @overrides.wrap_torch_function(lambda a, b: (a, b))
    def scaled(a, b):
        return a * b + 1

    result = scaled(cg.tensor([3.0]).as_subclass(Named), cg.tensor([4.0]).as_subclass(Named))
    assert names == ["scaled", "mul"] and type(result) is cg.Tensor and result.tolist() == [13]
    names.clear()
    with Mode():
        assert scaled(cg.tensor([3.0]), cg.tensor([4.0])).tolist() == [13]
    assert names == ["scaled", "mul", "add"]
    with pytest.raises(TypeError):
        overrides.redispatch_function(lambda a: a, (), (), {})
    assert overrides.has_torch_function_unary(cg.ones(1).as_subclass(Named))


def test_no_implementation():
    class Refusing:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    def double(x):
        return overrides.handle_torch_function(double, (x,), x)

    with pytest.raises(TypeError, match="no implementation found for '.*double' on types that implement __torch_function__: .*Refusing"):
        double(Refusing())


def test_questions(logged, field):
    assert overrides.has_torch_function((1, logged)) and overrides.has_torch_function_variadic(1, Foreign())
    assert not overrides.has_torch_function((1, cg.ones(2), cg.ones(2).as_subclass(Quiet)))
    assert [overrides.is_tensor_like(x) for x in (cg.ones(1), field, Foreign(), 1, np.ones(1))] == [True, True, True, False, False]
    assert overrides.is_tensor_method_or_property(cg.Tensor.add) and not overrides.is_tensor_method_or_property(cg.linalg.cond)


def test_lists_of_functions():
    functions = overrides.get_overridable_functions()
    assert cg.roll in functions[cg] and cg.linalg.det in functions[cg.linalg] and cg.Tensor.add_ in functions[cg.Tensor]
    testing = overrides.get_testing_overrides()
    assert testing[cg.roll](1, 2) == -1
    ignored = overrides.get_ignored_functions()
    assert cg.zeros in ignored and cg.add not in ignored and not ignored & set(testing)
    assert [overrides.resolve_name(f) for f in (cg.add, cg.linalg.det, cg.Tensor.repeat, len)] == [
        "cygrad.add", "cygrad.linalg.det", "cygrad.Tensor.repeat", None]


# ----- Modes -----
class Noting(overrides.TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_calls_of_its_thread():
    x = cg.ones(2)
    with Noting() as outer:
        x.add(1).sum()
        with Noting() as inner:
            cg.stack([x, x])
    x.exp()
    assert (outer.names, inner.names) == (["add", "sum", "stack"], ["stack"])


def test_a_mode_comes_before_classes(logged):
    with Noting() as mode:
        assert type(logged + 1) is Logged
    assert mode.names == ["add"] and len(Logged.calls) == 1
    with Noting() as mode, overrides.DisableTorchFunction():
        logged + 1
    assert mode.names == []
    with Noting() as mode, overrides.DisableTorchFunctionSubclass():
        logged + 1
    assert mode.names == ["add"]


def test_a_mode_is_left_after_an_error():
    class Failing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Failing():
        cg.ones(2) + 1
    assert (cg.ones(2) + 1).tolist() == [2, 2]
    with overrides.BaseTorchFunctionMode():
        assert (cg.ones(2) + 1).tolist() == [2, 2]
