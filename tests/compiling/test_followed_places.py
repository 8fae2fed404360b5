"""Parts at places that 0-d tensors name: from the second place on a program is for all of them, unless a view is more than its values."""

import numpy as np
import pytest

import cygrad as cg
from capturing import captured, same
from cygrad.autograd import grad
from cygrad.func import fori_loop, grad_and_value, scan, vmap

MATRIX = cg.tensor(np.random.default_rng(4).standard_normal((6, 3)))
TABLE = cg.tensor(np.random.default_rng(7).standard_normal((100, 3)))
VECTOR = cg.tensor(np.random.default_rng(5).standard_normal(100))
PLACES = (1, 4, 0, 5, -1, -6, 2)

FOLLOWED = {
    "a row": lambda x, i: x[i] * 2,
    "an element": lambda x, i: x[i, i % 3].sin(),
    "an element of a row": lambda x, i: x[i][i % 3] + x[i, 0],
    "a part of a row": lambda x, i: x[i, 1:] * x[i, :2],
    "dims of size 1": lambda x, i: x[None, i, :, None] * 2,
    "a row of a copy": lambda x, i: (x * 2)[i] + x[i // 2],
    "a place of int32": lambda x, i: x[i.int()] * 2,
    "written places": lambda x, i: written(x.clone(), i, x[i] * 2)[i] * 3,
    "a written whole": lambda x, i: (lambda y: y[i] * 2 + y.mul_(2)[i])(x.clone()),
    "a product of rows": lambda x, i: x @ x[i],
    "a copy that is returned": lambda x, i: x[i].clone(),
    "a copy that is written": lambda x, i: x[i].clone().mul_(2),
    "a decision by an element": lambda x, i: x[i] * 2 if (x[i] ** 2).sum() > 0 else x[i],
    "a gradient in the function": lambda x, i: grad_and_value(lambda y: (y[i] * y[0]).sum())(x.detach())[0],
}


def written(y, i, value):
    y[i] = value
    return y


def read_before(change):
    """Return a function that reads a part, changes the whole, and computes with the part, which is a view."""
    def function(x, i):
        y = x.clone()
        part = y[i]
        change(y, i)
        return part + 1

    return function


def caught(x, i):
    y = x.clone()
    try:
        y[i].mul_(3)
    except RuntimeError:
        return x
    return y


def of_leaf(x, i):
    leaf = x.detach()[i].requires_grad_()
    (leaf * leaf).sum().backward()
    return leaf.grad + leaf


VIEWS = {
    "a view that is written": lambda x, i: (lambda y: (y[i].mul_(3), y * 1)[1])(x.clone()),
    "a view that is added to": lambda x, i: (lambda y: (written(y[i], 0, 5.0), y * 1)[1])(x.clone()),
    "a view as out": lambda x, i: (lambda y: (cg.add(y[0], y[1], out=y[i]), y * 1)[1])(x.detach().clone()),
    "a whole that is written": read_before(lambda y, i: y.mul_(2)),
    "a place that is written": read_before(lambda y, i: written(y, i, 0.0)),
    "another place that is written": read_before(lambda y, i: written(y, 3, 0.0)),
    "a view of a whole that is written": read_before(lambda y, i: y.view(-1).mul_(2)),
    "data that are written": read_before(lambda y, i: y.data.mul_(2)),
    "a part of a part of a whole that is written": lambda x, i: (lambda y: (y[i][i % 3], y.mul_(2))[0] + 1)(x.clone()),
    "a view that is returned": lambda x, i: x[i],
    "a view of a view that is returned": lambda x, i: (x[i] * 2, x[i].view(3))[1],
    "a column": lambda x, i: x[:, i % 3] * 2,
    "an error that is caught": caught,
}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", [*FOLLOWED, *VIEWS])
@pytest.mark.parametrize("is_recorded", [False, True], ids=["plain", "recorded"])
def test_parts_at_places_have_the_values_of_views(name, is_recorded):
    function = FOLLOWED.get(name) or VIEWS[name]
    compiled = cg.compile(function)
    for _ in range(2):
        for i in PLACES:
            ours, theirs = ((MATRIX * 1).requires_grad_(is_recorded) for _ in range(2))
            results = compiled(ours, cg.tensor(i)), function(theirs, cg.tensor(i))
            same(*results)
            if results[1].requires_grad:
                weights = results[1].detach().cos()
                same(*(grad(result, x, weights)[0] for result, x in zip(results, (ours, theirs), strict=True)))
    captures = compiled.cache_info().misses
    assert captures == 2 if name in FOLLOWED else captures > 2, compiled.cache_info()


def test_a_large_whole_that_is_differentiated_is_not_followed():
    compiled = captured(lambda x, i: x[i] * 2)
    x = cg.rand(1025, dtype=cg.float64, requires_grad=True)
    for i in (3, 4, 3, 5):
        same(compiled(x, cg.tensor(i)), x[i] * 2)
    assert compiled.cache_info().misses == 3


def test_a_place_outside_is_an_error_as_ever():
    compiled = captured(lambda x, i: x[i] * 2)
    for i in (1, 2, 3):
        same(compiled(MATRIX, cg.tensor(i)), MATRIX[i] * 2)
    with pytest.raises(IndexError, match="out of (range|bounds)"):
        compiled(MATRIX, cg.tensor(6))
    same(compiled(MATRIX, cg.tensor(5)), MATRIX[5] * 2)


def put(x, i):
    y = x.expand(4, 4)
    y[i] = 0.5
    return y


def add_to_element(x, i):
    y = x.expand(4, 4)
    y[i, i] += 0.5
    return y


@pytest.mark.parametrize("function", [put, add_to_element])
def test_a_part_may_be_written_where_the_whole_may_not(function):
    """The whole has elements at one place in memory: a program for all places would refuse it, where eager writes a part."""
    compiled = captured(function)
    for i in (1, 1, 2, 3, 2):
        ours, theirs = (cg.arange(4, dtype=cg.float64) for _ in range(2))
        same(compiled(ours, cg.tensor(i)), function(theirs, cg.tensor(i)))
        same(ours, theirs)


def test_steps_may_write_a_part_where_the_whole_may_not_be_written():
    def body(k, x):
        rows = (x * 1).expand(100, 4)
        rows[k] = rows[k - 1] * 0.5 + 1
        return rows[0] * 1.5

    expected = cg.arange(4.)
    for k in range(100):
        expected = body(k, expected)
    same(fori_loop(0, 100, body, cg.arange(4.)), expected)


def test_a_place_outside_of_a_leaf_is_an_index_error():
    leaf = cg.ones(1, 4, requires_grad=True)
    for call in (put_at, cg.compile(put_at)):
        with pytest.raises(IndexError, match="index 2 is out of bounds"):
            call(leaf, cg.tensor(2))


def put_at(x, i):
    x[i] = 0.5


# ----- Loops -----
BODIES = {
    "a row": lambda i, c: c * 0.5 + TABLE[i],
    "an element": lambda i, c: (c + VECTOR[i]).sin(),
    "neighbours": lambda i, c: c * VECTOR[i] + VECTOR[i - 1] * i,
    "a write": lambda i, c: written(c.clone(), 0, VECTOR[i] + c[1]),
    "a place of the carry": lambda i, c: written(c.clone(), 2, c[0] * VECTOR[i] + c[2]),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_number_of_a_step_is_a_place(name):
    start = cg.tensor([1.0, -0.5, 2.0], dtype=cg.float64, requires_grad=True)
    expected = start
    for i in range(100):
        expected = BODIES[name](i, expected)
    gradient = grad(expected.sum(), start)[0]
    for _ in range(2):
        result = fori_loop(0, 100, BODIES[name], start)
        same(result, expected)
        same(grad(result.sum(), start)[0], gradient)


@pytest.mark.parametrize("wrap", [lambda f: f, captured], ids=["eager", "compiled"])
def test_scans_of_places(wrap):
    table = MATRIX.clone().requires_grad_()
    places = cg.tensor(np.random.default_rng(6).integers(-6, 6, size=600))

    def step(c, i):
        return (c * 0.5 + table[i]).sin(), c.sum() * 2

    def total(places):
        c, ys = scan(step, cg.zeros(3, dtype=cg.float64), places)
        return c.sum() + ys.sum()

    c, ys = cg.zeros(3, dtype=cg.float64), []
    for i in places:
        c, y = step(c, i)
        ys.append(y)
    expected = c.sum() + cg.stack(ys).sum()
    function = wrap(total)
    for _ in range(3):
        result = function(places)
        same(result, expected)
        same(grad(result, table)[0], grad(expected, table, retain_graph=True)[0])


def test_places_within_a_vmap():
    def total(start):
        return fori_loop(0, 100, lambda i, c: (c + VECTOR[i]).sin(), start)

    starts = cg.rand(4, dtype=cg.float64)
    for _ in range(2):
        same(vmap(total)(starts), cg.stack([total(start) for start in starts]))


def test_places_where_classes_are_asked():
    """From the first override on, operators ask the classes of their arguments: the number of a step is one."""
    class Asked(cg.Tensor):
        pass

    assert (cg.ones(3).as_subclass(Asked) + 1).sum() == 6
    compiled = captured(lambda x: fori_loop(0, 600, lambda i, c: (c + written(c.clone(), 0, VECTOR[i - i])).sin(), x))
    x = cg.rand(3, dtype=cg.float64)
    same(compiled(x), compiled._function(x))
    assert "scan_steps" in compiled.explain(x)
