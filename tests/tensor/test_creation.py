"""Factories: shapes, dtypes, keywords, layouts and edge cases; and the metadata of every tensor.

Data of Python and NumPy are in test_promotion and test_interop, random numbers in test_random.
"""

import itertools
import math

import numpy as np
import pytest

import cygrad as cg
import samples
from samples import DTYPES, FLOATS, KINDS, LAYOUTS, array_of, same_bits

INF = math.inf
FILLED = {"zeros": 0, "ones": 1, "empty": None}
SPELLINGS = {
    "arguments": lambda make, **k: make(2, 3, **k),
    "tuple": lambda make, **k: make((2, 3), **k),
    "list": lambda make, **k: make([2, 3], **k),
    "Size": lambda make, **k: make(cg.Size([2, 3]), **k),
    "size=": lambda make, **k: make(size=(2, 3), **k),
    "NumPy's ints": lambda make, **k: make(np.int64(2), np.int32(3), **k),
    "0-d tensors": lambda make, **k: make(cg.tensor(2), 3, **k),
}


def is_full_of(tensor, value):
    return value is None or (array_of(tensor) == value).all()


# ----- From shapes -----
@pytest.mark.cases("spelling", SPELLINGS)
@pytest.mark.cases("name", FILLED)
def test_sizes_in_every_spelling(name, spelling):
    for make in (getattr(cg, name), getattr(cg.ones(1, dtype=cg.int16), "new_" + name)):
        tensor = SPELLINGS[spelling](make)
        assert tensor.shape == (2, 3)
        assert tensor.dtype == (cg.float32 if make is getattr(cg, name) else cg.int16)
        assert is_full_of(tensor, FILLED[name])
        assert (tensor.requires_grad, tensor.is_contiguous(), tensor.device) == (False, True, cg.device("cpu"))


@pytest.mark.parametrize("name", FILLED)
def test_sizes_of_no_or_one_dim(name):
    make = getattr(cg, name)
    assert make(()).shape == make([]).shape == ()
    assert make(5).shape == make((5,)).shape == (5,)
    assert make(0).shape == (0,)
    assert make(2, 0, 3).numel() == 0
    assert make((1,) * 64).ndim == 64


@pytest.mark.parametrize("name", FILLED)
def test_dtype_device_requires_grad_and_out(name):
    make, value = getattr(cg, name), FILLED[name]
    for dtype in DTYPES:
        tensor = make(3, dtype=getattr(cg, dtype), device="cpu")
        assert tensor.dtype == getattr(cg, dtype)
        assert is_full_of(tensor, value)
    assert make(3, dtype=bool).dtype == cg.bool
    assert make(3, dtype=int).dtype == cg.int64
    assert make(3, dtype=float).dtype == make(3, dtype=np.float64).dtype == cg.float64
    leaf = make(3, requires_grad=True, dtype=cg.float64)
    assert (leaf.requires_grad, leaf.is_leaf, leaf.grad) == (True, True, None)
    for dtype in FLOATS:
        out = cg.full((3,), 7.0, dtype=getattr(cg, dtype))
        assert make(3, out=out) is out
        assert is_full_of(out, value)


