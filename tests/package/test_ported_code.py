"""Names in code written for torch: CUDA that is not there, former names, memory as an object, parts, private tables."""

import importlib
import types
import warnings
from collections import OrderedDict

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import forward_ad
from cygrad.func import vmap

# ----- CUDA -----
CUDA = sorted(name for name, thing in vars(cg.cuda).items() if isinstance(thing, types.FunctionType) and not name.startswith("_")
              and thing.__module__ == "cygrad.cuda")


@pytest.mark.cases("name", CUDA)
def test_cuda_is_asked_and_never_computes(name):
    """Each function answers that there is none, does nothing, or refuses as torch does."""
    function = getattr(cg.cuda, name)
    try:
        answer = function([]) if name == "set_rng_state_all" else function()
    except AssertionError as error:
        assert "Torch not compiled with CUDA enabled" in str(error)
    else:
        assert not answer


def test_the_usual_question_chooses_the_cpu():
    device = cg.device("cuda" if cg.cuda.is_available() else "cpu")
    assert cg.zeros(2, device=device).to(device).device == cg.device("cpu")
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        cg.cuda.set_rng_state_all([cg.zeros(1)])


def test_the_profiler_of_cuda_refuses():
    import cygrad.cuda.profiler

    for name in cygrad.cuda.profiler.__all__:
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled.*computes on the CPU only"):
            getattr(cg.cuda.profiler, name)()


def test_streams_of_cuda_change_nothing():
    stream, start, end = cg.cuda.Stream("cpu", priority=-1), cg.cuda.Event(enable_timing=True), cg.cuda.Event(True)
    start.record()
    with cg.cuda.stream(stream) as selected, cg.cuda.stream(None):
        event = stream.record_event()
        stream.wait_event(event), stream.wait_stream(cg.cuda.Stream()), stream.synchronize(), event.wait(stream), event.synchronize()
    assert selected is None and stream.record_event(end) is end and stream.query() and event.query()
    assert 0 <= start.elapsed_time(end) < 60_000 and stream.device == event.device == cg.device("cpu")
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        cg.cuda.Stream("cuda")
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(event)
    with pytest.raises(ValueError, match="must be recorded before"):
        start.elapsed_time(cg.cuda.Event(True))
    for call in (lambda: cg.cuda.stream(3), lambda: start.elapsed_time(3)):
        with pytest.raises(TypeError, match="not int"):
            call()


def test_older_names_of_torch():
    assert autograd.function._ContextMethodMixin is autograd.function.FunctionCtx


# ----- Paths -----
def test_the_path_of_checkpoint():
    from cygrad.utils.checkpoint import checkpoint, checkpoint_sequential
    assert checkpoint is cg.checkpoint.checkpoint and checkpoint_sequential is cg.checkpoint.checkpoint_sequential
    assert cg.utils.checkpoint.checkpoint is checkpoint
    # pytest adds names with an @ to the modules of an installed package that has a plugin.
    names = {name for name in dir(importlib.import_module("cygrad.utils")) if not name.startswith(("_", "@"))}
    assert names == {"checkpoint"}
    x = cg.rand(3, requires_grad=True)
    checkpoint(cg.exp, x, use_reentrant=False).sum().backward()
    assert x.grad.allclose(x.detach().exp())


def test_names_that_ask():
    x = cg.zeros(2, dtype=cg.int8)
    assert (cg.is_complex(x), cg.is_signed(x), cg.is_inference(x), cg.is_floating_point(x)) == (False, True, False, False)
    assert not autograd.kineto_available()
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        autograd.SavedTensor()


def test_multithreading_is_a_setting_of_the_thread():
    with autograd.set_multithreading_enabled(False):
        assert not autograd.is_multithreading_enabled()
        with autograd.set_multithreading_enabled(True):
            assert autograd.is_multithreading_enabled()
        assert not autograd.is_multithreading_enabled()
    assert autograd.is_multithreading_enabled()
    assert autograd.set_multithreading_enabled(False)(autograd.is_multithreading_enabled)() is False
    autograd.set_multithreading_enabled(False)
    assert not autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(True)
    with pytest.raises(TypeError, match="must be bool"):
        autograd.set_multithreading_enabled(1)


