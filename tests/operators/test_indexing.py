"""Reading and writing by index: against NumPy, as views or copies, refusals, and the gradients of both."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import autograd

ARRAY = np.arange(24.0).reshape(2, 3, 4)

# ----- Reading -----

# An index with arrays is a function of a maker, which turns a list into an array or a tensor.
BASIC = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    (-1, -1, -1),
    slice(None),
    slice(1, None),
    slice(-2, None),
    slice(None, 100),
    slice(-100, 1),
    slice(5, 9),
    slice(2, 1),
    (slice(None), slice(None, None, 2)),
    (slice(None), slice(1, None, 2), 3),
    (slice(None), slice(0, 3, 5)),
    ...,
    (..., 0),
    (0, ...),
    (0, ..., 1),
    (..., slice(1, 3)),
    (0, 0, 0, ...),
    (),
    None,
    (None, 0, None),
    (slice(None), None, slice(1, 2)),
    (..., None),
    (0, None, slice(None), None, 1),
    np.int64(1),
    (np.int32(0), slice(np.int64(1), np.int64(3))),
    slice(0, 2**70),
]
ADVANCED = [
    lambda t: t([0, 1, 0]),
    lambda t: t([-1]),
    lambda t: t([[0, 1], [1, 0]]),
    lambda t: (t([0, 1]), t([2, 0])),
    lambda t: (t([[0], [1]]), t([0, 2, 1])),
    lambda t: (slice(None), t([2, 0])),
    lambda t: (slice(None), slice(1, 3), t([3, 3, 0])),
    lambda t: (0, t([2, 0])),
    lambda t: (slice(None), 1, t([2, 0])),
    lambda t: (t([0, 1]), slice(None), t([2, 0])),
    lambda t: (slice(None), t([2, 0]), t([1, 3])),
    lambda t: (t([0, 1]), ..., t([2, 0])),
    lambda t: (None, t([0, 1])),
    lambda t: (t([0, 1]), None, slice(1, 2)),
    lambda t: (..., t([1, 1])),
    lambda t: [1, 0],
    lambda t: ([0, 1], [2, 0]),
    lambda t: (slice(None), [True, False, True]),
    lambda t: [True, False],
    lambda t: np.array([1, 0]),
    lambda t: (slice(None), np.array([True, False, True])),
    lambda t: t([True, False]),
    lambda t: t([False, False]),
    lambda t: (slice(None), t([True, False, True])),
    lambda t: (t([True, True]), t([2, 0])),
    lambda t: t([[True, False, True], [False, True, False]]),
    lambda t: (t([[True, False, True], [False, True, False]]), 1),
    lambda t: (0, t([True, False, True]), slice(1, 3)),
    lambda t: t(ARRAY > 7),
    lambda t: t(np.zeros(0, np.int64)),
    lambda t: (t([0, 1]), t(1)),
    lambda t: t(1),
    lambda t: (slice(None), t(np.array([0, 2], np.int32))),
]
CASES = [lambda t, index=index: index for index in BASIC] + ADVANCED
NAMES = [str(index) for index in BASIC] + [f"advanced {number}" for number in range(len(ADVANCED))]


@pytest.mark.cases("make", CASES, ids=NAMES)
def test_reading_is_numpys(make):
    expected = ARRAY[make(np.array)]
    result = cg.tensor(ARRAY)[make(cg.tensor)]
    assert isinstance(result, cg.Tensor)
    assert tuple(result.shape) == expected.shape
    assert result.dtype == cg.float64
    assert result.tolist() == expected.tolist()


@pytest.mark.cases("make", CASES, ids=NAMES)
def test_reading_from_strided_memory(make):
    array = ARRAY.transpose(0, 2, 1).copy().transpose(0, 2, 1)
    result = cg.from_numpy(array)[make(cg.tensor)]
    assert result.tolist() == ARRAY[make(np.array)].tolist()


@pytest.mark.cases("make", CASES, ids=NAMES)
def test_the_gradient_of_reading_counts_each_element(make):
    x = cg.tensor(ARRAY, requires_grad=True)
    y = x[make(cg.tensor)]
    weight = np.arange(1.0, y.numel() + 1).reshape(tuple(y.shape))
    expected = np.zeros_like(ARRAY)
    np.add.at(expected, make(np.array), weight)
    y.backward(cg.tensor(weight))
    assert x.grad.tolist() == expected.tolist()


LARGE = [
    slice(1, None),
    slice(None, -1),
    slice(2, 4),
    (slice(None), slice(3, 39)),
    (slice(1, 5), slice(3, 39)),
    (slice(None), slice(None), slice(1, None)),
    (slice(None), slice(1, 40), slice(10, 140)),
    (slice(0, 4), slice(2, None), slice(None, 149)),
    (slice(None), slice(None), slice(100, None)),
    (slice(None), slice(None), slice(None, None, 2)),
    (slice(None), None, slice(1, None)),
    (..., slice(1, 150)),
    3,
    slice(0, 0),
]


@pytest.mark.cases("index", LARGE, ids=str)
def test_the_gradient_of_a_large_part_is_zero_elsewhere(index):
    """The gradient's memory held other numbers before."""
    x = cg.zeros(5, 40, 150, requires_grad=True)
    expected = np.zeros((5, 40, 150))
    expected[index] = 3
    cg.full((5, 40, 150), 7.0)
    (gradient,) = autograd.grad((x[index] * 3).sum(), x)
    assert (gradient.numpy() == expected).all()


