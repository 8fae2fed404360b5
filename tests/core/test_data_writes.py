"""Writes through `.data`, and other counters of one memory: views keep their place in the graph, and a saved tensor counts as changed
exactly where its own bytes were written."""

import numpy as np
import pytest

import cygrad as cg

CHANGED = r"modified by an inplace operation: .* \(it was changed through .data\)"


# ----- Views -----
def base_of(shape=(4,)):
    x = cg.arange(1.0, 5.0).reshape(shape).requires_grad_()
    return x, x * 2


VIEWS = {
    "slice": lambda b: b[1:3], "view": lambda b: b.view(2, 2), "of a view": lambda b: b[1:][:2], "expand": lambda b: b.expand(2, 4),
    "unbind": lambda b: b.unbind()[1], "as_strided": lambda b: b.as_strided((2,), (2,), 1), "unsqueeze": lambda b: b.unsqueeze(0),
}
CHANGES = {
    "base.data =": lambda b, v: setattr(b, "data", cg.full((4,), 9.0)),
    "base.data = of another shape": lambda b, v: setattr(b, "data", cg.ones(2)),
    "view.data =": lambda b, v: setattr(v, "data", cg.full(v.shape, 9.0)),
    "base.data.mul_": lambda b, v: b.data.mul_(3),
    "view.data.mul_": lambda b, v: v.data.as_strided((1,), (1,)).mul_(3),
    "base.data[...] =": lambda b, v: b.data.__setitem__(1, 7),
    "base.detach().data.fill_": lambda b, v: b.detach().data.fill_(7),
    "nothing": lambda b, v: None,
}


@pytest.mark.cases("change", CHANGES)
@pytest.mark.cases("view", VIEWS)
def test_a_change_of_data_leaves_views_their_place_in_the_graph(view, change):
    """Used before and after the change: `grad` finds it, and it retains its gradient."""
    x, b = base_of()
    v = VIEWS[view](b)
    before, node = v * cg.ones(v.shape), v.grad_fn
    v.retain_grad()
    CHANGES[change](b, v)
    assert v.grad_fn is node
    y = before.sum() + (v * 3).sum()
    of_view, of_x = cg.autograd.grad(y, [v, x], retain_graph=True)
    assert of_view.tolist() == cg.full(v.shape, 4.0).tolist()
    v.grad = None
    y.backward()
    assert v.grad.tolist() == of_view.tolist()
    expected = np.zeros(4)
    np.add.at(expected, VIEWS[view](cg.arange(4)).numpy().ravel(), 8)
    assert of_x.tolist() == x.grad.tolist() == expected.tolist()


def test_a_view_that_lost_its_base_has_no_later_history_of_the_base():
    x, b = cg.ones(4, requires_grad=True), cg.zeros(4)
    v = b[1:3]
    b.data = cg.ones(4)
    b.mul_(x)
    assert (b.requires_grad, v.requires_grad, v.grad_fn, v.tolist()) == (True, False, None, [0, 0])


# ----- Saved tensors -----
def saved_after_write(save, write, memory=24):
    """Return True if a node that saved a part of some memory counts it as changed after a write to another part."""
    base = cg.zeros(memory)
    part = save(base)
    y = (part * cg.ones(part.shape, requires_grad=True)).sum()
    write(base)
    try:
        y.backward()
    except RuntimeError as error:
        assert "(it was changed through .data)" in str(error)
        return True
    return False


def random_geometry(rng, memory=24):
    ndim = int(rng.integers(0, 4))
    while True:
        sizes, strides = rng.integers(1, 5, ndim), rng.integers(0, 9, ndim)
        offset = int(rng.integers(0, memory))
        if offset + ((sizes - 1) * strides).sum() < memory:
            return tuple(map(int, sizes)), tuple(map(int, strides)), offset


def test_only_bytes_that_were_saved_count_in_any_layout():
    """Random pairs of strided parts: a write counts exactly if the two have an element in common."""
    rng = np.random.default_rng(0)
    places, seen = cg.arange(24), {True: 0, False: 0}
    for _ in range(1500):
        saved, written = random_geometry(rng), random_geometry(rng)
        common = set(places.as_strided(*saved).reshape(-1).tolist()) & set(places.as_strided(*written).reshape(-1).tolist())
        elements = np.unique(places.as_strided(*written).numpy())
        is_changed = saved_after_write(lambda base, saved=saved: base.as_strided(*saved),
                                       lambda base, written=written: base.data.as_strided(*written)._increment_version())
        assert is_changed is bool(common), (saved, written)
        seen[is_changed] += 1
        if elements.size == np.prod(written[0], dtype=int):      # each place once: an operator can write to it, too
            assert saved_after_write(lambda base, saved=saved: base.as_strided(*saved),
                                     lambda base, written=written: base.data.as_strided(*written).fill_(1)) is bool(common)
    assert min(seen.values()) > 300


WRITES = {
    "[i] =": lambda t: t.__setitem__(2, 1.0), "[i:j] =": lambda t: t.__setitem__(slice(2, 3), cg.ones(1)),
    "[...] = of a part": lambda t: t[2:3].__setitem__(..., 1), "fill_": lambda t: t[2].fill_(1), "zero_": lambda t: t[2:3].zero_(),
    "copy_": lambda t: t[2:3].copy_(cg.ones(1)), "add_": lambda t: t[2].add_(1), "out=": lambda t: cg.exp(cg.ones(1), out=t[2:3]),
    "sum out=": lambda t: cg.sum(cg.ones(2), 0, out=t[2]), "clamp_": lambda t: t[2:3].clamp_(1, 2),
    "index_fill_": lambda t: t[2:3].index_fill_(0, cg.tensor([0]), 1),
    "normal_": lambda t: t[2:3].normal_(), "increment_version": lambda t: cg.autograd.graph.increment_version(t[2:3]),
}


