"""Backwards of replays for gradients of other layouts, or of some results only: bits, errors and memory are eager's."""

from dataclasses import dataclass

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, same
from cygrad._testing import live_bytes
from cygrad.autograd import Function, grad
from cygrad.config import set_contraction
from test_functions_at_random import compare

ROWS, COLUMNS = 7, 5


def product(w, x):
    """Return an array whose gradient is summed: the order of the sum depends on its strides."""
    return w.exp() * x


def numbers(seed, *shape):
    return cg.tensor(np.random.default_rng(seed).uniform(0.3, 0.9, shape))


LAYOUTS = {
    "transposed": lambda seed: numbers(seed, COLUMNS, ROWS).T,
    "a part": lambda seed: numbers(seed, COLUMNS, 2 * ROWS).T[::2],
    "rows that are one": lambda seed: numbers(seed, COLUMNS).expand(ROWS, COLUMNS).T.contiguous().T,
    "of NumPy": lambda seed: cg.from_numpy(np.random.default_rng(seed).uniform(0.3, 0.9, (COLUMNS, ROWS))).T,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_gradients_keep_their_strides(name):
    compiled = captured(product)
    for seed in range(20):
        gradients = []
        for function in (compiled, product):
            x = cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
            gradients.append(grad(function(numbers(seed, ROWS, COLUMNS), x), x, LAYOUTS[name](seed + 1))[0])
        same(*gradients)
    assert compiled.cache_info().hits == 19


@pytest.mark.parametrize("seed", [10574, 50214, 66811, 72120, 72396, 76388])
def test_functions_whose_gradients_arrive_in_other_strides(seed):
    """They are rare: six of 102000 functions at random."""
    before = set_contraction(False)
    try:
        assert compare(seed)
    finally:
        set_contraction(before)


def test_a_layout_is_noted_once(capsys):
    def function(w, x):
        print("runs")
        return product(w, x)

    compiled = captured(function)
    x = cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
    for _ in range(5):
        compiled(numbers(0, ROWS, COLUMNS), x).sum().backward()
    assert capsys.readouterr().out.count("runs") == 2
    assert compiled.cache_info() == (4, 1, 0, 1)


def test_more_layouts_than_programs_run_the_function():
    compiled = captured(product)
    for width in range(1, 13):
        gradients = []
        for function in (compiled, compiled, product):
            x = cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
            gradients.append(grad(function(numbers(width, ROWS, COLUMNS), x), x, numbers(width, COLUMNS, width * ROWS).T[::width])[0])
        same(gradients[0], gradients[2])
        same(gradients[1], gradients[2])


def test_floats_stay_inputs(capsys):
    def function(x, rate):
        print("runs")
        return (x * rate).sin() * x

    compiled = captured(function)
    for k in range(1, 9):
        ours, theirs = (grad(each(x, 0.1 * k).sum(), x)[0] for each in (compiled, lambda x, rate: (x * rate).sin() * x)
                        for x in [X.clone().requires_grad_()])
        same(ours, theirs)
    assert capsys.readouterr().out.count("runs") == 1 + 2 + 1       # a value, another one and as an input, for gradients with strides of 0


def test_a_list_among_the_arguments_may_have_changed():
    compiled = captured(lambda x, factors: x * factors[0])
    for _ in range(3):
        factors, x = [2.0], X.clone().requires_grad_()
        result = compiled(x, factors)
        factors[0] = 5.0
        assert grad(result.sum(), x, retain_graph=True)[0].tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="an argument of .* was changed between its call and its backward"):
        grad(result.sum(), x, create_graph=True)


@dataclass
class Model:
    weight: cg.Tensor


def function_of(weight):
    """Return a function that names a tensor, and a function that gives it another one."""
    def call(x):
        return x * weight

    def change(other):
        nonlocal weight
        weight = other

    return call, change


