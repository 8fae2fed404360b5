"""Sparse gradients: at leaves, in hooks, of results; how `.grad` accumulates them; operators that make them."""

import pytest

import cygrad as cg
from sparse_samples import FORMS, MATRIX, dense_of

F = cg.nn.functional
NUMBERS = cg.tensor([2, 0, 2])


def weight(**options):
    return cg.ones(4, 3, dtype=cg.float64, requires_grad=True, **options)


def looked_up(w):
    return F.embedding(NUMBERS, w, sparse=True).sum()


DENSE = cg.tensor([1.0, 0, 2, 0], dtype=cg.float64).unsqueeze(1).expand(4, 3)
MAKERS = {
    "embedding": (lambda w, sparse: F.embedding(NUMBERS, w, sparse=sparse), 1),
    "embedding of a matrix": (lambda w, sparse: F.embedding(NUMBERS.reshape(1, 3), w, sparse=sparse), 1),
    "embedding with padding": (lambda w, sparse: F.embedding(NUMBERS, w, padding_idx=0, sparse=sparse), 1),
    "embedding by frequency": (lambda w, sparse: F.embedding(NUMBERS, w, scale_grad_by_freq=True, sparse=sparse), 1),
    "embedding_bag": (lambda w, sparse: F.embedding_bag(NUMBERS, w, cg.tensor([0, 1]), mode="sum", sparse=sparse), 1),
    "mean of bags": (lambda w, sparse: F.embedding_bag(NUMBERS, w, cg.tensor([0, 1]), sparse=sparse), 1),
    "gather": (lambda w, sparse: w.gather(0, cg.tensor([[0, 1, 0], [3, 1, 2]]), sparse_grad=sparse), 2),
    "gather along columns": (lambda w, sparse: w.gather(1, cg.tensor([[0, 0], [2, 1]]), sparse_grad=sparse), 2),
}


@pytest.mark.parametrize("name", MAKERS)
def test_operators_with_sparse_gradients(name):
    call, sparse_dim = MAKERS[name]
    w, dense = weight(), weight()
    assert cg.equal(call(w, True), call(dense, False))
    weights = cg.randn(call(w, True).shape, dtype=cg.float64)
    call(w, True).backward(weights)
    call(dense, False).backward(weights)
    assert w.grad.is_sparse and w.grad.sparse_dim() == sparse_dim and not dense.grad.is_sparse
    assert cg.allclose(w.grad.to_dense(), dense.grad)
    x = cg.randn(4, 3, dtype=cg.float64, requires_grad=True)
    if "frequency" not in name and "padding" not in name:
        assert cg.autograd.gradcheck(lambda x: call(x * x, True), x, check_forward_ad=True, check_batched_grad=True)
        assert cg.autograd.gradgradcheck(lambda x: call(x * x, True), x)


# ----- Accumulation -----
def test_sparse_on_nothing_and_on_sparse():
    w = weight()
    looked_up(w).backward()
    first = w.grad
    assert first.is_sparse and first._nnz() == 3 and cg.equal(first.to_dense(), DENSE)
    looked_up(w).backward()
    assert w.grad is first and cg.equal(first.to_dense(), 2 * DENSE)


def test_sparse_on_dense_is_in_place():
    w = weight()
    w.sum().backward()
    first = w.grad
    looked_up(w).backward()
    assert w.grad is first and not first.is_sparse and cg.equal(first, DENSE + 1)


def test_dense_on_sparse_is_dense():
    w = weight()
    looked_up(w).backward()
    first = w.grad
    w.sum().backward()
    assert w.grad is not first and not w.grad.is_sparse and cg.equal(w.grad, DENSE + 1) and cg.equal(first.to_dense(), DENSE)


@pytest.mark.parametrize("order", [1, -1])
def test_both_in_one_backward(order):
    w = weight()
    sum([looked_up(w), w.sum()][::order]).backward()
    assert not w.grad.is_sparse and cg.equal(w.grad, DENSE + 1)
    v = weight()
    (looked_up(v) + looked_up(v)).backward()
    assert v.grad.is_sparse and cg.equal(v.grad.to_dense(), 2 * DENSE)


