"""Names of torch that change nothing here, questions, memory that processes share, and `cygrad.testing`."""

import os
import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_close, make_tensor


# ----- Settings -----
def test_settings_are_kept_for_their_questions():
    cg.use_deterministic_algorithms(True, warn_only=True)
    assert cg.are_deterministic_algorithms_enabled() and cg.is_deterministic_algorithms_warn_only_enabled()
    assert cg.get_deterministic_debug_mode() == 1
    cg.set_deterministic_debug_mode("error")
    assert cg.get_deterministic_debug_mode() == 2 and not cg.is_deterministic_algorithms_warn_only_enabled()
    cg.use_deterministic_algorithms(False)
    assert not cg.are_deterministic_algorithms_enabled()
    assert cg.get_float32_matmul_precision() == "highest"
    cg.set_float32_matmul_precision("medium")
    assert cg.get_float32_matmul_precision() == "medium"
    cg.set_float32_matmul_precision("highest")
    assert cg.get_num_interop_threads() >= 1
    cg.set_num_interop_threads(3)
    assert cg.get_num_interop_threads() == 3
    assert not cg.is_warn_always_enabled() and cg.set_warn_always(False) is None and cg.set_flush_denormal(True) is False
    cg.set_default_device("cpu")
    assert cg.get_default_device() == cg.device("cpu") and cg.set_default_device(None) is None


REFUSED = [(lambda: cg.set_default_device("cuda"), AssertionError, "not compiled with CUDA"),
           (lambda: cg.set_default_device("x"), RuntimeError, "Expected one of"),
           (lambda: cg.use_deterministic_algorithms("x"), TypeError, "'mode' .* must be bool, not str"),
           (lambda: cg.set_deterministic_debug_mode("no"), RuntimeError, "expected one of `default`, `warn`, `error`, but got no"),
           (lambda: cg.set_deterministic_debug_mode(5), RuntimeError, "expected 0, 1, or 2, but got 5"),
           (lambda: cg.set_deterministic_debug_mode(0.5), TypeError, "must be str or int"),
           (lambda: cg.set_float32_matmul_precision("x"), RuntimeError, "x is not one of 'highest', 'high', or 'medium'"),
           (lambda: cg.set_float32_matmul_precision(3), RuntimeError, "expects a str, but got int"),
           (lambda: cg.set_num_interop_threads(0), RuntimeError, "expects a positive integer"),
           (lambda: cg.set_num_interop_threads(1.5), RuntimeError, "expects an int, but got float"),
           (lambda: cg.set_flush_denormal(1), RuntimeError, "expects a bool, but got int"),
           (lambda: cg.set_warn_always(1), RuntimeError, "expects a bool"),
           (lambda: cg.ones(1).pin_memory("cuda"), AssertionError, "CUDA")]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_settings_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ----- Questions -----
def test_questions():
    x = cg.ones(2)
    assert x.is_cpu and not (x.is_meta or x.is_quantized or x.is_nested or x.is_cuda or x.is_xpu or x.is_mps or x.is_mkldnn)
    assert x.get_device() == cg.get_device(x) == -1 and x.pin_memory() is x and not x.is_pinned()
    assert not x.is_distributed() and not cg.is_distributed(x) and not cg.is_vulkan_available()
    assert cg.is_same_size(x, x + 1) and not x.is_same_size(cg.ones(3))
    assert x.is_set_to(x.view(2)) and not x.is_set_to(x.clone()) and not x.is_set_to(x[:1])
    assert cg.is_storage(x.untyped_storage()) and not cg.is_storage(x)
    assert cg.is_nonzero(cg.tensor([2])) and not cg.tensor(0.0).is_nonzero()
    assert [cg.typename(each) for each in (x, 3, "a", np.ones(1), cg.typename)] == [
        "cygrad.FloatTensor", "int", "str", "numpy.ndarray", "cygrad.torch_names.asking.typename"]
    with pytest.raises(RuntimeError, match="ambiguous"):
        cg.is_nonzero(x)
    for call in (lambda: x.is_same_size(None), lambda: cg.is_same_size(x, 1), lambda: x.is_set_to(1), lambda: cg.get_device(1)):
        with pytest.raises(TypeError, match="must be Tensor, not"):
            call()


# ----- Shared memory -----
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")
def test_forked_processes_share_the_memory():
    x = cg.arange(6.0).reshape(2, 3).T.requires_grad_()
    before, strides = x.tolist(), x.stride()
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared() and x.share_memory_().is_shared()
    assert (x.tolist(), x.stride(), x.requires_grad, x.is_leaf) == (before, strides, True, True)
    with warnings.catch_warnings(action="ignore"):      # of threads and forks
        process = os.fork()
    if not process:
        x.data[0, 0] = 7
        os._exit(0)
    os.waitpid(process, 0)
    assert x[0, 0].item() == 7
    assert x[1:].is_shared() and not x.clone().is_shared() and not cg.ones(0).share_memory_().is_shared()


# ----- Comparison -----
CLOSE = [(cg.tensor([1.0]), cg.tensor([1.0 + 1e-7])), (1, 1), (1.0, 1.0 + 1e-8), (None, None), (True, np.True_),
         ([1, {"a": cg.ones(2)}], [1, {"a": cg.ones(2)}]),
         (np.ones(2), np.ones(2)), (cg.ones(0), cg.ones(0)), (cg.tensor([cg.inf]), cg.tensor([cg.inf])), (np.float32(2), 2.0)]


