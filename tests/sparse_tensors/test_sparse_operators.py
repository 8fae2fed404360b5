"""Operators on sparse tensors: values against the dense operators in every layout, dtype and state, and all their derivatives."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import forward_ad, gradcheck, gradgradcheck
from sparse_samples import DTYPES, FORMS, LAYOUTS, MATRICES, MATRIX, dense_of, equal

ROWS, COLUMNS = MATRIX.shape


def factor(*shape):
    """Return a dense factor beside x: of its dtype, all elements different."""
    return lambda x: dense_of(np.arange(1.0, np.prod(shape) + 1).reshape(shape), x.dtype.name)


# By name: a function of a sparse matrix x and its sizes n and m, and of the same dense matrix. Each is of numbers that float16 holds.
CALLS = {
    "neg": lambda x, n, m: -x,
    "times a number": lambda x, n, m: x * 2,
    "a number times": lambda x, n, m: 2 * x,
    "times a 0-d tensor": lambda x, n, m: x * cg.tensor(2, dtype=x.dtype),
    "divided": lambda x, n, m: (x / 4).to(x.dtype),
    "times dense": lambda x, n, m: x * factor(n, m)(x),
    "dense times": lambda x, n, m: factor(m)(x) * x,
    "add": lambda x, n, m: x + x,
    "add with alpha": lambda x, n, m: cg.add(x, x.abs().to(x.dtype), alpha=2),
    "sub": lambda x, n, m: x - x * x,
    "add of other places": lambda x, n, m: x + x[:, :1] * 2 if m == 1 else x + cg.cat([x[:, 1:], x[:, :1]], 1),
    "mul of other places": lambda x, n, m: x * cg.cat([x[:, 2:], x[:, :2]], 1),
    "dense add": lambda x, n, m: factor(n, m)(x) + x,
    "add dense": lambda x, n, m: x + factor(n, m)(x),
    "dense sub": lambda x, n, m: factor(n, m)(x) - x,
    "square": lambda x, n, m: x.square(),
    "power": lambda x, n, m: x ** 2,
    "t": lambda x, n, m: x.t(),
    "transpose": lambda x, n, m: x.transpose(-1, 0),
    "permute": lambda x, n, m: x.permute(1, 0),
    "row": lambda x, n, m: x[n // 2] if n else x,
    "column": lambda x, n, m: x[:, -1] if m else x,
    "rows": lambda x, n, m: x[1:3],
    "steps": lambda x, n, m: x[::2, 1:],
    "narrow": lambda x, n, m: x.narrow(0, 0, n // 2),
    "index_select": lambda x, n, m: x.index_select(0, cg.tensor([n - 1, 0, n - 1] if n else [], dtype=cg.int64)),
    "element": lambda x, n, m: x[0, 0] * 1 if n and m else x,
    "unsqueeze": lambda x, n, m: x.unsqueeze(1),
    "cat": lambda x, n, m: cg.cat([x, x * 2]),
    "cat of columns": lambda x, n, m: cg.cat([x, x * 2], 1),
    "stack": lambda x, n, m: cg.stack([x, x * 2]),
    "sum": lambda x, n, m: x.sum(),
    "sum of rows": lambda x, n, m: x.sum(0),
    "sum of columns": lambda x, n, m: x.sum(-1),
    "sum of both": lambda x, n, m: x.sum((0, 1)),
    "sum keeping dims": lambda x, n, m: x.sum(1, keepdim=True),
    "mv": lambda x, n, m: x @ factor(m)(x),
    "mm": lambda x, n, m: x.mm(factor(m, 3)(x)),
    "dense mm": lambda x, n, m: factor(2, n)(x) @ x,
    "vector times": lambda x, n, m: factor(n)(x) @ x,
    "sparse mm": lambda x, n, m: x @ x.t(),
    "addmm": lambda x, n, m: cg.addmm(factor(n, 2)(x), x, factor(m, 2)(x), beta=2, alpha=3),
    "addmm of sparse": lambda x, n, m: cg.addmm(x @ x.t(), x, x.t()),
    "linear": lambda x, n, m: cg.nn.functional.linear(factor(2, m)(x), x),
    "hstack": lambda x, n, m: cg.hstack([x, x * 2]),
    "vstack": lambda x, n, m: cg.vstack([x, x * 2]),
    "unbind": lambda x, n, m: cg.stack([row * 2 for row in x]) if n else x,
    "any": lambda x, n, m: x.any(),
    "clone": lambda x, n, m: x.clone(),
    "conj": lambda x, n, m: x.conj(),
}
# Of floats only.
FLOATING = {
    "sin": lambda x, n, m: x.sin() * 2,
    "relu": lambda x, n, m: x.relu(),
    "sqrt of abs": lambda x, n, m: x.abs().sqrt(),
    "tanh": lambda x, n, m: x.tanh().t() @ x,
    "norm": lambda x, n, m: x.norm(),
    "norm of the first order": lambda x, n, m: cg.linalg.vector_norm(x, 1, (0, 1)),
    "largest norm": lambda x, n, m: x.norm(float("inf")) if x.numel() else x,
}
# Products of bools and their differences are refused, or are integers, as dense ones.
NOT_OF_BOOLS = {"neg", "sub", "dense sub", "add with alpha", "mv", "vector times", "linear", "a number times", "times a number",
                "times a 0-d tensor", "square", "power", "add of other places", "cat", "cat of columns", "stack", "hstack", "vstack",
                "unbind"}


def runs(name, dtype):
    return dtype != "bool" or name not in NOT_OF_BOOLS and "mm" not in name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.cases("name", list(CALLS))
@pytest.mark.cases("dtype", DTYPES)
def test_values(form, name, dtype):
    if not runs(name, dtype):
        return
    for matrix in MATRICES.values():
        x, dense = FORMS[form](matrix, dtype), dense_of(matrix, dtype)
        result = CALLS[name](x, *matrix.shape)
        assert equal(result, CALLS[name](dense, *matrix.shape), 1e-2 if dtype in ("float16", "bfloat16") else 1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.cases("name", list(FLOATING))
@pytest.mark.cases("matrix", list(MATRICES))
def test_values_of_floats(form, name, matrix):
    matrix = MATRICES[matrix]
    assert equal(FLOATING[name](FORMS[form](matrix), *matrix.shape), FLOATING[name](dense_of(matrix), *matrix.shape))


CALLS_WITH_GRADIENTS = {name: call for name, call in (CALLS | FLOATING).items() if name != "any"}


def _dense_result(call, x):
    result = call(x, *x.shape)
    return result.to_dense()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.cases("name", list(CALLS_WITH_GRADIENTS))
def test_derivatives(form, name):
    """Of values, by backward and forward mode, each in batches, and of the second order."""
    call = CALLS_WITH_GRADIENTS[name]
    x = FORMS[form](MATRIX).detach().requires_grad_()
    assert gradcheck(lambda x: _dense_result(call, x), x, masked=True, check_forward_ad=True, check_batched_grad=True,
                     check_batched_forward_grad=True)
    assert gradgradcheck(lambda x: _dense_result(call, x), x, masked=True, check_fwd_over_rev=True)


@pytest.mark.parametrize("form", ["sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.cases("name", [name for name in CALLS if "mm" in name or name in ("mv", "times dense", "add", "dense add", "conj")])
def test_complex_derivatives(form, name):
    x = FORMS[form](MATRIX, "complex128").detach().requires_grad_()
    assert gradcheck(lambda x: _dense_result(CALLS[name], x), x, masked=True, check_forward_ad=True)


@pytest.mark.parametrize("form", FORMS)
def test_products_of_so_many_entries_that_int32_does_not_number_them(form, monkeypatch):
    from cygrad.operators._sparse import pattern
    monkeypatch.setattr(pattern, "INT32_LIMIT", 1)
    for name in ("mv", "mm", "dense mm"):
        assert equal(CALLS[name](FORMS[form](MATRIX), *MATRIX.shape), CALLS[name](dense_of(MATRIX), *MATRIX.shape))


def test_products_with_rows_of_all_lengths():
    """Sums of eight entries at a time, and of four columns of the product, with the rest of each."""
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((20, 40)) * (np.arange(40) < 2 * np.arange(20)[:, None])
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for width in (1, 2, 4, 5, 9):
            x = dense_of(rng.standard_normal((40, width)), dtype)
            assert equal(dense_of(matrix, dtype).to_sparse_csr() @ x, dense_of(matrix, dtype) @ x, 1e-4)
        assert equal(dense_of(matrix, dtype).to_sparse_csr() @ x[:, 0], dense_of(matrix, dtype) @ x[:, 0], 1e-4)


DENSE_OPERANDS = {
    "mm": (lambda a, x: a @ x, (5, 3)),
    "mv": (lambda a, x: a @ x, (5,)),
    "dense mm": (lambda a, x: x @ a, (2, 4)),
    "vector times": (lambda a, x: x @ a, (4,)),
    "mul": (lambda a, x: (a * x).to_dense(), (4, 5)),
    "mul of a row": (lambda a, x: (x * a).to_dense(), (5,)),
    "div": (lambda a, x: (a / (x.square() + 1)).to_dense(), (4, 5)),
    "add": (lambda a, x: a + x, (4, 5)),
    "addmm": (lambda a, x: cg.sparse.addmm(x[:, :4] @ x[:, :4].t(), a, x.t(), beta=0.5, alpha=2), (4, 5)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.cases("name", list(DENSE_OPERANDS))
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_both_operands(form, name, dtype):
    call, shape = DENSE_OPERANDS[name]
    if dtype == "complex128" and name == "addmm":
        return
    a = FORMS[form](MATRIX, dtype).detach().requires_grad_()
    x = dense_of(np.random.default_rng(0).standard_normal(shape), dtype).requires_grad_()
    assert gradcheck(call, (a, x), masked=True, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(call, (a, x), masked=True, check_fwd_over_rev=True)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@pytest.mark.cases("name", list(CALLS_WITH_GRADIENTS))
def test_batches_of_values(layout, name):
    """Examples of a vmap differ in their values, and have the places in common."""
    front = dense_of(MATRIX).to_sparse(layout=layout)
    make = {cg.sparse_coo: lambda v: cg.sparse_coo_tensor(front.indices(), v, front.shape, is_coalesced=True),
            cg.sparse_csr: lambda v: cg.sparse_csr_tensor(front.crow_indices(), front.col_indices(), v, front.shape),
            cg.sparse_csc: lambda v: cg.sparse_csc_tensor(front.ccol_indices(), front.row_indices(), v, front.shape)}[layout]
    call = CALLS_WITH_GRADIENTS[name]
    examples = cg.stack([front.values(), front.values() * -0.5, front.values() + 1])
    results = cg.func.vmap(lambda v: _dense_result(call, make(v)))(examples)
    for one, values in zip(results, examples, strict=True):
        assert cg.allclose(one, _dense_result(call, make(values)))


@pytest.mark.parametrize("form", FORMS)
def test_products_at_places(form):
    mask, a, b = FORMS[form](MATRIX).detach().requires_grad_(), cg.randn(4, 3, dtype=cg.float64), cg.randn(3, 5, dtype=cg.float64)
    places = (dense_of(MATRIX) != 0) * (2.0 if form == "uncoalesced" else 1.0)
    result = cg.sparse.sampled_addmm(mask, a, b, beta=2, alpha=3)
    assert result.layout is mask.layout and cg.allclose(result.to_dense(), 2 * dense_of(MATRIX) + 3 * (a @ b) * places)
    assert gradcheck(lambda *x: cg.sparse.sampled_addmm(*x).to_dense(), (mask, a.requires_grad_(), b.requires_grad_()), masked=True,
                     check_forward_ad=True)


def test_diagonals():
    rows = cg.arange(6.0, dtype=cg.float64).reshape(2, 3).add(1).requires_grad_()
    for shape in ((2, 3), (3, 3), (5, 4), (3, 2)):
        for layout in (None, *LAYOUTS):
            result = cg.sparse.spdiags(rows, cg.tensor([1, -1]), shape, layout)
            dense = np.zeros(shape)
            for i, j in np.ndindex(shape):
                if abs(j - i) == 1 and j < 3:
                    dense[i, j] = rows[int(i > j), j].item()
            assert result.to_dense().tolist() == dense.tolist()
            assert result.layout is (layout or cg.sparse_coo) and result.shape == shape
    assert gradcheck(lambda rows: cg.sparse.spdiags(rows, cg.tensor([1, -1]), (3, 3)).to_dense(), rows, check_forward_ad=True)


def test_softmax():
    x = dense_of(MATRIX).to_sparse()
    expected = dense_of(MATRIX).masked_fill(dense_of(MATRIX) == 0, -float("inf")).softmax(1).nan_to_num()
    assert cg.allclose(cg.sparse.softmax(x, 1).to_dense(), expected)
    assert cg.allclose(cg.sparse.log_softmax(x, 1).values(), expected.log()[tuple(x.indices())])
    for dim in (0, 1):
        for function in (cg.sparse.softmax, cg.sparse.log_softmax):
            assert gradcheck(lambda x, function=function, dim=dim: function(x, dim).values(), x.clone().requires_grad_(), masked=True,
                             check_forward_ad=True)
    whole = cg.tensor([[1.0, 2], [0, 0], [3, 4]]).to_sparse(1)
    assert cg.allclose(cg.sparse.softmax(whole, 1).values(), whole.values().softmax(1))
    assert cg.allclose(cg.sparse.softmax(whole, 0).values(), whole.values().softmax(0))
    assert cg.sparse.softmax(cg.zeros(2, 3).to_sparse(), 1)._nnz() == 0


# ----- Values that are no numbers -----
HYBRID = np.arange(24.0).reshape(2, 3, 4) * (np.arange(3) != 1)[:, None]
HYBRID_CALLS = {
    "select": lambda x: x[1],
    "select of the second": lambda x: x[:, 2],
    "select of values": lambda x: x[..., 1] if x.layout is cg.strided else x.select(2, 1),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "sum": lambda x: x.sum(0),
    "sum of values": lambda x: x.sum(2),
    "sum of both": lambda x: x.sum((1, 2)),
    "sum keeping dims": lambda x: x.sum((0, 2), keepdim=True),
    "cat": lambda x: cg.cat([x, x], 1),
    "cat of values": lambda x: cg.cat([x, x * 2], 2),
    "add": lambda x: x + x * 2,
    "mul": lambda x: x * cg.arange(4.0, dtype=cg.float64),
    "transpose": lambda x: x.transpose(0, 1),
    "unsqueeze": lambda x: x.unsqueeze(3),
    "sin": lambda x: x.sin(),
}


@pytest.mark.cases("name", list(HYBRID_CALLS))
def test_values_with_dims(name):
    dense = cg.tensor(HYBRID)
    x = dense.to_sparse(2)
    assert x.sparse_dim() == 2 and x.dense_dim() == 1 and x._nnz() == 4 and x.values().shape == (4, 4)
    call = HYBRID_CALLS[name]
    assert equal(call(x), call(dense))
    assert gradcheck(lambda x: call(x).to_dense(), x.clone().requires_grad_(), masked=True, check_forward_ad=True)


# ----- In place -----
IN_PLACE = {
    "mul_": lambda x: x.mul_(3), "add_": lambda x: x.add_(x), "sub_": lambda x: x.sub_(x * 2), "div_": lambda x: x.div_(2),
    "neg_": lambda x: x.neg_(), "sin_": lambda x: x.sin_(), "zero_": lambda x: x.zero_(), "copy_": lambda x: x.copy_(x + x),
    "imul": lambda x: x.__imul__(2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.cases("name", list(IN_PLACE))
def test_changes_in_place(form, name):
    x, dense = FORMS[form](MATRIX).clone(), dense_of(MATRIX)
    layout = x.layout
    result = IN_PLACE[name](x)
    assert result is x and x.layout is layout and equal(x, IN_PLACE[name](dense))
    leaf = FORMS[form](MATRIX).clone().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        IN_PLACE[name](leaf)


def test_a_dense_tensor_takes_a_sparse_one():
    dense, x = cg.ones(4, 5, dtype=cg.float64), dense_of(MATRIX).to_sparse()
    assert cg.equal(cg.ones(4, 5, dtype=cg.float64).add_(x), dense_of(MATRIX) + 1)
    assert cg.equal(cg.ones(5, 4, dtype=cg.float64).t().add_(x), dense_of(MATRIX) + 1)
    assert cg.equal(dense.copy_(x), dense_of(MATRIX))


OUT = {
    "sin": (cg.sin, 1), "mul": (cg.mul, 2), "add": (cg.add, 2), "sub": (cg.sub, 2), "div": (lambda x, y, out: cg.div(x, 2, out=out), 2),
    "cat": (lambda x, out: cg.cat([x], out=out), 1), "mm": (lambda x, out: cg.mm(x, x.to_dense().t(), out=out), 1),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.cases("name", list(OUT))
def test_results_in_given_tensors(form, name):
    call, count = OUT[name]
    x, dense = FORMS[form](MATRIX), dense_of(MATRIX)
    expected = call(*[dense] * count, out=None) if name != "mm" else dense @ dense.t()
    out = cg.zeros_like(x) if name != "mm" else cg.zeros(4, 4, dtype=cg.float64)
    layout = out.layout
    assert call(*[x] * count, out=out) is out and out.layout is layout and equal(out, expected)


# ----- New tensors -----
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_tensors_like_others(layout):
    x = dense_of(MATRIX).to_sparse(layout=layout)
    for zeros in (cg.zeros_like(x), x.new_zeros(4, 5), x.new_zeros((4, 5)), x.new_empty(4, 5), cg.zeros_like(x, dtype=cg.int32)):
        assert zeros.layout is layout and zeros.shape == x.shape and zeros._nnz() == 0 and not zeros.to_dense().any()
        assert zeros.dtype is (cg.int32 if zeros.dtype is cg.int32 else x.dtype)
    assert cg.zeros_like(x, requires_grad=True).requires_grad and cg.zeros_like(x, layout=cg.strided).layout is cg.strided
    assert cg.zeros_like(dense_of(HYBRID).to_sparse(2)).dense_dim() == 1
    assert cg.empty_like(x).layout is layout and cg.empty_like(x).shape == x.shape
    if layout is not cg.sparse_coo:
        for ones in (cg.ones_like(x), cg.full_like(x, 1), cg.full_like(x, 1.0, dtype=cg.float32, requires_grad=True)):
            assert ones.layout is layout and ones._nnz() == x._nnz() and cg.equal(ones.to_dense() != 0, dense_of(MATRIX) != 0)
            assert ones._values().tolist() == [1] * x._nnz()
        assert cg.equal(cg.full_like(x, 3, layout=cg.strided), cg.full((4, 5), 3.0, dtype=cg.float64))


# ----- Masks -----
@pytest.mark.parametrize("form", FORMS)
def test_masks(form):
    """Each value of the mask has the element at its place, so one that is two values has it twice."""
    mask, dense = FORMS[form](MATRIX), cg.arange(20.0, dtype=cg.float64).reshape(4, 5)
    for other in (dense, dense.to_sparse(), (dense * (dense > 7)).to_sparse_csr(), (dense * 0).to_sparse()):
        result = other.sparse_mask(mask)
        expected = other.to_dense() * (dense_of(MATRIX) != 0) * (2 if form == "uncoalesced" else 1)
        assert result.layout is mask.layout and result._nnz() == mask._nnz() and cg.equal(result.to_dense(), expected)
    assert gradcheck(lambda x: x.sparse_mask(mask).to_dense(), dense.clone().requires_grad_())


def test_tangents_of_sparse_tensors():
    x = dense_of(MATRIX).to_sparse_csr()
    with forward_ad.dual_level():
        values = forward_ad.make_dual(x.values().clone(), cg.ones(6, dtype=cg.float64))
        result = forward_ad.unpack_dual(cg.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape).square())
        assert result.tangent.layout is cg.sparse_csr and cg.allclose(result.tangent.values(), 2 * x.values())


# ----- Refusals -----
def coo():
    return dense_of(MATRIX).to_sparse()


REFUSED = {
    "cos": (lambda: coo().cos(), NotImplementedError, r"cos\(\) is not implemented for sparse tensors and these operands"),
    "plus a number": (lambda: coo() + 1, NotImplementedError, "its result would not be sparse"),
    "power 0": (lambda: coo() ** 0, NotImplementedError, "its result would not be sparse"),
    "comparison": (lambda: coo() == coo(), NotImplementedError, "its result would not be sparse"),
    "sort": (lambda: coo().sort(), NotImplementedError, r"sort\(\) is not implemented for sparse tensors: use to_dense\(\), or values"),
    "view": (lambda: coo().view(-1), NotImplementedError, r"view\(\) is not implemented for sparse tensors"),
    "out of another shape": (lambda: cg.sin(coo(), out=coo().t()), RuntimeError, "does not take a tensor of shape"),
    "dense out": (lambda: cg.sin(coo(), out=cg.ones(4, 5)), RuntimeError, "out= has the layout cygrad.strided, but the result cygrad.sp"),
    "sparse out": (lambda: cg.sin(cg.ones(4, 5), out=coo()), RuntimeError, "out= is a sparse tensor, but the result is dense"),
    "sparse out of a product": (lambda: cg.mm(coo(), cg.ones(5, 2).double(), out=coo()), RuntimeError, "but the result cygrad.strided"),
    "out with a gradient": (lambda: cg.sin(coo().requires_grad_(), out=coo()), RuntimeError, "don't support automatic differentiation"),
    "no out": (lambda: cg.mm(coo(), coo().t(), out=3), TypeError, "argument 'out' must be Tensor, not int"),
    "where": (lambda: cg.where(coo() > 0, coo(), coo()), NotImplementedError, "its result would not be sparse"),
    "ones": (lambda: cg.ones_like(coo()), NotImplementedError, "ones_like.. has no meaning for cygrad.sparse_coo"),
    "ones in another layout": (lambda: cg.full_like(coo().to_sparse_csr(), 1, layout=cg.sparse_coo), NotImplementedError, "no meaning for"),
    "random numbers": (lambda: cg.rand_like(coo()), NotImplementedError, "random tensors are dense"),
    "norm over a dim": (lambda: coo().norm(2, 0), RuntimeError, "the norm of a sparse tensor is of all its elements"),
    "any over a dim": (lambda: coo().any(0), NotImplementedError, "of all elements"),
    "sizes at places": (lambda: cg.sparse.sampled_addmm(coo(), cg.ones(4, 2).double(), cg.ones(3, 5).double()), RuntimeError,
                        "cannot be multiplied to"),
    "dtypes at places": (lambda: cg.sparse.sampled_addmm(coo(), cg.ones(4, 2), cg.ones(2, 5)), RuntimeError, "Expected mat1 to have"),
    "vectors at places": (lambda: cg.sparse.sampled_addmm(coo(), cg.ones(4), cg.ones(5)), RuntimeError, "mat1 is of 1 dims"),
    "equal diagonals": (lambda: cg.sparse.spdiags(cg.ones(2, 3), cg.tensor([0, 0]), (3, 3)), RuntimeError, "duplicate values"),
    "fewer diagonals": (lambda: cg.sparse.spdiags(cg.ones(1, 3), cg.tensor([0, 1]), (3, 3)), RuntimeError, "does not match the number"),
    "diagonals of a cube": (lambda: cg.sparse.spdiags(cg.ones(1, 3), cg.tensor([0]), (3, 3, 3)), RuntimeError, "must be 2d"),
    "offsets of floats": (lambda: cg.sparse.spdiags(cg.ones(1, 3), cg.tensor([0.0]), (3, 3)), RuntimeError, "Offset Tensor must have"),
    "numpy": (lambda: coo().numpy(), TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense"),
    "array": (lambda: np.asarray(coo()), TypeError, "can't convert Sparse layout tensor to numpy"),
    "buffer": (lambda: memoryview(coo()), RuntimeError, "the buffer protocol is not possible for a sparse tensor"),
    "data_ptr": (lambda: coo().data_ptr(), RuntimeError, r"data_ptr\(\) is not possible for a sparse tensor"),
    "DLPack": (lambda: coo().__dlpack__(), RuntimeError, "is not possible for a sparse tensor"),
    "storage": (lambda: coo().untyped_storage(), RuntimeError, "its storage is not possible for a sparse tensor"),
    "stride": (lambda: coo().stride(), RuntimeError, "sparse tensors do not have strides"),
    "item": (lambda: cg.ones(1).to_sparse().item(), TypeError, "can't convert Sparse layout tensor to numpy"),
    "bool": (lambda: bool(cg.ones(1).to_sparse()), RuntimeError, r"bool\(\) is not possible for a sparse tensor"),
    "index by a tensor": (lambda: coo()[cg.tensor([0])], NotImplementedError, "a sparse tensor is indexed by integers and slices"),
    "index outside": (lambda: coo()[4], IndexError, r"select\(\): index 4 out of range"),
    "shapes": (lambda: coo() @ cg.ones(4, dtype=cg.float64), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(4x5 and 4\)"),
    "dtypes": (lambda: coo() @ cg.ones(5), RuntimeError, "expected m1 and m2 to have the same dtype"),
    "batches": (lambda: coo() @ cg.ones(2, 5, 3, dtype=cg.float64), RuntimeError, "a factor is a matrix or a vector"),
    "a cube": (lambda: cg.ones(2, 2, 2).to_sparse() @ cg.ones(2, 2), RuntimeError, "a sparse factor is a matrix whose two dims"),
    "sizes": (lambda: coo() + coo().t(), RuntimeError, "The size of sparse tensors must match"),
    "a sparse divisor": (lambda: coo() / coo(), RuntimeError, "Sparse division requires a dense divisor"),
    "dense in cat": (lambda: cg.cat([coo(), cg.ones(4, 5, dtype=cg.float64)]), RuntimeError, "all tensors have to be sparse"),
    "sizes in cat": (lambda: cg.cat([coo(), coo().t()]), RuntimeError, "All tensors must have the same shape"),
    "sum of dense": (lambda: cg.sparse.sum(cg.ones(2)), RuntimeError, "expected a sparse tensor"),
    "no tensor": (lambda: cg.sparse.mm(3, cg.ones(2)), TypeError, "must be Tensor, not int"),
    "mask of another shape": (lambda: coo().sparse_mask(coo().t()), RuntimeError, "operands have incompatible sizes"),
    "dense mask": (lambda: cg.ones(2).sparse_mask(cg.ones(2)), RuntimeError, "the mask has to be a sparse tensor"),
    "dims that mix": (lambda: cg.ones(2, 3).to_sparse(1).t(), RuntimeError, "they do not mix"),
    "vmap over a result": (lambda: cg.func.vmap(lambda x: coo())(cg.ones(2)), RuntimeError, "is not possible for a sparse tensor"),
    "dense takes its shape": (lambda: cg.ones(2).add_(cg.ones(3).to_sparse()), RuntimeError, "doesn't match the broadcast shape"),
}


@pytest.mark.cases("name", list(REFUSED))
def test_refusals(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