@pytest.mark.parametrize("make", [ADVANCED[0], ADVANCED[4], ADVANCED[6], ADVANCED[25], CASES[12], CASES[24]])
def test_second_derivatives(make):
    x = cg.tensor(ARRAY / 7, requires_grad=True)
    assert autograd.gradcheck(lambda x: x[make(cg.tensor)] ** 2, x)
    assert autograd.gradgradcheck(lambda x: x[make(cg.tensor)] ** 3, x)


@pytest.mark.cases("index", BASIC, ids=str)
def test_basic_indexing_gives_a_view(index):
    a = cg.tensor(ARRAY)
    view = a[index]
    if view.numel() == 0:
        return
    view.zero_()
    expected = ARRAY.copy()
    expected[index] = 0
    assert a.tolist() == expected.tolist()
    assert a._version == view._version == 1


@pytest.mark.parametrize("make", ADVANCED[:2] + ADVANCED[21:24])
def test_advanced_indexing_gives_a_copy(make):
    a = cg.tensor(ARRAY)
    a[make(cg.tensor)].zero_()
    assert a.tolist() == ARRAY.tolist()
    assert a._version == 0


@pytest.mark.parametrize("index", [True, False])
def test_a_bool_adds_a_dim(index):
    assert cg.tensor(ARRAY)[index].tolist() == ARRAY[index].tolist()
    assert cg.tensor(ARRAY)[cg.tensor(index)].tolist() == ARRAY[index].tolist()


def test_uint8_is_a_mask():
    mask = cg.tensor([1, 0], dtype=cg.uint8)
    assert cg.tensor(ARRAY)[mask].tolist() == ARRAY[[True, False]].tolist()


def test_views_of_views_share_memory():
    a = cg.tensor(ARRAY)
    view = a[1][1:][0]
    assert view.data_ptr() == a.data_ptr() + 16 * 8
    assert view.storage_offset() == 16
    assert a[:, ::2, 1:].stride() == (12, 8, 1)


def test_len_and_iteration():
    a = cg.tensor(ARRAY)
    assert len(a) == 2
    assert [row.tolist() for row in a] == ARRAY.tolist()
    assert [x.item() for x in cg.tensor([1, 2])] == [1, 2]
    assert list(cg.zeros(0, 3)) == []


def test_iteration_is_on_the_tape():
    x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    first, second, third = x
    (first * second * third).backward()
    assert x.grad.tolist() == [6, 3, 2]


