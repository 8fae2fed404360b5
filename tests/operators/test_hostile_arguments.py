"""Arguments whose own code changes the operand while they are read: the result lies in memory, computed before or after the change."""

import contextlib
import functools
import gc
import operator
import sys
import types

import numpy as np
import pytest

import calls
import cygrad as cg

CANARY = 77.0
HEAP_TYPE = 1 << 9      # the flag of a class made by a statement in Python


def guarded(count):
    """Return a tensor in the middle of an array, and a function that checks that the rest of the array is unchanged."""
    whole = np.full(count + 128, CANARY)
    part = cg.from_numpy(whole[64 : 64 + count])
    return part, lambda: bool((whole[:64] == CANARY).all() and (whole[64 + count :] == CANARY).all())


def elsewhere(tensor, count, *shape):
    memory, _ = guarded(count)
    return memory.to(tensor.dtype).reshape(shape)


# Changes that an argument makes to the operand while it is read.
CHANGES = {
    "set_ to less memory": lambda t: t.set_(elsewhere(t, 1, 1)),
    "set_ to no memory": lambda t: t.set_(),
    "resize_ to nothing": lambda t: t.resize_(0),
    "resize_ to more": lambda t: t.resize_(9, 9),
    "more dims": lambda t: [t.unsqueeze_(0) for _ in range(12)],
    "fewer dims": lambda t: t.set_(elsewhere(t, 1)),
    "other strides": lambda t: t.set_(elsewhere(t, 1, 1).expand(tuple(t.shape))),
    "other data": lambda t: setattr(t, "data", elsewhere(t, 2, 2)),
    "other values": lambda t: t.fill_(1),
}


class Hostile:
    """A number, a truth value, a sequence or an array that changes tensors when it is read."""

    def __init__(self, value, act):
        self.value, self.act = value, act

    def look(self):
        self.act()
        return self.value


class Number(Hostile):
    def __index__(self):
        return int(self.look())

    __int__ = __index__

    def __float__(self):
        return float(self.look())

    def __bool__(self):
        return bool(self.look())


class Real(Hostile):
    def __float__(self):
        return float(self.look())


class Sequence(Hostile):
    def __len__(self):
        return len(self.look())

    def __getitem__(self, place):
        return self.look()[place]

    def __iter__(self):
        return iter(self.look())


class Array(Hostile):
    def __array__(self, *_, **__):
        return np.array(self.look())

    def __len__(self):
        return len(self.look())


def hostile_forms(value, act):
    """Return the hostile objects that may replace a value."""
    if isinstance(value, bool | int) or type(value) is np.int64:
        return [Number(value, act)]
    if isinstance(value, float):
        return [Real(value, act)]
    if type(value) in (tuple, list, cg.Size):
        return [Sequence(tuple(value), act)]
    if isinstance(value, cg.Tensor | np.ndarray):
        return [Array(value, act)]
    return []


def attempt(function, arguments, keywords, change):
    """Call with each value among the arguments, but the first operand, hostile in turn; yield the tensors that must lie in memory."""
    call = (arguments, keywords)
    for path, value in calls.places(call):
        for number, _ in enumerate(hostile_forms(value, None)):
            fresh = calls.copied(call)
            operands = calls.tensors_in(fresh)
            if len(path) < 2 or not operands or path[:2] == (0, 0) and isinstance(arguments[0], cg.Tensor):
                continue
            acted = []

            def act(operand=operands[0], acted=acted):
                if not acted:
                    acted.append(True)
                    change(operand)

            hostile = hostile_forms(calls.copied(value), act)[number]
            positional, named = calls.replaced(fresh, path, hostile)
            try:
                result = function(*positional, **named)
            except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
                result = None
            yield path, calls.tensors_in(operands) + calls.tensors_in(result)


def label(owner, name):
    return f"{getattr(owner, '__name__', owner)}.{name}"


