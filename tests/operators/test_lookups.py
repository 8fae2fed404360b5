"""Elements at places that tensors, arrays, lists and masks name: read, written and added, against NumPy, and in captured functions."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import grad

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


def drawn_case(seed):
    """Return an array of some layout and an index of slices, ints, None, an ellipsis and arrays, whose result has few dims."""
    random = np.random.default_rng(seed)
    ndim = random.integers(1, 5)
    shape = random.integers(1, 5, ndim)
    dtype = np.dtype(DTYPES[random.integers(len(DTYPES))])
    array = (random.standard_normal((*shape, 2)) * 4).astype(dtype)[..., 0]
    array = array if random.random() < 0.5 else np.ascontiguousarray(array)
    array = array.transpose(random.permutation(ndim))
    looked_up = random.choice(ndim, random.integers(1, ndim + 1), replace=False)
    common = tuple(random.integers(1, 4, random.integers(1, 3)))
    key = []
    for d, size in enumerate(array.shape):
        if d in looked_up:
            places = tuple(1 if random.random() < 0.2 else length for length in common)[random.integers(0, len(common)):]
            key.append(random.integers(-size, size, places or common[-1:]).astype(random.choice([np.int64, np.int32])))
        else:
            start = random.integers(0, size)
            key.append([slice(None), slice(start, None), slice(None, None, 2), int(start)][random.integers(4)])
    if random.random() < 0.3:
        key.insert(random.integers(len(key) + 1), None)
    whole = [k for k, item in enumerate(key) if isinstance(item, slice) and item == slice(None)]
    if whole and random.random() < 0.3:
        key[whole[0]] = ...
    return array, tuple(key)


def drawn_mask_case(seed):
    """Return an array of some layout and an index with a mask of one or more dims."""
    random = np.random.default_rng(seed)
    ndim = random.integers(1, 5)
    array = (random.standard_normal(random.integers(0 if seed % 9 == 0 else 1, 5, ndim)) * 4).astype(DTYPES[random.integers(len(DTYPES))])
    array = array.transpose(random.permutation(ndim))
    first = random.integers(ndim)
    dims = random.integers(1, ndim - first + 1)
    before = [[slice(None), slice(1, None), -1][random.integers(3 if size else 2)] for size in array.shape[:first]]
    after = [[slice(None), slice(None, None, 2), 0, np.zeros(1, int)][random.integers(4 if size else 2)]
             for size in array.shape[first + dims:] if random.random() < 0.5]
    mask = random.random(array.shape[first:first + dims]) < random.choice([0, 0.5, 1])
    return array, (*before, mask, *([None] if random.random() < 0.2 else []), *after)


def with_tensors(key, random):
    """Return an index with tensors in place of arrays, or with lists, or as it is."""
    forms = [cg.tensor, lambda item: item if item.dtype in (bool, "int64") else cg.tensor(item),
             lambda item: item.tolist() if item.size and (item.dtype != bool or item.ndim == 1) else cg.tensor(item)]
    return tuple(forms[random.integers(3)](item) if isinstance(item, np.ndarray) else item for item in key)


@pytest.mark.parametrize("drawn", [drawn_case, drawn_mask_case])
@pytest.mark.cases("seed", range(1000))
def test_reading_and_writing_are_numpys(seed, drawn):
    array, key = drawn(seed)
    index, expected = with_tensors(key, np.random.default_rng(seed)), array[key]
    np.testing.assert_array_equal(cg.from_numpy(array)[index], expected)
    random = np.random.default_rng(seed)
    value = (random.standard_normal(expected.shape[random.integers(0, 2):]) * 4).astype(array.dtype)
    changed, theirs = cg.from_numpy(array).clone(), array.copy()
    changed[index] = cg.tensor(value)
    theirs[key] = value
    np.testing.assert_array_equal(changed, theirs)
    changed[index] = 1
    theirs[key] = 1
    np.testing.assert_array_equal(changed, theirs)


@pytest.mark.parametrize("drawn", [drawn_case, drawn_mask_case])
@pytest.mark.cases("seed", range(1000, 1400))
def test_gradients_are_added_as_often_as_places_are_named(seed, drawn):
    array, key = drawn(seed)
    x = cg.tensor(np.ascontiguousarray(array.real.astype("float64"))).requires_grad_()
    y = x[with_tensors(key, np.random.default_rng(seed))]
    weights = np.random.default_rng(seed).standard_normal(y.shape)
    theirs = np.zeros(array.shape)
    np.add.at(theirs, key, weights)
    assert grad(y, x, cg.tensor(weights))[0].numpy().tobytes() == theirs.tobytes()


A, B, C = cg.tensor([1, 0, 1]), cg.tensor([2, 0, 1]), cg.tensor([[0, 1], [1, 0]])
ALL = slice(None)
TORCHS_STRIDES = [((ALL, A), (1, 20, 60, 5)), ((A,), (24, 4, 12, 1)), ((ALL, A, ALL, B), (10, 1, 5)), ((ALL, ALL, A, B), (3, 15, 1)),
                  ((A, ..., B), (6, 1, 3)), ((ALL, ALL, C, slice(2)), (1, 40, 10, 5, 20)), ((0, ALL, A), (12, 4, 1)),
                  ((ALL, 0, A), (1, 5, 15))]


@pytest.mark.parametrize(("key", "strides"), TORCHS_STRIDES, ids=range(len(TORCHS_STRIDES)))
def test_results_lie_as_torchs(key, strides):
    """In the order of the tensor's strides where no index decides."""
    assert cg.zeros(2, 3, 4, 5).permute(3, 1, 0, 2)[key].stride() == strides