def test_contains():
    assert 5 in cg.tensor(ARRAY)
    assert 50 not in cg.tensor(ARRAY)


def test_0d():
    a = cg.tensor(3.0)
    assert a[...].item() == a[()].item() == 3
    assert a[None].tolist() == [3]
    assert a[cg.tensor(True)].tolist() == [3]


NOT_AN_INDEX = r"only integers, slices \(`:`\), ellipsis \(`...`\), None and long or byte Variables are valid indices"
# Of masks without elements NumPy takes some that do not fit.
NO_MASKS = [cg.zeros(0, dtype=cg.bool), cg.zeros(2, 0, dtype=cg.bool), cg.zeros(0, 3, dtype=cg.bool), np.zeros((2, 0), bool),
            (slice(None), cg.zeros(0, dtype=cg.bool)), (0, cg.zeros(3, 0, dtype=cg.bool)), (..., cg.zeros(0, 4, dtype=cg.bool))]
REFUSED = [
    (lambda a: a[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (lambda a: a[-3], IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
    (lambda a: a[0, 3], IndexError, "index 3 is out of bounds for dimension 1 with size 3"),
    (lambda a: a[..., 4], IndexError, "index 4 is out of bounds for dimension . with size 4"),
    (lambda a: a[0, 0, 0, 0], IndexError, "too many indices for tensor of dimension 3"),
    (lambda a: a[(slice(None),) * 4], IndexError, "too many indices for tensor of dimension 3"),
    (lambda a: a[0, 0, 0][0], IndexError, "invalid index of a 0-dim tensor"),
    (lambda a: a[0, 0, 0][0:1], IndexError, r"slice\(\) cannot be applied to a 0-dim tensor"),
    (lambda a: a[::-1], ValueError, "step must be greater than zero"),
    (lambda a: a[0:2:-2], ValueError, "step must be greater than zero"),
    (lambda a: a[::0], ValueError, "slice step cannot be zero"),
    (lambda a: a[1.0], IndexError, NOT_AN_INDEX),
    (lambda a: a[0, 1.5], IndexError, NOT_AN_INDEX),
    (lambda a: a[{1}], IndexError, NOT_AN_INDEX),
    (lambda a: a[object()], IndexError, NOT_AN_INDEX),
    (lambda a: a["a"], (IndexError, TypeError), None),
    (lambda a: a[0:"a"], TypeError, "slice indices must be integers or None or have an __index__ method"),
    (lambda a: a[1:2.5], TypeError, "slice indices must be integers or None or have an __index__ method"),
    (
        lambda a: a[cg.tensor([1, 2]) :],
        TypeError,
        "only integer tensors of a single element can be converted to an index",
    ),
    (lambda a: a[cg.tensor([0.0])], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (lambda a: a[cg.tensor(0.0)], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (lambda a: a[cg.tensor([2])], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (lambda a: a[cg.tensor([0, -3])], IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
    (lambda a: a[:, cg.tensor([0, 3])], IndexError, "index 3 is out of bounds for dimension . with size 3"),
    (
        lambda a: a[cg.tensor([0, 1]), cg.tensor([0, 1, 2])],
        IndexError,
        r"shape mismatch: indexing tensors could not be broadcast together with shapes \[2\], \[3\]",
    ),
    (
        lambda a: a[cg.tensor([True, False, True])],
        IndexError,
        r"The shape of the mask \[3\] at index 0 does not match the shape of the indexed tensor \[2, 3, 4\] at index 0",
    ),
    (
        lambda a: a[:, cg.tensor([True, False])],
        IndexError,
        r"The shape of the mask \[2\] at index 0 does not match the shape of the indexed tensor \[2, 3, 4\] at index 1",
    ),
    *((lambda a, index=index: a[index], IndexError, r"The shape of the mask \[.*0.*\] at index \d does not match the shape of the indexed "
       r"tensor \[2, 3, 4\] at index \d") for index in NO_MASKS),
    *((lambda a, index=index, value=value: a.__setitem__(index, value), IndexError, r"The shape of the mask \[.*0.*\] at index \d does not")
      for index in NO_MASKS for value in (1, cg.ones(1, dtype=cg.int64), cg.ones(0, 4, dtype=cg.int64))),
    (lambda a: a[..., cg.ones(3, dtype=cg.bool)], IndexError, r"mask \[3\] at index 0 does not match .* \[2, 3, 4\] at index 2"),
    (lambda a: a[2**70], (IndexError, ValueError), None),
    (lambda a: len(a[0, 0, 0]), TypeError, r"len\(\) of a 0-d tensor"),
    (lambda a: iter(a[0, 0, 0]), TypeError, "iteration over a 0-d tensor"),
    (lambda a: a.__delitem__(0), TypeError, "does not support deleting items"),
]


@pytest.mark.cases(("read", "error", "message"), REFUSED)
def test_refused(read, error, message):
    with pytest.raises(error, match=message):
        read(cg.tensor(ARRAY))


WRITES_REFUSED = [
    (2, 0, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (cg.tensor([2]), 0, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (slice(None, None, -1), 0, ValueError, "step must be greater than zero"),
    ((0, 0, 0, 0), 0, IndexError, "too many indices for tensor of dimension 3"),
    (1.0, 0, IndexError, NOT_AN_INDEX),
    (0, cg.ones(3), RuntimeError, None),
    (0, cg.ones(2, 3, 4), RuntimeError, None),
    ((0, 0, 0), cg.ones(2), RuntimeError, None),
    (cg.tensor([0, 1]), cg.ones(3, 3, 4), RuntimeError, "shape mismatch"),
    (cg.tensor(ARRAY > 7), cg.ones(3), (RuntimeError, IndexError), "shape mismatch"),
    (0, "a", TypeError, None),
    (0, None, TypeError, None),
    (0, object(), TypeError, None),
]


@pytest.mark.cases(("index", "value", "error", "message"), WRITES_REFUSED)
def test_writes_refused(index, value, error, message):
    a = cg.tensor(ARRAY)
    with pytest.raises(error, match=message):
        a[index] = value
    assert a.tolist() == ARRAY.tolist()


# Lists that hold more than numbers count as tuples, as in torch.
SEVERAL = [
    [[0, 1], [2, 0]],
    [slice(None), [0, 2]],
    [[1, 0], slice(None), [3, 3]],
    [[[1, 1], [0, 0]], [[0, 1], [1, 1]]],
    [[1, 1], [0]],
    [[0, 1]],
    [[True, False]],
    [..., 1],
    [None, 0],
    [0, slice(1, 3)],
    [cg.tensor([0, 1]), ...],
    [cg.tensor(1), cg.tensor(2)],
    [np.array([0, 1]), 1],
    [(0, 1), (1, 2)],
]


@pytest.mark.cases("key", SEVERAL, ids=str)
def test_a_list_of_several_indices(key):
    x, message = cg.tensor(ARRAY, requires_grad=True), "Using a non-tuple sequence for multidimensional indexing is deprecated"
    with pytest.warns(UserWarning, match=message):
        part = x[key]
    assert part.tolist() == x[tuple(key)].tolist()
    written, expected = cg.tensor(ARRAY), cg.tensor(ARRAY)
    with pytest.warns(UserWarning, match=message):
        written[key] = -1
    expected[tuple(key)] = -1
    assert written.tolist() == expected.tolist()
    part.sum().backward()
    gradient, x.grad = x.grad, None
    x[tuple(key)].sum().backward()
    assert gradient.tolist() == x.grad.tolist()
    assert cg.vmap(lambda one: one[key])(cg.stack([x, x])).tolist() == cg.stack([part, part]).tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("key", [[1, 0], [0], [True, False], []], ids=str)
def test_a_list_of_numbers_is_one_index(key):
    assert cg.tensor(ARRAY)[key].tolist() == ARRAY[np.array(key, dtype=bool if any(item is True for item in key) else int)].tolist()


# ----- Writing -----


@pytest.mark.cases(
    "value", [-1, -1.5, True, cg.tensor(-3.0, dtype=cg.float64), cg.tensor([7.0], dtype=cg.float64)], ids=str
)
@pytest.mark.cases("make", CASES, ids=NAMES)
def test_writing_one_value_is_numpys(make, value):
    expected = ARRAY.copy()
    expected[make(np.array)] = value if not isinstance(value, cg.Tensor) else value.item()
    a = cg.tensor(ARRAY)
    a[make(cg.tensor)] = value
    assert a.tolist() == expected.tolist()
    assert a._version >= 1 or expected.tolist() == ARRAY.tolist()


@pytest.mark.cases("make", CASES, ids=NAMES)
def test_writing_a_tensor_of_the_shape_is_numpys(make):
    expected = ARRAY.copy()
    shape = expected[make(np.array)].shape
    values = 100.0 + np.arange(np.prod(shape, dtype=int)).reshape(shape)
    expected[make(np.array)] = values
    a = cg.tensor(ARRAY)
    a[make(cg.tensor)] = cg.tensor(values)
    assert a.tolist() == expected.tolist()


BROADCAST = [
    (0, (4,)),
    (0, (3, 1)),
    (0, (1, 3, 4)),
    (slice(None), (3, 4)),
    ((slice(None), slice(1, 3)), (2, 1, 1)),
    ([1, 0], (3, 1)),
    ((slice(None), [2, 0]), (2, 1, 4)),
    ((slice(None), [True, False, True], 0), (2, 1)),
]


@pytest.mark.parametrize(("index", "shape"), BROADCAST, ids=str)
def test_values_broadcast(index, shape):
    values = 100.0 + np.arange(np.prod(shape)).reshape(shape)
    expected = ARRAY.copy()
    expected[index] = values
    a = cg.tensor(ARRAY)
    a[index] = cg.tensor(values)
    assert a.tolist() == expected.tolist()


CONVERTED = [
    (cg.int64, 1.7, 1),
    (cg.int64, True, 1),
    (cg.int64, cg.tensor(1.7), 1),
    (cg.bool, 2, True),
    (cg.float32, 3, 3.0),
    (cg.float64, cg.tensor(1, dtype=cg.int8), 1.0),
]


@pytest.mark.parametrize(("dtype", "value", "stored"), CONVERTED, ids=str)
def test_values_are_converted(dtype, value, stored):
    a = cg.zeros(2, dtype=dtype)
    a[0] = value
    assert a.tolist() == [stored, 0]


def test_a_view_into_itself():
    a = cg.arange(9.0).reshape(3, 3)
    a[:, 0] = a[0].clone()
    assert a.tolist() == [[0, 1, 2], [1, 4, 5], [2, 7, 8]]


@pytest.mark.parametrize("index", [0, [0, 2], [True, False, True], slice(0, 2), ...], ids=str)
def test_overwritten_elements_get_no_gradient(index):
    x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[index if isinstance(index, int | slice) or index is ... else cg.tensor(index)] = 5
    y.sum().backward()
    expected = np.full(3, 2.0)
    expected[index] = 0
    assert x.grad.tolist() == expected.tolist()


@pytest.mark.parametrize("index", [slice(0, 2), [0, 2], [True, False, True]], ids=str)
def test_writing_passes_the_gradient_to_the_value(index):
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    y = cg.zeros(3)
    y[index if isinstance(index, slice) else cg.tensor(index)] = x * 3
    assert y.requires_grad
    (y * cg.tensor([1.0, 10.0, 100.0])).sum().backward()
    weights = np.array([1.0, 10.0, 100.0])[index]
    assert x.grad.tolist() == (3 * weights).tolist()


def test_writing_a_broadcast_value_sums_its_gradient():
    x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = cg.zeros(4, 3)
    y[1:] = x
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
