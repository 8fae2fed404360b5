"""Look-up, scatter, masks and places: against loops over the elements, in every layout and dtype; refusals change nothing."""

import math

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad
from samples import DTYPES, LAYOUTS, WRITABLE, array_of, same_bits

SHAPE = (3, 4, 2)
REDUCE = {
    "sum": lambda parts: sum(parts),
    "prod": lambda parts: math.prod(parts),
    "mean": lambda parts: sum(parts) / len(parts) if isinstance(parts[0], float) else sum(parts) // len(parts),
    "amax": max,
    "amin": min,
}


def places(index, dim):
    """Yield (place in the index, place that it names) for each element."""
    for at in np.ndindex(index.shape):
        yield at, (*at[:dim], int(index[at]), *at[dim + 1 :])


def index_for(dim, seed=0):
    """Return places along a dim, some of them repeated, in an array shorter than SHAPE elsewhere."""
    shape = [5 if d == dim else size - (d > dim) for d, size in enumerate(SHAPE)]
    return np.random.default_rng(seed).integers(0, SHAPE[dim], shape)


def small(dtype, shape, seed):
    """Return small numbers, whose sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 3, shape).astype(dtype)


# ----- Values -----
@pytest.mark.cases("dim", [0, 1, 2, -1])
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_gather_and_scatter(dtype, layout, dim):
    index = index_for(dim % 3)
    x, src = LAYOUTS[layout](small(dtype, SHAPE, 1)), LAYOUTS[layout](small(dtype, index.shape, 2))
    place = LAYOUTS[layout](index)
    array, values, index = array_of(x), array_of(src), array_of(place)
    gathered, scattered, added = np.empty(index.shape, dtype), array.copy(), array.copy()
    for at, to in places(index, dim % 3):
        gathered[at] = array[to]
        scattered[to] = values[at]
        added[to] += values[at]
    assert same_bits(array_of(x.gather(dim, place)), gathered)
    assert same_bits(array_of(x.gather(dim, place.int())), gathered)
    assert same_bits(array_of(cg.scatter(x, dim, place, src)), scattered)
    assert same_bits(array_of(x.scatter_add(dim, place, src)), added)
    assert same_bits(array_of(x.scatter(dim, place, src, reduce="add")), added)
    assert same_bits(array_of(cg.scatter(x, dim, place, 1)), np.where(scattered_mask(array, index, dim % 3), 1, array).astype(dtype))
    assert same_bits(array_of(x), array)


def scattered_mask(array, index, dim):
    mask = np.zeros(array.shape, bool)
    for _, to in places(index, dim):
        mask[to] = True
    return mask


@pytest.mark.cases("include_self", [True, False])
@pytest.mark.cases("dim", [0, 1, 2])
@pytest.mark.parametrize("reduce", REDUCE)
@pytest.mark.cases("dtype", ["int8", "uint8", "int64", "float32", "float64"])
def test_scatter_reduce(dtype, reduce, dim, include_self):
    index, array = index_for(dim), small(dtype, SHAPE, 1)
    values = small(dtype, index.shape, 2)
    groups = {}
    for at, to in places(index, dim):
        groups.setdefault(to, [array[to].item()] if include_self else []).append(values[at].item())
    expected = array.copy()
    for to, parts in groups.items():
        expected[to] = REDUCE[reduce](parts)
    x, place, src = cg.tensor(array), cg.tensor(index), cg.tensor(values)
    result = x.scatter_reduce(dim, place, src, reduce, include_self=include_self)
    assert result.dtype == x.dtype
    assert np.allclose(array_of(result), expected, rtol=1e-7)
    assert same_bits(array_of(x.scatter_reduce_(dim, place, src, reduce, include_self=include_self)), array_of(result))


@pytest.mark.cases("include_self", [True, False])
@pytest.mark.cases("dim", [0, -1])
@pytest.mark.parametrize("reduce", [reduce for reduce in REDUCE if reduce != "sum"])
@pytest.mark.cases("dtype", ["uint8", "int64", "float32", "float64"])
def test_index_reduce(dtype, reduce, dim, include_self):
    array, order = small(dtype, SHAPE, 1), np.array([1, 0, 1, 1])
    values = small(dtype, [4 if d == dim % 3 else size for d, size in enumerate(SHAPE)], 2)
    expected = np.moveaxis(array.copy(), dim, 0)
    for place in set(order):
        parts = ([expected[place].copy()] if include_self else []) + [*np.moveaxis(values, dim, 0)[order == place]]
        for at in np.ndindex(expected.shape[1:]):
            expected[(place, *at)] = REDUCE[reduce]([part[at].item() for part in parts])
    x, index, source = cg.tensor(array), cg.tensor(order).to(cg.int32), cg.tensor(values)
    result = cg.index_reduce(x, dim, index, source, reduce, include_self=include_self)
    assert result.dtype == x.dtype
    assert np.allclose(array_of(result), np.moveaxis(expected, 0, dim), rtol=1e-7)
    out = cg.empty(SHAPE, dtype=x.dtype)
    assert x.index_reduce(dim, index=index, source=source, reduce=reduce, include_self=include_self, out=out) is out
    assert same_bits(array_of(out), array_of(result))
    assert same_bits(array_of(x.index_reduce_(dim, index, source, reduce, include_self=include_self)), array_of(result))


@pytest.mark.cases("dim", [0, 1, -1])
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_slices_along_a_dim(dtype, layout, dim):
    size = SHAPE[dim]
    x, place = LAYOUTS[layout](small(dtype, SHAPE, 1)), LAYOUTS[layout](np.arange(size)[::-1].copy())
    array, order = array_of(x), array_of(place)
    source = LAYOUTS[layout](small(dtype, SHAPE, 2))
    assert same_bits(array_of(x.index_select(dim, place)), np.take(array, order, dim))
    expected = np.moveaxis(array.copy(), dim, 0)
    np.add.at(expected, order, np.moveaxis(array_of(source), dim, 0))
    assert same_bits(array_of(x.index_add(dim, place, source)), np.moveaxis(expected, 0, dim))
    expected = np.moveaxis(array.copy(), dim, 0)
    expected[order] = np.moveaxis(array_of(source), dim, 0)
    assert same_bits(array_of(x.index_copy(dim, place, source)), np.moveaxis(expected, 0, dim))
    expected = np.moveaxis(array.copy(), dim, 0)
    expected[order[:1]] = 1
    assert same_bits(array_of(x.index_fill(dim, place[:1], 1)), np.moveaxis(expected, 0, dim))


@pytest.mark.cases("dim", [0, 1])
@pytest.mark.cases("dtype", ["float64", "float32", "int16", "bool", "complex64"])
def test_slices_are_added_where_a_tensor_lies(dtype, dim):
    """In place, where neither the target nor the source is dense: elements beside the target stay."""
    memory, source, index = small(dtype, (6, 8), 1), small(dtype, (4, 3), 2), [2, 0, 2]
    whole = cg.tensor(memory)
    target, part = whole[1::2, ::2].t(), cg.tensor(source)
    expected = memory.copy()
    view = expected[1::2, ::2].T
    if dim == 0:
        target, view = target.t(), view.T
    part = part if dim else part.t()
    for k, place in enumerate(index):
        key = (slice(None),) * dim + (place,)
        view[key] += array_of(part)[(slice(None),) * dim + (k,)]
    assert target.index_add_(dim, cg.tensor(index), part) is target
    assert same_bits(array_of(whole), expected)



@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_masks_and_places(dtype, layout):
    x, mask = LAYOUTS[layout](small(dtype, SHAPE, 1)), LAYOUTS[layout](small("bool", SHAPE, 2))
    array, where, source = array_of(x), array_of(mask), small(dtype, SHAPE, 3)
    assert same_bits(array_of(x.masked_fill(mask, 1)), np.where(where, np.ones((), dtype), array))
    assert same_bits(array_of(x.masked_select(mask)), array[where])
    expected = array.copy()
    expected[where] = source.reshape(-1)[: where.sum()]
    assert same_bits(array_of(x.masked_scatter(mask, cg.tensor(source))), expected)
    index = np.array([[23, -1], [0, 0]])
    assert same_bits(array_of(x.take(cg.tensor(index))), array.reshape(-1)[index])
    for accumulate in (False, True):
        expected = array.reshape(-1).copy()
        for place, value in zip(index.reshape(-1), source.reshape(-1)[:4], strict=True):
            expected[place] = expected[place] + value if accumulate else value
        result = x.put(cg.tensor(index), cg.tensor(source.reshape(-1)[:4]), accumulate=accumulate)
        assert same_bits(array_of(result), expected.reshape(SHAPE))
    expected = array.copy()
    expected[[0, 2], 1] = 1
    key = (cg.tensor([0, 2]), cg.tensor(1))
    assert same_bits(array_of(x.index_put(key, cg.ones(2, dtype=x.dtype))), expected)
    assert same_bits(array_of(cg.nonzero(x)), np.argwhere(array))
    assert [part.tolist() for part in x.nonzero(as_tuple=True)] == [part.tolist() for part in array.nonzero()]


def test_take_along_dim():
    x = cg.tensor(samples.draw("float64", (3, 4)))
    for dim in (0, 1, -1):
        place = cg.tensor(np.argsort(array_of(x), dim))
        assert same_bits(array_of(x.take_along_dim(place, dim)), np.sort(array_of(x), dim))
    assert x.take_along_dim(cg.tensor([[0], [1], [-1]]), 1).tolist() == [[x[0, 0].item()], [x[1, 1].item()], [x[2, -1].item()]]
    assert x.take_along_dim(cg.tensor([[3]]), 1).shape == (3, 1)
    assert cg.take_along_dim(x, cg.tensor([11])).tolist() == [x[2, 3].item()]


def test_scalars_and_nothing():
    x, zero, none = cg.tensor(5.0), cg.tensor(0), cg.zeros(0, dtype=cg.int64)
    assert x.gather(0, zero).tolist() == x.index_select(0, zero).tolist() == x.take(zero).tolist() == 5
    assert x.gather(0, cg.tensor([0, 0])).tolist() == [5, 5]
    assert x.scatter(0, zero, 7).tolist() == x.index_fill(0, zero, 7).tolist() == x.masked_fill(zero == 0, 7).tolist() == 7
    assert x.scatter_add(0, zero, x).tolist() == x.index_add(0, zero, x).tolist() == 10
    assert cg.nonzero(x).shape == (1, 0)
    assert cg.nonzero(x - x).shape == (0, 0)
    y = cg.ones(2, 3)
    assert y.gather(1, none.reshape(2, 0)).shape == (2, 0)
    assert y.index_select(1, none).shape == (2, 0)
    assert y.take(none).shape == (0,)
    for same in (y.scatter_add(0, none, none.float()), y.index_add(0, none, y[:0]), y.put(none, none.float()), y.index_fill(0, none, 3)):
        assert same.tolist() == y.tolist()
    assert y[:0].masked_select(y[:0] > 0).shape == (0,)


# ----- In place -----
FORMS = {
    "scatter": (1, cg.tensor([[2, 0]]), cg.tensor([[5.0, 6.0]])),
    "scatter_add": (1, cg.tensor([[2, 2]]), cg.tensor([[5.0, 6.0]])),
    "scatter_reduce": (1, cg.tensor([[2, 2]]), cg.tensor([[5.0, 6.0]]), "prod"),
    "index_add": (0, cg.tensor([1, 1]), cg.ones(2, 3)),
    "index_reduce": (0, cg.tensor([1, 1]), cg.full((2, 3), 2.0), "prod"),
    "index_copy": (1, cg.tensor([2]), cg.ones(2, 1)),
    "index_fill": (1, cg.tensor([2]), cg.tensor(3.0)),
    "index_put": ((cg.tensor([1]), cg.tensor([2])), cg.tensor(3.0)),
    "masked_fill": (cg.tensor([True, False, True]), 3),
    "masked_scatter": (cg.tensor([True, False, True]), cg.arange(6.0)),
    "put": (cg.tensor([5, 0]), cg.ones(2)),
    "tril": (0,),
    "triu": (1,),
    "cumsum": (1,),
}
VALUES = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)


@pytest.mark.cases("layout", WRITABLE)
@pytest.mark.parametrize(("name", "arguments"), FORMS.items())
def test_in_place_forms(name, arguments, layout):
    target = LAYOUTS[layout](VALUES)
    expected = array_of(getattr(target, name)(*arguments))
    assert not same_bits(expected, VALUES)
    version = target._version
    assert getattr(target, name + "_")(*arguments) is target
    assert target._version > version
    assert same_bits(array_of(target), expected)


@pytest.mark.parametrize(("name", "arguments"), FORMS.items())
def test_in_place_forms_follow_the_rules_of_leaves_and_saved_values(name, arguments):
    leaf = samples.leaf(VALUES)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        getattr(leaf, name + "_")(*arguments)
    assert leaf.tolist() == VALUES.tolist()
    assert leaf._version == 0
    with cg.no_grad():
        getattr(leaf, name + "_")(*arguments)
    middle = leaf * 1
    result = middle.exp()
    getattr(result, name + "_")(*arguments)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
    changed = getattr(leaf * 1, name + "_")(*arguments)
    assert changed.grad_fn.name() == getattr(leaf, name)(*arguments).grad_fn.name()
    assert changed.grad_fn.next_functions[0][0].name() == "MulBackward0"


@pytest.mark.parametrize("name", ["gather", "index_select", "index_add", "masked_fill", "take"])
def test_a_changed_index_is_noticed(name):
    x = samples.leaf(VALUES)
    index = cg.tensor([True, False, True]) if name == "masked_fill" else cg.tensor([[0, 1]]) if name == "gather" else cg.tensor([0, 1])
    arguments = {"gather": (1, index), "index_select": (0, index), "index_add": (0, index, samples.leaf(VALUES)),
                 "masked_fill": (index, 0), "take": (index,)}[name]  # fmt: skip
    result = getattr(x, name)(*arguments)
    index.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(result.sum(), x if name != "index_add" else arguments[2])


def test_memory_shared_with_the_target_is_refused():
    x = cg.tensor(VALUES)
    for call in (lambda: x.scatter_(0, cg.tensor([[0, 1, 0]]), x), lambda: x.index_add_(0, cg.tensor([0]), x[1:]),
                 lambda: x.masked_scatter_(x > 0, x), lambda: x.put_(cg.tensor([0, 1, 2]), x[0])):  # fmt: skip
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input tensor and the written-to tensor"):
            call()
    assert x.tolist() == VALUES.tolist()
    assert x.index_fill_(0, cg.tensor([0]), x[1, 1]).tolist() == [[5, 5, 5], [4, 5, 6]]


def test_gradients_at_repeated_places_and_ties():
    x, v = samples.leaf(VALUES), cg.tensor(2.0, requires_grad=True)
    assert grad(x.index_fill(1, cg.tensor([0, 0]), v).sum(), v)[0].item() == 2
    ties = cg.zeros(2, requires_grad=True)
    x, src = grad(ties.scatter_reduce(0, cg.tensor([0, 0]), ties, "amax").sum(), ties), cg.tensor([0.0, 3.0, 4.0], requires_grad=True)
    assert x[0].tolist() == pytest.approx([1 / 3 + 1 / 3, 1 + 1 / 3])
    product = cg.tensor([2.0], requires_grad=True).scatter_reduce(0, cg.tensor([0, 0, 0]), src, "prod")
    assert grad(product, src)[0].tolist() == [24, 0, 0]


# ----- Refusals -----
X, PLACES = cg.ones(2, 3), cg.tensor([[0, 1, 0]])
REFUSED = [
    (lambda: cg.ones(3).index_add(0, cg.tensor([5]), cg.ones(1)), IndexError, "index out of range in self: index 5 is out of bounds"),
    (lambda: cg.ones(3).index_add_(0, cg.tensor([-1]), cg.ones(1)), IndexError, "index out of range in self: index -1"),
    (lambda: cg.ones(2, 2).index_add(1, cg.tensor([5]), cg.ones(2, 1)), RuntimeError, "^index 5 is out of bounds for dimension 1"),
    (lambda: cg.gather(X, 0, cg.tensor([0, 1])), RuntimeError, "Index tensor must have the same number of dimensions as input tensor"),
    (lambda: cg.gather(X, 2, PLACES), IndexError, "Dimension out of range"),
    (lambda: cg.gather(X, 0, cg.tensor([[0, 1, 0, 1]])), RuntimeError, "Size does not match at dimension 1 expected index"),
    (lambda: cg.gather(X, 0, cg.tensor([[0, 1, 2]])), RuntimeError, "index 2 is out of bounds for dimension 0 with size 2"),
    (lambda: cg.gather(X, 0, cg.tensor([[0, 1, -1]])), RuntimeError, "index -1 is out of bounds"),
    (lambda: cg.gather(X, 0, PLACES.float()), RuntimeError, r"gather\(\): Expected dtype int32/int64 for index"),
    (lambda: cg.gather(X, 0, [[0]]), TypeError, r"gather\(\): argument 'index' \(position 3\) must be Tensor, not list"),
    (lambda: cg.scatter(X, 0, PLACES, cg.ones(1, 2)), RuntimeError, r"Expected index \[1, 3\] to be no larger than self"),
    (lambda: cg.scatter(X, 0, PLACES, cg.ones(1, 3).double()), RuntimeError, r"scatter\(\): Expected self.dtype to be equal to src.dtype"),
    (lambda: cg.scatter(X, 0, cg.tensor([[9]]), cg.ones(1)), RuntimeError, "Index tensor must have the same number of dimensions as src"),
    (lambda: cg.scatter_add(X, 0, cg.tensor([[9]]), cg.ones(1, 1, 1)), RuntimeError, "same number of dimensions as src tensor: 2 and 3"),
    (lambda: cg.scatter(X, 0, cg.tensor([0]), cg.ones(3)), RuntimeError, "Index tensor must have the same number of dimensions as self"),
    (lambda: cg.scatter(X, 0, PLACES, X, reduce="mul"), RuntimeError, "reduce argument must be either add or multiply"),
    (lambda: X.scatter_add_(0, cg.tensor([[0, 1, 5]]), cg.ones(1, 3)), RuntimeError, "index 5 is out of bounds"),
    (lambda: X.scatter_reduce_(0, PLACES, X, "max"), RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got max"),
    (lambda: X.scatter_reduce_(0, PLACES + 9, cg.ones(1, 3), "sum", include_self=False), RuntimeError, "index 9 is out of bounds"),
    (lambda: cg.index_select(X, 0, cg.tensor([0, 2])), IndexError, "index out of range in self"),
    (lambda: cg.index_select(X, 0, PLACES), IndexError, r"index_select\(\): Index is supposed to be a vector"),
    (lambda: cg.index_select(X, 0, cg.tensor([0.0])), RuntimeError, r"index_select\(\): Expected dtype int32 or int64 for index"),
    (lambda: cg.index_select(cg.tensor(1.0), 0, cg.tensor([0, 0])), RuntimeError, "Index to scalar can have only 1 value"),
    (lambda: cg.index_add(X, 0, cg.tensor([0, 1]), cg.ones(2, 4)), RuntimeError, "source tensor shape must match self tensor shape"),
    (lambda: cg.index_add(X, 0, cg.tensor([0, 1]), cg.ones(3, 3)), RuntimeError, r"index_add_\(\): Number of indices \(2\) should be"),
    (lambda: X.index_add_(0, cg.tensor([0, 5]), X * 1), RuntimeError, "index 5 is out of bounds for dimension 0 with size 2"),
    (lambda: X.long().index_add(0, cg.tensor([0]), X.long()[:1], alpha=0.5), RuntimeError, "For integral input tensors, argument alpha"),
    (lambda: X.index_reduce_(0, cg.tensor([0, 5]), X * 1, "prod"), IndexError, "index out of range in self"),
    (lambda: cg.index_reduce(X, 0, cg.tensor([0, 1]), X, "sum"), RuntimeError, "Expected reduce to be one of prod, mean, amax or amin"),
    (lambda: cg.index_reduce(X, 0, cg.tensor([0]), X, "prod"), RuntimeError, r"index_reduce_\(\): Number of indices \(1\) should be"),
    (lambda: cg.scatter_reduce(X > 0, 0, PLACES, X > 0, "mean"), NotImplementedError, "not implemented for 'Bool'"),
    (lambda: X.index_copy_(0, cg.tensor([0, 5]), X * 1), IndexError, r"index_copy_\(\): index 5 is out of bounds"),
    (lambda: cg.index_copy(X, 0, cg.tensor([0, 1]), cg.ones(2, 4)), RuntimeError, r"index_copy_\(\): Source/destination tensor must have"),
    (lambda: cg.index_copy(X, 0, PLACES.int()[0], X), RuntimeError, r"index_copy_\(\): Expected a long tensor for index"),
    (lambda: X.index_fill_(0, cg.tensor([5]), 7), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    (lambda: cg.index_fill(X, 0, cg.tensor([0]), cg.ones(1)), RuntimeError, "index_fill_ only supports a 0-dimensional value tensor"),
    (lambda: cg.index_put(X, (cg.tensor([0, 1]),), cg.ones(2)), RuntimeError, "shape mismatch: value tensor of shape"),
    (lambda: cg.index_put(X, cg.tensor([0]), X), TypeError, r"index_put\(\): argument 'indices' \(position 2\) must be tuple of Tensors"),
    (lambda: X.index_put_((cg.tensor([0, 9]),), cg.tensor(5.0)), IndexError, "index 9 is out of bounds for dimension 0 with size 2"),
    (lambda: cg.index_put(X, (cg.tensor([0]),), X.double()), RuntimeError, "Index put requires the source and destination dtypes match"),
    (lambda: cg.masked_fill(X, cg.tensor([1, 0, 1]), 2), RuntimeError, "masked_fill_ only supports boolean masks"),
    (lambda: X[0].masked_fill_(X > 0, 2), RuntimeError, r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"),
    (lambda: cg.masked_fill(X, cg.tensor([True, False]), 2), RuntimeError, r"The size of tensor a \(2\) must match the size of tensor b"),
    (lambda: X.masked_scatter_(X > 0, cg.ones(2)), RuntimeError, "Number of elements of source < number of ones in mask"),
    (lambda: cg.masked_select(X, X), RuntimeError, "masked_select: expected BoolTensor for mask"),
    (lambda: cg.take(X, cg.tensor([6])), IndexError, "out of range: tried to access index 6 on a tensor of 6 elements."),
    (lambda: cg.take(cg.ones(0), cg.tensor([0])), IndexError, r"take\(\): tried to take from an empty tensor"),
    (lambda: X.put_(cg.tensor([9]), cg.ones(1)), IndexError, "out of range: tried to access index 9"),
    (lambda: cg.put(X, cg.tensor([1]), cg.ones(2)), IndexError, r"put_\(\): Expected source and index to have the same number"),
    (lambda: cg.take_along_dim(X, cg.tensor([0]), 1), RuntimeError, "input and indices should have the same number of dimensions"),
    (lambda: X.scatter_(0, PLACES, 5, out=X), TypeError, r"scatter_\(\) got an unexpected keyword argument 'out'"),
    (lambda: X.tril_(out=X), TypeError, r"tril_\(\) got an unexpected keyword argument 'out'"),
    (lambda: cg.gather([1.0], 0, PLACES), TypeError, r"gather\(\): argument 'input' \(position 1\) must be Tensor, not list"),
]


@pytest.mark.cases(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert X.tolist() == [[1] * 3] * 2
    assert X._version == 0


def test_out():
    x, out = cg.tensor(VALUES), cg.zeros(1, 3)
    assert cg.gather(x, 0, PLACES, out=out) is out
    assert out.tolist() == [[1, 5, 3]]
    whole = cg.zeros(2, 3)
    assert cg.scatter_add(x, 0, PLACES, cg.ones(1, 3), out=whole) is whole
    assert whole.tolist() == [[2, 2, 4], [4, 6, 6]]
    with pytest.raises(RuntimeError, match="out= has shape"):
        cg.take(x, cg.tensor([0]), out=out)