def test_the_number_of_the_forward_level():
    assert forward_ad._current_level == -1
    with forward_ad.dual_level() as level:
        assert forward_ad._current_level == level == 0
    assert forward_ad._current_level == -1
    with pytest.raises(AttributeError, match="no attribute 'something'"):
        forward_ad.something  # noqa: B018


# ----- Functions -----
class InPlaceDouble(autograd.function.InplaceFunction):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_former_names_of_functions():
    x = cg.ones(2, requires_grad=True)
    y = InPlaceDouble.apply(x.clone())
    assert y.grad_fn.__class__ is InPlaceDouble._backward_cls
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
        assert y.grad_fn.saved_variables[0].tolist() == [2, 2]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_view_that_a_function_returns_without_recording_is_guarded():
    class View(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    for change in (lambda view, b: view.add_(b), lambda view, b: view.copy_(b)):
        with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
            change(View.apply(cg.rand(1, 2)), cg.rand(1, requires_grad=True))
    plain = cg.rand(1, 2)
    assert View.apply(plain).add_(1).tolist() == plain.tolist()


def test_outputs_that_are_no_tensors_have_no_gradients():
    class Several(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 3, x * 2, None, "text"

        @staticmethod
        def backward(ctx, *gradients):
            assert [gradient is None for gradient in gradients] == [True, False, True, True]
            return gradients[1] * 2

    x = cg.ones(2, requires_grad=True)
    Several.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_node_has_the_number_of_gradients_that_it_takes():
    node = (cg.ones(1, requires_grad=True) ** 2).grad_fn
    for gradients in ((), (cg.ones(1), cg.ones(1))):
        with pytest.raises(TypeError, match=f"expected 1 arguments, got {len(gradients)} instead: PowBackward0"):
            node(*gradients)
    assert node(cg.ones(1)).tolist() == [2]


def test_random_numbers_in_a_backward_of_batched_gradients_are_refused():
    x = cg.ones(3, requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: g * cg.rand(3))
    with pytest.raises(RuntimeError, match="vmap: We do not yet support calling random operations inside of vmap"):
        autograd.grad(y, x, cg.eye(3), is_grads_batched=True)


# ----- Inference mode -----
def test_a_view_of_an_inference_tensor_is_no_view_that_autograd_follows():
    with cg.inference_mode():
        x = cg.arange(4.0)
        view = x[1:]
        view.add_(1)
    for part in (view, x[1:], x.view(2, 2), x.view(2, 2).T):
        assert part.is_inference() and not part._is_view() and part._base is None
    assert x.tolist() == [0, 2, 3, 4] and x[1:].data_ptr() == x.data_ptr() + 4
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        x[1:].add_(1)
    normal = cg.zeros(2)
    with cg.inference_mode():
        assert normal[1:]._is_view() and normal[1:]._base is normal


def test_bernoulli_is_a_method():
    chances = cg.tensor([0.0, 1.0, 1.0], requires_grad=True)
    drawn = chances.bernoulli()
    assert drawn.tolist() == [0, 1, 1] and not drawn.requires_grad and chances.bernoulli(1.0).tolist() == [1, 1, 1]


def test_of_two_reasons_against_out_autograd_comes_first():
    with cg.inference_mode():
        out = cg.zeros(2)
    x = cg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="arguments don't support automatic differentiation"):
        cg.mul(x, x, out=out)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        cg.mul(x.detach(), 2, out=out)


# ----- Tables of hooks -----
def test_the_table_of_hooks():
    x = cg.ones(2, requires_grad=True)
    assert x._backward_hooks is None and (x * 2)._backward_hooks is None
    handle = x.register_hook(lambda g: g * 2)
    assert list(x._backward_hooks) == [handle.id]
    x._backward_hooks = OrderedDict(first=lambda g: g * 5)
    x._backward_hooks["second"] = lambda g: g + 1
    (x * 3).sum().backward()
    assert x.grad.tolist() == [16, 16]
    x.grad = x._backward_hooks = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3] and x._backward_hooks is None


