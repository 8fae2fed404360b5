"""Captured functions that read and write at places: masks, lists, arrays and tensors are no calls; the number of places is a decision."""

import operator

import numpy as np
import pytest

import cygrad as cg
from capturing import captured, same
from cygrad.autograd import grad

MATRIX = cg.tensor(np.random.default_rng(3).standard_normal((4, 3)))
MASK, ROWS = cg.tensor([True, False, True, True]), cg.tensor([2, 0])
ARRAY, LIST, ARRAY_MASK = np.array([1, 3, 1]), [0, -1], np.array([[True, False, True]] * 4)


def changed(change):
    """Return a function that changes a copy of its argument in place."""
    def function(x):
        y = x * 1
        change(y)
        return y

    return function


def put(key, value):
    return changed(lambda y: y.__setitem__(key, value(y) if callable(value) else value))


FUNCTIONS = {
    "a list": lambda x: x[LIST],
    "an array": lambda x: x[ARRAY] * x[:, LIST].sum(),
    "a mask": lambda x: x[MASK],
    "a mask of all dims": lambda x: x[x > -9],
    "an array of bools": lambda x: x[ARRAY_MASK],
    "a mask of a later dim": lambda x: x[:, [True, False, True]],
    "a number at a mask": put(MASK, 2.0),
    "a tensor at a mask": put(MASK, lambda y: y[:3] * 2),
    "a 0-d tensor at a mask": put(MASK, lambda y: y.sum()),
    "a decision by elements": changed(lambda y: y.__setitem__(y > 0, 0.0)),
    "a number at a list": put(LIST, 5),
    "masked_fill_": changed(lambda y: y.masked_fill_(y < 0, 0.5)),
    "masked_fill_ of a row": changed(lambda y: y.masked_fill_(MASK[:3], 0.5)),
    "masked_scatter": lambda x: x.masked_scatter(MASK[:, None], x.flatten().sin()),
    "masked_select": lambda x: x.masked_select(MASK[:, None]),
    "take": lambda x: x.T.take(cg.tensor([[0, 5], [-1, 5]])),
    "put": lambda x: x.put(ROWS, x[0, :2] * 2),
    "put of sums": changed(lambda y: y.T.put_(cg.tensor([1, 1]), y[0, :2] * 2, True)),
    "index_put": lambda x: x.index_put((ROWS, MASK[1:]), x[0, :2]),
    "index_put of sums": lambda x: x.index_put((cg.tensor([1, 1]),), x[:2], True),
    "index_fill": lambda x: x.index_fill(1, ROWS, 0.5),
    "index_copy": lambda x: x.index_copy(0, ROWS, x[:2].cos()),
    "index_add": lambda x: x.index_add(0, ROWS, x[:2].cos(), alpha=2),
    "nonzero": lambda x: x[(x > -9).nonzero(as_tuple=True)],
    "places in order": lambda x: x * (x > -9).nonzero().sum(),
    "triangle": lambda x: x[tuple(cg.tril_indices(4, 3))],
    "combinations": lambda x: cg.combinations(x[0]),
    "repeated": lambda x: x.repeat_interleave(2, 0),
    "embedding": lambda x: cg.nn.functional.embedding(ROWS, x),
    "a tensor of an array": lambda x: x * cg.tensor(ARRAY)[:, None].sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_places_are_no_calls(name):
    compiled = captured(FUNCTIONS[name])
    for k in (1, 2, 3):
        ours, theirs = ((MATRIX * k).requires_grad_() for _ in range(2))
        results = compiled(ours), FUNCTIONS[name](theirs)
        same(*results)
        weights = results[1].detach().cos()
        same(grad(results[0], ours, weights)[0], grad(results[1], theirs, weights)[0])
    ways = 3 if name == "a decision by elements" else 1
    assert compiled.cache_info().misses <= ways and "0 calls of Python" in compiled.explain(MATRIX * 2)


def test_another_number_of_places_is_another_program():
    compiled = captured(lambda x: (x[x > 0] * 2).sum() + x[[0]])
    for k in (0, 1, 0, 2, 1):
        x = MATRIX[k]
        same(compiled(x), compiled._function(x))
    counts = {int((MATRIX[k] > 0).sum()) for k in (0, 1, 2)}
    assert compiled.cache_info()[:2] == (5 - len(counts), len(counts))


def test_changed_lists_and_arrays_are_seen():
    places, array = [0, 1], np.array([1, 2])
    compiled = captured(lambda x: x[places] + x[array])
    for change in (lambda: None, lambda: places.reverse(), lambda: array.fill(0), lambda: array.fill(3)):
        change()
        same(compiled(MATRIX), compiled._function(MATRIX))
    assert compiled.cache_info().misses == 4


# Places that a 0-d tensor names, which Python would read as an integer.
NAMED = {
    "a row": lambda i: put(i, 7.0),
    "a column": lambda i: put((ALL, i), 7.0),
    "an element": lambda i: put((i, i), 7.0),
    "a row of int32": lambda i: put(i.int(), 7.0),
    "a row of int16": lambda i: put(i.short(), 7.0),
    "a list": lambda i: put(([i, 2],), 7.0),
    "a list of places": lambda i: lambda x: x[[i, i]] * 2,
    "beside a mask": lambda i: put((MASK, i), 7.0),
    "a recorded row": lambda i: put(i, lambda y: y[2] * 2),
    "index_put": lambda i: lambda x: x.index_put((i,), x[0]),
    "a slice": lambda i: put(slice(i, None), 0.0),
    "a later slice": lambda i: put((ALL, slice(None, i)), 0.0),
    "a slice beside a list": lambda i: put(([True, False, True, True], slice(i, None)), 0.0),
    "a look-up": lambda i: lambda x: x[i, cg.tensor([0, 1])] * x[cg.tensor([0, 1]), i],
    "a view": lambda i: lambda x: x[i] * 2,
    "a part": lambda i: lambda x: x[i:] * 2,
    "a part of a row": lambda i: lambda x: x[i, :2] * 2,
    "a view that is written": lambda i: changed(lambda y: y[i].mul_(3)),
    "select": lambda i: lambda x: x.select(0, i) * 2,
    "narrow": lambda i: lambda x: x.narrow(0, i, 1) * 2,
    "roll": lambda i: lambda x: x.roll(i, 0) * 2,
    "a range": lambda i: lambda x: sum((x[k] for k in range(i % 3)), x[0]),
    "an item of a list": lambda i: lambda x: [x * 2, x * 3, x * 4][i],
    "numbers of a tensor": lambda i: lambda x: x * cg.arange(operator.index(i) % 3 + 1).sum(),
    "a tensor of numbers": lambda i: lambda x: x * cg.tensor([*range(i % 3 + 1)]).sum(),
    "a full tensor": lambda i: lambda x: x * cg.full((3,), operator.index(i)),
}
ALL = slice(None)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("name", NAMED)
def test_a_place_that_a_tensor_names_is_followed(name):
    compiled = captured(lambda x, i: NAMED[name](i)(x))
    for i in (1, 2, 0, 1, -1, 0, -1):
        ours, theirs = ((MATRIX * 1).requires_grad_() for _ in range(2))
        results = compiled(ours, cg.tensor(i)), NAMED[name](cg.tensor(i))(theirs)
        same(*results)
        same(*(grad((result * result).sum(), x)[0] for result, x in zip(results, (ours, theirs), strict=True)))
    assert compiled.cache_info().hits >= 3


def test_a_number_that_is_no_place_ends_the_capture():
    compiled = captured(lambda x, i: x[i])
    for places in (1, 7, 1):
        if places == 7:
            with pytest.raises(IndexError, match="out of (range|bounds)"):
                compiled(MATRIX, cg.tensor(places))
        else:
            same(compiled(MATRIX, cg.tensor(places)), MATRIX[places])
    for number in (1 << 40, -(1 << 40)):
        with pytest.raises(RuntimeError, match="its value is an index"):
            captured(lambda x, i: x * (operator.index(i) > 0))(MATRIX, cg.tensor(number))


def test_scanned_writes_follow_their_place():
    def filled(c, i, key):
        c = c.clone()
        c[key(i)] = 7.0
        return c, c.sum()

    for key in (lambda i: i, lambda i: slice(i, i + 1)):
        start = cg.zeros(100, dtype=cg.float64, requires_grad=True)
        end, _ = cg.func.scan(lambda c, i, key=key: filled(c, i, key), start, cg.arange(100))
        assert end.tolist() == [7.0] * 100 and grad(end.sum(), start)[0].tolist() == [0.0] * 100


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64])
def test_the_number_of_a_loop_is_written(dtype):
    def body(i, y):
        y = y.clone()
        y[0] = i
        y[y > 50] = i * 0.5
        return y

    start = cg.zeros(2, dtype=dtype)
    expected = start
    for i in range(100):
        expected = body(i, expected)
    same(cg.func.fori_loop(0, 100, body, start), expected)


def test_a_place_outside_raises_in_a_replay():
    compiled = captured(lambda x, index: x.take(index))
    same(compiled(MATRIX, ROWS), MATRIX.take(ROWS))
    with pytest.raises(IndexError, match="tried to access index 14 on a tensor of 12 elements"):
        compiled(MATRIX, ROWS + 12)