@pytest.mark.parametrize(("index", "dim", "size"), [(3, 0, 3), (-4, 0, 3), (5, 1, 5)])
def test_places_outside_are_refused_and_nothing_changes(index, dim, size):
    x, key = cg.ones(3, 5), (slice(None),) * dim + (cg.tensor([0, index]),)
    for access in (lambda: x[key], lambda: x.__setitem__(key, 2.0)):
        with pytest.raises(IndexError, match=f"index {index} is out of bounds for dimension {dim} with size {size}"):
            access()
    assert x.sum() == 15


def test_an_index_that_is_not_row_major_decides_how_the_result_lies():
    assert cg.arange(5.0)[cg.tensor([[0, 1, 2], [2, 1, 0]]).t()].stride() == (1, 3)


def test_too_many_indices_are_refused():
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        cg.tensor(3.0)[cg.tensor([0])]


def test_an_index_may_be_the_tensor_itself():
    x = cg.tensor([2, 0, 1, 3])
    assert x[x].tolist() == [1, 2, 0, 3]
    x[x] = cg.tensor([5, 6, 7, 8])
    assert x.tolist() == [6, 7, 5, 8]
    x = cg.arange(4)
    x[cg.tensor([1, 2, 3])] = x[:3]
    assert x.tolist() == [0, 0, 1, 2]


def test_other_tensors_may_lie_in_the_same_foreign_memory():
    array = np.arange(6.0)
    cg.from_numpy(array)[cg.tensor([1, 2, 3])] = cg.from_numpy(array[:3])
    assert array.tolist() == [0, 0, 1, 2, 4, 5]
    array = np.array([2, 0, 1, 3])
    cg.from_numpy(array)[cg.from_numpy(array)] = cg.tensor([5, 6, 7, 8])
    assert array.tolist() == [6, 7, 5, 8]


@pytest.mark.cases("seed", range(2000, 2200))
def test_flips_are_numpys(seed):
    array, _ = drawn_case(seed)
    dims = np.flatnonzero(np.random.default_rng(seed).integers(0, 2, array.ndim)).tolist()
    flipped = cg.from_numpy(array).flip(dims)
    assert flipped.is_contiguous()
    np.testing.assert_array_equal(flipped, np.flip(array, dims))


@pytest.mark.parametrize("shape", [(), (0, 2), (2,) * 9])
def test_flips_of_any_number_of_dims(shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    dims = range(0, len(shape), 2)
    np.testing.assert_array_equal(cg.tensor(array).flip(*dims), np.flip(array, tuple(dims)))


def test_captured_functions_look_up_without_python():
    """With other places at each call; one outside raises the function's own error."""
    def loss(x, i, j):
        y = x.clone()
        y[i] = y[j] * 2
        return (x[i, j] * y.flip(0, 1)[:, j]).sum() + (x[i][:, None] * 3).sum()

    def with_gradient(x, i, j):
        value = loss(x, i, j)
        return value.detach(), *grad(value, x)

    compiled = cg.compile(with_gradient, fullgraph=True)
    x = cg.rand(4, 4, dtype=cg.float64).requires_grad_()
    for seed in range(5):
        places = np.random.default_rng(seed).integers(-4, 4, (2, 3))
        i, j = cg.tensor(places)
        for ours, theirs in zip(compiled(x, i, j), with_gradient(x, i, j), strict=True):
            assert ours.numpy().tobytes() == theirs.numpy().tobytes()
    assert "0 calls of Python" in compiled.explain(x, i, j)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        compiled(x, cg.tensor([0, 1, 4]), j)


OVERLAPPING = {
    "a number at a mask": lambda x, m: x.__setitem__(m, 80.0),
    "masked_fill_": lambda x, m: x.masked_fill_(m, 80.0),
    "masked_scatter_": lambda x, m: x.masked_scatter_(m, cg.tensor([80.0])),
    "put_": lambda x, m: x.put_(cg.tensor([2]), cg.tensor([80.0])),
    "index_put_": lambda x, m: x.index_put_((cg.tensor([0]), cg.tensor([2])), cg.tensor(80.0)),
    "added": lambda x, m: x.put_(cg.tensor([2]), cg.tensor([78.0]), True),
    "a slice": lambda x, m: x[:, 2:].index_fill_(0, cg.tensor([0]), 80.0),
    "an added slice": lambda x, m: x[:, 2:].index_add_(0, cg.tensor([0]), cg.tensor([[78.0]])),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_one_element_of_an_overlapping_target_changes(name):
    memory, mask = cg.arange(10.0), cg.zeros(4, 3, dtype=cg.bool)
    mask[0, 2] = True
    OVERLAPPING[name](memory.as_strided((4, 3), (1, 1)), mask)
    assert memory.tolist() == [0, 1, 80, *range(3, 10)]


def test_values_that_do_not_fit_are_refused_in_torchs_words():
    for x, key, value, words in ((cg.zeros(5, 4), cg.ones(5, 4, dtype=cg.bool), cg.zeros(20, 2), "[20, 2] cannot be broadcast to indexing "
                                  "result of shape [20]"),
                                 (cg.zeros(5), cg.tensor([0, 1]), cg.zeros(3), "[3] cannot be broadcast to indexing result of shape [2]")):
        with pytest.raises(RuntimeError) as error:
            x[key] = value
        assert str(error.value) == f"shape mismatch: value tensor of shape {words}" and not x.any()


def test_arrays_without_dims_name_one_place():
    x = cg.arange(6.0).reshape(2, 3)
    assert x[np.array(1)].tolist() == [3, 4, 5] and x[np.array(1), np.array(2)].item() == 5
