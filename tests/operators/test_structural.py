"""Views, copies, joins and products: against NumPy, with the memory that views share and the gradient of every rule.

The samples of the rules are in `samples`.
"""

import itertools
import math

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad._core.graph import rules
from cygrad.autograd import grad, gradcheck, gradgradcheck
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import IN_PLACE, changed, operator, recorded, recorded_together
from samples import DTYPES, KINDS, LAYOUTS, WRITABLE, array_of, same_bits
from samples.sample import write

ARRAY = np.arange(24.0).reshape(2, 3, 4)


# ----- Gradients -----
@pytest.mark.parametrize("name", samples.SAMPLES)
@pytest.mark.cases("layout", ["contiguous", "transposed", "stepped"])
@pytest.mark.cases("number, call, shapes", samples.of)
def test_first_and_second_derivatives_of_rules(name, number, call, shapes, layout):
    leaves = [samples.leaf(array, layout) for array in samples.rule_operands(shapes)]
    tolerances = samples.SAMPLES[name][number].tolerances
    assert gradcheck(call, leaves, **tolerances)
    assert gradgradcheck(call, leaves, **tolerances)
    assert gradgradcheck(call, leaves, gen_non_contig_grad_outputs=True, **tolerances)


@pytest.mark.parametrize("name", [name for name in samples.SAMPLES if any(len(s) > 1 for _, _, s in samples.of(name))])
@pytest.mark.cases("chosen", [0, 1])
@pytest.mark.cases("number, call, shapes", lambda name: [case for case in samples.of(name) if len(case[2]) > 1])
def test_gradients_where_one_operand_needs_none(name, number, call, shapes, chosen):
    arrays = samples.rule_operands(shapes)
    both = [samples.leaf(array) for array in arrays]
    one = [samples.leaf(array) if k == chosen else cg.tensor(array) for k, array in enumerate(arrays)]

    def joined(tensors):
        return cg.cat([result.reshape(-1) for result in samples.as_tuple(call(*tensors))])

    results = joined(both)
    weight = cg.tensor(samples.draw("float64", tuple(results.shape))).to(results.dtype)
    expected = grad(results, both[chosen], weight)[0]
    assert same_bits(array_of(grad(joined(one), one[chosen], weight)[0]), array_of(expected))


