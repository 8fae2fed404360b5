"""At capture the backward runs once besides the call of the user: nothing that its code does may be seen."""

import functools
import os
import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import Function
from cygrad.checkpoint import checkpoint
from samples import same_bits

CALLS = 3
GLOBAL = cg.zeros(3)
LOG: list[float] = []
COUNTS = np.zeros(3)
TOTAL = 0.0


class Meter:
    readings: list[float] = []
    factor = 2.0

    def __init__(self):
        self.count = 0

    def __call__(this, gradient):       # by another name than most
        this.readings.append(1.0)

    @classmethod
    def note(cls):
        cls.readings.append(1.0)

    def watch(self, gradient):
        self.count += 1


METER = Meter()
GENERATOR = cg.Generator()
LEAF = cg.ones(3, requires_grad=True)
VARIABLE = "CYGRAD_TESTS_OF_A_REPEATED_BACKWARD"


def with_hook(hook):
    """Return a function of a tensor, its state and a result of the forward part, which its backward passes to a hook."""
    def function(x, state):
        seen = x.detach() * 2.0
        seen.add_(x.detach())
        y = x * 3.0
        y.register_hook(lambda gradient: hook(gradient, state, seen))
        return y * x, seen

    return function


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, state):
        ctx.state = state
        return x * 2.0

    @staticmethod
    def backward(ctx, gradient):
        ctx.state.add_(1.0)
        return gradient * 2.0, None


def change_state(gradient, state, seen):
    state.add_(gradient).mul_(0.5)


def change_result(gradient, state, seen):
    seen.add_(gradient).mul_(0.5)


def change_by_index(gradient, state, seen):
    state[cg.tensor([0, 2])] = gradient[:2]


def change_by_sorting(gradient, state, seen):
    state.copy_((gradient + state + 1.0).sort(descending=True)[0])


def change_global(gradient, state, seen):
    GLOBAL.add_(1.0)


def draw(gradient, state, seen):
    return gradient * cg.rand(3)


def change_list(gradient, state, seen):
    LOG.append(float(gradient.sum()))


def change_array(gradient, state, seen):
    COUNTS[0] += 1


def assign_global(gradient, state, seen):
    global TOTAL
    TOTAL += 1.0


def change_object(gradient, state, seen):
    METER.watch(gradient)


def change_in_turn(gradient, state, seen, log=LOG):
    log.append(1.0)


def change_class(gradient, state, seen):
    Meter.readings.append(1.0)


def change_class_by_name(gradient, state, seen):
    vars(Meter)["readings"].append(1.0)


def change_module(gradient, state, seen):
    import os
    os.environ[VARIABLE] += "1"


def change_own_attribute(gradient, state, seen):
    (lambda function: function.readings.append(1.0))(change_own_attribute)


def change_by_another(gradient, state, seen):
    (lambda: Meter.note())()


def change_settings(gradient, state, seen):
    np.seterr(all="ignore")
    cg.set_default_dtype(cg.float64)


def draw_elsewhere(gradient, state, seen):
    return gradient * cg.rand(3, generator=GENERATOR)


def add_to_gradient(gradient, state, seen):
    with cg.enable_grad():
        (LEAF * 2.0).sum().backward()


def note(log, gradient, state, seen):
    log.append(1.0)


def without_arguments(hook):
    """Return a function of a tensor and its state whose backward calls a hook with the gradient alone."""
    def function(x, state):
        y = x * 3.0
        y.register_hook(hook)
        return y * x, x * 2.0

    return function


