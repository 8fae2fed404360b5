"""Sparse tensors as objects: makers and their checks, parts, conversions, text, copies, pickles, files."""

import copy
import io
import pickle

import numpy as np
import pytest

import cygrad as cg
from sparse_samples import DTYPES, FORMS, LAYOUTS, MATRICES, MATRIX, dense_of, equal

INDICES, VALUES = [[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0]


# ----- Makers -----
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_round_trips(dtype, layout):
    for matrix in MATRICES.values():
        dense = dense_of(matrix, dtype)
        x = dense.to_sparse(layout=layout)
        assert isinstance(x, cg.Tensor) and type(x) is cg.Tensor
        assert x.layout is layout and x.is_sparse == (layout is cg.sparse_coo) and x.is_sparse_csr == (layout is cg.sparse_csr)
        assert x.shape == dense.shape and x.dtype == dense.dtype and x.ndim == 2 and x.numel() == dense.numel() and len(x) == len(dense)
        assert x._nnz() == int((dense != 0).sum()) and x.sparse_dim() == 2 and x.dense_dim() == 0
        assert cg.equal(x.to_dense(), dense)
        for other in LAYOUTS:
            assert cg.equal(x.to_sparse(layout=other).to_dense(), dense) and x.to_sparse(layout=other).layout is other
        assert x.to_sparse(layout=cg.strided).layout is cg.strided
        assert x.to_sparse_csr().is_sparse_csr and x.to_sparse_csc().layout is cg.sparse_csc and x.to_sparse_coo().is_sparse
        assert dense.to_sparse_coo().is_sparse


def test_parts():
    x = cg.sparse_coo_tensor(INDICES, VALUES, (2, 3))
    assert not x.is_coalesced() and x._indices().tolist() == INDICES and x._values().tolist() == VALUES
    y = x.coalesce()
    assert y.is_coalesced() and y.indices().tolist() == INDICES and y.values().tolist() == VALUES and y.coalesce() is y
    csr, csc = x.to_sparse_csr(), x.to_sparse_csc()
    assert csr.crow_indices().tolist() == [0, 1, 3] and csr.col_indices().tolist() == [2, 0, 2] and csr.values().tolist() == VALUES
    assert csc.ccol_indices().tolist() == [0, 1, 1, 3] and csc.row_indices().tolist() == [1, 0, 1] and csc.values().tolist() == [4, 3, 5]
    assert cg.sparse_coo_tensor((2, 3)).to_dense().tolist() == cg.sparse_coo_tensor(size=(2, 3)).to_dense().tolist() == [[0.0] * 3] * 2
    assert cg.sparse_coo_tensor(INDICES, VALUES).shape == (2, 3) == cg.sparse_csr_tensor([0, 1, 3], [2, 0, 2], VALUES).shape
    assert cg.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], VALUES).shape == (2, 3)
    assert cg.sparse_coo_tensor(INDICES, [3, 4, 5]).dtype == cg.int64
    assert cg.sparse_coo_tensor(INDICES, [3, 4, 5], dtype=cg.complex64).dtype == cg.complex64
    assert cg.sparse_coo_tensor(np.array(INDICES), np.array(VALUES)).dtype == cg.float64
    assert cg.sparse_coo_tensor(INDICES, VALUES, (2, 3), is_coalesced=True).indices().tolist() == INDICES
    assert cg.sparse_coo_tensor(cg.zeros(0, 2, dtype=cg.int64), [1.0, 2.0], ()).to_dense().item() == 3


