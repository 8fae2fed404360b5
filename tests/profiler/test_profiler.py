"""The profiler's records: events, how they nest, and their attributes. Expectations are from torch's profile."""

import gc
import sys
import threading

import pytest

import cygrad as cg
from cygrad.autograd import Function, forward_ad
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.autograd.profiler import profile, record_function

EVALUATE = "autograd::engine::evaluate_function: "


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        with record_function("inside backward"):
            return g * 2


class Fails(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        g.sin()
        raise ValueError("no gradient")


def events(prof, kind=None):
    return [event for event in prof.function_events if event.name != "[memory]" and kind in (None, event.kind)]


def names(prof):
    return [event.name for event in events(prof)]


def named(prof, name):
    return [event for event in prof.function_events if event.name == name]


def the(prof, name):
    event, = named(prof, name)
    return event


def tree(event):
    return event.name, [tree(child) for child in event.cpu_children]


def trees(prof):
    return [tree(event) for event in events(prof) if event.cpu_parent is None]


def leaf(*shape):
    return cg.ones(*shape, requires_grad=True)


# ----- Events -----
def test_forward_and_backward():
    x, w = leaf(2, 3), leaf(3, 4)
    with profile() as prof:
        with record_function("forward"):
            y = x @ w
        y.exp().backward(cg.ones(2, 4))
    forward, exp, root, exp_node, product_node, *leaves = trees(prof)
    assert forward == ("forward", [("aten::matmul", [])])
    assert exp == ("aten::exp", [])
    assert root == (EVALUATE + "torch::autograd::GraphRoot", [("torch::autograd::GraphRoot", [])])
    assert exp_node == (EVALUATE + "ExpBackward0", [("ExpBackward0", [])])
    name, ((inner, calls),) = product_node
    assert (name, inner) == (EVALUATE + y.grad_fn.name(), y.grad_fn.name())
    assert [call for call, _ in calls].count("aten::matmul") == 2
    assert leaves == [(EVALUATE + "torch::autograd::AccumulateGrad", [("torch::autograd::AccumulateGrad", [])])] * 2


def test_each_backward_has_one_root():
    x = leaf(2)
    with profile() as prof:
        cg.autograd.backward([x.sin(), x.cos()], [cg.ones(2), cg.ones(2)])
        cg.autograd.grad((x * 2).sum(), x)
    assert len(named(prof, "torch::autograd::GraphRoot")) == 2


@pytest.mark.cases("name, call", [
    ("add", lambda x: x + x), ("add", lambda x: cg.add(x, 1)), ("add_", lambda x: x.add_(1)), ("mul", lambda x: 2 * x),
    ("pow", lambda x: x**2), ("pow", lambda x: cg.pow(x, 3)), ("sum", lambda x: x.sum()), ("matmul", lambda x: x @ x),
    ("mm", lambda x: cg.mm(x, x)), ("cat", lambda x: cg.cat([x, x])), ("softmax", lambda x: x.softmax(0)), ("gt", lambda x: x > 0),
    ("where", lambda x: cg.where(x > 0, x, 0.0)), ("einsum", lambda x: cg.einsum("ij,jk->ik", x, x)),
    ("add", lambda x: cg.add(x, x, out=x)), ("to", lambda x: x.to(cg.float64)), ("to", lambda x: x.double()), ("numpy_T", lambda x: x.T),
])
def test_operators_have_the_names_of_torch(name, call):
    x = cg.ones(2, 2)
    with profile() as prof:
        call(x)
    assert f"aten::{name}" in [event.name for event in events(prof) if event.cpu_parent is None]


def test_the_forward_of_a_function_is_an_event():
    x = leaf(2)
    with profile() as prof:
        y = Double.apply(x)
        y.backward(cg.ones(2))
    assert tree(the(prof, "Double")) == ("Double", [("aten::mul", [])])
    assert tree(the(prof, "DoubleBackward")) == ("DoubleBackward", [("inside backward", [("aten::mul", [])])])
    assert [(event.name, event.scope) for event in events(prof, "function")] == [("Double", 0)]


def test_scopes():
    x = leaf(2)
    with profile() as prof:
        with record_function("label"):
            y = x * 2
        y.backward(cg.ones(2))
    scopes = {event.name: event.scope for event in events(prof)}
    assert scopes["label"] == 7 and scopes["aten::mul"] == 0 and scopes["MulBackward0"] == 1
    assert scopes[EVALUATE + "MulBackward0"] == 0 and scopes["torch::autograd::AccumulateGrad"] == 1
    assert [event.name for event in events(prof) if event.is_user_annotation] == ["label"]


def test_hooks_run_in_the_evaluation_of_their_node_but_outside_of_it():
    x = leaf(2)
    y = x * 2
    y.register_hook(lambda g: g.sin())
    y.grad_fn.register_prehook(lambda grads: (grads[0].cos(),))
    y.grad_fn.register_hook(lambda inputs, grads: (inputs[0].tanh(), *inputs[1:]))

    def change(leaf):
        leaf.grad.exp_()

    x.register_post_accumulate_grad_hook(change)
    with profile() as prof:
        y.backward(cg.ones(2))
    _, parts = tree(the(prof, EVALUATE + "MulBackward0"))
    assert [name for name, _ in parts] == ["aten::sin", "aten::cos", "MulBackward0", "aten::tanh"]
    assert ("aten::exp_", []) in tree(the(prof, "torch::autograd::AccumulateGrad"))[1]


def test_sums_of_gradients_are_made_in_place_also_in_a_profile():
    """The engine takes the same path in a profile; a sum in a buffer of its own is no call of an operator."""
    gc.collect()        # sparse tensors of other tests, for which sums are made anew
    x = leaf(3)
    y = x * 1
    z = y.sin() + y.cos() + y.exp()
    with profile(profile_memory=True) as prof:
        z.backward(cg.ones(3))
    assert "aten::add" not in names(prof)


def test_nested_events_of_one_name_join_if_the_inner_one_is_all_of_the_outer():
    with profile() as prof:
        with record_function("same"), record_function("same"), record_function("same"):
            cg.ones(2) * 2
        with record_function("other"):
            with record_function("other"):
                cg.ones(2) * 2
            cg.ones(2) * 2
    assert trees(prof) == [("same", [("aten::mul", [])]), ("other", [("other", [("aten::mul", [])]), ("aten::mul", [])])]
    assert the(prof, "same").cpu_parent is None and named(prof, "aten::mul")[0].cpu_parent is the(prof, "same")


# ----- Times -----
def test_self_time_is_the_total_without_the_childrens():
    x = leaf(50)
    with profile() as prof:
        with record_function("outer"):
            with record_function("inner"):
                y = (x * 2).sum()
            y.sin()
        Double.apply(x).sum().backward()
    for event in events(prof):
        assert event.cpu_time_total == event.time_range.elapsed_us() >= 0
        assert event.self_cpu_time_total == event.cpu_time_total - sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total > -1e-6
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start <= child.time_range.end <= event.time_range.end
    outer, node = the(prof, "outer"), the(prof, "DoubleBackward")
    assert 0 < outer.self_cpu_time_total < outer.cpu_time_total
    assert 0 < node.self_cpu_time_total < node.cpu_time_total
    top = sum(event.cpu_time_total for event in events(prof) if event.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(top)


def test_events_come_in_the_order_of_their_beginning():
    with profile() as prof:
        for _ in range(3):
            with record_function("range"):
                cg.ones(2) + 1
    starts = [event.time_range.start for event in events(prof)]
    assert starts == sorted(starts) and names(prof) == ["range", "aten::add"] * 3
    identifiers = [event.id for event in events(prof)]
    assert len(set(identifiers)) == 6 and identifiers == sorted(identifiers)


# ----- Sequence numbers -----
def test_forward_and_backward_of_an_operator_have_one_number():
    x = leaf(2, 2)
    with profile() as prof:
        outputs = [x @ x, x.sin(), Double.apply(x), x * x]
        cg.autograd.backward(outputs, [cg.ones(2, 2)] * 4)
    forward = {event.name: event for event in events(prof) if event.cpu_parent is None}
    for output, name in zip(outputs, ("aten::matmul", "aten::sin", "Double", "aten::mul"), strict=True):
        node, evaluation = the(prof, output.grad_fn.name()), the(prof, EVALUATE + output.grad_fn.name())
        assert node.sequence_nr == evaluation.sequence_nr == forward[name].sequence_nr == output.grad_fn._sequence_nr()
        assert node.forward is evaluation.forward is forward[name]
        assert node.fwd_thread == forward[name].thread


def test_operators_without_a_record_use_no_number_up():
    x, plain = leaf(2), cg.ones(2)
    with profile() as prof:
        with cg.no_grad():
            x.sin()
        plain.cos()
        y = x.exp()
        x.tanh()
        y.backward(cg.ones(2))
    numbers = {event.name: event.sequence_nr for event in events(prof)}
    assert numbers["aten::sin"] == -1
    assert numbers["aten::cos"] == numbers["aten::exp"] == numbers["ExpBackward0"]
    assert numbers["aten::tanh"] == numbers["aten::exp"] + 1
    assert the(prof, "ExpBackward0").forward is the(prof, "aten::exp")
    assert numbers["torch::autograd::AccumulateGrad"] == numbers["torch::autograd::GraphRoot"] == -1


def test_operators_in_a_backward_have_numbers_if_it_makes_a_graph():
    x = leaf(2)
    with profile() as prof:
        g, = cg.autograd.grad((x * x * x).sum(), x, create_graph=True)
        g.sum().backward()
    nodes = [event for event in events(prof, "backward") if event.forward is not None]
    inside = [event for event in nodes if any(parent.kind == "backward" for parent in ancestors(event.forward))]
    assert inside, "nodes of the second backward were made by operators in the first one"
    assert all(event.forward.sequence_nr == event.sequence_nr >= 0 for event in nodes)
    last = named(prof, "torch::autograd::GraphRoot")[-1]
    later = [event for event in events(prof, "operator") if event.time_range.start > last.time_range.start]
    assert later and all(event.sequence_nr == -1 for event in later)


def ancestors(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event


def test_a_node_whose_forward_ran_before_the_profile():
    y = leaf(2) * 2
    with profile() as prof:
        y.backward(cg.ones(2))
    node = the(prof, "MulBackward0")
    assert node.sequence_nr == y.grad_fn._sequence_nr() and node.forward is None and node.fwd_thread == 0


# ----- Shapes and operations -----
def test_shapes():
    x = leaf(2, 3)
    with profile(record_shapes=True) as prof:
        y = x * 2.5
        x + cg.ones(3)
        cg.cat([x, x], 1)
        with record_function("label", "text"):
            pass
        y.backward(cg.ones(2, 3))
    assert the(prof, "aten::mul").input_shapes == [[2, 3], []] and the(prof, "aten::mul").concrete_inputs == [None, 2.5]
    assert the(prof, "aten::add").input_shapes == [[2, 3], [3]]
    cat = the(prof, "aten::cat")
    assert cat.input_shapes == [[], []] and cat.structured_input_shapes == [[[2, 3], [2, 3]], []] and cat.concrete_inputs == [None, 1]
    assert the(prof, "label").input_shapes == [[]] and the(prof, "label").concrete_inputs == ["text"]
    assert the(prof, "MulBackward0").input_shapes == [[2, 3]]
    assert the(prof, "torch::autograd::AccumulateGrad").input_shapes == [[2, 3]]
    assert the(prof, EVALUATE + "MulBackward0").input_shapes == the(prof, "torch::autograd::GraphRoot").input_shapes == []


def test_shapes_are_recorded_by_their_option_only():
    with profile() as prof:
        cg.ones(2, 3) * 2
    assert the(prof, "aten::mul").input_shapes == the(prof, "aten::mul").concrete_inputs == []


def test_an_undefined_gradient_has_no_shape():
    part, _ = leaf(4).unbind()[:2]
    with profile(record_shapes=True) as prof:
        part.backward()
    assert the(prof, "UnbindBackward0").input_shapes == [[], [], [], []]


def test_operands_are_described_and_not_held():
    x = cg.ones(1000)
    before = sys.getrefcount(x)
    with profile(record_shapes=True) as prof:
        x * 2
        cg.cat([x, x])
    assert sys.getrefcount(x) == before and len(events(prof)) == 2


@pytest.mark.cases("operands, call, name, count", [
    (((2, 3), (3, 4)), lambda a, b: a @ b, "matmul", 2 * 2 * 3 * 4),
    (((2, 3), (3, 4)), cg.mm, "mm", 2 * 2 * 3 * 4),
    (((5, 2, 3), (5, 3, 4)), cg.bmm, "bmm", 2 * 5 * 2 * 3 * 4),
    (((5, 1, 2, 3), (7, 3, 4)), lambda a, b: a @ b, "matmul", 2 * 5 * 7 * 2 * 3 * 4),
    (((2, 3), (3,)), cg.mv, "mv", 2 * 2 * 3),
    (((3,), (3, 4)), lambda a, b: a @ b, "matmul", 2 * 3 * 4),
    (((3,), (3,)), cg.dot, "dot", 2 * 3),
    (((2, 4), (2, 3), (3, 4)), cg.addmm, "addmm", 2 * 2 * 3 * 4),
    (((2, 3), (3,)), lambda a, b: a * b, "mul", 6),
    (((3,), (2, 1)), lambda a, b: a + b, "add", 6),
    (((2, 3),), lambda a: a.mul_(2), "mul_", 6),
    (((),), lambda a: a + 1, "add", 1),
    (((2, 3),), lambda a: a / 2, "div", 0),
    (((2, 3),), lambda a: a.sum(), "sum", 0),
])
def test_floating_point_operations(operands, call, name, count):
    tensors = [cg.ones(shape) for shape in operands]
    with profile(with_flops=True) as prof:
        call(*tensors)
    assert the(prof, f"aten::{name}").flops == count
    assert sum(event.flops for event in events(prof)) == count
    assert prof.record_shapes


def test_operations_of_a_backward():
    x, w = leaf(2, 3), leaf(3, 4)
    with profile(with_flops=True) as prof:
        (x @ w).backward(cg.ones(2, 4))
    assert sum(event.flops for event in events(prof, "operator")) == 3 * 48
    assert prof.total_average().flops == 3 * 48


# ----- Memory -----
def test_memory_taken_and_given_back():
    with profile(profile_memory=True) as prof:
        with record_function("keeps"):
            tensor = cg.ones(1000)
        with record_function("nothing"):
            cg.ones(500)
        with record_function("outer"), record_function("inner"):
            other = cg.ones(250) * 2
        with record_function("frees"):
            del tensor
        del other
    assert the(prof, "keeps").cpu_memory_usage == 4000 and the(prof, "nothing").cpu_memory_usage == 0
    assert the(prof, "outer").cpu_memory_usage == the(prof, "inner").cpu_memory_usage == 1000
    assert the(prof, "outer").self_cpu_memory_usage == 0 and the(prof, "aten::mul").cpu_memory_usage == 1000
    assert the(prof, "inner").self_cpu_memory_usage == 0 and the(prof, "frees").cpu_memory_usage == -4000
    memory = the(prof, "[memory]")
    assert (memory.cpu_memory_usage, memory.cpu_time_total, memory.trace_name, memory.cpu_parent) == (-1000, 0, None, None)


def test_memory_of_a_backward():
    x = leaf(1000)
    y = x.exp()
    with profile(profile_memory=True) as prof:
        y.backward(cg.ones(1000))
    assert the(prof, "ExpBackward0").cpu_memory_usage == 4000
    assert sum(event.cpu_memory_usage for event in prof.function_events if event.cpu_parent is None) == 4000     # .grad


def test_memory_of_other_threads_is_theirs():
    tensors = []
    thread = threading.Thread(target=lambda: tensors.append(cg.ones(1000)))
    with profile(profile_memory=True) as prof, record_function("range"):
        thread.start()
        thread.join()
    assert the(prof, "range").cpu_memory_usage == 0 and len(tensors) == 1


def test_memory_is_recorded_by_its_option_only():
    with profile() as prof:
        tensor = cg.ones(1000) * 2
    assert [(event.name, event.cpu_memory_usage) for event in prof.function_events] == [("aten::mul", 0)] and tensor.numel() == 1000


# ----- Stacks -----
def helper(x):
    return x.sin()


def test_stacks():
    x = leaf(2)
    with profile(with_stack=True) as prof:
        y = helper(x)
        z = x.cos()
        y.backward(cg.ones(2))
    line = helper.__code__.co_firstlineno + 1
    innermost, caller, *_ = the(prof, "aten::sin").stack
    assert innermost.endswith(f"test_profiler.py({line}): helper")
    assert caller.endswith(": test_stacks") and the(prof, "aten::cos").stack[0].endswith(": test_stacks") and z.numel() == 2
    assert not any("cygrad/autograd" in entry for event in events(prof) for entry in event.stack)
    assert the(prof, "SinBackward0").stack == the(prof, "aten::sin").stack
    assert the(prof, EVALUATE + "SinBackward0").stack[0].endswith(": test_stacks")


def test_operators_in_a_backward_have_the_stack_of_the_forward():
    x = leaf(2)
    with profile(with_stack=True) as prof:
        y = Double.apply(x)
        y.backward(cg.ones(2))
    assert the(prof, "Double").stack == the(prof, "DoubleBackward").stack == the(prof, "inside backward").stack
    assert named(prof, "aten::mul")[1].stack == the(prof, "Double").stack


def test_stacks_leave_out_folders_of_sys_path(monkeypatch, tmp_path):
    (tmp_path / "somewhere.py").write_text("def call(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    import somewhere
    with profile(with_stack=True) as prof:
        somewhere.call(cg.ones(2))
    assert the(prof, "aten::mul").stack[0] == "somewhere.py(2): call"


def test_stacks_are_recorded_by_their_option_only():
    with profile() as prof:
        helper(cg.ones(2))
    assert the(prof, "aten::sin").stack == []


# ----- Errors -----
def test_exceptions_end_the_events_they_leave():
    x = leaf(2)
    with profile() as prof:
        with pytest.raises(RuntimeError, match="size"), record_function("range"):
            x * cg.ones(3)
        with pytest.raises(TypeError):
            x.sum("nonsense")
        y = Fails.apply(x).sin()
        with pytest.raises(ValueError, match="no gradient"):
            y.backward(cg.ones(2))
        x.exp()
    top = trees(prof)
    assert top[:2] == [("range", [("aten::mul", [])]), ("aten::sum", [])]
    assert (EVALUATE + "FailsBackward", [("FailsBackward", [("aten::sin", [])])]) in top
    assert top[-1] == ("aten::exp", [])


def test_an_exception_in_the_forward_of_a_function():
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("forward")

    with profile() as prof:
        with pytest.raises(KeyError):
            Broken.apply(leaf(2))
        cg.ones(2) * 2
    assert trees(prof) == [("Broken", []), ("aten::mul", [])]


def test_an_exception_ends_the_profile():
    with pytest.raises(ZeroDivisionError), profile() as prof, record_function("range"):
        _ = 1 / 0
    assert names(prof) == ["range"]
    with profile() as again:
        cg.ones(2) + 1
    assert names(again) == ["aten::add"]


# ----- The same results -----
def test_a_profile_changes_no_bit():
    """Nor the path by which a node computes: saved tensors packed by hooks, tangents, sums of gradients."""
    start = cg.linspace(-1, 1, 3000)

    def compute():
        x = start.clone().requires_grad_()
        with saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
            y = (x.tanh() * x.exp()).sigmoid()
        (y * x + y.sin()).sum().backward()
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(forward_ad.make_dual(start, start + 1).tanh()).tangent
        return x.grad, tangent

    expected = compute()
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        observed = compute()
    assert all(cg.equal(a, b) for a, b in zip(expected, observed, strict=True))


# ----- Off -----
def test_nothing_is_recorded_outside():
    before = cg.ones(2) + 1
    with profile() as prof:
        pass
    after = before * 2
    with record_function("outside"):
        after.sin()
    assert list(prof.function_events) == []


def test_nothing_is_left_of_a_profile():
    name = "".join(["a name of", " its own"])
    before = sys.getrefcount(name)
    with profile(record_shapes=True, with_stack=True, profile_memory=True) as prof:
        for _ in range(100):
            with record_function(name):
                cg.ones(2) * 2
    assert sys.getrefcount(name) > before and len(events(prof)) == 200
    del prof
    gc.collect()
    assert sys.getrefcount(name) <= before + 1      # the last record_function


def test_many_events():
    with profile() as prof:
        for _ in range(20_000):
            with record_function("range"):
                pass
        ranges = [record_function(str(depth)) for depth in range(3000)]
        for item in ranges:
            item.__enter__()
        for item in reversed(ranges):
            item.__exit__(None, None, None)
    assert prof.key_averages()[0].count == 20_000
    innermost = the(prof, "2999")
    assert len(list(ancestors(innermost))) == 2999 and "id=" in repr(innermost)