def test_with_a_graph():
    w = weight()
    with pytest.warns(UserWarning, match="create_graph=True"):
        (F.embedding(NUMBERS, w, sparse=True) ** 2).sum().backward(create_graph=True)
    assert w.grad.is_sparse and w.grad.requires_grad
    second, = cg.autograd.grad(w.grad.to_dense().square().sum(), w)
    assert not second.is_sparse or second.is_sparse      # either: it is a derivative of the same elements
    assert second.to_dense().shape == w.shape
    w.grad = None


def test_chosen_inputs_and_results():
    w = weight()
    looked_up(w).backward(inputs=[w])
    assert w.grad.is_sparse
    gradient, = cg.autograd.grad(looked_up(w), w)
    assert gradient.is_sparse and cg.equal(gradient.to_dense(), DENSE)
    assert cg.func.grad(looked_up)(w.detach()).is_sparse


def test_operators_behind_see_dense_gradients():
    w = weight()
    looked_up(w * 3).backward()
    assert not w.grad.is_sparse and cg.equal(w.grad, 3 * DENSE)
    v = w * 3
    v.retain_grad()
    looked_up(v).backward()
    assert v.grad.is_sparse


def test_hooks_see_them():
    w, seen = weight(), []
    w.register_hook(lambda grad: seen.append(grad.layout) or grad * 2)
    w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.layout))
    looked_up(w).backward()
    assert seen == [cg.sparse_coo] * 2 and cg.equal(w.grad.to_dense(), 2 * DENSE)
    v = weight()
    v.register_hook(lambda grad: grad.to_dense())
    looked_up(v).backward()
    assert not v.grad.is_sparse


def test_anomaly_mode_finds_nan():
    w = weight()
    with cg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values"):
        (F.embedding(NUMBERS, w, sparse=True) * float("nan")).sum().backward()


def test_a_function_of_the_user():
    class Rows(cg.autograd.Function):
        @staticmethod
        def forward(ctx, w, rows):
            ctx.save_for_backward(rows)
            return w[rows]

        @staticmethod
        def backward(ctx, g):
            rows, = ctx.saved_tensors
            return cg.sparse_coo_tensor(rows.unsqueeze(0), g, (4, 3)), None

    w = weight()
    Rows.apply(w, NUMBERS).sum().backward()
    assert w.grad.is_sparse and cg.equal(w.grad.to_dense(), DENSE)


# ----- Of sparse tensors -----
@pytest.mark.parametrize("form", FORMS)
def test_leaves_that_are_sparse(form):
    x = FORMS[form](MATRIX).detach().requires_grad_()
    places = (dense_of(MATRIX) != 0).to(cg.float64)
    assert x.is_leaf and x.grad is None
    (x * 3).sum().backward()
    assert x.grad.layout is x.layout and x.grad._nnz() == x._nnz()
    assert cg.equal(x.grad._values(), cg.full((x._nnz(),), 3.0, dtype=cg.float64))
    (x.to_dense() * 2).sum().backward()
    assert cg.equal(x.grad._values(), cg.full((x._nnz(),), 5.0, dtype=cg.float64))
    x.grad = None
    assert x.grad is None
    x.grad = dense_of(MATRIX)
    assert x.grad.layout is x.layout
    gradient, = cg.autograd.grad(x.sum(), x)
    assert gradient.layout is x.layout and gradient._nnz() == x._nnz()
    gradient = cg.func.grad(lambda x: x.square().sum())(x.detach())
    assert gradient.layout is x.layout and cg.allclose(gradient.to_dense() * (form != "uncoalesced"), 2 * dense_of(MATRIX) * places
                                                       * (form != "uncoalesced"))


def test_backward_from_sparse_results():
    x = dense_of(MATRIX).to_sparse_csr().requires_grad_()
    for weights in (cg.ones(4, 5, dtype=cg.float64), cg.ones(4, 5, dtype=cg.float64).to_sparse(), dense_of(MATRIX).to_sparse_csr()):
        x.grad = None
        (x * 2).backward(weights)
        assert cg.equal(x.grad.to_dense(), 2 * weights.to_dense() * (dense_of(MATRIX) != 0))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(cg.ones(5, 4, dtype=cg.float64))
    y = cg.ones(4, 5, dtype=cg.float64, requires_grad=True)
    (y * 2).backward(dense_of(MATRIX).to_sparse())
    assert cg.equal(y.grad, 2 * dense_of(MATRIX))