@pytest.mark.parametrize("name", WRITES)
def test_each_way_to_write_reports_the_written_bytes(name):
    assert saved_after_write(lambda base: base[2:4], lambda base: WRITES[name](base.data))
    assert not saved_after_write(lambda base: base[3:9], lambda base: WRITES[name](base.data))
    assert not saved_after_write(lambda base: base[:2], lambda base: WRITES[name](base.data))


def test_an_index_array_writes_all_that_it_indexes():
    for key in (cg.tensor([0]), cg.tensor([True, False, False, False])):
        assert saved_after_write(lambda base: base[2:4], lambda base, key=key: base.data[:4].__setitem__(key, 1.0))
        assert not saved_after_write(lambda base: base[4:], lambda base, key=key: base.data[:4].__setitem__(key, 1.0))


ALIASES = {"data": lambda t: t.data, "data of data": lambda t: t.data.data, "set_": lambda t: cg.ones(0).set_(t.detach()),
           "data =": lambda t: assigned(t), "detach().data": lambda t: t.detach().data}


def assigned(t):
    other = cg.ones(1)
    other.data = t
    return other


@pytest.mark.cases("saved", ALIASES)
@pytest.mark.cases("written", [*ALIASES, "itself"])
def test_counters_of_one_memory_see_each_others_writes(saved, written):
    for place, changed in ((slice(0, 2), True), (slice(2, 4), False)):
        base, leaf = cg.zeros(4), cg.ones(2, requires_grad=True)
        y = (ALIASES[saved](base)[:2] * leaf).sum()
        target = base if written == "itself" else ALIASES[written](base)
        target[place] = 5.0
        if changed:
            with pytest.raises(RuntimeError, match=CHANGED):
                y.backward()
        else:
            y.backward()


def test_a_write_before_something_is_saved_does_not_matter():
    base, leaf = cg.zeros(4), cg.ones(4, requires_grad=True)
    base.data[1] = 3.0
    y = (base * leaf).sum()
    base.data[:0] = 1.0
    y.backward()
    assert leaf.grad.tolist() == [0, 3, 0, 0]


def test_a_change_under_its_own_counter_is_refused_for_any_part():
    """As in torch, where all views share a counter; without the words about `.data`."""
    base, leaf = cg.zeros(4), cg.ones(2, requires_grad=True)
    y = (base[:2] * leaf).sum()
    base.data[3] = 1.0
    base[3] = 1.0
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0 instead. It was saved"):
        y.backward()


class UncheckedAssign(cg.autograd.Function):
    """The Function by which solvers of differential equations fill their scratch memory."""

    @staticmethod
    def forward(ctx, scratch, value, index):
        ctx.index = index
        scratch.data[index] = value
        return scratch

    @staticmethod
    def backward(ctx, g):
        return g, g[ctx.index], None


def test_stages_of_a_runge_kutta_step():
    def step(y, k, rate):
        for i in range(4):
            weights = cg.full((i + 1,), 0.5, dtype=cg.float64) * rate
            stage = y if not i else y + (k[..., :i] * weights[:i]).sum(-1)
            k = UncheckedAssign.apply(k, stage * rate, (..., i))
        return (k * rate).sum()

    def scratch():
        return cg.zeros(3, 4, dtype=cg.float64)

    def plain(y, rate):
        stages = []
        for i in range(4):
            weights = cg.full((i + 1,), 0.5, dtype=cg.float64) * rate
            stage = y if not i else y + (cg.stack(stages, -1) * weights[:i]).sum(-1)
            stages.append(stage * rate)
        return (cg.stack(stages, -1) * rate).sum()

    y, rate = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True), cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
    expected = cg.autograd.grad(plain(y, rate), (y, rate))
    result = cg.autograd.grad(step(y, scratch(), rate), (y, rate))
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


# ----- Bounds -----
def test_many_parts_are_distinguished_and_none_is_forgotten():
    """Up to 1024 parts exactly; older ones are merged into one part, which may refuse too much and never too little."""
    base, leaf = cg.zeros(8000), cg.ones(1, requires_grad=True)
    alias, products = base.data, []
    for i in range(0, 8000, 2):
        products.append(leaf * base[i + 1: i + 2])
        alias[i] = 1.0
    for product in products[-500:]:
        product.backward()
    overwritten = leaf * base[:1]
    alias[0] = 2.0
    for i in range(2, 8000, 2):
        alias[i] = 2.0
    with pytest.raises(RuntimeError, match=CHANGED):
        overwritten.backward()


def test_writing_the_same_places_again_needs_no_more_records():
    base, leaf = cg.zeros(64, 64), cg.ones(64, requires_grad=True)
    alias = base.data
    for _ in range(100):
        y = (base[:, 1] * leaf).sum()
        for column in range(2, 64):
            alias[:, column] = 1.0
        y.backward()
    for _ in range(3000):
        alias.add_(1)
        alias[0].add_(1)
    y = (base[1] * leaf).sum()
    alias[0].add_(1)
    y.backward()


def test_comparisons_that_take_long_count_as_an_overlap():
    """Even places and odd ones, compared element by element, would take long: the answer is on the safe side, and comes soon."""
    base, sizes = cg.zeros(100_000, dtype=cg.uint8), (5,) * 6
    leaf = cg.ones(sizes, requires_grad=True)
    y = (leaf * base.as_strided(sizes, (1004, 1010, 1016, 1022, 1028, 1036))).sum()
    base.data.as_strided(sizes, (1006, 1012, 1018, 1024, 1032, 1040), 1)._increment_version()
    with pytest.raises(RuntimeError, match=CHANGED):
        y.backward()