@pytest.mark.parametrize("change", CHANGES)
def test_results_lie_in_memory(change):
    count = 0
    for owner, name, arguments, keywords in calls.recorded_calls():
        for path, tensors in attempt(getattr(owner, name), arguments, keywords, CHANGES[change]):
            count += 1
            for tensor in tensors:
                assert calls.lies_inside(tensor), (label(owner, name), path)
                tensor.clone()
    assert count > 200
    gc.collect()


# ----- Indices -----
KEYS = {
    "integer": lambda evil: evil,
    "negative": lambda evil: Number(-1, evil.act),
    "start": lambda evil: slice(evil, None),
    "stop": lambda evil: slice(None, evil),
    "step": lambda evil: slice(None, None, evil),
    "second": lambda evil: (1, evil),
    "slice, integer": lambda evil: (slice(0, 2), evil),
    "integer, slice": lambda evil: (evil, slice(0, 3)),
    "ellipsis": lambda evil: (..., evil),
    "new dim": lambda evil: (None, evil, None),
    "list": lambda evil: [0, evil],
    "list, integer": lambda evil: ([1, 0], evil),
    "nested list": lambda evil: ([[1], [evil]], 0),
    "sequence": lambda evil: Sequence([1, 0], evil.act),
    "array": lambda evil: Array([1, 0], evil.act),
    "mask": lambda evil: Array([True, False], evil.act),
    "tensor of a subclass": lambda evil: evil_tensor(evil.act),
}


def evil_tensor(act):
    class Evil(cg.Tensor):
        def __index__(self):
            act()
            return 1

    return cg.tensor(1).as_subclass(Evil)


@pytest.mark.cases("change", CHANGES)
@pytest.mark.cases("key", KEYS)
def test_indexing_reads_the_index_first(key, change):
    for write in (False, True):
        x, intact = guarded(6)
        x = x.reshape(2, 3)
        evil = Number(1, lambda x=x: CHANGES[change](x))
        with contextlib.suppress(TypeError, ValueError, RuntimeError, IndexError):
            if write:
                x[KEYS[key](evil)] = 5.0
            else:
                part = x[KEYS[key](evil)]
                assert calls.lies_inside(part)
                part.fill_(3.0)
        assert calls.lies_inside(x)
        assert intact()


@pytest.mark.parametrize("change", CHANGES)
def test_an_assigned_value_is_read_first(change):
    for form in (Sequence([1.0, 2.0, 3.0], None), Array([1.0, 2.0, 3.0], None), [Real(1.0, None), 2.0, 3.0]):
        x, intact = guarded(6)
        x = x.reshape(2, 3)
        hostile = form[0] if isinstance(form, list) else form
        hostile.act = lambda x=x: CHANGES[change](x)
        for write in (functools.partial(operator.setitem, x, 1), x.copy_, x.fill_):
            with contextlib.suppress(TypeError, ValueError, RuntimeError, IndexError):
                write(form)
            assert calls.lies_inside(x)
            assert intact()


# ----- Methods called by their class -----
def compiled_types():
    modules = [module for name, module in sys.modules.items() if name.startswith(("cygrad._core.", "cygrad._kernels."))]
    types_there = {thing for module in modules for thing in vars(module).values() if isinstance(thing, type)}
    return {kind for kind in types_there if not kind.__flags__ & HEAP_TYPE and kind.__module__.startswith("cygrad")}


def test_compiled_methods_check_the_type_of_self():
    """Methods of Cython's own kind do not, and would read the memory of an object of another type."""
    count = 0
    for kind in compiled_types():
        for name, method in vars(kind).items():
            if name.endswith("_cython__"):      # it refuses every object
                continue
            assert type(method).__name__ != "cython_function_or_method", (kind, name)
            if isinstance(method, types.MethodDescriptorType):
                count += 1
                with pytest.raises(TypeError):
                    method("a stranger")
    assert count > 50