@pytest.mark.parametrize(("actual", "expected"), CLOSE, ids=str)
def test_close(actual, expected):
    assert_close(actual, expected)


FAR = [
    (cg.tensor([1.0, 2.0, 4.0]), cg.tensor([1.0, 2.0, 3.0]), "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\n"
     "Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\n"
     "Greatest relative difference: 0.3333333432674408 at index (2,) (up to 1.3e-06 allowed)"),
    (cg.tensor([[1, 2]]), cg.tensor([[1, 3]]), "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"
     "Greatest absolute difference: 1 at index (0, 1)\nGreatest relative difference: 0.3333333432674408 at index (0, 1)"),
    (1.0, 2.0, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-07 allowed)\n"
     "Relative difference: 0.5 (up to 1e-07 allowed)"),
    (1, 2, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
    (None, 1, "None mismatch: None is not 1"), (True, False, "Booleans mismatch: True is not False"),
    (1, 1.0, "The (d)types do not match: <class 'int'> != <class 'float'>."),
    (cg.ones(2), cg.ones(3), "The values for attribute 'shape' do not match: cygrad.Size([2]) != cygrad.Size([3])."),
    (cg.ones(2), cg.ones(2).double(), "The values for attribute 'dtype' do not match: cygrad.float32 != cygrad.float64."),
    ([1], [1, 2], "The length of the sequences mismatch: 1 != 2"),
    ({"a": 1}, {"b": 1}, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
     "Additional keys in the actual mapping: ['a']"),
    ([0, {"a": 1}], [0, {"a": 2}], "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5\n\n"
     "The failure occurred for item [1][a]"),
    (cg.tensor([cg.nan]), cg.tensor([cg.nan]), "Tensor-likes are not close!\n\nMismatched elements: 1 / 1 (100.0%)\n"
     "Greatest absolute difference: nan at index (0,) (up to 1e-05 allowed)\n"
     "Greatest relative difference: nan at index (0,) (up to 1.3e-06 allowed)"),
]


@pytest.mark.parametrize(("actual", "expected", "message"), FAR, ids=range(len(FAR)))
def test_far(actual, expected, message):
    with pytest.raises(AssertionError) as raised:
        assert_close(actual, expected)
    assert str(raised.value) == message


def test_options_of_comparisons():
    assert_close(cg.tensor([cg.nan, 1]), cg.tensor([cg.nan, 1]), equal_nan=True)
    assert_close(cg.ones(2), cg.ones(2).double(), check_dtype=False)
    assert_close(cg.tensor([1], dtype=cg.uint8), cg.tensor([1]), check_dtype=False)
    assert_close(cg.tensor([1.0]), cg.tensor([1.4]), rtol=0, atol=0.5)
    assert_close(cg.ones(2, 3).T, cg.ones(3, 2))
    with pytest.raises(AssertionError, match=r"attribute 'stride\(\)' do not match: \(1, 3\) != \(2, 1\)"):
        assert_close(cg.ones(2, 3).T, cg.ones(3, 2), check_stride=True)
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted, but got no 'atol'"):
        assert_close(cg.ones(1), cg.ones(1), rtol=1)
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^mine: Scalars are not equal!"):
        assert_close(1, 2, msg=lambda text: f"mine: {text}")
    for pair in (("a", "a"), (cg.ones(1), [1.0]), (cg.ones(1), 1.0)):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            assert_close(*pair)
    field = cg.ones(1).as_subclass(type("Field", (cg.Tensor,), {}))
    assert_close(field, cg.ones(1))
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(field, cg.ones(1), allow_subclasses=False)


# ----- Random tensors -----
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
def test_random_tensors(dtype):
    kind = getattr(cg, dtype)
    x = make_tensor(20, 30, dtype=kind)
    assert x.shape == (20, 30) and x.dtype == kind and x.is_contiguous()
    numbers = x.to(cg.complex128).view_as_real()
    assert numbers.amin() >= -9 and numbers.amax() <= 9
    assert len(x.reshape(-1).tolist()) > len({*x.reshape(-1).tolist()}) or kind.is_differentiable
    gaps = make_tensor((4, 5), dtype=kind, noncontiguous=True)
    assert gaps.shape == (4, 5) and not gaps.is_contiguous()
    assert bool((make_tensor(500, dtype=kind, low=0, high=2, exclude_zero=True) != 0).all())


def test_options_of_random_tensors():
    assert make_tensor(3, dtype=cg.float32, requires_grad=True).requires_grad
    x = make_tensor(1000, dtype=cg.float16, low=1, high=1.25)
    assert x.amin() >= 1 and x.amax() <= 1.25
    assert make_tensor(2, 3, 4, 5, dtype=cg.float32, memory_format=cg.channels_last).is_contiguous(memory_format=cg.channels_last)
    for keywords, message in (({"low": 2, "high": 1}, "`low` must be less than `high`, but got 2 >= 1"), ({"low": cg.nan}, "cannot be NaN"),
                              ({"requires_grad": True}, "not supported for boolean and integral dtypes"), ({"low": 300}, "only supports"),
                              ({"noncontiguous": True, "memory_format": cg.contiguous_format}, "mutually exclusive")):
        with pytest.raises(ValueError, match=message):
            make_tensor(2, dtype=cg.uint8, **{"high": 400, **keywords} if "low" in keywords and keywords["low"] == 300 else keywords)
