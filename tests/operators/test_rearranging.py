"""Copies in another arrangement: against NumPy in every layout and dtype, and refusals."""

import numpy as np
import pytest

import cygrad as cg
import samples
from samples import DTYPES, LAYOUTS, array_of, same_bits

# (name, function of a tensor, function of an array)
COPIES = [
    ("repeat", lambda t: t.repeat(2, 1, 3, 2), lambda a: np.tile(a, (2, 1, 3, 2))),
    ("repeat tuple", lambda t: t.repeat((1, 1, 0)), lambda a: np.tile(a, (1, 1, 0))),
    ("tile", lambda t: t.tile(2), lambda a: np.tile(a, 2)),
    ("tile dims", lambda t: cg.tile(t, (2, 1, 1, 2)), lambda a: np.tile(a, (2, 1, 1, 2))),
    ("repeat_interleave", lambda t: t.repeat_interleave(2), lambda a: np.repeat(a, 2)),
    ("repeat_interleave dim", lambda t: cg.repeat_interleave(t, 3, dim=-1), lambda a: np.repeat(a, 3, -1)),
    ("repeat_interleave tensor", lambda t: t.repeat_interleave(cg.tensor([2, 0, 1]), 1), lambda a: np.repeat(a, [2, 0, 1], 1)),
    ("flip", lambda t: t.flip(0, -1), lambda a: np.flip(a, (0, 2))),
    ("flip none", lambda t: cg.flip(t, ()), lambda a: a),
    ("fliplr", lambda t: cg.fliplr(t), np.fliplr),
    ("flipud", lambda t: t.flipud(), np.flipud),
    ("roll", lambda t: cg.roll(t, 7), lambda a: np.roll(a, 7)),
    ("roll dims", lambda t: t.roll((1, -2), dims=(0, 2)), lambda a: np.roll(a, (1, -2), (0, 2))),
    ("roll without dims", lambda t: t.roll(5, dims=None), lambda a: np.roll(a, 5)),
    ("roll of examples", lambda t: cg.vmap(lambda x: x.roll(3, None))(t), lambda a: np.stack([np.roll(x, 3) for x in a])),
    ("roll twice", lambda t: t.roll((1, 1), (1, 1)), lambda a: np.roll(a, 2, 1)),
    ("tril", lambda t: t.tril(), np.tril),
    ("tril above", lambda t: cg.tril(t, diagonal=1), lambda a: np.tril(a, 1)),
    ("triu", lambda t: cg.triu(t), np.triu),
    ("triu far", lambda t: t.triu(-9), lambda a: a),
    ("diag of a matrix", lambda t: t[0].diag(1), lambda a: np.diag(a[0], 1)),
    ("diag of a vector", lambda t: cg.diag(t[0, 0], -2), lambda a: np.diag(a[0, 0], -2)),
    ("diagflat", lambda t: cg.diagflat(t, 1), lambda a: np.diagflat(a, 1)),
    ("diag_embed", lambda t: cg.diag_embed(t)[1, 2], lambda a: np.diag(a[1, 2])),
    ("diag_embed dims", lambda t: t.diag_embed(1, 0, 2)[:, 1, :, 2], lambda a: np.diag(a[1, 2], 1)),
    ("diagonal_scatter", lambda t: t.diagonal_scatter(t[0, 0, :2].expand(4, 2), 0, 0, 1).diagonal(),
     lambda a: np.broadcast_to(a[0, 0, :2], (4, 2))),
    ("select_scatter", lambda t: t.select_scatter(t[:, 0], 1, 2), lambda a: a[:, [0, 1, 0]]),
    ("slice_scatter", lambda t: t.slice_scatter(t[..., 2:], -1, end=2), lambda a: a[..., [2, 3, 2, 3]]),
    ("hstack", lambda t: cg.hstack([t, t[:, :1]]), lambda a: np.hstack([a, a[:, :1]])),
    ("hstack vectors", lambda t: cg.hstack((t[0, 0], t[0, 0, 0])), lambda a: np.hstack([a[0, 0], a[0, 0, 0]])),
    ("vstack", lambda t: cg.vstack([t[0, 0], t[1]]), lambda a: np.vstack([a[0, 0], a[1]])),
    ("row_stack", lambda t: cg.row_stack([t[0, 0], t[1]]), lambda a: np.vstack([a[0, 0], a[1]])),
    ("dstack", lambda t: cg.dstack([t[0], t[1]]), lambda a: np.dstack([a[0], a[1]])),
    ("dstack vectors", lambda t: cg.dstack([t[0, 0], t[1, 0]]), lambda a: np.dstack([a[0, 0], a[1, 0]])),
    ("column_stack", lambda t: cg.column_stack([t[0, :, 0], t[1]]), lambda a: np.column_stack([a[0, :, 0], a[1]])),
]  # fmt: skip


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize(("call", "expected"), [pytest.param(*case[1:], id=case[0]) for case in COPIES])
def test_copies(call, expected, dtype, layout):
    tensor = LAYOUTS[layout](samples.draw(dtype, (2, 3, 4)))
    before = array_of(tensor)
    result = call(tensor)
    assert same_bits(array_of(result), np.asarray(expected(before)))
    assert not np.shares_memory(result.numpy(), tensor.numpy())


