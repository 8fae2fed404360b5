"""`cygrad.compile`: calls, decisions by values, changes of memory from outside, and calls that give up."""

import contextlib
import copy
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, same
from cygrad._testing import fail_alloc, live_bytes
from cygrad.autograd import grad

# ----- Calls -----
FIRST = """
import cygrad
x = cygrad.ones(1024, dtype=cygrad.float64).requires_grad_()
call = cygrad.compile(lambda x: (x[:, None] * x).exp().sum(), fullgraph=True)
call(x).backward()
call(x).backward()
print(call.cache_info().hits)
"""


def test_the_first_call_of_a_process_is_captured():
    """Kernels look up how many processors there are when they first use threads: in files, unless the environment says it."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    run = subprocess.run([sys.executable, "-c", FIRST], check=True, capture_output=True, text=True, env=environment)
    assert run.stdout == "1\n"


def test_a_decorator_with_and_without_options():
    @cg.compile
    def plain(x):
        """Add one."""
        return x + 1

    @cg.compile(fullgraph=True, mode="max-autotune", backend="eager", dynamic=False, options={})
    def with_options(x):
        return x + 1

    assert (plain.__name__, plain.__doc__) == ("plain", "Add one.")
    for function in (plain, with_options):
        assert [function(X).tolist() for _ in range(3)] == [[2, -1, 4]] * 3
        assert tuple(function.cache_info()) == (2, 1, 0, 1)
    plain.cache_clear()
    assert plain.cache_info().currsize == 0


def test_a_function_without_a_program_is_explained():
    for fullgraph in (False, True):
        compiled = cg.compile(lambda x: x * x.sum().item(), fullgraph=fullgraph)
        assert "values were given to Python or NumPy" in compiled.explain(X)
    with pytest.raises(RuntimeError, match="cannot be captured"):
        compiled(X)


def test_changed_settings_are_named():
    compiled = cg.compile(lambda x: (cg.manual_seed(3), x * 2)[1])
    with pytest.warns(RuntimeWarning, match=r"the seed of a generator was set\. Do that outside of the function"):
        compiled(X)


@pytest.mark.usefixtures("usual_sizes")
def test_a_program_is_explained():
    def function(x):
        y = x * 2 + 1
        return y.kthvalue(1).values if y.sum() > 0 else y

    text = cg.compile(function).explain(X)
    assert text.splitlines()[:6] == ["6 steps: mul, add, sum, gt, bool", "0 of them in 0 groups, block by block",
                                     "0 of them over large arrays, as the function itself runs them, contractions included",
                                     "1 calls of Python", "  kthvalue: its values were given to Python or NumPy",
                                     "1 decisions by values"]
    large = cg.compile(lambda x: (x * 2 + cg.rand(1 << 18)).sum()).explain(cg.rand(1 << 18))
    assert "\n3 of them over large arrays" in large and "\n  write_values: " in large
    assert "not captured" in cg.compile(lambda x: x.sum().item()).explain(X)


@pytest.mark.parametrize("dtype", [cg.float64, cg.float32, cg.complex128])
def test_floats_are_inputs_of_dynamic_functions(dtype):
    def step(x, size, *, options):
        y = x * size + options[0] - x.sin() / options[1][0]
        return y ** 2 if size > 0.5 else y - size

    compiled = cg.compile(step, dynamic=True, fullgraph=True)
    for k in range(20):
        arguments = {"size": 0.1 * k + 0.05, "options": (-0.3 * k, (k + 1.5, "name"))}
        x, z = (cg.tensor([0.25, -1.0, 3.0], dtype=dtype).requires_grad_() for _ in range(2))
        expected, result = step(x, **arguments), compiled(z, **arguments)
        same(result, expected)
        same(cg.autograd.grad(result.real.sum(), z)[0], cg.autograd.grad(expected.real.sum(), x)[0])
    assert compiled.cache_info()[:3] == (18, 2, 0)
    assert "steps" in compiled.explain(cg.ones(3), 0.25, options=(0.5, (1.0,)))


@pytest.mark.usefixtures("usual_sizes")
def test_a_profile_shows_the_steps_of_a_replay():
    x = cg.rand(5000, dtype=cg.float64).requires_grad_()
    compiled = cg.compile(lambda x: ((x * 2 + 1).sin() + x.kthvalue(3).values).sum())
    compiled(x).backward()
    with cg.autograd.profiler.profile() as profile:
        compiled(x).backward()
    names = {row.key.removeprefix("aten::") for row in profile.key_averages()}
    assert names >= {"mul + add + sin", "kthvalue", "sum", "CompiledFunctionBackward"}
    assert any(name.endswith("<lambda>()") for name in names)
    assert compiled.cache_info().hits == 1
    with cg.autograd.profiler.profile():
        fresh = cg.compile(lambda x: x * 2)
        fresh(x)
    assert fresh.cache_info().misses == 0


def test_classes_and_indices_are_captured():
    z, target = cg.rand(6, 5, dtype=cg.float64).requires_grad_(), cg.tensor([0, 1, 2, 3, 4, 0])
    losses = [lambda z, t: cg.nn.functional.cross_entropy(z, t), lambda z, t: cg.nn.functional.nll_loss(z, t), lambda z, t: z[t % 5].sum(),
              lambda z, t: z[cg.arange(6), t].exp().sum(), lambda z, t: z.gather(1, t[:, None]).exp().sum()]
    for loss in losses:
        compiled = captured(loss)
        for shift in range(3):
            t = (target + shift) % 5
            same(compiled(z, t), loss(z, t))
            same(cg.autograd.grad(compiled(z, t), z)[0], cg.autograd.grad(loss(z, t), z)[0])
        assert compiled.cache_info().misses == 1


def test_no_function_and_disabled():
    with pytest.raises(TypeError, match="expected a function, got int"):
        cg.compile(3)
    assert cg.compile(abs, disable=True) is abs


def test_methods_keywords_and_trees():
    class Model:
        def __init__(self):
            self.weights = {"a": X * 2, "b": [X, X + 1]}

        @cg.compile(fullgraph=True)
        def forward(self, x, *, scale=2.0):
            return {"sum": (x * self.weights["a"]).sum() * scale, "parts": (self.weights["b"][1] - x, scale, None)}

    model = Model()
    for x in (X + 0, X + 3):
        result = model.forward(x, scale=3.0)
        same(result["sum"], (x * X * 2).sum() * 3.0)
        same(result["parts"][0], X + 1 - x)
        assert result["parts"][1:] == (3.0, None)
    assert Model.__dict__["forward"].cache_info().hits == 1


def test_results_are_new_memory_at_each_call():
    function = captured(lambda x: (x + 1, cg.tensor([1., 2.])))
    first, constant = function(X)
    second, other = function(X)
    third, last = function(X)
    second.mul_(0)
    other.mul_(0)
    assert third.tolist() == first.tolist() == [2, -1, 4]
    assert last.tolist() == function(X)[1].tolist() == [1, 2]


def test_results_fed_back():
    function = captured(lambda x: x * 1.5 + 1)
    ours = theirs = X
    for _ in range(5):
        ours, theirs = function(ours), theirs * 1.5 + 1
        same(ours, theirs)


def test_arguments_and_their_views_are_returned_as_they_are():
    function = captured(lambda x, y: (x, y[1:], y))
    for _ in range(3):
        x, y = X.clone(), X.clone()
        first, part, second = function(x, y)
        assert first is x and second is y
        part.zero_()
        assert y.tolist() == [1, 0, 0]


def test_aliased_arguments():
    def shifted(x, y):
        x.add_(1)
        return x + y

    function = captured(shifted)
    for _ in range(3):
        base = cg.arange(4.)
        same(function(base[:3], base[1:]), cg.tensor([3., 5., 6.]))
        assert base.tolist() == [1, 2, 3, 3]
    separate = function(cg.arange(3.), cg.arange(3.))
    assert separate.tolist() == [1, 3, 5] and function.cache_info().currsize == 2


@pytest.mark.parametrize("change", [lambda x: x.to(cg.float32), lambda x: x[:2], lambda x: x.expand(2, 3), lambda x: x.flip(0),
                                    lambda x: x.clone().requires_grad_()], ids=["dtype", "shape", "dims", "memory", "requires_grad"])
def test_other_kinds_of_arguments_are_other_programs(change):
    function = captured(lambda x: x.sin() * 2)
    function(X)
    for _ in range(2):
        same(function(change(X)), change(X).sin() * 2)


def test_modes_are_part_of_the_kind():
    x = X.clone().requires_grad_()
    function = captured(lambda x: x * 2)
    assert function(x).requires_grad and function(x).requires_grad
    with cg.no_grad():
        assert not function(x).requires_grad and not function(x).requires_grad
    with cg.inference_mode():
        assert function(X).is_inference() and function(X).is_inference()
    assert not function(X).is_inference()


def test_numbers_are_compared_by_value_and_type():
    function = captured(lambda x, n: x * n if isinstance(n, float) else x + n)
    assert [function(X, n).tolist() for n in (2, 2.0, 2, True, -0.0)] == [[3, 0, 5], [2, -4, 6], [3, 0, 5], [2, -1, 4], [-0.0, 0.0, -0.0]]
    assert str(function(X, 0.0)[0]) != str(function(X, -0.0)[0])


# ----- Decisions -----
def test_branches_by_values():
    def branched(x):
        return x + 1 if x.sum() > 0 else x - 1 if x[0] < 0 else x * 0

    function = captured(branched)
    for x in (X, -X, X - 2, X, -X, X - 2):
        same(function(x), branched(x))
    assert tuple(function.cache_info())[:2] == (4, 2)


def test_while_loops_by_values():
    def halved(x):
        while x.sum() > 1:
            x = x / 2
        return x

    function = captured(halved)
    for x in (X, X * 10, X, X * 10):
        same(function(x), halved(x))


def test_assertions_and_errors_of_the_function_are_raised():
    def checked(x):
        assert x.sum() > 0, "negative"
        return x.log()

    function = captured(checked)
    function(X)
    with pytest.raises(AssertionError, match="negative"):
        function(-X)
    same(function(X), X.log())


def test_singular_matrices_raise_as_before():
    function = captured(lambda a: cg.linalg.inv(a))
    a = cg.tensor([[2., 1.], [1., 3.]])
    function(a)
    same(function(a * 2), cg.linalg.inv(a * 2))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        function(cg.zeros(2, 2))


def test_indices_are_checked():
    function = captured(lambda x, index: x.index_select(0, index))
    assert function(X, cg.tensor([2, 0])).tolist() == [3, 1]
    assert function(X, cg.tensor([1, 1])).tolist() == [-2, -2]
    with pytest.raises(IndexError, match="out of range"):
        function(X, cg.tensor([1, 3]))


def test_changes_before_an_error_stay():
    def f(x, index, state):
        state.add_(1)
        return (x * 3)[index].sum()

    function = captured(f)
    state = cg.zeros(())
    for k, index in enumerate([[1, 2], [0, 1], [500, 1], [1, 0]]):
        with pytest.raises(IndexError, match="500 is out of bounds") if 500 in index else contextlib.nullcontext():
            function(X, cg.tensor(index), state)
        assert state.item() == k + 1


def test_sizes_from_values():
    function = captured(lambda x: x.nonzero() * 2)
    for x in (X, X * 2, cg.tensor([0., 1., 0.], dtype=cg.float64), X, cg.tensor([1., 0., 0.], dtype=cg.float64)):
        same(function(x), x.nonzero() * 2)


# ----- Changes of memory from outside -----
def test_writes_are_repeated_and_counted():
    state = cg.zeros(3, dtype=cg.float64)

    def accumulate(x):
        state.add_(x)
        return state * 2

    compiled = captured(accumulate)
    for k in range(1, 4):
        version = state._version
        assert compiled(X).tolist() == (X * 2 * k).tolist()
        assert state.tolist() == (X * k).tolist() and state._version > version


def test_versions_are_the_functions():
    state = cg.zeros(3, dtype=cg.float64)

    def change(x, empty):
        x[1:].add_(1.0).mul_(2.0)
        state.copy_(x)
        empty.add_(1.0).mul_(2.0)
        y = (x * 2.0).add_(1.0)
        return y.mul_(2.0), x.reshape(-1)

    versions = []
    for function in (captured(change), change):
        state.zero_()
        for _ in range(3):
            x, empty, before = X.clone(), cg.zeros(0), state._version
            y, view = function(x, empty)
            versions.append((x._version, empty._version, state._version - before, y._version, view._version))
    assert versions == [(2, 2, 1, 2, 2)] * 6


def test_changes_through_data_are_counted_apart():
    """The version stays, as in eager and in torch; a saved value counts as changed."""
    def function(x, state):
        state.data.mul_(2)
        return x * state

    compiled = captured(function)
    for each in (compiled, compiled, compiled, function):
        state, x = X.clone(), X.clone().requires_grad_()
        saving = (x * state).sum()
        grad(each(x, state).sum(), x)
        assert state._version == 0
        same(state, X * 2)
        with pytest.raises(RuntimeError, match="changed through .data"):
            grad(saving, x)


def test_versions_of_a_replay_that_gives_up():
    def write(x, state):
        state[cg.tensor([0, 2])] = x[:2]
        return x * 2.0 if state.sum() > 3.0 else x * 3.0

    compiled = captured(write)
    for number in (1.0, 2.0, 1.0):
        state = cg.zeros(3)
        compiled(cg.full((3,), number), state)
        assert state._version == 1
    assert compiled.cache_info().misses == 2


def test_a_history_in_the_memory_of_an_argument():
    """A tensor that is written into a `detach()` is no view with the history of the argument."""
    def write(x, target):
        return target.detach().copy_(x * 3.0)

    with pytest.warns(RuntimeWarning, match="with another history"):
        compiled = cg.compile(write)
        for needs_grad in (False, True):
            for _ in range(3):
                x, target = cg.ones(3, requires_grad=True), cg.zeros(3, requires_grad=needs_grad)
                compiled(x, target).sum().backward()
                assert x.grad.tolist() == [3.0] * 3
                assert target.grad is None


def test_a_replay_that_gives_up_has_written_nothing():
    state = cg.zeros(3, dtype=cg.float64)

    def written_first(x):
        state.add_(x)
        if state.sum() > 3:
            state.mul_(0)
        return state + 0

    compiled = captured(written_first)
    eager = cg.zeros(3, dtype=cg.float64)
    for _ in range(6):
        result = compiled(X)
        eager.add_(X)
        if eager.sum() > 3:
            eager.mul_(0)
        assert result.tolist() == state.tolist() == eager.tolist()


def test_gradients_are_set_and_added():
    w = X.clone().requires_grad_()

    def step(x):
        loss = (w * x).square().sum()
        loss.backward()
        return loss.detach()

    compiled = captured(step)
    for _ in range(3):
        w.grad = None
        for k in range(1, 4):
            loss = compiled(X * k)
            theirs = X.clone().requires_grad_()
            for j in range(1, k + 1):
                expected = (theirs * (X * j)).square().sum()
                expected.backward()
            same(loss, expected)
            same(w.grad, theirs.grad)


def test_a_step_of_descent():
    def fitted(compiled):
        w = cg.zeros(3, dtype=cg.float64, requires_grad=True)

        def step(x, y):
            loss = ((w * x).sum() - y).square()
            loss.backward()
            with cg.no_grad():
                w.sub_(0.01 * w.grad)
            w.grad = None
            return loss.detach()

        step = captured(step) if compiled else step
        losses = [step(X * (k % 3), cg.tensor(float(k))) for k in range(20)]
        return [loss.item() for loss in losses] + w.tolist()

    assert fitted(True) == fitted(False)


def test_failing_allocations_change_nothing():
    state = cg.zeros(300, dtype=cg.float64)

    def accumulate(x):
        state.add_(x)
        return (state * 2).exp(), cg.linalg.cholesky(cg.eye(40, dtype=cg.float64) + x[0])

    compiled = captured(accumulate)
    x = cg.ones(300, dtype=cg.float64)
    compiled(x)
    compiled(x)
    before, results = live_bytes(), None
    for n in itertools.count(1):
        values = state.tolist()
        with fail_alloc(n) as failure:
            try:
                results = compiled(x)
            except MemoryError:
                assert state.tolist() == values
        if not failure.fired:
            break
        assert live_bytes() == before
    assert n > 1 and results is not None


def test_failing_copies_of_constants_change_nothing():
    state = cg.zeros(300, dtype=cg.float64)
    compiled = captured(lambda x: (state.add_(x).sum(), cg.tensor([1., 2., 3.])))
    x = cg.ones(300, dtype=cg.float64)
    compiled(x)
    for n in itertools.count(1):
        values = state.tolist()
        with fail_alloc(n) as failure:
            try:
                compiled(x)
            except MemoryError:
                assert state.tolist() == values
        if not failure.fired:
            break
    assert n > 1


def test_an_interrupt_changes_nothing():
    state = cg.zeros(3, dtype=cg.float64)

    def long(x):
        state.add_(1)
        for _ in range(6000):
            x = (x * 1.01).sin()
        return x

    compiled = captured(long)
    x = cg.ones(20_000)
    compiled(x)

    def stop(*_):
        raise InterruptedError("stopped")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(InterruptedError):
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            while True:
                called = state.tolist()
                compiled(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert state.tolist() in (called, [count + 1 for count in called])     # all of a call, or nothing
    assert state[0] == state[1] == state[2]


# ----- Copies -----
@cg.compile
def doubled(x):
    return x * 2


def test_copies_and_pickles():
    class Model:
        def __init__(self):
            self.rate = 2.0
            self.step = cg.compile(self.scaled)

        def scaled(self, x):
            return x * self.rate

    doubled(X)
    assert copy.deepcopy(doubled) is doubled and pickle.loads(pickle.dumps(doubled)) is doubled
    model = Model()
    model.step(X)
    other = copy.deepcopy(model)
    other.rate = 5.0
    assert other.step(X).tolist() == [5, -10, 15] and model.step(X).tolist() == [2, -4, 6]


def test_results_without_elements_and_dtypes():
    compiled = cg.compile(lambda x: (x.sin() * x, x.dtype))
    for _ in range(2):
        result, dtype = compiled(cg.ones(0, dtype=cg.float64))
        assert result.shape == (0,) and dtype == cg.float64
    assert compiled.cache_info().hits == 1


# ----- Threads -----
def test_threads_replay_one_function_side_by_side():
    def long(x):
        for _ in range(60):
            x = (x * 1.01).sin() + x
        return x

    compiled = captured(long)
    compiled(X)
    wrong = []

    def work(number):
        for k in range(1000):
            x = X + number + k
            if compiled(x).tolist() != expected[number + k]:
                wrong.append((number, k))

    expected = [long(X + k).tolist() for k in range(1008)]
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("size", [3, 100_000])
def test_a_forked_child_replays_and_captures(size):
    """The values of the parent are in its memory; the sizes are below and above the one from which regions have threads."""
    @captured
    def function(x):
        return (x * x).sin().sum()

    def gradient(x):
        x.requires_grad_()
        function(x).backward()
        return x.grad.numpy().tobytes()

    expected = [gradient(cg.arange(size, dtype=dtype) * 0.5) for dtype in (cg.float64, cg.float64, cg.float32)]
    child = os.fork()
    if not child:
        again = [gradient(cg.arange(size, dtype=dtype) * 0.5) for dtype in (cg.float64, cg.float64, cg.float32)]
        os._exit(0 if again == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gradient(cg.arange(size, dtype=cg.float64) * 0.5) == expected[0]