HOLDERS = {     # a maker of an argument with a tensor, how a function uses it, how the argument gets another tensor
    "a list": (lambda w: [w], lambda holder, x: x * holder[0], lambda holder, w: holder.__setitem__(0, w)),
    "a dict in a tuple": (lambda w: ({"w": w},), lambda holder, x: x * holder[0]["w"], lambda holder, w: holder[0].update(w=w)),
    "a dataclass": (Model, lambda holder, x: x * holder.weight, lambda holder, w: setattr(holder, "weight", w)),
    "the variable of a function": (function_of, lambda holder, x: holder[0](x), lambda holder, w: holder[1](w)),
    "the default of a function": (lambda w: lambda x, w=w: x * w, lambda holder, x: holder(x),
                                  lambda holder, w: setattr(holder, "__defaults__", (w,))),
    "a method": (lambda w: Model(w).__eq__, lambda holder, x: x * holder.__self__.weight,
                 lambda holder, w: setattr(holder.__self__, "weight", w)),
}


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("factor", [0.5, None], ids=["a float that is an input", "tensors alone"])
def test_an_argument_may_have_another_tensor_by_the_backward(name, factor):
    """The function runs with the one of the call; of a method, it is an error."""
    make, use, change = HOLDERS[name]

    def call(holder, x, factor):
        return (use(holder, x) * (1.0 if factor is None else factor)).sin().sum()

    compiled, replays = captured(call), 0
    for number in range(5):
        factor = factor and factor + 1
        x, holder = numbers(number, 3).requires_grad_(), make(numbers(number + 10, 3))
        expected = grad(call(holder, x, factor), x)[0].tolist()
        before = compiled.cache_info().hits
        result = compiled(holder, x, factor)
        change(holder, numbers(9, 3))
        replays += compiled.cache_info().hits - before
        if name == "a method" and compiled.cache_info().hits > before:
            with pytest.raises(RuntimeError, match="an argument of .* was changed between its call and its backward"):
                grad(result, x, create_graph=True)
        else:
            assert grad(result, x, create_graph=True)[0].tolist() == expected
    assert replays > 2


def test_a_tensor_exchanged_beside_a_sparse_one_is_an_error():
    """Inputs are the values of a sparse tensor, without its pattern."""
    compiled, sparse = captured(lambda operands, x: (operands[0] @ x.sin()) * operands[1]), cg.tensor([[0., 2.], [3., 0.]]).to_sparse_csr()
    for k in range(3):
        x, operands = cg.tensor([1., 2.], requires_grad=True), [sparse * 1, cg.ones(2)]
        result = compiled(operands, x).sum()
        operands[1] = cg.ones(2)
        if k:
            with pytest.raises(RuntimeError, match="an argument of .* was changed"):
                grad(result, x, create_graph=True)


def test_a_result_that_no_backward_reads_may_change():
    compiled = captured(lambda x: x * 2)
    for _ in range(3):
        x = X.clone().requires_grad_()
        result = compiled(x)
        with cg.no_grad():
            result.mul_(1.5)
        assert grad(result.sum(), x, create_graph=True)[0].tolist() == [2.0] * 3


# ----- Nothing of it is seen -----
def test_noting_a_backward_changes_nothing():
    """The function runs once more: tensors that it writes, and generators, are as after the call."""
    def function(x, state):
        state.add_(x.detach()).mul_(2)
        return (x * state).exp() * cg.rand(3, dtype=cg.float64) * cg.rand(3, dtype=cg.float64, generator=generator)

    generator, seen = cg.Generator(), []
    for each in (captured(function), function):
        cg.manual_seed(0)
        generator.manual_seed(0)
        state = cg.zeros(3, dtype=cg.float64)
        for _ in range(4):
            x = (X * 0.01).requires_grad_()
            each(x, state).sum().backward()
            seen.append([x.grad.tolist(), state.tolist(), state._version, cg.rand(1).item(), cg.rand(1, generator=generator).item()])
    assert seen[:4] == seen[4:]


def test_inputs_may_have_changed():
    """The steps are noted with the values as they are now, and run with the values of the call."""
    compiled = captured(lambda w, x: (w * 2).exp() * x)
    gradients = []
    for function in (compiled, compiled, compiled._function):
        w, x = numbers(0, ROWS, COLUMNS), cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
        result = function(w, x)
        w.zero_()
        gradients.append(grad(result, x, numbers(1, COLUMNS, ROWS).T)[0])
        assert not w.any()
    same(gradients[1], gradients[2])


def test_steps_of_another_way_are_not_taken():
    """A branch by a value that has changed: the steps of the other branch read the same memory."""
    compiled = captured(lambda w, x: w.exp() * x if w.sum() > 0 else w.exp() / x)
    for _ in range(3):
        w, x = X.clone(), cg.tensor(0.5, dtype=cg.float64, requires_grad=True)
        result, expected = compiled(w, x), w.exp().sum().item()
        w.neg_()
        assert grad(result.sum(), x)[0].item() == pytest.approx(expected)


