"""Notes of a thread's steps: launches, decisions and calls are steps, other looks at values are counted."""

import threading

import pytest

import cygrad as cg
from cygrad import func
from cygrad._testing import Notes, fail_alloc
from cygrad.autograd import grad

STEPS = {
    "a small map": (lambda x: x + 1, 1),
    "a view": (lambda x: x[1:].T, 0),
    "a product": (lambda x: x @ x.mT, 1),
    "joined": (lambda x: cg.cat([x, x]), 2),
    "a decision": (lambda x: bool((x > 0).all()), 3),
    "a call": (lambda x: x.kthvalue(1), 1),
    "calls in a call": (lambda x: x.median(), 1),
    "random numbers": (lambda x: cg.rand(3), 1),
    "numbers": (lambda x: cg.tensor([1., 2.]), 0),
    "a tangent": (lambda x: func.jvp(cg.sin, (x,), (x,))[1], 2),
    "a gradient": (lambda x: grad((x.requires_grad_() * 2).sum(), x)[0], 4),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps(name):
    function, count = STEPS[name]
    x = cg.rand(3, 3)
    with Notes() as notes:
        function(x)
    assert notes.looks.count == 0 and len(notes) == count


@pytest.mark.parametrize("look", [lambda x: x.sum().item(), lambda x: x.numpy(), lambda x: x.tolist(), lambda x: x.data_ptr(), memoryview,
                                  lambda x: cg.manual_seed(0), lambda x: cg.from_numpy(x.numpy()) + 1],
                         ids=["item", "numpy", "tolist", "data_ptr", "buffer", "seed", "array"])
def test_looks_are_counted(look):
    x = cg.arange(3.)
    with Notes() as notes:
        _result = look(x)
    assert notes.looks.count and notes.looks.line[0] == __file__


def test_memory_that_numpy_reaches_is_looked_at():
    x = cg.zeros(3)
    array = x.numpy()
    with Notes() as notes:
        y = x + 1
    assert notes.looks.count and y.tolist() == [1, 1, 1] and array.tolist() == [0, 0, 0]


def test_notes_may_be_nested_and_belong_to_a_thread():
    x = cg.ones(3)
    with Notes() as outer:
        _first = x + 1
        with Notes() as inner:
            _second = x * 2
            thread = threading.Thread(target=lambda: x - 3)
            thread.start()
            thread.join()
        _third = x / 4
    assert len(outer) == 2 and len(inner) == 1


def test_a_kernel_without_memory_is_no_step():
    x = cg.ones(300, 400)
    with Notes() as notes, fail_alloc(1), pytest.raises(MemoryError):
        x + 1
    assert len(notes) == 0