def test_scalars_and_nothing():
    x, none = cg.tensor(5), cg.zeros(0, 3)
    assert x.repeat(2, 1).tolist() == [[5], [5]]
    assert x.tile(2).tolist() == x.repeat_interleave(2).tolist() == [5, 5]
    assert x.flip(()).tolist() == cg.roll(x, 3).tolist() == 5
    assert cg.diagflat(x).tolist() == [[5]]
    assert [part.shape for part in (none.repeat(2, 2), none.flip(0), none.roll(1, 0), none.tril(), none.diag_embed())] == [
        (0, 6), (0, 3), (0, 3), (0, 3), (0, 3, 3)]  # fmt: skip
    assert none.repeat_interleave(2, 1).shape == (0, 6)
    assert cg.repeat_interleave(cg.tensor([1, 0, 2])).tolist() == [0, 2, 2]
    assert [part.shape for part in none.tensor_split(2)] == [(0, 3), (0, 3)]


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases("layout", LAYOUTS)
def test_block_diag(layout, dtype):
    blocks = [LAYOUTS[layout](samples.draw(dtype, shape)) for shape in ((2, 3), (2,), (), (1, 0), (3, 1))]
    expected, row, column = np.zeros((8, 7), dtype), 0, 0
    for block in map(np.atleast_2d, map(array_of, blocks)):
        expected[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    assert same_bits(array_of(cg.block_diag(*blocks)), expected)


def test_block_diag_of_nothing_and_of_several_dtypes():
    assert cg.block_diag().shape == cg.block_diag(cg.zeros(0)).shape == (1, 0)
    assert cg.block_diag(cg.ones(1, 1), cg.tensor(True), cg.tensor(2.0).double()).dtype == cg.float32
    assert cg.block_diag(cg.ones(1, dtype=cg.int32), cg.tensor(True), cg.tensor(2.0).double()).dtype == cg.float64


@pytest.mark.parametrize("shapes", [(), ((2,), (3, 1)), (2, (3, 1)), ((0,), (1,)), ([4, 1], cg.Size([1, 3]), ()), ((5,),)])
def test_broadcast_shapes(shapes):
    result = cg.broadcast_shapes(*shapes)
    assert isinstance(result, cg.Size) and result == np.broadcast_shapes(*(tuple(np.atleast_1d(shape)) for shape in shapes))


X = cg.ones(2, 3)
REFUSED = [
    (lambda: cg.block_diag(X[None]), RuntimeError, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 0 has 3"),
    (lambda: cg.block_diag([X]), TypeError, "expected Tensor as element 0 in argument 0, but got list"),
    (lambda: cg.broadcast_shapes((2,), (3,)), RuntimeError, "Attempting to broadcast a dimension of one length to another"),
    (lambda: cg.broadcast_shapes((-1,), (3,)), ValueError, "Attempting to broadcast a dimension with negative length!"),
    (lambda: X[0].mH, RuntimeError, "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor."),
    (lambda: X[0].H, RuntimeError, r"tensor.H is only supported on matrices \(2-D tensors\). Got 1-D tensor."),
    (lambda: X[None].H, RuntimeError, "For batches of matrices, consider using tensor.mH"),
    (lambda: cg.positive(X > 0), RuntimeError, "The `\\+` operator, on a bool tensor is not supported."),
    (lambda: +(X > 0), RuntimeError, "The `\\+` operator, on a bool tensor is not supported."),
    (lambda: cg.movedim(X, (0, 1), (1,)), RuntimeError, "movedim: Invalid source or destination dims: source"),
    (lambda: cg.movedim(X, (0, 0), (1, 0)), RuntimeError, "movedim: repeated dim in `source`"),
    (lambda: cg.movedim(X, (0, 1), (1, -1)), RuntimeError, "movedim: repeated dim in `destination`"),
    (lambda: cg.movedim(X, 0, 5), IndexError, "Dimension out of range"),
    (lambda: cg.movedim(X, 0, (1,)), TypeError, r"movedim\(\) received an invalid combination of arguments"),
    (lambda: X[0].adjoint(), RuntimeError, r"tensor.adjoint\(\) is only supported on matrices or batches of matrices"),
    (lambda: X.unflatten(1, (2, -1)), RuntimeError, r"unflatten: Provided sizes \[2, -1\] don't multiply up to the size of dim 1 \(3\)"),
    (lambda: X.unflatten(1, ()), RuntimeError, "unflatten: sizes must be non-empty"),
    (lambda: cg.broadcast_tensors(X, cg.ones(4)), RuntimeError, r"The size of tensor a \(3\) must match the size of tensor b \(4\)"),
    (lambda: cg.broadcast_tensors(X, 1), TypeError, "expected Tensor as element 1 in argument 0, but got int"),
    (lambda: cg.tensor_split(X, 0), RuntimeError, "number of sections must be larger than 0, got 0"),
    (lambda: cg.tensor_split(cg.tensor(1.0), 2), RuntimeError, "tensor_split expected at least a 1-dimensional tensor"),
    (lambda: cg.hsplit(X, 2), RuntimeError, "torch.hsplit attempted to split along dimension 1, but the size of the dimension 3 is not"),
    (lambda: cg.vsplit(X[0], 2), RuntimeError, "torch.vsplit requires a tensor with at least 2 dimension"),
    (lambda: X.repeat(2), RuntimeError, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"),
    (lambda: X.repeat(2, -1), RuntimeError, r"Trying to create tensor with negative dimension -3: \[4, -3\]"),
    (lambda: X.repeat(), TypeError, r"repeat\(\) missing 1 required positional arguments"),
    (lambda: X.repeat_interleave(cg.tensor([1, 2, 1]), 0), RuntimeError, "repeats must have the same size as input along dim"),
    (lambda: X.repeat_interleave(cg.tensor([1, -2]), 0), RuntimeError, "repeats can not be negative"),
    (lambda: X.repeat_interleave(-1), RuntimeError, "Repeats must be non-negative"),
    (lambda: X.repeat_interleave(cg.tensor([[1, 2]]), 0), RuntimeError, "repeats must be 0-dim or 1-dim tensor"),
    (lambda: X.repeat_interleave(cg.tensor([1.0, 2.0]), 0), NotImplementedError, "not implemented for"),
    (lambda: X.repeat_interleave(2, 0, output_size=3), RuntimeError, "allocated size does not match required size"),
    (lambda: X.flip(0, -2), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (lambda: X.flip(2), IndexError, "Dimension out of range"),
    (lambda: cg.fliplr(X[0]), RuntimeError, "Input must be >= 2-d."),
    (lambda: cg.flipud(cg.tensor(1.0)), RuntimeError, "Input must be >= 1-d."),
    (lambda: cg.roll(X, (1, 1), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
    (lambda: cg.roll(X, ()), RuntimeError, "`shifts` required"),
    (lambda: cg.roll(cg.tensor(1.0), 1, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: cg.diag(cg.ones(1, 1, 1)), RuntimeError, r"diag\(\): Supports 1D or 2D tensors. Got 3D"),
    (lambda: cg.diag_embed(X, 1, 0, -3), RuntimeError, "diagonal dimensions cannot be identical 0, -3"),
    (lambda: cg.tril(X[0]), RuntimeError, "tril: input tensor must have at least 2 dimensions"),
    (lambda: cg.meshgrid(X[0], indexing="ji"), RuntimeError, 'indexing must be one of "xy" or "ij", but received: ji'),
    (lambda: cg.meshgrid(X[0], X[0].double()), RuntimeError, "meshgrid expects all tensors to have the same dtype"),
    (lambda: cg.meshgrid(X), RuntimeError, "Expected 0D or 1D tensor in the tensor list but got"),
    (lambda: cg.meshgrid(), RuntimeError, "meshgrid expects a non-empty TensorList"),
    (lambda: cg.hstack([X, X[0]]), RuntimeError, "Tensors must have same number of dimensions: got 2 and 1"),
    (lambda: cg.vstack([]), RuntimeError, "vstack expects a non-empty TensorList"),
    (lambda: cg.diagonal_scatter(X, cg.ones(3)), RuntimeError, "expected src to have a size equal to the slice of self. src size"),
    (lambda: cg.select_scatter(X, cg.ones(2), 1, 5), IndexError, r"select\(\): index 5 out of range for tensor of size \[2, 3\]"),
    (lambda: cg.slice_scatter(X, 1.0), TypeError, r"slice_scatter\(\): argument 'src' \(position 2\) must be Tensor, not float"),
    (lambda: cg.flip([1.0], 0), TypeError, r"flip\(\): argument 'input' \(position 1\) must be Tensor, not list"),
]


@pytest.mark.cases(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert X.tolist() == [[1] * 3] * 2


def test_adjoints_and_the_tensor_itself():
    x = cg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    for view in (x.H, x.mH, x.adjoint(), x.mT):
        assert view.tolist() == [[0, 3], [1, 4], [2, 5]] and view._is_view()
    assert x[None].mH.shape == (1, 3, 2)
    assert x[0, 0].H.tolist() == x[0, 1].mH.tolist() - 1 == x[0, 0].mT.tolist() == 0
    assert cg.positive(x) is x.positive() is +x is np.positive(x) is x