@pytest.mark.parametrize("name", ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"))
def test_copies_of_parts(name):
    copying, tested = getattr(cg, name + "_copy"), 0
    for layout in LAYOUTS:
        values = cg.tensor(VALUES, requires_grad=True)
        x = cg.sparse_coo_tensor(INDICES, values, (2, 3)).coalesce().to_sparse(layout=layout)
        try:
            part = getattr(x, name)()
        except RuntimeError as refused:
            with pytest.raises(RuntimeError) as error:
                copying(x)
            assert str(error.value) == str(refused)
            continue
        result = copying(x)
        assert cg.equal(result, part) and result.data_ptr() != part.data_ptr() and copying(x.detach(), out=cg.zeros_like(part)).equal(part)
        if name == "values":
            assert cg.autograd.grad(result.sum(), values)[0].tolist() == [1.0] * 3
        tested += 1
    assert tested


def test_dense_tensors_have_no_parts():
    x = cg.ones(2, 3)
    assert x.to_dense() is x and x.sparse_dim() == 0 and x.dense_dim() == 2 and not x.is_sparse and x.layout is cg.strided
    for name in ("indices", "values", "_indices", "_values", "_nnz", "crow_indices", "col_indices", "ccol_indices", "row_indices",
                 "coalesce", "is_coalesced"):
        with pytest.raises(RuntimeError, match=f"{name} expected sparse .*tensor layout but got Strided"):
            getattr(x, name)()


def test_duplicates_are_added():
    x = cg.sparse_coo_tensor([[1, 0, 1], [0, 0, 0]], [1.0, 2.0, 3.0], (2, 1), requires_grad=True)
    assert x.to_dense().tolist() == [[2], [4]]
    assert x.coalesce().indices().tolist() == [[0, 1], [0, 0]] and x.coalesce().values().tolist() == [2, 4]
    assert cg.autograd.grad(x.coalesce().values() @ cg.tensor([10.0, 1.0]), x)[0]._values().tolist() == [1, 10, 1]
    assert x.to_sparse_csr().values().tolist() == [2, 4]


def test_values_share_memory_and_history():
    values = cg.tensor(VALUES, requires_grad=True)
    x = cg.sparse_coo_tensor(INDICES, values, (2, 3))
    assert x.requires_grad and not x.is_leaf and x.grad_fn is not None
    (x * 2).sum().backward()
    assert values.grad.tolist() == [2, 2, 2]
    plain = values.detach()
    y = cg.sparse_coo_tensor(INDICES, plain, (2, 3)).requires_grad_()
    assert y.is_leaf and not plain.requires_grad
    plain[0] = 7
    assert y.to_dense()[0, 2].item() == 7
    assert not y.detach().requires_grad and y.data.layout is cg.sparse_coo


LIMIT = 1 << 40
BROKEN = {
    "index beyond its size": (lambda: cg.sparse_coo_tensor(INDICES, VALUES, (2, 2)),
                              "size is inconsistent with indices: for dim 1, size is 2 but found index 2"),
    "negative index": (lambda: cg.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (2,)), "found negative index -1 for dim 0"),
    "negative index without a size": (lambda: cg.sparse_coo_tensor([[0, -1]], [1.0, 2.0]), "found negative index -1 for dim 0"),
    "huge index": (lambda: cg.sparse_coo_tensor([[2**62]], [1.0], (3,)), "size is inconsistent with indices"),
    "indices of floats": (lambda: cg.sparse_coo_tensor([[0.5]], [1.0], (1,)), "indices must be an int64 or int32 tensor"),
    "a vector of indices": (lambda: cg.sparse_coo_tensor([0, 1], [1.0, 2.0], (2,)), "indices must be sparse_dim x nnz"),
    "fewer values": (lambda: cg.sparse_coo_tensor(INDICES, VALUES[:2], (2, 3)), "indices and values must have same nnz"),
    "a number of values": (lambda: cg.sparse_coo_tensor(INDICES, cg.tensor(3.0), (2, 3)), "indices and values must have same nnz"),
    "fewer dims": (lambda: cg.sparse_coo_tensor(INDICES, VALUES, (2,)), r"'len\(size\) == sparse_dim \+ dense_dim' is not satisfied"),
    "values of another size": (lambda: cg.sparse_coo_tensor([[0]], cg.ones(1, 2), (1, 3)), "values has incorrect size"),
    "negative size": (lambda: cg.sparse_coo_tensor([[], []], [], (2, -3)), "size"),
    "too large a size": (lambda: cg.sparse_coo_tensor([[0], [0]], [1.0], (LIMIT, LIMIT)), None),
    "not coalesced": (lambda: cg.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True), "cannot set is_coalesced to true"),
    "crow of another length": (lambda: cg.sparse_csr_tensor([0, 1, 3, 3], [2, 0, 2], VALUES, (2, 3)),
                               r"crow_indices.shape\[-1\] must be equal to the number of rows \+ 1 \(=3\), but got 4"),
    "ccol of another length": (lambda: cg.sparse_csc_tensor([0, 1, 3], [1, 0, 1], VALUES, (2, 3)),
                               r"ccol_indices.shape\[-1\] must be equal to the number of columns \+ 1 \(=4\), but got 3"),
    "crow that does not begin at 0": (lambda: cg.sparse_csr_tensor([1, 1, 3], [2, 0, 2], VALUES, (2, 3)), r"crow_indices\[..., 0\] == 0"),
    "crow that ends early": (lambda: cg.sparse_csr_tensor([0, 1, 2], [2, 0, 2], VALUES, (2, 3)), r"crow_indices\[..., -1\] == nnz"),
    "crow that decreases": (lambda: cg.sparse_csr_tensor([0, 4, 3], [2, 0, 2], VALUES, (2, 3)), "crow_indices.* <= ncols` is not"),
    "huge crow": (lambda: cg.sparse_csr_tensor([0, 2**62, 3], [2, 0, 2], VALUES, (2, 3)), "is not satisfied"),
    "columns that decrease": (lambda: cg.sparse_csr_tensor([0, 1, 3], [2, 2, 0], VALUES, (2, 3)), "are sorted and distinct"),
    "equal columns": (lambda: cg.sparse_csr_tensor([0, 1, 3], [2, 0, 0], VALUES, (2, 3)), "are sorted and distinct"),
    "column outside": (lambda: cg.sparse_csr_tensor([0, 1, 3], [2, 0, 3], VALUES, (2, 3)), "`0 <= col_indices < ncols` is not satisfied"),
    "row outside": (lambda: cg.sparse_csc_tensor([0, 1, 2, 3], [1, -1, 1], VALUES, (2, 3)), "`0 <= row_indices < nrows` is not satisfied"),
    "two dtypes of indices": (lambda: cg.sparse_csr_tensor([0, 1], cg.tensor([0]).int(), [1.0]), "must have the same dtype"),
    "batches": (lambda: cg.sparse_csr_tensor([[0, 1]], [[0]], [[1.0]], (1, 1, 1)), "crow_indices must have dimensionality 1"),
    "three dims": (lambda: cg.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1, 1)), "tensor dimensionality must be sum of"),
    "no layout": (lambda: cg.sparse_compressed_tensor([0, 1], [0], [1.0]), "expected sparse compressed tensor layout but got none"),
    "coo as compressed": (lambda: cg.sparse_compressed_tensor([0, 1], [0], [1.0], layout=cg.sparse_coo), "expected sparse compressed"),
    "a vector in csr": (lambda: cg.ones(3).to_sparse_csr(), "is a matrix, but this one has 1 dims"),
    "too many sparse dims": (lambda: cg.ones(2, 3).to_sparse(3), r"sparse_dim argument must be in \[0,2\] range, but 3 is given"),
    "other sparse dims": (lambda: cg.eye(2).to_sparse().to_sparse(1), "conversion from Sparse to Sparse with sparse_dim argument"),
    "requires_grad of integers": (lambda: cg.sparse_coo_tensor([[0]], [1], requires_grad=True), "require"),
    "parts of an uncoalesced tensor": (lambda: cg.sparse_coo_tensor(INDICES, VALUES).values(), "Cannot get values on an uncoalesced"),
    "indices of csr": (lambda: cg.eye(2).to_sparse_csr().indices(), "indices expected a tensor of the layout cygrad.sparse_coo but got"),
    "crow of csc": (lambda: cg.eye(2).to_sparse_csc().crow_indices(), "crow_indices expected a tensor of the layout cygrad.sparse_csr but"),
    "sizes that shrink": (lambda: cg.eye(2).to_sparse().sparse_resize_((1, 2), 2, 0), "shrinking the size of sparse dimensions"),
    "other dims": (lambda: cg.eye(2).to_sparse().sparse_resize_((2, 2), 1, 1), "changing the number of sparse dimensions"),
}