class Logged(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.log = LOG
        return x * 2.0

    @staticmethod
    def backward(ctx, gradient):
        ctx.log.append(1.0)
        return gradient * 2.0


def read_class(gradient, state, seen):
    return gradient * Meter.factor


def give_gradient(gradient, state, seen):
    state.grad = gradient.clone()


def cell_hook():
    count = 0

    def hook(gradient, state, seen):
        nonlocal count
        count += 1
        return gradient * count

    return hook


HOOKS = (change_state, change_result, change_by_index, change_by_sorting, change_global, draw, change_list, change_array, assign_global,
         change_object, give_gradient, change_in_turn, change_class, change_class_by_name, change_module, change_own_attribute,
         change_by_another, change_settings, draw_elsewhere, add_to_gradient)
FUNCTIONS = {
    **{hook.__name__: with_hook(hook) for hook in HOOKS},
    "a function's backward": lambda x, state: (Scaled.apply(x, state), x * 2.0),
    "attributes of a context": lambda x, state: (Logged.apply(x), x * 2.0),
    "a partial function": with_hook(functools.partial(note, LOG)),
    "a method of a list": without_arguments(LOG.append),
    "a callable object": without_arguments(METER),
    "a bound method of a class": without_arguments(functools.partial(list.append, LOG)),
    "a checkpoint": lambda x, state: (checkpoint(lambda each: each.sin() * cg.rand(3), x, use_reentrant=False), x * 2.0),
}


def history(function):
    """Return the values that can be seen after each of some calls and backwards."""
    global TOTAL
    GLOBAL.zero_()
    LOG.clear()
    Meter.readings.clear()
    change_own_attribute.readings = []
    COUNTS[:], METER.count, TOTAL, LEAF.grad, os.environ[VARIABLE] = 0, 0, 0.0, None, ""
    cg.manual_seed(0)
    GENERATOR.manual_seed(0)
    state, values = cg.zeros(3), []

    def look(*tensors):
        values.extend([*(each.detach().numpy().copy() for each in (*tensors, state, GLOBAL)), np.array(len(LOG)), COUNTS.copy(),
                       np.array([METER.count, TOTAL, state._version, state.grad is None, len(Meter.readings), len(os.environ[VARIABLE]),
                                 len(change_own_attribute.readings), np.geterr()["over"] == "ignore", LEAF.grad is None]),
                       GENERATOR.get_state().numpy().copy()])

    for k in range(CALLS):
        x = cg.tensor([1.0, 2.0, 3.0 + k], requires_grad=True)
        y, seen = function(x, state)
        look(y, seen, cg.rand(1))
        (y * cg.tensor([1.0, 5.0, 3.0])).sum().backward()
        look(x.grad, seen, cg.rand(1))
    return values


def histories(function):
    """Return the histories of a function that is compiled, and of itself."""
    histories = []
    for each in (cg.compile(function), function):
        dtype = cg.get_default_dtype()
        with warnings.catch_warnings(), np.errstate():
            warnings.simplefilter("ignore", RuntimeWarning)     # some stay as they are
            try:
                histories.append(history(each))
            finally:
                cg.set_default_dtype(dtype)
    return histories


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_changes_nothing(name):
    computed = histories(FUNCTIONS[name])
    for value, expected in zip(*computed, strict=True):
        assert same_bits(value, expected)


def test_a_cell_is_no_state_of_it():
    with pytest.warns(RuntimeWarning, match=r"its backward runs hook\(\) .* assigns count: compute the gradients in the function"):
        computed = history(cg.compile(with_hook(cell_hook())))
    for value, expected in zip(computed, history(with_hook(cell_hook())), strict=True):
        assert same_bits(value, expected)


def use_operators(gradient, state, seen):
    return cg.linalg.norm(cg.cat([gradient, cg.sin(gradient)])) * cg.exp(-gradient.abs()).to(cg.float32)


@pytest.mark.parametrize("hook", [change_state, change_result, draw, use_operators], ids=lambda hook: hook.__name__)
def test_changes_of_tensors_are_captured(hook):
    compiled = cg.compile(with_hook(hook), fullgraph=True)
    assert history(compiled)
    assert compiled.cache_info().hits == CALLS - 1


def test_a_class_is_read():
    compiled = cg.compile(with_hook(read_class), fullgraph=True)
    assert history(compiled)
    assert compiled.cache_info().hits == CALLS - 1


def on_leaf(x):
    x.register_post_accumulate_grad_hook(lambda leaf: LOG.append(1.0))


def on_node(x):
    x.grad_fn.register_prehook(lambda gradients: (gradients[0] * 2.0,))


def on_accumulation(x):
    x.grad_fn.next_functions[0][0].register_hook(lambda inputs, outputs: LOG.append(1.0))


@pytest.mark.parametrize("register", [on_leaf, on_node, on_accumulation], ids=lambda register: register.__name__)
def test_hooks_on_arguments_are_no_part_of_a_program(register):
    def function(x):
        register(x)
        return x * x

    seen = []
    with pytest.warns(RuntimeWarning, match="it registers a hook on a leaf, or on the history of an argument"):
        for each in (cg.compile(function), function):
            LOG.clear()
            for _ in range(CALLS):
                x = cg.ones(3, requires_grad=True)
                each(x if register is on_leaf else x * 1.0).sum().backward()
                seen.append((len(LOG), x.grad.tolist()))
    assert seen[:CALLS] == seen[CALLS:]


# ----- Changes of a tensor otherwise than in its values -----
def register_a_hook(tensor):
    if tensor.requires_grad:
        tensor.register_hook(lambda gradient: gradient)


def count_hooks(tensor):
    return len(tensor._backward_hooks or ())


CHANGES = {
    "requires_grad_": lambda tensor: tensor.requires_grad_(not tensor.requires_grad),
    "resize_": lambda tensor: tensor.resize_(tensor.numel() + 3),
    "set_": lambda tensor: tensor.set_(cg.zeros(2)),
    "unsqueeze_": lambda tensor: tensor.unsqueeze_(0),
    "detach_": lambda tensor: tensor.detach_(),
    "register_hook": register_a_hook,
}


@pytest.mark.parametrize("of_result", [False, True], ids=["a tensor that it names", "a result"])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_tensors_themselves_are_no_part_of_a_program(name, of_result):
    change, with_history = CHANGES[name], name in ("detach_", "register_hook")

    def function(x):
        seen = x * 2.0 if with_history else x.detach() * 2.0
        y = x * 3.0
        y.register_hook(lambda gradient: (change(seen if of_result else state), None)[1])
        return y * x, seen

    outcomes = []
    for each in (cg.compile(function), function):
        state = cg.ones(3, requires_grad=with_history)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for _ in range(CALLS):
                x = cg.ones(3, requires_grad=True)
                y, seen = each(x)
                for backward in (lambda: None, y.sum().backward):
                    backward()
                    outcomes.append([(tensor.requires_grad, tensor.shape, count_hooks(tensor), tensor.grad_fn is None)
                                     for tensor in (state, seen)])
    assert outcomes[:2 * CALLS] == outcomes[2 * CALLS:]


def test_leaves_that_a_backward_makes_are_its_own():
    class Again(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, gradient):
            with cg.enable_grad():
                leaf = ctx.saved_tensors[0].detach().requires_grad_()
                leaf.register_hook(lambda g: g * 2)
                return cg.autograd.grad(leaf.sin(), leaf, gradient)[0]

    compiled = cg.compile(lambda x: Again.apply(x).sum(), fullgraph=True)
    for _ in range(CALLS):
        x = cg.ones(3, requires_grad=True)
        compiled(x).backward()
        assert same_bits(x.grad.numpy(), (2 * cg.ones(3).cos()).numpy())


def test_versions_of_gradients():
    class Change(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, gradient):
            return gradient.mul_(2.0) * 2.0

    compiled = cg.compile(Change.apply, fullgraph=True)
    for _ in range(3):
        x, gradient = cg.ones(3, requires_grad=True), cg.ones(3)
        compiled(x).backward(gradient)
        assert (x.grad.tolist(), gradient.tolist(), gradient._version) == ([4.0] * 3, [2.0] * 3, 1)
