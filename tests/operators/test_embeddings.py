"""Embeddings, bags of them and one-hot rows: values, gradients that leave rows out, maximal norms, refusals."""

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional
rng = np.random.default_rng(2)
WEIGHT = rng.standard_normal((6, 3))
NUMBERS = np.array([[0, 2, 2], [2, 5, 1]])
VECTOR, OFFSETS = np.array([0, 2, 2, 5, 1, 0]), np.array([0, 2, 2, 5])


def gradient(call, *arrays):
    leaves = [cg.tensor(array).requires_grad_() for array in arrays]
    return array_of(cg.autograd.grad(call(*leaves).sum(), leaves[0])[0])


@pytest.mark.parametrize("dtype", [cg.int32, cg.int64])
def test_embedding(dtype):
    weight, numbers = cg.tensor(WEIGHT), cg.tensor(NUMBERS).to(dtype)
    assert (array_of(F.embedding(numbers, weight)) == WEIGHT[NUMBERS]).all()
    assert (array_of(F.embedding(numbers.T, weight)) == WEIGHT[NUMBERS.T]).all()
    assert F.embedding(numbers[0, 1], weight).tolist() == WEIGHT[2].tolist() and F.embedding(numbers[:0], weight).shape == (0, 3, 3)
    count = np.bincount(NUMBERS.reshape(-1), minlength=6).astype(float)
    assert (gradient(lambda w: F.embedding(numbers, w), WEIGHT) == count[:, None]).all()
    assert (gradient(lambda w: F.embedding(numbers, w, scale_grad_by_freq=True), WEIGHT) == (count[:, None] > 0)).all()
    for padding in (2, -4):
        without = np.where(np.arange(6) == 2, 0, count)
        assert (gradient(lambda w, padding=padding: F.embedding(numbers, w, padding), WEIGHT) == without[:, None]).all()
        assert (array_of(F.embedding(numbers, weight, padding)) == WEIGHT[NUMBERS]).all()


@pytest.mark.parametrize("norm", [1.0, 2.0, float("inf")])
def test_maximal_norms(norm):
    """Rows that are looked up are scaled in place, others stay; nothing is recorded."""
    weight = cg.tensor(WEIGHT).requires_grad_()
    result = F.embedding(cg.tensor(NUMBERS), weight, max_norm=0.9, norm_type=norm)
    norms = np.linalg.norm(WEIGHT, norm, 1)
    scaled = np.where(((norms > 0.9) & np.isin(np.arange(6), NUMBERS))[:, None], WEIGHT * 0.9 / (norms[:, None] + 1e-7), WEIGHT)
    np.testing.assert_allclose(array_of(weight), scaled, rtol=1e-12)
    np.testing.assert_allclose(array_of(result), scaled[NUMBERS], rtol=1e-12)
    assert weight.is_leaf and weight._version == 1
    with pytest.raises(IndexError):
        F.embedding(cg.tensor([0, 9]), weight, max_norm=0.1)
    np.testing.assert_allclose(array_of(weight), scaled, rtol=1e-12)


FUNCTIONS = {"sum": lambda rows: rows.sum(0), "mean": lambda rows: rows.mean(0), "max": lambda rows: rows.max(0)}


@pytest.mark.parametrize("mode", FUNCTIONS)
@pytest.mark.parametrize("padding", [None, 2])
def test_bags(mode, padding):
    def expected(bags):
        bags = [[number for number in bag if number != padding] for bag in bags]
        return [FUNCTIONS[mode](WEIGHT[bag]) if bag else np.zeros(3) for bag in bags]

    weight, vector, offsets = cg.tensor(WEIGHT), cg.tensor(VECTOR), cg.tensor(OFFSETS)
    arguments = {"mode": mode, "padding_idx": padding}
    bags = [VECTOR[:2], [], VECTOR[2:5], VECTOR[5:]]
    np.testing.assert_allclose(array_of(F.embedding_bag(vector, weight, offsets, **arguments)), expected(bags), rtol=1e-12)
    last = array_of(F.embedding_bag(vector, weight, offsets, include_last_offset=True, **arguments))
    np.testing.assert_allclose(last, expected(bags[:3]), rtol=1e-12)
    np.testing.assert_allclose(array_of(F.embedding_bag(cg.tensor(NUMBERS), weight, **arguments)), expected(NUMBERS), rtol=1e-12)
    assert F.embedding_bag(vector[:0], weight, cg.tensor([0, 0]), **arguments).tolist() == [[0, 0, 0]] * 2
    assert F.embedding_bag(vector.int(), weight, offsets.int(), **arguments).shape == (4, 3)
    got = gradient(lambda w: F.embedding_bag(vector, w, offsets, **arguments), WEIGHT)
    if mode == "sum":
        count = np.bincount(VECTOR, minlength=6) * (np.arange(6) != padding)
        assert (got == count[:, None]).all()
    else:       # each bag that is not empty gives 1 to each column
        assert got.sum(0) == pytest.approx(np.array([3, 3, 3]))


