"""The reference documents' printed examples and their outputs, with the import changed; lines that need CUDA are left out."""

import sys
import warnings
from types import SimpleNamespace

import pytest

import cygrad as flow
import cygrad as torch
from cygrad import autograd
from cygrad.autograd import Function
from cygrad.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp


def test_no_grad():
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
    assert y.requires_grad is False

    @torch.no_grad()
    def doubler(x):
        return x * 2

    z = doubler(x)
    assert z.requires_grad is False


def test_enable_grad():
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad(), torch.enable_grad():
        y = x * 2
    assert y.requires_grad is True
    y.backward()
    assert repr(x.grad) == "tensor([2.])"

    @torch.enable_grad()
    def doubler(x):
        return x * 2

    with torch.no_grad():
        z = doubler(x)
    assert z.requires_grad is True


def test_set_grad_enabled():
    x = torch.tensor([1.0], requires_grad=True)
    is_train = False
    with torch.set_grad_enabled(is_train):
        y = x * 2
    assert y.requires_grad is False
    try:
        torch.set_grad_enabled(True)
        y = x * 2
        assert y.requires_grad is True
        torch.set_grad_enabled(False)
        y = x * 2
        assert y.requires_grad is False
    finally:
        torch.set_grad_enabled(True)


def test_the_leaf_of_the_grad_mode_examples_must_be_floating():
    """The examples make it of integers, which 2.13 refuses."""
    with pytest.raises(RuntimeError, match="Only Tensors of floating point .* can require gradients"):
        torch.tensor([1], requires_grad=True)


def test_clearing_gradients_by_none_before_each_accumulation():
    parameters = [torch.ones(2, 3).T.requires_grad_(), torch.ones(2, requires_grad=True)]
    for _ in range(3):
        loss = (parameters[0] @ parameters[1]).sum()
        for param in parameters:
            param.grad = None
        loss.backward()
        assert [param.grad.tolist() for param in parameters] == [[[1, 1]] * 3, [3, 3]]
        assert [param.grad.stride() for param in parameters] == [param.stride() for param in parameters]


def test_factory():
    autograd_tensor = torch.randn((2, 3, 4), requires_grad=True)
    assert autograd_tensor.requires_grad
    assert autograd_tensor.shape == (2, 3, 4)


def test_is_leaf():
    a = torch.rand(10, requires_grad=True)
    assert a.is_leaf is True
    c = torch.rand(10, requires_grad=True) + 2
    assert c.is_leaf is False
    d = torch.rand(10)
    assert d.is_leaf is True
    e = torch.rand(10).requires_grad_()
    assert e.is_leaf is True
    f = torch.rand(10, requires_grad=True, device="cpu")
    assert f.is_leaf is True


def test_register_hook():
    v = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    h = v.register_hook(lambda grad: grad * 2)
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert repr(v.grad) == "tensor([2., 4., 6.])"
    h.remove()
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert repr(v.grad) == "tensor([3., 6., 9.])"


class Exp(Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


class PlainExp(Function):
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


@pytest.mark.parametrize("call", [Exp.apply, lambda input: Exp()(input), PlainExp.apply, lambda input: PlainExp()(input)])
def test_exp(call):
    input = flow.tensor([0.0, 1.0], requires_grad=True)
    output = call(input)
    assert output.tolist() == input.exp().tolist()
    assert output.grad_fn.name() in ("ExpBackward", "PlainExpBackward")
    output.sum().backward()
    assert input.grad.tolist() == output.tolist()


def test_detect_anomaly():
    class MyFunc(autograd.Function):
        @staticmethod
        def forward(ctx, inp):
            return inp.clone()

        @staticmethod
        def backward(ctx, gO):
            # Error during the backward pass
            raise RuntimeError("Some error in backward")
            return gO.clone()

    def run_fn(a):
        out = MyFunc.apply(a)
        return out.sum()

    inp = torch.rand(10, 10, requires_grad=True)
    out = run_fn(inp)
    with pytest.raises(RuntimeError, match="^Some error in backward$"):
        out.backward()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="^Some error in backward$"), autograd.detect_anomaly():
            inp = torch.rand(10, 10, requires_grad=True)
            out = run_fn(inp)
            out.backward()
    (trace,) = (str(warning.message) for warning in caught if "Error detected in MyFuncBackward" in str(warning.message))
    printed = [line for line in trace.splitlines() if line.strip()]
    assert printed[0].endswith("Traceback of forward call that caused the error:")
    outer = next(number for number, line in enumerate(printed) if line.strip() == "out = run_fn(inp)")
    inner = next(number for number, line in enumerate(printed) if line.strip() == "out = MyFunc.apply(a)")
    assert printed[inner - 1].endswith("in run_fn")
    assert outer < inner


# ----- The functional API -----
# The documents draw the inputs; the inputs here give the printed results, and where a result is exp(x) or 6 * x, all of it.
def exp_reducer(x):
    return x.exp().sum(dim=1)


def exp_adder(x, y):
    return 2 * x.exp() + 3 * y


def adder(x, y):
    return 2 * x + 3 * y


def pow_reducer(x):
    return x.pow(3).sum()


def pow_adder_reducer(x, y):
    return (2 * x.pow(2) + 3 * y.pow(2)).sum()


def assert_printed(result, expected, differentiable=False):
    """Compare nested tuples of tensors with the numbers in the documents, which have four digits behind the point."""
    if isinstance(expected, tuple):
        assert isinstance(result, tuple) and len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_printed(one, other, differentiable)
    else:
        expected = torch.tensor(expected)
        assert result.shape == expected.shape
        assert (result - expected).abs().max() <= 1.1e-4
        assert ("grad_fn=<" in repr(result)) is differentiable