@pytest.mark.cases("name", list(BROKEN))
def test_invariants_are_checked(name):
    call, message = BROKEN[name]
    with pytest.raises((RuntimeError, ValueError), match=message):
        call()


def test_layouts_are_named():
    for layout in (*LAYOUTS, cg.strided):
        assert pickle.loads(pickle.dumps(layout)) is layout and copy.copy(layout) is layout
    with pytest.raises(TypeError, match="argument 'layout' must be"):
        cg.ones(2).to_sparse(layout="csr")
    with pytest.raises(NotImplementedError, match="makes tensors of the layout cygrad.strided"):
        cg.arange(3, layout=cg.sparse_coo)
    with pytest.raises(RuntimeError, match="hann_window is not implemented for sparse types, got: cygrad.sparse_coo"):
        cg.hann_window(3, layout=cg.sparse_coo)
    with pytest.raises(ValueError, match="bartlett is implemented for strided tensors only, got: cygrad.sparse_coo"):
        cg.signal.windows.bartlett(3, layout=cg.sparse_coo)
    with cg.sparse.check_sparse_tensor_invariants(False):
        assert cg.sparse.check_sparse_tensor_invariants.is_enabled()


def test_sizes_grow():
    x = cg.eye(2).to_sparse()
    assert x.sparse_resize_((3, 4), 2, 0) is x and x.shape == (3, 4) and x.to_dense().sum().item() == 2
    empty = cg.sparse_coo_tensor(size=(2, 2))
    assert empty.sparse_resize_((5, 1, 2), 1, 2).shape == (5, 1, 2) and empty.dense_dim() == 2
    assert cg.equal(empty.to_dense(), cg.zeros(5, 1, 2))