def test_a_table_that_is_set_before_a_gradient_is_required():
    x = cg.ones(2)
    x._backward_hooks = {}
    x._backward_hooks["hook"] = lambda g: g * 7
    (x * cg.ones(2, requires_grad=True)).sum().backward()
    x.requires_grad_()
    y = x * 1
    y._backward_hooks = {0: lambda g: g * 2}
    y.sum().backward()
    assert x.grad.tolist() == [14, 14]


@pytest.mark.parametrize("name", ["_backward_hooks", "_grad_fn", "grad_fn", "data", "requires_grad"])
def test_attributes_that_stay(name):
    x = cg.ones(2, requires_grad=True)
    with pytest.raises((RuntimeError, AttributeError)):
        delattr(x, name)
    with pytest.raises(TypeError, match="_backward_hooks must be a dict"):
        x._backward_hooks = [print]


# ----- Memory -----
def test_memory_as_an_object():
    x = cg.arange(10, dtype=cg.float64)
    part = x[2:6:2]
    for tensor in (x, part, x.detach(), x.data, x.view(2, 5)):
        assert tensor.storage().data_ptr() == tensor.untyped_storage().data_ptr() == x.data_ptr()
        assert len(tensor.storage()) == tensor.storage().size() == 10 and tensor.untyped_storage().nbytes() == 80
        assert tensor.storage().dtype == cg.float64 and len(tensor.untyped_storage()) == 80
    assert part.storage().tolist() == x.tolist() and part.storage()[3] == 3.0 and x.untyped_storage()[0] == 0
    assert x.clone().untyped_storage().data_ptr() != x.data_ptr()
    part.storage()[3] = 7
    assert x[3] == 7 and part.storage().untyped().nbytes() == 80
    assert cg.zeros(0).untyped_storage().nbytes() == 0 and "10 elements of cygrad.float64" in repr(x.storage())
    with pytest.raises(RuntimeError, match="vmap"):
        cg.vmap(lambda one: one * one.untyped_storage().nbytes())(x)


# ----- Parts that may be changed -----
UNSAFE = {
    "unsafe_split": (2,),
    "unsafe_split_with_sizes": ([1, 2, 2],),
    "unsafe_chunk": (3,),
}


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("dim", [0, -1])
def test_parts_that_may_be_changed(name, dim):
    x = cg.rand(5, 5, dtype=cg.float64).requires_grad_()
    safe = getattr(x, name.removeprefix("unsafe_"))(*UNSAFE[name], dim)
    parts = getattr(x * 1, name)(*UNSAFE[name], dim)
    assert [part.tolist() for part in parts] == [part.tolist() for part in safe]
    parts[0].mul_(parts[0].detach() * 3)
    parts[0].sum().backward()
    expected = cg.zeros(5, 5, dtype=cg.float64)
    getattr(expected, name.removeprefix("unsafe_"))(*UNSAFE[name], dim)[0].copy_(safe[0].detach() * 3)
    assert x.grad.allclose(expected)
    assert autograd.gradcheck(lambda x: getattr(cg, name)(x, *UNSAFE[name], dim), x, check_forward_ad=True, check_batched_grad=True)


# ----- NumPy -----
def test_where_grad_mode_is_off_numpy_may_see_tensors_that_require_grad():
    x = cg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with cg.no_grad():
        assert x.numpy().tolist() == [1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cg.no_grad():
            assert x.__array__().sum() == 2


def test_real_tensors_are_their_own_conjugates_and_real_parts():
    x = cg.ones(2, requires_grad=True)
    assert all(same is x for same in (x.real, cg.real(x), x.conj(), cg.conj(x), x.resolve_conj(), cg.resolve_conj(x)))
    y = cg.zeros(2)
    y.real = x
    assert y.tolist() == [1, 1] and y.requires_grad
    assert vmap(lambda row: row.real * row.conj())(cg.tensor([[2.0], [3.0]])).tolist() == [[4], [9]]
    with pytest.raises(TypeError, match=r"real\(\): argument 'input' \(position 1\) must be Tensor, not list"):
        cg.real([1])