class Tripled(Function):
    """A function whose backward writes into the gradient that it gets."""

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g.mul_(3)


def test_a_gradient_that_cannot_be_written_is_an_error():
    compiled = captured(Tripled.apply)
    for _ in range(3):
        x = X.clone().requires_grad_()
        same(grad(compiled(x), x, X.clone())[0], X * 3)
        with pytest.raises(RuntimeError, match="more than one element"):
            compiled(x).sum().backward()


# ----- Some results -----
def test_gradients_of_some_results_are_replayed(capsys):
    def function(x):
        print("runs")
        return x.exp(), x.sin(), x * 2

    compiled = captured(function)
    for _ in range(4):
        for chosen in ([1], [0, 2]):
            x = X.clone().requires_grad_()
            gradients = []
            for each in (compiled, lambda x: (x.exp(), x.sin(), x * 2)):
                results = each(x)
                gradients.append(grad([results[k] for k in chosen], x, [X.clone() for _ in chosen])[0])
            same(*gradients)
    assert capsys.readouterr().out.count("runs") == 1 + 2


def test_inputs_that_only_other_results_need_may_change():
    compiled = captured(lambda x, w, v: (x * w, x * v))
    gradients = []
    for function in (compiled, compiled, compiled._function):
        x, w, v = X.clone().requires_grad_(), X.clone(), X * 2
        results = function(x, w, v)
        w.zero_()
        gradients.append(grad(results[1].sum(), x)[0])
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            grad(results[0].sum(), x)
    same(gradients[1], gradients[2])


def test_a_penalty_by_leaves_of_the_function_beside_a_running_mean():
    """The loss alone is differentiated: the function runs once more, and its leaves and hooks are no changes of other tensors."""
    weight, mean = X.clone().requires_grad_(), cg.zeros(3)

    def critic(x):
        score = (x * weight).tanh()
        with cg.no_grad():
            mean.mul_(0.9).add_(score)
        middle = (x * 0.5).detach().requires_grad_()
        middle.register_hook(lambda gradient: gradient * 2)
        slope, = grad((middle * weight).tanh().sum(), middle, create_graph=True)
        penalty = (slope - 1).square().mean()
        return score.mean() + penalty, penalty

    compiled, gradients = captured(critic), []
    for function in (compiled, critic):
        mean.zero_()
        gradients.append([grad(function(X + number)[0], weight)[0].tolist() for number in range(4)])
    assert gradients[0] == gradients[1] and compiled.cache_info().hits == 3


# ----- A second backward -----
SAVING_NOTHING = {"a number": lambda x: (x * 2).sum(), "a view": lambda x: x[1:] - 1, "a sum": lambda x: (x + x.flip(0)).mean()}


@pytest.mark.parametrize("name", SAVING_NOTHING)
def test_a_second_backward_of_a_function_that_saves_nothing(name):
    compiled = captured(SAVING_NOTHING[name])
    for function in (compiled, compiled, compiled._function):
        x = X.clone().requires_grad_()
        result = function(x).sum()
        result.backward()
        first = x.grad.clone()
        result.backward()
        same(x.grad, first * 2)


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Saving(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


def changed(x):
    y = x * 1
    y[1:] = x[:-1]
    return y


SAVING = {"an operand": lambda x: x * x, "a result": lambda x: x.exp(), "an index": lambda x: x[cg.tensor([0, 0])],
          "a function": Saving.apply, "a part that was written": changed, "an operand of a number": lambda x: (x * x).sum()}


@pytest.mark.parametrize("name", SAVING)
def test_a_second_backward_of_freed_values_is_an_error(name):
    compiled = captured(SAVING[name])
    for function in (compiled, compiled, compiled._function):
        x = X.clone().requires_grad_()
        result = function(x).sum()
        result.backward()
        with pytest.raises(RuntimeError, match="second time"):
            result.backward()


def test_values_of_other_results_are_not_freed():
    def function(x):
        middle = x.exp()
        return x.sin(), middle * 2, middle * 3, Doubled.apply(x)

    compiled = captured(function)
    outcomes = []
    for each in (compiled, compiled, function):
        x = X.clone().requires_grad_()
        results = [result.sum() for result in each(x)]
        outcomes.append([])
        for number in (0, 0, 1, 2, 3, 3):
            try:
                outcomes[-1].append(grad(results[number], x)[0].tolist())
            except RuntimeError as error:
                outcomes[-1].append(str(error)[:40])
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert sum(isinstance(each, str) for each in outcomes[0]) == 2


# ----- Sums over several nodes -----
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_calls_add_their_parts_to_gradients_in_the_order_of_the_engine(dtype, create_graph):
    """Each call reads the tensors several times: the sum of a call by itself would have other last bits."""
    def cell(w, y):
        return (w @ (y + 0.1 * (w @ y) * y)).tanh()

    def gradients(function):
        rng = np.random.default_rng(0)
        w, y = (cg.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=True) for shape in ((5, 5), 5))
        states = [y]
        for _ in range(12):
            states.append(function(w, states[-1]))
        loss = cg.stack(states).square().sum() + (w * y).sum()
        return grad(loss.real if loss.is_complex() else loss, (w, y), create_graph=create_graph)

    for ours, theirs in zip(gradients(captured(cell)), gradients(cell), strict=True):
        same(ours, theirs)