def test_the_first_of_equal_rows_has_the_gradient_of_a_maximum():
    weight = np.array([[1.0, np.nan], [1.0, 0.0], [0.5, 2.0]])
    got = gradient(lambda w: F.embedding_bag(cg.tensor([[2, 1, 0]]), w, mode="max"), weight)
    assert got.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_weights_of_samples():
    factor = rng.standard_normal(6)
    rows = WEIGHT[VECTOR] * factor[:, None]
    result = F.embedding_bag(cg.tensor(VECTOR), cg.tensor(WEIGHT), cg.tensor(OFFSETS), mode="sum", per_sample_weights=cg.tensor(factor))
    np.testing.assert_allclose(array_of(result), [rows[:2].sum(0), np.zeros(3), rows[2:5].sum(0), rows[5]], rtol=1e-12)
    once = gradient(lambda w: F.embedding_bag(cg.tensor(VECTOR), w, cg.tensor(OFFSETS), mode="sum", scale_grad_by_freq=True), WEIGHT)
    assert (once == np.isin(np.arange(6), VECTOR)[:, None]).all()


def test_one_hot():
    x = cg.tensor([[0, 3], [1, 1]])
    for count in (-1, 4, 6):
        result = F.one_hot(x, count)
        assert result.dtype == cg.int64 and (array_of(result) == np.eye(max(count, 4), dtype=int)[array_of(x)]).all()
    assert F.one_hot(cg.tensor(2)).tolist() == [0, 0, 1] and F.one_hot(x[:0], 3).shape == (0, 2, 3)
    assert cg.equal(cg.func.vmap(lambda t: F.one_hot(t, 4))(x), F.one_hot(x, 4))


W, N = cg.tensor(WEIGHT), cg.tensor([0, 1, 3])
REFUSED = [
    (lambda: F.one_hot(W), RuntimeError, "one_hot is only applicable to index tensor of type LongTensor"),
    (lambda: F.one_hot(N - 1), RuntimeError, "Class values must be non-negative. The least is -1"),
    (lambda: F.one_hot(N, 2), RuntimeError, "Class values must be smaller than num_classes. The largest is 3"),
    (lambda: F.one_hot(N[:0]), RuntimeError, "Can not infer total number of classes from empty tensor"),
    (lambda: F.embedding(N + 3, W), IndexError, "index out of range in self: 6"),
    (lambda: F.embedding(N - 1, W), IndexError, "index out of range in self: -1"),
    (lambda: F.embedding(W, W), RuntimeError, "Expected tensor for argument #1 'indices' to have one of the following scalar"),
    (lambda: F.embedding(N, W[0]), RuntimeError, "'weight' must be 2-D"),
    (lambda: F.embedding(N, W, 6), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda: F.embedding_bag(N, W), ValueError, "offsets has to be a 1D Tensor but got None"),
    (lambda: F.embedding_bag(N, W, cg.tensor([[0]])), ValueError, "offsets has to be a 1D Tensor"),
    (lambda: F.embedding_bag(N, W, cg.tensor([1, 2])), RuntimeError, r"offsets\[0\] has to be 0"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0, 4])), RuntimeError, r"offsets\[-1\] can not be greater than input's length 3 but got"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0, 2, 1])), RuntimeError, "offsets must not decrease"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0.0])), RuntimeError, "Expected tensor for argument #2 'offsets'"),
    (lambda: F.embedding_bag(N[:0], W, N[:0], include_last_offset=True), RuntimeError, "number of offsets should be at least 1"),
    (lambda: F.embedding_bag(N + 4, W, cg.tensor([0])), RuntimeError, r"Index 2 of input takes value 7 which is not in the valid"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0]), mode="x"), ValueError, "mode has to be one of sum, mean or max"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0]), mode="max", scale_grad_by_freq=True), ValueError, "max mode does not support scaling"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0]), per_sample_weights=W[0]), NotImplementedError, "only supported for mode='sum'"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0]), per_sample_weights=W[0, :2]), ValueError, "it must have the same shape as the input"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0]), mode="sum", per_sample_weights=W[0].float()), RuntimeError, "to have the same type as"),
    (lambda: F.embedding_bag(N, W, cg.tensor([0]), padding_idx=7), RuntimeError, "padding_idx must be within the number of embeddings"),
    (lambda: F.embedding_bag(N.reshape(1, 1, 3), W), ValueError, "input has to be 1D or 2D Tensor, but got Tensor of dimension 3"),
    (lambda: F.embedding_bag(N, W[0], cg.tensor([0])), ValueError, "weight has to be a 2D Tensor, but got Tensor of dimension 1"),
    (lambda: F.embedding_bag(N.reshape(1, 3), W, cg.tensor([0])), ValueError, "if input is 2D, then offsets has to be None"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