# ----- Views -----
# (name, function of a tensor, function of an array); all are views of contiguous memory.
VIEWS = [
    ("view", lambda t: t.view(6, 4), lambda a: a.reshape(6, 4)),
    ("view -1", lambda t: t.view(-1, 2), lambda a: a.reshape(-1, 2)),
    ("view tuple", lambda t: t.view((4, 6)), lambda a: a.reshape(4, 6)),
    ("view size", lambda t: t.view(t.size()), lambda a: a),
    ("reshape", lambda t: t.reshape(3, 8), lambda a: a.reshape(3, 8)),
    ("reshape keyword", lambda t: cg.reshape(t, shape=(3, 8)), lambda a: a.reshape(3, 8)),
    ("reshape list", lambda t: cg.reshape(t, [24]), lambda a: a.reshape(24)),
    ("reshape ones", lambda t: t.reshape(1, 2, 1, 12, 1), lambda a: a.reshape(1, 2, 1, 12, 1)),
    ("flatten", lambda t: t.flatten(), lambda a: a.reshape(24)),
    ("flatten some", lambda t: cg.flatten(t, 0, -2), lambda a: a.reshape(6, 4)),
    ("flatten one", lambda t: t.flatten(1, 1), lambda a: a),
    ("squeeze", lambda t: t[:, :1].squeeze(), lambda a: a[:, 0]),
    ("squeeze dim", lambda t: t[:1].squeeze(0), lambda a: a[0]),
    ("squeeze dims", lambda t: t[:1, :1].squeeze((0, -2)), lambda a: a[0, 0]),
    ("squeeze no", lambda t: cg.squeeze(t, 1), lambda a: a),
    ("unsqueeze", lambda t: t.unsqueeze(0), lambda a: a[None]),
    ("unsqueeze last", lambda t: cg.unsqueeze(t, -1), lambda a: a[..., None]),
    ("permute", lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    ("permute tuple", lambda t: cg.permute(t, (-1, 1, 0)), lambda a: a.transpose(2, 1, 0)),
    ("transpose", lambda t: t.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    ("T", lambda t: t.T, lambda a: a.T),
    ("mT", lambda t: t.mT, lambda a: a.mT),
    ("t", lambda t: t[0].t(), lambda a: a[0].T),
    ("t of a vector", lambda t: t[0, 0].t(), lambda a: a[0, 0]),
    ("expand", lambda t: t[:, :1].expand(-1, 5, 4), lambda a: np.broadcast_to(a[:, :1], (2, 5, 4))),
    ("expand more", lambda t: t.expand(2, 1, -1, 3, 4)[1], lambda a: a[None]),
    ("expand_as", lambda t: t[0, 0].expand_as(cg.zeros(2, 4)), lambda a: np.broadcast_to(a[0, 0], (2, 4))),
    ("view_as", lambda t: t.view_as(cg.zeros(4, 6)), lambda a: a.reshape(4, 6)),
    ("narrow", lambda t: t.narrow(2, 1, 2), lambda a: a[..., 1:3]),
    ("narrow negative", lambda t: cg.narrow(t, -2, -2, 2), lambda a: a[:, -2:]),
    ("select", lambda t: t.select(1, -1), lambda a: a[:, -1]),
    ("slice", lambda t: t[1:, ::2, 1:-1], lambda a: a[1:, ::2, 1:-1]),
    ("None and ...", lambda t: t[..., None, 0], lambda a: a[..., None, 0]),
    ("unbind", lambda t: cg.unbind(t, 1)[2], lambda a: a[:, 2]),
    ("split", lambda t: t.split(3, -1)[1], lambda a: a[..., 3:]),
    ("split sizes", lambda t: cg.split(t, [1, 0, 2], dim=1)[2], lambda a: a[:, 1:]),
    ("diagonal", lambda t: t.diagonal(), lambda a: a.diagonal()),
    ("diagonal of others", lambda t: cg.diagonal(t, 1, -1, 0), lambda a: a.diagonal(1, -1, 0)),
    ("diagonal below", lambda t: t.diagonal(offset=-1, dim1=1, dim2=2), lambda a: a.diagonal(-1, 1, 2)),
    ("unfold", lambda t: t.unfold(2, 3, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 3, 2)),
    ("unfold steps", lambda t: t.unfold(-2, 1, 2), lambda a: a[:, ::2, :, None]),
    ("movedim", lambda t: t.movedim(0, -1), lambda a: np.moveaxis(a, 0, -1)),
    ("moveaxis", lambda t: cg.moveaxis(t, (2, 0), (0, 1)), lambda a: np.moveaxis(a, (2, 0), (0, 1))),
    ("swapaxes", lambda t: cg.swapaxes(t, axis0=0, axis1=-1), lambda a: a.swapaxes(0, 2)),
    ("swapdims", lambda t: t.swapdims(dim0=1, dim1=2), lambda a: a.swapaxes(1, 2)),
    ("adjoint", lambda t: t.adjoint(), lambda a: a.mT),
    ("view unflatten", lambda t: t.unflatten(-1, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    ("view ravel", lambda t: t.ravel(), lambda a: a.ravel()),
    ("broadcast_to", lambda t: cg.broadcast_to(t[:, :1], (2, 5, 4)), lambda a: np.broadcast_to(a[:, :1], (2, 5, 4))),
    ("broadcast_tensors", lambda t: cg.broadcast_tensors(t[0, 0], t)[0], lambda a: np.broadcast_to(a[0, 0], (2, 3, 4))),
    ("tensor_split", lambda t: t.tensor_split(3, -1)[0], lambda a: np.array_split(a, 3, -1)[0]),
    ("tensor_split at", lambda t: t.tensor_split((1, 3), 2)[1], lambda a: np.split(a, (1, 3), 2)[1]),
    ("tensor_split negative", lambda t: t.tensor_split(cg.tensor([-1]), 1)[0], lambda a: a[:, :-1]),
    ("hsplit", lambda t: t.hsplit(3)[1], lambda a: np.hsplit(a, 3)[1]),
    ("vsplit", lambda t: cg.vsplit(t, 2)[1], lambda a: np.vsplit(a, 2)[1]),
    ("dsplit", lambda t: t.dsplit([1])[1], lambda a: np.dsplit(a, [1])[1]),
    ("atleast_2d", lambda t: cg.atleast_2d(t[0, 0]), lambda a: a[:1, 0]),
    ("atleast_3d", lambda t: cg.atleast_3d(t[0], t)[0], lambda a: a[0, ..., None]),
    ("atleast_3d of a vector", lambda t: cg.atleast_3d(t[0, 0]), lambda a: a[0, 0][None, :, None]),
    ("atleast_1d", lambda t: cg.atleast_1d(t[0, 0, 0]), lambda a: a[0, 0, :1]),
    ("meshgrid", lambda t: cg.meshgrid(t[0, 0], t[0, :, 0])[0], lambda a: np.broadcast_to(a[0, 0][:, None], (4, 3))),
    ("meshgrid xy", lambda t: cg.meshgrid(t[0, 0], t[0, :, 0], indexing="xy")[0], lambda a: np.broadcast_to(a[0, 0], (3, 4))),
    ("sum_to_size", lambda t: t.sum_to_size(2, 3, 4), lambda a: a),
]
NAMED_VIEWS = [pytest.param(view, expected, id=name) for name, view, expected in VIEWS]


@pytest.mark.parametrize(("view", "expected"), NAMED_VIEWS)
def test_views_share_memory(view, expected):
    base = cg.tensor(ARRAY)
    result, array = view(base), expected(ARRAY)
    assert tuple(result.shape) == array.shape
    assert same_bits(array_of(result), array)
    assert result._version == base._version == 0
    first = result[(0,) * result.ndim]
    first.fill_(99)
    changed = array_of(base)
    assert (changed != ARRAY).sum() == 1
    assert result._version == base._version == 1
    assert first.data_ptr() == base.data_ptr() + 8 * int(np.flatnonzero(changed != ARRAY)[0])
    assert first.storage_offset() == int(np.flatnonzero(changed != ARRAY)[0])
    assert result is base or result._is_view()


@pytest.mark.parametrize(("view", "expected"), [case for case in NAMED_VIEWS if not case.id.startswith("view")])
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_views_of_every_layout_and_dtype(view, expected, layout, dtype):
    tensor = LAYOUTS[layout](samples.draw(dtype, (2, 3, 4)))
    assert same_bits(array_of(view(tensor)), expected(array_of(tensor)))


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases(
    "shape", [(24,), (6, 4), (3, 8), (2, 12), (4, 3, 2), (2, 3, 2, 2), (1, 24, 1), (2, 1, 3, 4)], ids=str
)
def test_reshape_is_a_view_where_strides_allow(layout, shape):
    for source in ((2, 3, 4), (2, 1, 12), (24,), (4, 6)):
        tensor = LAYOUTS[layout](samples.draw("float64", source))
        array = tensor.numpy()
        viewed = array.reshape(shape)
        if not np.shares_memory(viewed, array):
            with pytest.raises(RuntimeError, match=r"view size is not compatible .* Use .reshape\(...\) instead"):
                tensor.view(shape)
            assert tensor.reshape(shape).data_ptr() != tensor.data_ptr()
        else:
            assert tensor.view(shape).data_ptr() == tensor.reshape(shape).data_ptr() == tensor.data_ptr()
            assert same_bits(array_of(tensor.view(shape)), viewed)
        assert same_bits(array_of(tensor.reshape(shape)), array.reshape(shape))


def test_windows_and_diagonals_of_little():
    assert cg.tensor(5.0).unfold(0, 1, 1).tolist() == [5]
    assert cg.tensor(5.0).unfold(0, 0, 1).shape == (0,)
    assert cg.zeros(2, 3).unfold(1, 0, 1).shape == (2, 4, 0)
    assert cg.zeros(2, 3).diagonal(5).shape == cg.zeros(0, 3).diagonal().shape == (0,)
    assert cg.zeros(2, 3).diagonal(-1).shape == (1,)


def test_shapes_without_elements():
    empty = cg.zeros(2, 0, 3)
    assert empty.reshape(0, 7).shape == empty.view(0, 7).shape == (0, 7)
    assert empty.reshape(3, -1).shape == (3, 0)
    assert empty.permute(2, 0, 1).shape == (3, 2, 0)
    assert empty.flatten().shape == (0,)
    assert empty.squeeze().shape == (2, 0, 3)
    assert empty.expand(4, 2, 0, 3).shape == (4, 2, 0, 3)
    assert cg.zeros(1).expand(0).shape == (0,)
    assert [part.shape for part in cg.zeros(0).split(2)] == [(0,)]
    assert empty.unbind(0)[0].shape == (0, 3)
    assert empty.unbind(1) == ()
    assert empty[:, 0:0].is_contiguous()
    with pytest.raises(RuntimeError, match="cannot reshape tensor of 0 elements into shape"):
        empty.reshape(0, -1)


def test_scalars_as_tensors():
    x = cg.tensor(5.0)
    assert x.reshape(1, 1).shape == (1, 1)
    assert x.flatten().shape == x.unsqueeze(0).shape == x.expand(1).shape == (1,)
    assert x.expand(3).stride() == (0,)
    assert x.squeeze(0).shape == x.T.shape == x.t().shape == x.permute().shape == x.transpose(0, -1).shape == ()
    assert x.clone().item() == 5


def test_many_dims():
    x = cg.arange(2).reshape((1,) * 63 + (2,))
    assert x.ndim == 64
    assert x.permute(*range(63, -1, -1)).shape[0] == 2
    assert (x + x).sum().item() == 2
    with pytest.raises(RuntimeError, match="at most 64 dim"):
        x.unsqueeze(0)


def test_contiguity():
    x = cg.tensor(ARRAY)
    assert x.is_contiguous()
    assert not x.T.is_contiguous()
    assert x.T.contiguous().stride() == (6, 2, 1)
    assert x.T.clone().stride() == (1, 4, 12)
    assert x[:, ::2].clone().is_contiguous()
    assert x[:1, 0].is_contiguous()
    assert x[:, :, 0].contiguous().data_ptr() != x.data_ptr()
    assert not cg.ones(1, 3).expand(2, 3).is_contiguous()
    assert cg.ones(1, 3).expand(2, 3).clone().is_contiguous()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions(layout):
    for source, target in itertools.product(DTYPES, DTYPES):
        array = np.array([[0, 1, 2], [3, 100, 127]]).astype(source)
        tensor = LAYOUTS[layout](array)
        converted = tensor.to(getattr(cg, target))
        assert same_bits(array_of(converted), array_of(tensor).astype(target))
        assert (converted is tensor) == (source == target)
        assert tensor.to(getattr(cg, target), copy=True) is not tensor


def test_sum_to_size():
    x = cg.tensor(ARRAY)
    assert x.sum_to_size(3, 1).tolist() == ARRAY.sum((0, 2), keepdims=True)[0].tolist()
    assert x.sum_to_size(1, 1, 4).tolist() == ARRAY.sum((0, 1), keepdims=True).tolist()
    assert x.sum_to_size(()).item() == ARRAY.sum()
    with pytest.raises(RuntimeError, match="is not expandable to size"):
        x.sum_to_size(2, 1)


def test_masked_fill():
    mask = cg.tensor([True, False, True, False])
    expected = np.where(np.array([True, False, True, False]), 9, ARRAY)
    assert cg.tensor(ARRAY).masked_fill(mask, 9).tolist() == expected.tolist()
    assert cg.masked_fill(cg.tensor(ARRAY), mask, cg.tensor(9)).tolist() == expected.tolist()
    x = cg.tensor(ARRAY)
    assert x.masked_fill_(mask, 9) is x
    assert x.tolist() == expected.tolist()
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        x.masked_fill(cg.tensor([1, 0, 1, 0]), 9)
    with pytest.raises(RuntimeError, match="only supports a 0-dimensional value tensor"):
        x.masked_fill(mask, cg.ones(2))
    leaf = samples.leaf(ARRAY)
    assert gradcheck(lambda x: x.masked_fill(mask, 2.0), leaf)


# ----- Joining and splitting -----
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases(("first", "second"), list(itertools.product(LAYOUTS, repeat=2)))
def test_cat_and_stack(first, second, dtype):
    for axis in (0, 1, 2, -1, -3):
        shape = [2, 3, 4]
        shape[axis] = 5
        a, b = LAYOUTS[first](samples.draw(dtype, (2, 3, 4))), LAYOUTS[second](samples.draw(dtype, tuple(shape), 1))
        expected = np.concatenate([array_of(a), array_of(b), array_of(a)], axis)
        for result in (cg.cat([a, b, a], axis), cg.cat((a, b, a), dim=axis), cg.concatenate([a, b, a], axis=axis)):
            assert same_bits(array_of(result), expected)
        out = cg.zeros(expected.shape, dtype=a.dtype)
        assert cg.cat([a, b, a], axis, out=out) is out
        assert same_bits(array_of(out), expected)
        c = LAYOUTS[second](samples.draw(dtype, (2, 3, 4), 1))
        for place in (axis, axis + 1 if axis >= 0 else axis - 1):
            stacked = np.stack([array_of(a), array_of(c)], place)
            assert same_bits(array_of(cg.stack([a, c], place)), stacked)
            assert same_bits(array_of(cg.stack((a, c), dim=place)), stacked)


def test_joins_promote_and_take_iterables():
    assert cg.cat([cg.tensor([1]), cg.tensor([0.5]), cg.tensor([True])]).tolist() == [1, 0.5, 1]
    assert cg.cat([cg.ones(2, dtype=cg.int8), cg.ones(2, dtype=cg.uint8)]).dtype == cg.int16
    assert cg.stack([cg.tensor(1.0), cg.tensor(2)]).tolist() == [1, 2]
    assert cg.cat([cg.zeros(2), cg.zeros(0), cg.ones(1)]).tolist() == [0, 0, 1]
    assert cg.cat([cg.zeros(0, 3), cg.zeros(2, 3)]).shape == (2, 3)
    assert cg.cat([cg.ones(3)]).data_ptr() != 0
    a, b = cg.ones(2, requires_grad=True), cg.ones(1, dtype=cg.float64, requires_grad=True)
    (cg.cat([a, b, cg.tensor([1])]) * 2).sum().backward()
    assert (a.grad.dtype, b.grad.dtype) == (cg.float32, cg.float64)


@pytest.mark.parametrize(
    ("argument", "sizes"), [(2, [2, 2, 1]), (5, [5]), (7, [5]), (1, [1] * 5), ([1, 4], [1, 4]), ((0, 5), [0, 5])]
)
def test_split(argument, sizes):
    array = samples.draw("float64", (3, 5))
    for layout in LAYOUTS.values():
        tensor = layout(array)
        parts = tensor.split(argument, 1)
        assert [part.shape[1] for part in parts] == sizes
        assert same_bits(array_of(cg.cat(parts, 1)), array_of(tensor))
    x = samples.leaf(array)
    sum(part.sum() * (k + 1) for k, part in enumerate(x.split(argument, dim=-1))).backward()
    assert x.grad[0].tolist() == [k + 1 for k, size in enumerate(sizes) for _ in range(size)]


# ----- Products -----
PRODUCTS = [
    # vectors and matrices
    ((3,), (3,)), ((1,), (1,)), ((0,), (0,)), ((2, 3), (3,)), ((3,), (3, 2)), ((0, 3), (3,)), ((3,), (3, 0)),
    ((2, 0), (0,)), ((2, 3), (3, 4)), ((1, 1), (1, 1)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)),
    ((17, 33), (33, 9)),
    # batches, also of vectors, that broadcast and that are empty
    ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((2, 1, 4, 2, 3), (3, 1, 3, 2)),
    ((0, 2, 3), (3, 4)), ((2, 2, 0), (2, 0, 3)), ((3, 2, 0, 2), (2, 2, 1)), ((2, 3, 3), (3, 3)),
]  # fmt: skip


@pytest.mark.cases("dtype", [dtype for dtype in DTYPES if dtype != "bool"])
@pytest.mark.cases(("a_shape", "b_shape"), PRODUCTS, ids=str)
def test_matmul_is_numpys(a_shape, b_shape, dtype):
    for a_layout, b_layout in itertools.product(LAYOUTS.values(), repeat=2):
        a, b = a_layout(samples.draw(dtype, a_shape)), b_layout(samples.draw(dtype, b_shape, 1))
        expected = np.matmul(array_of(a), array_of(b))
        for result in (a @ b, cg.matmul(a, b), a.matmul(b)):
            assert result.dtype == a.dtype
            assert tuple(result.shape) == expected.shape
            if KINDS[dtype] == "i":
                assert same_bits(array_of(result), np.asarray(expected))
            else:
                assert np.allclose(
                    array_of(result),
                    expected,
                    rtol=1e-13 if dtype == "float64" else 1e-5,
                    atol=1e-13 if dtype == "float64" else 1e-5,
                )


@pytest.mark.cases(
    ("a_shape", "b_shape"), [case for case in PRODUCTS if math.prod(case[0] + case[1]) < 2000], ids=str
)
def test_derivatives_of_matmul(a_shape, b_shape):
    for layout in ("contiguous", "transposed"):
        a, b = (
            samples.leaf(samples.draw("float64", shape, seed), layout) for seed, shape in enumerate((a_shape, b_shape))
        )
        result = a @ b
        weight = samples.draw("float64", tuple(result.shape), 2)
        a_grad, b_grad = grad(result, (a, b), cg.tensor(weight), create_graph=True)
        # The derivative of a product in a direction is the product with the direction.
        a_way, b_way = (samples.draw("float64", shape, 3) for shape in (a_shape, b_shape))
        assert (a_grad.shape, b_grad.shape) == (a_shape, b_shape)
        assert (array_of(a_grad) * a_way).sum() == pytest.approx(((a_way @ array_of(b)) * weight).sum())
        assert (array_of(b_grad) * b_way).sum() == pytest.approx(((array_of(a) @ b_way) * weight).sum())
        if math.prod(a_shape + b_shape) < 100:
            assert gradgradcheck(cg.matmul, (a, b))


@pytest.mark.parametrize("layout", WRITABLE)
def test_products_of_fixed_dims(layout):
    a, b, v = (LAYOUTS[layout](samples.draw("float64", shape)) for shape in ((2, 3), (3, 4), (3,)))
    batch_a, batch_b = (LAYOUTS[layout](samples.draw("float64", shape)) for shape in ((5, 2, 3), (5, 3, 4)))
    for result, left, right in (
        (cg.mm(a, b), a, b),
        (cg.mv(a, v), a, v),
        (cg.bmm(batch_a, batch_b), batch_a, batch_b),
        (v.dot(v), v, v),
    ):
        assert np.allclose(array_of(result), array_of(left) @ array_of(right), rtol=1e-14)
    for call, x, y in ((cg.mm, a, b), (cg.bmm, batch_a, batch_b), (cg.mv, a, v), (cg.dot, v, v), (cg.matmul, a, b)):
        expected = array_of(call(x, y))
        out = LAYOUTS[layout](np.ones_like(expected))
        assert call(x, y, out=out) is out
        assert same_bits(array_of(out), expected)
        with pytest.raises(RuntimeError, match="out= has shape"):
            call(x, y, out=cg.zeros(7, 7, 7, 7, dtype=cg.float64))


def test_matmul_with_arrays_and_operators():
    a, array = cg.ones(2, 3, dtype=cg.float64, requires_grad=True), np.ones((3, 2))
    for result in (a @ array, np.ones((4, 2)) @ a, np.matmul(a, array)):
        assert isinstance(result, cg.Tensor)
        assert result.requires_grad
    with pytest.raises(TypeError):
        a @ 2
    a_int, b_int = cg.tensor([[100, 100]], dtype=cg.int8), cg.tensor([[1], [1]], dtype=cg.int8)
    assert (a_int @ b_int).tolist() == [[-56]]


def test_products_of_large_matrices():
    a, b = samples.draw("float32", (200, 300)), samples.draw("float32", (300, 100), 1)
    for left, right in itertools.product(LAYOUTS.values(), repeat=2):
        x, y = left(a), right(b)
        exact = array_of(x).astype(float) @ array_of(y).astype(float)
        assert np.allclose(array_of(x @ y), exact, rtol=1e-4, atol=1e-3)


# ----- Errors -----
REFUSED = [
    (lambda: cg.ones(2, 3).view(2, -1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda: cg.ones(2, 3).view(4, -1), RuntimeError, r"shape '\[4, -1\]' is invalid for input of size 6"),
    (
        lambda: cg.ones(2, 3).reshape(0, -1),
        RuntimeError,
        r"shape '\[0, -1\]' is invalid for input of size 6|cannot reshape tensor",
    ),
    (lambda: cg.ones(2, 3).view(2.0, 3), TypeError, ""),
    (lambda: cg.ones(2, 3).permute(0, 1, 2), RuntimeError, "number of dimensions in the tensor input does not match"),
    (lambda: cg.ones(2, 3).permute(0, -2), RuntimeError, r"permute\(\): duplicate dims are not allowed"),
    (lambda: cg.ones(2, 3).transpose(0, 2), IndexError, "Dimension out of range"),
    (lambda: cg.ones(2, 3, 4).t(), RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
    (lambda: cg.ones(2, 3).diagonal(0, 0, -2), RuntimeError, "diagonal dimensions cannot be identical 0, -2"),
    (lambda: cg.ones(3).diagonal(), IndexError, "Dimension out of range"),
    (lambda: cg.ones(2, 3).unfold(0, 3, 1), RuntimeError, "maximum size for tensor at dimension 0 is 2 but size is 3"),
    (lambda: cg.ones(2, 3).unfold(1, 2, 0), RuntimeError, "step is 0 but must be > 0"),
    (lambda: cg.ones(2, 3).unfold(1, -1, 1), RuntimeError, "size is -1 but must be >= 0"),
    (lambda: cg.tensor(1.0).unbind(), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: cg.tensor(1.0).split(1), RuntimeError, "split expects at least a 1-dimensional tensor"),
    (lambda: cg.tensor(1.0).narrow(0, 0, 1), RuntimeError, r"narrow\(\) cannot be applied to a 0-dim tensor"),
    (lambda: cg.tensor(1.0).select(0, 0), IndexError, r"select\(\) cannot be applied to a 0-dim tensor"),
    (lambda: cg.cat([cg.ones(1), 2.0]), TypeError, "expected Tensor as element 1 in argument 0, but got float"),
    (lambda: cg.cat(cg.ones(2)), (TypeError, RuntimeError), ""),
    (lambda: cg.stack([cg.ones(2), cg.ones(2)], 2), IndexError, "Dimension out of range"),
    (lambda: cg.bmm(cg.ones(2, 2), cg.ones(2, 2)), RuntimeError, "batch1 must be a 3D tensor"),
    (lambda: cg.mv(cg.ones(2, 2), cg.ones(2, 2)), RuntimeError, "vector \\+ matrix @ vector expected, got"),
    (lambda: cg.matmul(cg.ones(2, 2), [1.0]), TypeError, "must be Tensor, not list"),
    (
        lambda: cg.ones(2, requires_grad=True).expand(3, 2).add_(1),
        RuntimeError,
        "more than one element of the written-to tensor",
    ),
]


@pytest.mark.cases(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message or None):
        call()


# ----- Tensors that a backward frees -----
def holds_arrays(value):
    if isinstance(value, tuple | list):
        return any(map(holds_arrays, value))
    return isinstance(value, cg.Tensor | np.ndarray) and value.ndim > 0


def is_freed(value):
    """Return True if a backward frees a saved value: tensors and indices, among them lists."""
    return isinstance(value, cg.Tensor | list) or holds_arrays(value) or isinstance(value, tuple) and any(map(is_freed, value))


def saved_values(outputs):
    """Yield the values saved by the nodes behind outputs: tensors, index arrays and other parameters."""
    nodes, seen = [output.grad_fn for output in outputs], set()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes += [following for following, _ in node.next_functions]
            yield from (getattr(node, name) for name in dir(node) if name.startswith("_saved_"))


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_a_backward_frees_tensors_and_index_arrays_alike(name):
    """Then a second backward either needs none of them, and gives the same, or its error names retain_graph."""
    for _, call, shapes in samples.of(name):
        leaves = [samples.leaf(array) for array in samples.rule_operands(shapes)]
        outputs = [output for output in samples.as_tuple(call(*leaves)) if output.requires_grad]
        weights = [cg.ones_like(output) for output in outputs]
        has_saved = any(map(is_freed, saved_values(outputs)))
        cg.autograd.backward(outputs, weights)
        nodes, seen = [output.grad_fn for output in outputs], set()
        looked_up = False
        while nodes:
            node = nodes.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            nodes += [following for following, _ in node.next_functions]
            looked_up = looked_up or node.name() in ("IndexBackward0", "IndexPutBackward0")
            for saved in dir(node):
                if saved.startswith("_saved_"):
                    try:
                        assert not holds_arrays(getattr(node, saved)), node
                    except RuntimeError as error:
                        assert "Specify retain_graph=True" in str(error)
        first = [leaf.grad.clone() if leaf.grad is not None else None for leaf in leaves]
        try:
            cg.autograd.backward(outputs, weights)
        except RuntimeError as error:
            assert "Trying to backward through the graph a second time" in str(error)
            assert has_saved, "nothing was saved that could have been freed"
            continue
        assert not looked_up
        for leaf, before in zip(leaves, first, strict=True):
            if before is not None:
                np.testing.assert_array_equal(leaf.grad.numpy(), 2 * before.numpy())


@pytest.mark.parametrize("use", [
    lambda x: x[cg.tensor([1, 2])], lambda x: x[cg.tensor([True, False, True, False])], lambda x: x[[1, 2]], lambda x: x[np.array([1, 2])],
    lambda x: write(cg.tensor([1, 2]))(x, 5), lambda x: write(cg.tensor([1, 2]))(cg.zeros(4), x[:2]),
    lambda x: write(slice(1, 3))(x, 5), lambda x: write(slice(1, 3))(cg.zeros(4), x[:2] * 1), lambda x: x.max(0)[0],
])
def test_a_second_backward_through_an_index_needs_retain_graph(use):
    for keep in (False, True):
        x = cg.ones(4, requires_grad=True)
        y = use(x).sum()
        y.backward(retain_graph=keep)
        if keep:
            y.backward()
        else:
            with pytest.raises(RuntimeError, match="Specify retain_graph=True if you need to backward through the graph a second time"):
                y.backward()


# ----- Rules -----
def test_gradients_take_the_parameters_of_a_view_by_name():
    """The core records the values of `test_rule` in one order; a gradient names them in any, and no other."""
    rules.rule_op("test_rule", ("shape", "dim", "size"))
    try:
        rule = rules.declare_rule("test_rule", dinput=lambda g, size, shape: (size, shape))
        assert rule.params == ("shape", "dim", "size")
        with pytest.raises(TypeError, match="the gradient of test_rule names step: the core records shape, dim, size"):
            rules.declare_rule("test_rule", dinput=lambda g, step: step)
    finally:
        del rules.rules["test_rule"]


OF_INPUT, OF_BOTH = {"dinput": lambda g: g}, {"dinput": lambda g, other, scale: g * other * scale, "dother": None}
UNFIT = {
    "no gradients": ({}, 1, {}, "slip is recorded, and declares no gradients: declare them, or return the result as it is"),
    "too few": (OF_INPUT, 2, {}, r"slip is recorded with 2 inputs, for 1 of which it declares a gradient \(dinput\): declare one for each"),
    "too many": (OF_BOTH, 1, {"scale": 2}, r"slip is recorded with 1 inputs, for 2 of which it declares a gradient \(dinput, dother\)"),
    "a parameter": (OF_BOTH, 2, {}, "the gradient of slip names scale, which is not recorded"),
}


@pytest.mark.parametrize("record", [
    recorded,
    lambda operator, inputs, result, **params: recorded_together(operator, inputs, (result,), **params),
    lambda operator, inputs, result, **params: changed(operator, inputs, lambda array: None, None, **params),
    lambda operator, inputs, result, **params: changed(operator, inputs, lambda array: None, IN_PLACE, **params),
], ids=["recorded", "recorded_together", "changed", "changed in place"])
@pytest.mark.parametrize(("gradients", "count", "params", "message"), UNFIT.values(), ids=UNFIT)
def test_a_record_that_does_not_fit_the_declaration_is_refused(gradients, count, params, message, record):
    @operator(batch=same, **gradients)
    def slip(input, *others):
        return record(slip, (input, *others), input.detach().clone(), **params)

    try:
        with pytest.raises(TypeError, match=message):
            slip(*[cg.ones(2, requires_grad=True) * 1 for _ in range(count)])
    finally:
        rules.rules.pop("slip", None)