def test_jacobian():
    inputs = torch.tensor([[1.4917, 2.4352], [2.4369, 2.3799]]).log()
    printed = [[[1.4917, 2.4352], [0.0, 0.0]], [[0.0, 0.0], [2.4369, 2.3799]]]
    assert_printed(jacobian(exp_reducer, inputs), printed)
    assert_printed(jacobian(exp_reducer, inputs, create_graph=True), printed, differentiable=True)


def test_jacobian_of_two_inputs():
    inputs = (torch.tensor([2.8052, 3.3963]) / 2).log(), torch.rand(2)
    assert_printed(jacobian(exp_adder, inputs), ([[2.8052, 0.0], [0.0, 3.3963]], [[3.0, 0.0], [0.0, 3.0]]))


def test_hessian():
    inputs = torch.tensor([[5.2265, 4.8221], [1.9456, 3.2550]]) / 6
    printed = [[[[5.2265, 0.0], [0.0, 0.0]], [[0.0, 4.8221], [0.0, 0.0]]], [[[0.0, 0.0], [1.9456, 0.0]], [[0.0, 0.0], [0.0, 3.2550]]]]
    assert_printed(hessian(pow_reducer, inputs), printed)
    assert_printed(hessian(pow_reducer, inputs, create_graph=True), printed, differentiable=True)


def test_hessian_of_two_inputs():
    zeros = [[0.0, 0.0], [0.0, 0.0]]
    printed = ([[4.0, 0.0], [0.0, 4.0]], zeros), (zeros, [[6.0, 0.0], [0.0, 6.0]])
    assert_printed(hessian(pow_adder_reducer, (torch.rand(2), torch.rand(2))), printed)


def test_vjp():
    product = [[1.4458, 1.3962, 1.3042, 1.6354], [2.1288, 1.0652, 1.5483, 2.5035], [2.2046, 1.1292, 1.1432, 1.3059],
               [1.3225, 1.6652, 1.7753, 2.0152]]
    inputs, v, output = torch.tensor(product).log(), torch.ones(4), [5.7817, 7.2458, 5.7830, 6.7782]
    assert_printed(vjp(exp_reducer, inputs, v), (output, product))
    assert_printed(vjp(exp_reducer, inputs, v, create_graph=True), (output, product), differentiable=True)


def test_jvp():
    output = [6.3090, 4.6742, 7.9114, 8.2106]
    inputs, v = (torch.tensor(output) / 4).log().unsqueeze(1).repeat(1, 4), torch.ones(4, 4)
    assert_printed(jvp(exp_reducer, inputs, v), (output, output))
    assert_printed(jvp(exp_reducer, inputs, v, create_graph=True), (output, output), differentiable=True)


def test_vjp_and_jvp_of_two_inputs():
    x, y, ones = torch.tensor([0.5, 0.25]), torch.tensor([0.4742, 0.6113]), torch.ones(2)
    assert_printed(vjp(adder, (x, y), ones), ([2.4226, 2.3339], ([2.0, 2.0], [3.0, 3.0])))
    assert_printed(jvp(adder, (x, y), (ones, ones)), ([2.4226, 2.3339], [5.0, 5.0]))


@pytest.mark.parametrize(("product", "output", "printed"), [
    (vhp, 0.5591, [[1.0689, 1.2431], [3.0989, 4.4456]]),
    (hvp, 0.1448, [[2.0239, 1.6456], [2.4988, 1.4310]]),
])
def test_vhp_and_hvp(product, output, printed):
    inputs, v = torch.tensor(printed) / 6, torch.ones(2, 2)
    assert_printed(product(pow_reducer, inputs, v), (output, printed))
    assert_printed(product(pow_reducer, inputs, v, create_graph=True), (output, printed), differentiable=True)


@pytest.mark.parametrize("product", [vhp, hvp])
def test_vhp_and_hvp_of_two_inputs(product):
    inputs, v = (torch.rand(2), torch.rand(2)), (torch.zeros(2), torch.ones(2))
    output, products = product(pow_adder_reducer, inputs, v)
    assert output.item() == pow_adder_reducer(*inputs).item()
    assert_printed(products, ([0.0, 0.0], [6.0, 6.0]))


def test_profile():
    x = torch.randn((1, 1), requires_grad=True)
    with torch.autograd.profiler.profile() as prof:
        for _ in range(100):  # any normal python code, really!
            y = x ** 2
            y.backward()
    averages = prof.key_averages()
    counts = {average.key: average.count for average in averages}
    for name in ("aten::pow", "PowBackward0", "torch::autograd::AccumulateGrad", "torch::autograd::GraphRoot"):
        assert counts[name] == 100
    printed = averages.table(sort_by="self_cpu_time_total").splitlines()
    assert printed[1].split() == "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls".split()
    assert len(printed) == len(averages) + 5 and printed[-1].startswith("Self CPU time total: ")


def test_emit_nvtx(monkeypatch):
    ranges = []
    monkeypatch.setitem(sys.modules, "nvtx", SimpleNamespace(push_range=ranges.append, pop_range=lambda: ranges.append(None)))

    def model(x):
        return x.sin().sum()

    x = torch.ones(2)
    model(x)
    with torch.autograd.profiler.emit_nvtx():
        model(x)
    assert ranges[0].startswith("aten::sin, seq = ") and ranges.count(None) * 2 == len(ranges)
