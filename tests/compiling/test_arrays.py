"""Arrays of NumPy's in captured functions: constants that code makes or names, and arguments, which a program follows."""

import inspect
import tracemalloc
import warnings

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, refusal, same
from cygrad.autograd import grad

TABLE, ROWS, MASK = np.arange(9.).reshape(3, 3), np.array([0, 2]), np.array([True, False, True])
VALUES = [3.0]

CONSTANTS = {
    "operand": lambda x: x + TABLE,
    "operand on the left": lambda x: TABLE @ x,
    "part": lambda x: x + TABLE[1],
    "part that lies backwards": lambda x: x + TABLE[0, ::-1],
    "shared": lambda x: x @ cg.as_tensor(TABLE),
    "from_numpy": lambda x: x @ cg.from_numpy(TABLE),
    "asarray": lambda x: x @ cg.asarray(TABLE),
    "copied": lambda x: x @ cg.tensor(TABLE),
    "rows": lambda x: x[ROWS],
    "mask": lambda x: cg.where(cg.tensor(MASK), x, 0.),
    "made": lambda x: x @ cg.tensor(np.eye(3)),
    "made and shared": lambda x: x @ cg.from_numpy(np.eye(3)),
    "made by a place": lambda x: x[np.array([0, 2])],
    "made of a table": lambda x: x @ cg.tensor(TABLE.astype(np.float64) * 2),
    "made of values": lambda x: x * np.full(3, VALUES[0]),
    "a list of them": lambda x: x @ cg.tensor([np.ones(3), TABLE[1], np.eye(3)[0]]),
    "stacked": lambda x: x @ cg.tensor(np.stack([np.ones(3), TABLE[1], np.eye(3)[0]])),
    "empty": lambda x: x[np.array([], dtype=int)],
    "of one number": lambda x: x * np.array(2.0),
    "float32": lambda x: x * np.ones(3, np.float32),
    "part of one that is made": lambda x: x + np.arange(10.)[3:9:2],
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_arrays_that_code_makes_or_names_are_constants(name):
    function = CONSTANTS[name]
    compiled = captured(function)
    for number in range(1, 4):
        same(compiled(X * number), function(X * number))
    TABLE[0, 1] += 1
    VALUES[0] += 1
    ROWS[1] = 1
    MASK[1] = True
    try:
        for number in range(1, 4):
            same(compiled(X * number), function(X * number))
    finally:
        TABLE[0, 1] -= 1
        ROWS[1], MASK[1] = 2, False
    assert compiled.cache_info().hits >= 4


def test_arrays_that_a_function_makes_are_met_at_its_second_call():
    compiled = cg.compile(lambda x: x + np.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            same(compiled(X), X + 1)
    assert compiled.cache_info()[:3] == (2, 2, 0) and not tracemalloc.is_tracing()


def test_traces_of_the_user_show_no_new_array():
    tracemalloc.start()
    try:
        assert "that it has not made" in refusal(lambda x: x + np.ones(3), X)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def changes_while_shared(x):
    values = np.zeros(3)
    shared = cg.from_numpy(values)
    values[1] = 3
    return x + shared


def changes_and_back(x):
    shared = cg.from_numpy(TABLE)
    TABLE[0, 0] += 1
    y = x + shared
    TABLE[0, 0] -= 1
    return y


def writes(x):
    values = cg.from_numpy(np.zeros(3))
    values += x
    return values * 2


OVER_TABLE = cg.from_numpy(TABLE)
ITEMS = [np.ones(3)]


class Unseen:
    """An object with an array that only code in C reads."""

    def __init__(self):
        self.memory = bytearray(np.ones(3).tobytes())


UNSEEN = Unseen()
ENDS = {
    "changed while it is shared": (changes_while_shared, "into which the function writes"),
    "changed and back": (changes_and_back, "into which the function writes"),
    "written": (writes, "into which the function writes"),
    "written by a tensor": (lambda x: (OVER_TABLE.mul_(x / x), x + TABLE)[1], "writes into one from outside"),
    "returned": (lambda x: cg.from_numpy(np.ones(3)), "returns a tensor over an array"),
    "returned, of a name": (lambda x: cg.as_tensor(TABLE), "returns a tensor over an array"),
    "memory of another object": (lambda x: x + np.frombuffer(UNSEEN.memory), "that it has not made"),
    "read from a file": (lambda x: x + np.fromfile(__file__, np.uint8, 1), "calls fromfile"),
    "time": (lambda x: x * int(np.datetime64("now") > np.datetime64("2020-01-01")), "may have the time of the call"),
    "frames": (lambda x: x * np.full(3, len(inspect.stack())), "calls inspect.stack"),
    "values of a tensor": (lambda x: x * np.asarray(x), "outside of operators"),
}


@pytest.mark.parametrize("name", ENDS)
def test_arrays_that_are_no_constants_end_a_capture(name):
    function, reason = ENDS[name]
    assert reason in refusal(function, X.clone())


# ----- Arguments -----
FOLLOWED = {
    "operand": lambda x, a: x + a * x if isinstance(a, cg.Tensor) else x + a,
    "on the left": lambda x, a: a + x,
    "product": lambda x, a: a[0] * x + (x @ cg.tensor(a.T)) - cg.from_numpy(a) @ x,
    "matrix on the left": lambda x, a: a @ x,
    "parts": lambda x, a: x[1:] * a[1:, :2] + a[None, 0, 1:],
    "sizes": lambda x, a: x * a.shape[0] * len(a) * a.ndim + a,
    "shared": lambda x, a: cg.as_tensor(a).sin() * x,
    "copied": lambda x, a: cg.tensor(a, dtype=cg.float32) * x,
    "asked for its class": lambda x, a: x * cg.from_numpy(a) if isinstance(a, np.ndarray) else x,
    "in containers": lambda x, a: ([x, {"a": a}], x)[0][1]["a"] * x,
    "compared": lambda x, a: cg.where(x < a, x, cg.tensor(a)),
    "decides": lambda x, a: x * 2 if cg.from_numpy(a).sum() > 20 else x + a,
}


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("form", ["argument", "keyword", "list"])
def test_a_program_is_for_all_values_of_an_array(name, form):
    def function(x, arrays, *, a=None):
        return FOLLOWED[name](x, arrays if a is None and not isinstance(arrays, list) else a if arrays is None else arrays[0])

    def call(f, x, array):
        return f(x, None, a=array) if form == "keyword" else f(x, [array] if form == "list" else array)

    compiled = captured(function)
    for number in range(6):
        array = (np.arange(9.) * (number - 2)).reshape(3, 3)
        same(call(compiled, X, array), call(function, X, array))
    info = compiled.cache_info()
    assert info.misses <= (2 if name == "decides" else 1) and not info.eager


def test_gradients_of_a_function_of_arrays():
    def loss(w, data, targets, rate):
        return ((data @ w - targets) ** 2).mean() * rate

    compiled, random = captured(loss), np.random.default_rng(0)
    w, other = cg.ones(4, dtype=cg.float64, requires_grad=True), cg.ones(4, dtype=cg.float64, requires_grad=True)
    for number in range(5):
        data, targets = random.standard_normal((7, 4)), random.standard_normal(7)
        for create_graph in (False, True):
            ours, = grad(compiled(w, data, targets, 0.1 * number), w, create_graph=create_graph)
            theirs, = grad(loss(other, data, targets, 0.1 * number), other, create_graph=create_graph)
            same(ours, theirs)
        same(grad(ours.sum(), w)[0], grad(theirs.sum(), other)[0])
    assert compiled.cache_info().misses == 2, "the rate is an input, too"


def test_a_program_writes_into_an_array():
    def step(x, state):
        cg.from_numpy(state).mul_(0.5).add_(x)
        return x * cg.from_numpy(state)

    compiled = captured(step)
    ours, theirs = np.ones(3), np.ones(3)
    for number in range(5):
        same(compiled(X * number, ours), step(X * number, theirs))
        assert ours.tobytes() == theirs.tobytes()
    assert compiled.cache_info().hits == 4


def test_arrays_of_other_layouts_have_programs_of_their_own():
    compiled = captured(lambda x, a: x * a)
    for array in (np.ones((2, 3)), np.ones((2, 3), np.float32), np.ones((3, 2)).T, np.ones((2, 6))[:, ::2], np.ones((1, 3))):
        for _ in range(2):
            same(compiled(X, array), X * array)
    assert compiled.cache_info()[:3] == (5, 5, 0)


def appends(x, a):
    a[0] += 1
    return x + a


READ = {
    "by NumPy": lambda x, a: x * np.sin(a),
    "by arithmetic": lambda x, a: x * (a * 2),
    "as a number": lambda x, a: x * float(a[0]),
    "by a method": lambda x, a: x * a.sum(),
    "in a loop": lambda x, a: x * sum(value for value in a),
    "returned": lambda x, a: (x, a),
    "written": appends,
    "caught": lambda x, a: caught(x, a),
}


def caught(x, a):
    try:
        return x + np.cos(a)
    except Exception:
        return x


@pytest.mark.parametrize("name", READ)
def test_functions_that_read_arrays_stay_as_they_are(name):
    function = READ[name]
    compiled = cg.compile(function)
    ours, theirs = np.arange(3.), np.arange(3.)
    with pytest.warns(RuntimeWarning, match="stays as it is: .*(an array of NumPy's|over the arrays)") as caught_warnings:
        first = compiled(X, ours)
    assert caught_warnings[0].filename == __file__
    for k in range(4):
        results = first if k == 0 else compiled(X, ours), function(X, theirs)
        for a, b in zip(*(each if isinstance(each, tuple) else (each,) for each in results), strict=True):
            assert type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        assert ours.tobytes() == theirs.tobytes(), "it has run once for each call"


def test_arrays_that_overlap_are_written_as_eager_writes_them():
    def function(a, b):
        c = b * 2
        a.add_(c)
        a.mul_(2)
        return b * 2 + c

    for of_arrays in (False, True):
        def call(f, a, b, of_arrays=of_arrays):
            return f(a, b) if of_arrays else f(cg.from_numpy(a), cg.from_numpy(b))

        def of_either(a, b):
            return function(cg.as_tensor(a), cg.as_tensor(b))

        compiled = cg.compile(of_either)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for k in range(5):
                bases = [np.arange(5001.), np.arange(5001.)]
                pairs = [(base[:-1], (base.copy(), base, base[1:], base[:], base.copy())[k][:5000]) for base in bases]
                same(call(compiled, *pairs[0]), call(of_either, *pairs[1]))
                assert bases[0].tobytes() == bases[1].tobytes()
        assert compiled.cache_info().hits >= 1


@pytest.mark.filterwarnings("ignore:compile")
def test_arrays_that_are_no_tensors_are_left_to_the_function():
    compiled = cg.compile(lambda x, a: x * len(a))
    for array in (np.array(["a", "b"]), np.array([None, 1]), np.ones(2, ">f8"), np.ma.ones(2), np.matrix([[1.0]])):
        for _ in range(3):
            same(compiled(X, array), X * len(array))


def test_explain_of_arrays():
    assert captured(lambda x, a: (x * a).sin()).explain(X, np.ones(3)).startswith("2 steps: mul, sin")