WRONG = [
    (lambda make: make(2, -1), RuntimeError, "negative dimension"),
    (lambda make: make(2.0), TypeError, "must be tuple of ints"),
    (lambda make: make("a"), TypeError, "must be tuple of ints"),
    (lambda make: make(True), TypeError, "must be tuple of ints"),
    (lambda make: make((2, (3,))), TypeError, "must be tuple of ints"),
    (lambda make: make(2, (3,)), TypeError, "must be tuple of ints"),
    (lambda make: make((1,) * 65), RuntimeError, "at most 64 dim"),
    (lambda make: make(2**62), RuntimeError, "Storage size calculation overflowed"),
    (lambda make: make(2**40, 2**40), MemoryError, "Storage size calculation overflowed"),
    (lambda make: make(2**64), TypeError, "Overflow when unpacking long long"),
    (lambda make: make(2**45), cg.OutOfMemoryError, "you tried to allocate 140737488355328 bytes"),
    (lambda make: make(2, dtype="float32"), TypeError, "argument 'dtype' must be cygrad.dtype, not str"),
    (lambda make: make(2, dtype=np.clongdouble), TypeError, None),
    (
        lambda make: make(2, dtype=cg.int64, requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point .* can require gradients",
    ),
    (lambda make: make(2, device="cuda"), AssertionError, "Torch not compiled with CUDA enabled"),
    (lambda make: make(2, device="nowhere"), RuntimeError, None),
    (lambda make: make(2, colour=1), TypeError, "unexpected keyword argument 'colour'"),
    (lambda make: make(), TypeError, None),
]


@pytest.mark.cases(("call", "error", "message"), WRONG)
@pytest.mark.cases("name", FILLED)
def test_refused(name, call, error, message):
    with pytest.raises(error, match=message):
        call(getattr(cg, name))


FULL = [
    (7, {}, "int64", 7),
    (7.5, {}, "float32", 7.5),
    (True, {}, "bool", True),
    (INF, {}, "float32", INF),
    (7, {"dtype": cg.float64}, "float64", 7),
    (1.7, {"dtype": cg.int64}, "int64", 1),
    (-1, {"dtype": cg.int8}, "int8", -1),
    (255, {"dtype": cg.uint8}, "uint8", 255),
    (2, {"dtype": cg.bool}, "bool", True),
    (0.1, {"dtype": cg.float64}, "float64", 0.1),
    (cg.tensor(5), {}, "int64", 5),
    (2**63 - 1, {}, "int64", 2**63 - 1),
    (1.5, {"requires_grad": True}, "float32", 1.5),
]


@pytest.mark.cases(("value", "keywords", "dtype", "expected"), FULL, ids=str)
def test_full(value, keywords, dtype, expected):
    tensor = cg.full((2, 3), value, **keywords)
    assert (tensor.shape, tensor.dtype.name) == ((2, 3), dtype)
    assert tensor.tolist() == [[expected] * 3] * 2
    assert tensor.requires_grad == keywords.get("requires_grad", False)
    assert cg.full((), value, **keywords).tolist() == expected
    assert cg.full(size=[2], fill_value=value, **keywords).tolist() == [expected] * 2
    assert cg.ones(1, dtype=getattr(cg, dtype)).new_full((2,), value, **keywords).tolist() == [expected] * 2
    like = cg.zeros(2, 3, dtype=getattr(cg, dtype))
    assert same_bits(array_of(cg.full_like(like, value)), array_of(tensor))
    assert cg.zeros(2, dtype=getattr(cg, dtype)).fill_(value).tolist() == [expected] * 2


@pytest.mark.parametrize(
    ("dtype", "value"), [("uint8", 256), ("int8", -129), ("int64", 2**63), ("int64", INF), ("int32", math.nan)]
)
def test_numbers_that_do_not_fit(dtype, value):
    for call in (
        lambda: cg.full((2,), value, dtype=getattr(cg, dtype)),
        lambda: cg.zeros(2, dtype=getattr(cg, dtype)).fill_(value),
    ):
        with pytest.raises((OverflowError, RuntimeError)):
            call()


LIKES = {"zeros_like": 0, "ones_like": 1, "empty_like": None}


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.parametrize("name", LIKES)
def test_like_keeps_shape_dtype_and_layout(name, layout):
    like = getattr(cg, name)
    for dtype, shape in itertools.product(DTYPES, ((), (0,), (3,), (2, 3), (2, 3, 4))):
        source = LAYOUTS[layout](samples.draw(dtype, shape))
        tensor = like(source)
        assert (tensor.shape, tensor.dtype) == (source.shape, source.dtype)
        assert is_full_of(tensor, LIKES[name])
        dense = (
            tuple(reversed(cg.empty(tuple(reversed(shape))).stride()))
            if layout == "transposed"
            else cg.empty(shape).stride()
        )
        assert tensor.stride() == dense
        assert like(source, dtype=cg.int16, device="cpu").dtype == cg.int16
    assert like(source.double().requires_grad_()).requires_grad is False
    assert like(source, dtype=cg.float32, requires_grad=True).is_leaf
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        like([1.0])


def test_like_of_permuted_and_repeated_layouts():
    assert cg.ones_like(cg.zeros(2, 3, 4).permute(2, 0, 1)).stride() == (1, 12, 4)
    assert cg.zeros_like(cg.zeros(4, 6)[::2, ::2].T).stride() == (1, 3)
    assert cg.zeros_like(cg.zeros(1, 3).expand(2, 3)).stride() == (3, 1)
    assert cg.zeros_like(cg.zeros(3, 1, 2).expand(3, 4, 2)).stride() == (8, 2, 1)
    assert cg.full_like(cg.zeros(2, 3).T, 2.0).stride() == (1, 3)


def test_new_tensors_have_the_dtype():
    x = cg.ones(2, dtype=cg.int16)
    assert x.new_tensor([1.0, 2.0]).dtype == cg.int16
    assert x.new_tensor([[1, 2]], dtype=cg.float64, requires_grad=True).requires_grad
    assert x.new_zeros(2, dtype=cg.float32).dtype == cg.float32
    assert x.double().requires_grad_().new_ones(2).requires_grad is False


# ----- Ranges -----
@pytest.mark.cases(
    "arguments",
    [(5,), (2, 5), (5, 2, -1), (0,), (0, 0), (5, 5), (-5, 5), (1, 7, 2), (1, 8, 2), (0, 10, 3), (10, 0, -3), (-1, 1, 2),
     (2**62, 2**62 + 2), (2.5,), (0.0, 1.0, 0.25), (0, 1, 0.3), (1, 1.5, 0.1), (0.1, 0.5, 0.1), (1, 2, 0.1), (0, 1e-3),
     (0, -3, -1.5), (0, 1, 0.001), (7, 0, -0.7)],
)  # fmt: skip
def test_arange_is_numpys(arguments):
    expected = np.arange(*arguments)
    for dtype in (None, *FLOATS, "int64"):
        if dtype == "int64" and expected.dtype.kind == "f":
            continue
        tensor = cg.arange(*arguments, **({} if dtype is None else {"dtype": getattr(cg, dtype)}))
        assert tensor.dtype.name == (dtype or ("int64" if expected.dtype.kind == "i" else "float32"))
        assert tuple(tensor.shape) == expected.shape
        precision = np.finfo(float if expected.dtype.kind == "i" else tensor.dtype.name).eps
        assert np.allclose(array_of(tensor), expected, rtol=8 * precision, atol=1e-15)


def test_arange_in_other_forms():
    assert cg.arange(start=1, end=7, step=2).tolist() == cg.arange(1, end=7, step=2).tolist() == [1, 3, 5]
    assert cg.arange(end=3).tolist() == cg.arange(cg.tensor(3)).tolist() == cg.arange(np.int64(3)).tolist() == [0, 1, 2]
    assert cg.arange(3.0, requires_grad=True).requires_grad
    assert cg.arange(3, dtype=cg.uint8).dtype == cg.uint8
    assert cg.arange(0, 5.5, 1.5, dtype=cg.int32).tolist() == [0, 1, 2, 3]
    assert cg.arange(2**53, 2**53 + 2).tolist() == [2**53, 2**53 + 1]
    out = cg.zeros(3, dtype=cg.float64)
    assert cg.arange(3, out=out) is out
    assert out.tolist() == [0, 1, 2]
    # Each element is one product: the last one is as good as the first.
    assert cg.arange(0, 100_000, 0.1, dtype=cg.float64)[-1].item() == 999_999 * 0.1


ARANGE_REFUSED = [
    (lambda: cg.arange(-3), "upper bound and lower bound inconsistent with step sign"),
    (lambda: cg.arange(3, 0), "upper bound and lower bound inconsistent with step sign"),
    (lambda: cg.arange(0, 3, -1), "upper bound and lower bound inconsistent with step sign"),
    (lambda: cg.arange(0, 3, 0), "step must be nonzero"),
    (lambda: cg.arange(0.0, INF), "unsupported range"),
    (lambda: cg.arange(math.nan), "unsupported range"),
    (lambda: cg.arange(3, requires_grad=True), "floating point"),
    (lambda: cg.arange(0, 3, out=cg.zeros(5)), "shape"),
    (lambda: cg.linspace(0, 1, -1), "number of steps must be non-negative"),
    (lambda: cg.eye(-1), "n must be greater or equal to 0, got -1"),
    (lambda: cg.eye(2, -1), "m must be greater or equal to 0, got -1"),
    (lambda: cg.arange(0, 1e300), None),
]


@pytest.mark.cases(("call", "message"), ARANGE_REFUSED)
def test_ranges_refused(call, message):
    with pytest.raises((RuntimeError, OverflowError), match=message):
        call()


@pytest.mark.parametrize(
    "call", [lambda: cg.arange("a"), lambda: cg.linspace(0, 1), lambda: cg.linspace(0, 1, 2.5)]
)
def test_arguments_of_the_wrong_type(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    "arguments",
    [(0, 1, 5), (0, 1, 2), (0, 1, 1), (0, 1, 0), (1, 0, 3), (-1, 1, 2), (5, 5, 3), (0.1, 0.7, 7), (0, 1, 1001)],
)
def test_linspace_is_numpys(arguments):
    expected = np.linspace(*arguments)
    for dtype in FLOATS:
        tensor = cg.linspace(*arguments, dtype=getattr(cg, dtype))
        assert tensor.dtype.name == dtype
        assert np.allclose(array_of(tensor), expected, rtol=2 * np.finfo(dtype).eps, atol=2 * np.finfo(dtype).eps)
        if len(expected) > 1:
            assert tensor[0].item() == expected.astype(dtype)[0]
            assert tensor[-1].item() == expected.astype(dtype)[-1]


def test_linspace_from_or_to_nan_is_nan():
    for arguments in ((math.nan, 1), (1, math.nan), (math.nan, math.nan)):
        for steps in (1, 2, 3, 4)[arguments[0] == 1:]:
            assert cg.linspace(*arguments, steps).isnan().all()


def test_linspace_in_other_forms():
    assert cg.linspace(start=0, end=1, steps=2).dtype == cg.float32
    assert cg.linspace(cg.tensor(0.0), cg.tensor(1.0), 3).tolist() == [0, 0.5, 1]
    assert cg.linspace(-5, 5, 11, dtype=cg.int8).tolist() == list(range(-5, 6))
    assert cg.linspace(0, 10, 4, dtype=cg.int32).tolist() == [0, 3, 6, 10]
    assert cg.linspace(0, 1, 3, requires_grad=True).requires_grad
    out = cg.zeros(3)
    assert cg.linspace(0, 1, 3, out=out) is out
    assert out.tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("sizes", [(0,), (1,), (3,), (2, 3), (3, 2), (0, 2), (2, 0)])
def test_eye(sizes):
    for dtype in DTYPES:
        assert same_bits(array_of(cg.eye(*sizes, dtype=getattr(cg, dtype))), np.eye(*sizes, dtype=dtype))
    assert cg.eye(*sizes, requires_grad=True).requires_grad


def test_eye_into_a_tensor():
    out = cg.ones(2, 2)
    assert cg.eye(2, out=out) is out
    assert out.tolist() == [[1, 0], [0, 1]]


# ----- Metadata -----
@pytest.mark.cases("dtype", DTYPES)
def test_metadata(dtype):
    x = cg.zeros(2, 3, 4, dtype=getattr(cg, dtype))
    size = np.dtype(dtype).itemsize
    assert x.shape == x.size() == (2, 3, 4)
    assert isinstance(x.shape, cg.Size)
    assert x.shape.numel() == x.numel() == x.nelement() == cg.numel(x) == 24
    assert [x.size(0), x.size(-1), x.size(dim=1), len(x)] == [2, 4, 3, 2]
    assert x.dim() == x.ndim == x.ndimension() == 3
    assert (x.stride(), x.stride(0), x.stride(-1)) == ((12, 4, 1), 12, 1)
    assert x.element_size() == x.itemsize == x.dtype.itemsize == size
    assert x.nbytes == 24 * size
    assert x.is_contiguous()
    assert (x.device.type, str(x.device)) == ("cpu", "cpu")
    assert x.is_floating_point() == cg.is_floating_point(x) == x.dtype.is_floating_point == (KINDS[dtype] == "f")
    assert not x.is_complex()
    assert x.is_signed() == (dtype not in ("bool", "uint8"))
    part = x[1, 1:, ::2]
    assert (part.storage_offset(), part.stride()) == (16, (4, 2))
    assert part.data_ptr() == x.data_ptr() + 16 * size
    assert not part.is_contiguous()
    assert part._base is x
    assert x._base is None
    assert cg.is_tensor(x)
    assert not cg.is_tensor(0)


def test_data_and_device():
    x = cg.ones(2, requires_grad=True)
    assert x.data.requires_grad is False
    assert x.data.data_ptr() == x.data_ptr()
    x.data.zero_()
    assert (x.tolist(), x._version) == ([0, 0], 0)
    assert x.cpu() is x.to("cpu") is x.to(cg.device("cpu")) is x.to(device="cpu") is x
    for call in (lambda: x.to("cuda"), x.cuda, lambda: cg.zeros(1, device="cuda:0")):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            call()
    assert (
        x.to(cg.zeros(1, dtype=cg.float64)).dtype
        == x.to("cpu", cg.float64).dtype
        == x.type_as(cg.zeros(1, dtype=cg.float64)).dtype
        == cg.float64
    )


@pytest.mark.cases("dtype", DTYPES)
def test_elements_as_python_numbers(dtype):
    one = cg.ones(1, 1, dtype=getattr(cg, dtype))
    kind = {"b": bool, "i": int, "f": float}[KINDS[dtype]]
    assert type(one.item()) is kind
    assert one.tolist() == [[kind(1)]]
    assert type(cg.ones((), dtype=getattr(cg, dtype)).tolist()) is kind
    assert (int(one), float(one), bool(one)) == (1, 1.0, True)
    assert cg.zeros(0, 3, dtype=getattr(cg, dtype)).tolist() == []
    for call in (lambda x: x.item(), bool, float):
        for shape in (0, 2):
            with pytest.raises((RuntimeError, ValueError)):
                call(cg.ones(shape, dtype=getattr(cg, dtype)))


def test_reading_data():
    assert cg.tensor([[1, 2], [3, 4]]).shape == (2, 2)
    assert cg.tensor([cg.tensor(1.5), 2]).tolist() == [1.5, 2]
    assert cg.tensor([]).shape == (0,)
    assert cg.tensor([[], []]).shape == (2, 0)
    assert cg.tensor(range(3)).tolist() == [0, 1, 2]
    assert cg.tensor([1.5], dtype=cg.int64).tolist() == [1]
    assert cg.tensor([1, 2], dtype=cg.float64, requires_grad=True).requires_grad
    source = cg.ones(2)
    assert cg.tensor(source).data_ptr() != source.data_ptr()
    with pytest.raises(ValueError, match=r"expected sequence of length 2 at dim 1 \(got 1\)"):
        cg.tensor([[1, 2], [3]])
    with pytest.raises((TypeError, ValueError)):
        cg.tensor(["a"])
    with pytest.raises(RuntimeError, match="without overflow"):
        cg.tensor([300], dtype=cg.uint8)


def test_large_tensors_are_zeroed_and_filled():
    """Beyond the sizes at which memory is mapped and reused: old contents of that memory must not show."""
    for shape in ((300_000,), (1000, 1001)):
        cg.full(shape, 7.0)
        assert is_full_of(cg.zeros(shape), 0)
        assert is_full_of(cg.ones(shape, dtype=cg.int8), 1)
        assert is_full_of(cg.full(shape, 0.5, dtype=cg.float64), 0.5)


@pytest.mark.parametrize(("name", "reference"), [("tril_indices", np.tril_indices), ("triu_indices", np.triu_indices)])
def test_indices_of_triangles(name, reference):
    function = getattr(cg, name)
    for row, col, offset in itertools.product((0, 1, 3), (0, 2, 3, 5), (-9, -2, -1, 0, 1, 3, 9)):
        result = function(row, col, offset)
        assert result.dtype == cg.int64 and result.is_contiguous()
        assert same_bits(array_of(result), np.array(reference(row, offset, col)))
    assert function(row=2, col=2, dtype=cg.int32).dtype == cg.int32
    for arguments, error, message in (((-1, 2), RuntimeError, "row must be non-negative, got -1"),
                                      ((2, -2), RuntimeError, "col must be non-negative, got -2"),
                                      ((2.5, 2), TypeError, "argument 'row' must be int, not float"),
                                      ((2, 2, "1"), TypeError, "argument 'offset' must be int, not str")):
        with pytest.raises(error, match=message):
            function(*arguments)
    with pytest.raises(NotImplementedError, match="not implemented for 'float32'"):
        function(2, 2, dtype=cg.float32)


def test_new_tensor_keeps_the_dtype_also_where_none_is_asked_for():
    x = cg.ones(2, dtype=cg.int32)
    assert x.new_tensor([1.0, 2.0], dtype=None).dtype == x.new_tensor([1.0]).dtype == x.new_tensor(np.ones(2), dtype=None).dtype == x.dtype
    assert x.new_tensor([1, 2], dtype=cg.float64).dtype == cg.float64