def test_hooks_of_sparse_tensors():
    x, seen = dense_of(MATRIX).to_sparse_csr().requires_grad_(), []
    handle = x.register_hook(lambda grad: seen.append(grad.layout) or grad * 10)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda grad: seen.append(grad.shape))
    y.sum().backward()
    assert seen == [(4, 5), cg.sparse_csr] and x.grad.values().tolist() == [20] * 6 and y.grad.values().tolist() == [1] * 6
    handle.remove()


def test_second_derivatives():
    x = dense_of(MATRIX).to_sparse().requires_grad_()
    first, = cg.autograd.grad((x * x * x).sum(), x, create_graph=True)
    second, = cg.autograd.grad(first.sum(), x)
    assert cg.allclose(second.values(), 6 * x.values())


@pytest.mark.parametrize("form", FORMS)
def test_tangents_of_sparse_tensors(form):
    matrix, v = FORMS[form](MATRIX), cg.arange(float(MATRIX.shape[1]), dtype=cg.float64)

    def product(x):
        return (x @ v).sin()

    value, tangent = cg.func.jvp(product, (matrix,), (matrix * 2,))
    dense = matrix.to_dense()
    assert all(map(cg.allclose, (value, tangent), cg.func.jvp(product, (dense,), (dense * 2,))))
    with cg.autograd.forward_ad.dual_level():
        dual = cg.autograd.forward_ad.make_dual(matrix, matrix * 2)
        assert cg.equal(cg.autograd.forward_ad.unpack_dual(product(dual)).tangent, tangent)
    compiled = cg.compile(lambda x: cg.func.jvp(product, (x,), (x * 2,))[1], fullgraph=True)
    assert cg.equal(compiled(matrix), tangent) and cg.equal(compiled(matrix * 1), tangent) and compiled.cache_info().hits == 1


def test_tangents_that_do_not_fit():
    matrix = cg.eye(2).to_sparse_csr()
    for tangent, message in (cg.eye(2), "is dense: use sparse_mask"), (cg.ones(2, 2).to_sparse_csr(), "is one with values at other places"):
        with pytest.raises(RuntimeError, match=f"a sparse tensor with values at the same places, but {message}"):
            cg.func.jvp(lambda x: x * 2, (matrix,), (tangent,))


def test_gradcheck_asks_for_masked():
    x = dense_of(MATRIX).to_sparse().requires_grad_()
    for options in ({}, {"masked": False}, {"check_sparse_nnz": False}):
        with pytest.raises(cg.autograd.gradcheck.GradcheckError if hasattr(cg.autograd.gradcheck, "GradcheckError") else RuntimeError,
                           match="gradcheck expects all tensor inputs are dense when check_sparse_nnz is set to False"):
            cg.autograd.gradcheck(lambda x: x.sum(), x, **options)
        assert cg.autograd.gradcheck(lambda x: x.sum(), x, raise_exception=False, **options) is False
    for options in ({"masked": True}, {"check_sparse_nnz": True}):
        assert cg.autograd.gradcheck(lambda x: x.square().sum(), x, **options)
        assert cg.autograd.gradcheck(lambda x: x.square().sum(), x, fast_mode=True, **options)
        assert not cg.autograd.gradcheck(lambda x: (x * x.detach()).sum(), x, raise_exception=False, **options)
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        cg.autograd.gradcheck(lambda x: x * 2, x, masked=True)


def test_nothing_is_left_special():
    """Operators are as quick as before once the last sparse tensor is gone."""
    import gc

    from cygrad._core.levels.batches import special_tensors
    gc.collect()
    before = special_tensors()
    x = dense_of(MATRIX).to_sparse().requires_grad_()
    (x @ cg.ones(5, dtype=cg.float64)).sum().backward()
    assert special_tensors()
    del x
    gc.collect()
    assert special_tensors() == before