# ----- Text: as torch 2.13 prints it -----
TEXTS = [
    (lambda: cg.sparse_coo_tensor(INDICES, VALUES, (2, 3)), """\
tensor(indices=tensor([[0, 1, 1],
                       [2, 0, 2]]),
       values=tensor([3., 4., 5.]),
       size=(2, 3), nnz=3, layout=cygrad.sparse_coo)"""),
    (lambda: cg.sparse_coo_tensor(INDICES, VALUES, (2, 3), dtype=cg.float64, requires_grad=True), """\
tensor(indices=tensor([[0, 1, 1],
                       [2, 0, 2]]),
       values=tensor([3., 4., 5.]),
       size=(2, 3), nnz=3, dtype=cygrad.float64, layout=cygrad.sparse_coo,
       requires_grad=True)"""),
    (lambda: cg.sparse_csr_tensor([0, 1, 3], [2, 0, 2], VALUES, (2, 3)), """\
tensor(crow_indices=tensor([0, 1, 3]),
       col_indices=tensor([2, 0, 2]),
       values=tensor([3., 4., 5.]), size=(2, 3), nnz=3,
       layout=cygrad.sparse_csr)"""),
    (lambda: cg.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], VALUES, (2, 3), requires_grad=True) * 2, """\
tensor(ccol_indices=tensor([0, 1, 1, 3]),
       row_indices=tensor([1, 0, 1]),
       values=tensor([ 6.,  8., 10.]), size=(2, 3), nnz=3,
       layout=cygrad.sparse_csc, grad_fn=<MulBackward0>)"""),
    (lambda: cg.sparse_coo_tensor(size=(2, 3)), """\
tensor(indices=tensor([], size=(2, 0)),
       values=tensor([], size=(0,)),
       size=(2, 3), nnz=0, layout=cygrad.sparse_coo)"""),
    (lambda: cg.sparse_coo_tensor([[0, 1]], cg.ones(2, 2), (2, 2)), """\
tensor(indices=tensor([[0, 1]]),
       values=tensor([[1., 1.],
                      [1., 1.]]),
       size=(2, 2), nnz=2, layout=cygrad.sparse_coo)"""),
    (lambda: cg.sparse_csr_tensor(cg.tensor([0, 1]).int(), cg.tensor([0]).int(), [1.0], (1, 3)), """\
tensor(crow_indices=tensor([0, 1]),
       col_indices=tensor([0]),
       values=tensor([1.]), size=(1, 3), nnz=1, layout=cygrad.sparse_csr)"""),
]


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_texts(number):
    call, text = TEXTS[number]
    assert repr(call()) == text


