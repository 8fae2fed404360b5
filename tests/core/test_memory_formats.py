"""Memory formats and the layout: orders of dims against NumPy's, functions that make or keep them, refusals."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg
import samples

ORDERS = {cg.channels_last: (0, 2, 3, 1), cg.channels_last_3d: (0, 2, 3, 4, 1)}
SHAPES = {cg.channels_last: [(2, 3, 4, 5), (1, 1, 1, 1), (2, 1, 4, 5), (2, 3, 1, 1), (2, 0, 4, 5)],
          cg.channels_last_3d: [(2, 3, 2, 4, 5), (2, 3, 1, 1, 1)]}
CASES = [(memory_format, shape) for memory_format, shapes in SHAPES.items() for shape in shapes]
DTYPES = ["bool", "uint8", "int64", "float32", "float64"]
MAKERS = {
    "contiguous": lambda x, f: x.contiguous(memory_format=f),
    "clone": lambda x, f: x.clone(memory_format=f),
    "to": lambda x, f: x.to(memory_format=f),
    "to with a dtype": lambda x, f: x.to(cg.float64, memory_format=f),
    "conversion": lambda x, f: x.double(memory_format=f),
}
UNSET = {
    "empty": lambda x, f: cg.empty(x.shape, memory_format=f),
    "empty_like": lambda x, f: cg.empty_like(x, memory_format=f),
    "zeros_like": lambda x, f: cg.zeros_like(x, memory_format=f),
    "full_like": lambda x, f: cg.full_like(x, 2, memory_format=f),
    "resize_": lambda x, f: cg.empty(0).resize_(x.shape, memory_format=f),
    "resize_as_": lambda x, f: cg.empty(0).resize_as_(x, memory_format=f),
}


def lies_in(array, order):
    """Return True if NumPy finds an array dense once its dims are in an order."""
    return array.transpose(order).flags.c_contiguous


@pytest.mark.cases(("memory_format", "shape"), CASES, ids=str)
@pytest.mark.cases("maker", MAKERS)
def test_copies_in_a_format(memory_format, shape, maker):
    order = ORDERS[memory_format]
    for dtype in DTYPES:
        array = samples.draw(dtype, shape)
        x = cg.tensor(array)
        for source in (x, x.transpose(0, 1).contiguous().transpose(0, 1), x.contiguous(memory_format=memory_format)):
            result = MAKERS[maker](source, memory_format)
            assert np.array_equal(result.numpy(), array.astype(result.numpy().dtype))
            assert lies_in(result.numpy(), order) and result.is_contiguous(memory_format=memory_format)
            assert result.is_contiguous() == result.numpy().flags.c_contiguous


@pytest.mark.cases(("memory_format", "shape"), CASES, ids=str)
@pytest.mark.cases("maker", UNSET)
def test_new_tensors_in_a_format(memory_format, shape, maker):
    result = UNSET[maker](cg.zeros(shape), memory_format)
    assert result.shape == shape and lies_in(result.numpy(), ORDERS[memory_format])


def test_a_tensor_of_that_format_is_not_copied():
    x = cg.zeros(2, 3, 4, 5).contiguous(memory_format=cg.channels_last)
    assert x.contiguous(memory_format=cg.channels_last) is x and x.to(memory_format=cg.channels_last) is x
    assert x.clone().stride() == x.stride() == (x + 1).stride() == cg.zeros_like(x).stride() == (60, 1, 15, 3)
    assert x.clone(memory_format=cg.preserve_format).stride() == x.stride()
    assert x.clone(memory_format=cg.contiguous_format).is_contiguous() and x.to(memory_format=cg.contiguous_format).is_contiguous()
    assert not x.is_contiguous() and not x[0].is_contiguous(memory_format=cg.channels_last)


@pytest.mark.parametrize("maker", MAKERS)
def test_gradients_pass_and_have_the_strides_of_the_leaf(maker):
    x = cg.rand(2, 3, 4, 5).requires_grad_()
    (MAKERS[maker](x, cg.channels_last) * 3).sum().backward()
    assert (x.grad == 3).all() and x.grad.stride() == x.stride()
    leaf = cg.rand(2, 3, 4, 5).contiguous(memory_format=cg.channels_last).requires_grad_()
    (MAKERS[maker](leaf, cg.contiguous_format) * 3).sum().backward()
    assert leaf.grad.stride() == leaf.stride()


@pytest.mark.parametrize("maker", MAKERS)
def test_transforms(maker):
    x = cg.rand(3, 2, 3, 4, 5)
    assert cg.vmap(lambda one: MAKERS[maker](one, cg.channels_last) * 2)(x).allclose(MAKERS[maker](x, cg.contiguous_format) * 2)
    value, tangent = cg.func.jvp(lambda one: MAKERS[maker](one, cg.channels_last), (x[0],), (x[1],))
    assert value.allclose(x[0].to(value.dtype)) and tangent.allclose(x[1].to(value.dtype))


REFUSED = [
    (lambda: cg.zeros(3, 4).contiguous(memory_format=cg.channels_last), RuntimeError, "required rank 4 tensor to use channels_last format"),
    (lambda: cg.zeros(3).clone(memory_format=cg.channels_last_3d), RuntimeError, "required rank 5 tensor"),
    (lambda: cg.empty(2, 3, memory_format=cg.channels_last), RuntimeError, "required rank 4 tensor"),
    (lambda: cg.zeros(2).contiguous(memory_format=3), TypeError, "argument 'memory_format' must be cygrad.memory_format, not int"),
    (lambda: cg.zeros(2).is_contiguous(memory_format="channels_last"), TypeError, "memory_format' must be cygrad.memory_format, not str"),
    (lambda: cg.memory_format(), TypeError, "cannot create"),
    (lambda: cg.layout(), TypeError, "cannot create"),
    (lambda: cg.zeros(2, layout=3), TypeError, "argument 'layout' must be cygrad.layout, not int"),
    (lambda: cg.arange(2, layout="strided"), TypeError, "argument 'layout' must be cygrad.layout, not str"),
    (lambda: cg.empty_strided((2, 3), (1,)), RuntimeError, "mismatch in length of strides and shape"),
    (lambda: cg.empty_strided((2,), (-1,)), RuntimeError, "must be non-negative"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_tensor_of_another_rank_does_not_have_the_format():
    assert not cg.zeros(2, 3).is_contiguous(memory_format=cg.channels_last)
    assert cg.zeros(2, 3).is_contiguous(memory_format=cg.contiguous_format)


@pytest.mark.parametrize("name", ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "strided"])
def test_names(name):
    thing = getattr(cg, name)
    assert repr(thing) == f"cygrad.{name}" and isinstance(thing, cg.layout if name == "strided" else cg.memory_format)
    assert pickle.loads(pickle.dumps(thing)) is thing and copy.deepcopy(thing) is thing


@pytest.mark.parametrize("factory", ["zeros", "ones", "empty"])
def test_layout(factory):
    assert getattr(cg, factory)(2, layout=cg.strided).layout is cg.strided
    assert cg.full((2,), 1, layout=cg.strided).layout is cg.zeros(2, 3).T.layout is cg.strided


STRIDES = [((2, 3), (3, 1)), ((2, 3), (1, 2)), ((2, 2), (4, 2)), ((2, 3), (0, 1)), ((0, 3), (1, 1)), ((), ())]


@pytest.mark.parametrize(("size", "stride"), STRIDES)
def test_empty_strided(size, stride):
    result = cg.empty_strided(size, stride, dtype=cg.float64)
    assert result.shape == size and result.stride() == stride and result.dtype == cg.float64
    assert result._base is None and result.is_leaf