INDEX, OTHER_INDEX = cg.tensor([0, 3, 3, 1, 0, 3, 2]), cg.tensor([3, 3, 2, 0, 1, 3, 3])
TAKEN = {"an index": lambda w, i: w[i], "rows": lambda w, i: w.index_select(0, i), "of a view": lambda w, i: w.mT.mT[:, 1:][i],
         "an embedding": lambda w, i: cg.nn.functional.embedding(i, w), "places": lambda w, i: w.gather(0, i[:, None].expand(-1, 5))}


@pytest.mark.parametrize("name", TAKEN)
def test_equal_elements_are_added_in_the_order_of_the_engine(name):
    """They are added one by one to the gradient that other nodes have brought."""
    def encoded(w, i):
        return (TAKEN[name](w, i) * 3).tanh()

    compiled = captured(encoded)
    for seed in range(4):
        for loss in (lambda function, w: (function(w, INDEX) * function(w, OTHER_INDEX)).sum(),
                     lambda function, w: (function(w, INDEX).sum() * w).logsumexp(-1).sum()):
            w = numbers(seed, 4, 5).requires_grad_()
            same(grad(loss(compiled, w), w)[0], grad(loss(encoded, w), w)[0])


def test_a_hook_on_a_result_that_no_gradient_reaches_is_not_called():
    function, seen = captured(lambda x: (x.sin(), x.cos())), []
    for _ in range(3):
        first, second = function(X.clone().requires_grad_())
        first.register_hook(seen.append)
        second.sum().backward()
    assert not seen


def test_a_hook_of_the_call_sees_its_part_alone():
    @captured
    def function(x):
        return x * x.sin()

    x, seen = X.clone().requires_grad_(), []
    function(x)
    y = function(x)
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: seen.append(grad_inputs[0]))
    part, = grad(y.sum(), x, retain_graph=True)
    (y + x.exp()).sum().backward()
    assert len(seen) == 2
    same(seen[0], part)
    same(seen[1], part)


def test_gradients_of_more_sets_of_results_than_a_program_has_parts_for():
    """Where the function cannot run again, as a tensor that no backward reads has changed, the part is made for the one backward."""
    offset = cg.zeros(3, dtype=cg.float64)

    def function(x):
        h = x.sin() + offset
        return h, h.exp(), h.cos(), h * h

    compiled, x = captured(function), X.clone().requires_grad_()
    for number in range(1, 15):
        chosen = [k for k in range(4) if number >> k & 1]
        gradients = []
        for each in (function, compiled):
            offset.fill_(number)
            results = each(x)
            offset.add_(1)
            gradients.append(grad([results[k] for k in chosen], x, [cg.ones_like(x)] * len(chosen))[0])
        same(*gradients)


# ----- Memory -----
def test_programs_keep_no_tensors():
    """Neither the inputs that they were captured with, nor the gradients; large arenas are given back."""
    compiled, before = captured(lambda w, x: product(w, x) * 2), live_bytes()
    for transposed in (False, True):
        for _ in range(3):
            w, x = numbers(0, 400, 400), cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
            grad(compiled(w, x), x, w.T if transposed else w)
    del w, x
    assert live_bytes() < before + 400 * 400