# ----- Copies and files -----
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.cases("dtype", DTYPES)
def test_copies(form, dtype):
    x = FORMS[form](MATRIX, dtype).detach()
    if x.dtype.is_differentiable:
        x.requires_grad_()
        (x * x).sum().backward(None if not x.is_complex() else cg.tensor(1, dtype=x.dtype))
    for copied in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(x, 2)), _saved([x])[0]):
        assert copied.layout is x.layout and copied.dtype == x.dtype and copied.shape == x.shape
        assert copied.requires_grad == x.requires_grad and copied.is_leaf
        assert cg.equal(copied._values(), x._values()) and cg.equal(copied.to_dense(), x.to_dense())
        if x.is_sparse:
            assert copied.is_coalesced() == x.is_coalesced()
    if x.requires_grad:
        assert cg.equal(copy.deepcopy(x).grad.to_dense(), x.grad.to_dense())
        with pytest.raises(RuntimeError, match="its history would be lost"):
            pickle.dumps(x * 2)


def _saved(tree):
    file = io.BytesIO()
    cg.save(tree, file)
    file.seek(0)
    return cg.load(file)


HOSTILE = {
    "an index outside": lambda parts: parts[3].__setitem__((0, 0), 9),
    "a negative index": lambda parts: parts[3].__setitem__((1, 0), -1),
    "not coalesced": lambda parts: parts[3].__setitem__((0, 2), 0),
    "another size": lambda parts: parts.__setitem__(1, (1, 1)),
    "no layout": lambda parts: parts.__setitem__(0, cg.strided),
    "values missing": lambda parts: parts.pop(),
    "text for indices": lambda parts: parts.__setitem__(3, "indices"),
    "text for values": lambda parts: parts.__setitem__(4, "values"),
    "a size of text": lambda parts: parts.__setitem__(1, "2x3"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, monkeypatch):
    """A file whose checksums are right, and whose sparse tensor is not."""
    from cygrad import serialization
    x = cg.sparse_coo_tensor(INDICES, VALUES, (2, 3), is_coalesced=True)
    parts = [part.clone() if isinstance(part, cg.Tensor) else part for part in serialization.parts_of(x)]
    HOSTILE[name](parts)
    monkeypatch.setattr(serialization, "parts_of", lambda input: parts)
    file = io.BytesIO()
    cg.save([x], file)
    file.seek(0)
    with pytest.raises(ValueError, match="this is no sound file of cygrad.save"):
        cg.load(file)


def test_equal_patterns_are_shared():
    """All that follows from places alone is computed once for all tensors at these places."""
    from cygrad._core.levels.sparse import sparse_part
    x = cg.eye(3).to_sparse_csr()
    assert sparse_part(x * 2).pattern is sparse_part(x.sin()).pattern is sparse_part(x.detach()).pattern is sparse_part(x).pattern
    assert equal(x, cg.eye(3))
