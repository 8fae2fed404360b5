"""Losses: values against their definitions in NumPy, reductions, ends of the range, ties, refusals."""

import functools
import itertools

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional
INF = float("inf")
rng = np.random.default_rng(4)
X, Y = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
P, Q = rng.random((3, 4)), rng.random((3, 4))
CLASSES = np.array([2, 0, 3])


def gradient(call, *arrays):
    """Return the gradients of the sum of a loss."""
    leaves = [cg.tensor(array, dtype=cg.float64).requires_grad_() for array in arrays]
    return [array_of(g) for g in cg.autograd.grad(call(*leaves).sum(), leaves)]


def log_softmax(a):
    shifted = a - a.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def rounded(d, width):
    return np.where(abs(d) < width, d * d / 2, width * (abs(d) - width / 2))


def beyond(a):
    return np.maximum(a, 0)


# ----- Values -----
ELEMENTS = {    # the losses of all elements or samples
    "mse_loss": (lambda r: F.mse_loss(cg.tensor(X), cg.tensor(Y), reduction=r), lambda: (X - Y)**2),
    "l1_loss": (lambda r: F.l1_loss(cg.tensor(X), cg.tensor(Y), reduction=r), lambda: abs(X - Y)),
    "smooth_l1_loss": (lambda r: F.smooth_l1_loss(cg.tensor(X), cg.tensor(Y), reduction=r, beta=0.7),
                       lambda: rounded(X - Y, 0.7) / 0.7),
    "huber_loss": (lambda r: F.huber_loss(cg.tensor(X), cg.tensor(Y), r, 0.7), lambda: rounded(X - Y, 0.7)),
    "binary_cross_entropy": (lambda r: F.binary_cross_entropy(cg.tensor(P), cg.tensor(Q), reduction=r),
                             lambda: -Q * np.log(P) - (1 - Q) * np.log(1 - P)),
    "binary_cross_entropy_with_logits": (
        lambda r: F.binary_cross_entropy_with_logits(cg.tensor(X), cg.tensor(Q), reduction=r, pos_weight=cg.tensor(P[0])),
        lambda: P[0] * Q * np.log1p(np.exp(-X)) + (1 - Q) * np.log1p(np.exp(X))),
    "soft_margin_loss": (lambda r: F.soft_margin_loss(cg.tensor(X), cg.tensor(np.sign(Y)), reduction=r),
                         lambda: np.log1p(np.exp(-np.sign(Y) * X))),
    "kl_div": (lambda r: F.kl_div(cg.tensor(np.log(P)), cg.tensor(Q), reduction=r), lambda: Q * np.log(Q / P)),
    "kl_div of logarithms": (lambda r: F.kl_div(cg.tensor(X), cg.tensor(Y), reduction=r, log_target=True), lambda: np.exp(Y) * (Y - X)),
    "gaussian_nll_loss": (lambda r: F.gaussian_nll_loss(cg.tensor(X), cg.tensor(Y), cg.tensor(P[:, 0]), True, reduction=r),
                          lambda: (np.log(2 * np.pi * P[:, :1]) + (X - Y)**2 / P[:, :1]) / 2),
    "poisson_nll_loss": (lambda r: F.poisson_nll_loss(cg.tensor(P), cg.tensor(Q), False, eps=0.0, reduction=r), lambda: P - Q * np.log(P)),
    "margin_ranking_loss": (lambda r: F.margin_ranking_loss(cg.tensor(X), cg.tensor(Y), cg.tensor(np.sign(P - 0.5)), 0.2, reduction=r),
                            lambda: beyond(0.2 - np.sign(P - 0.5) * (X - Y))),
    "hinge_embedding_loss": (lambda r: F.hinge_embedding_loss(cg.tensor(X), cg.tensor(np.sign(Y)), 0.5, reduction=r),
                             lambda: np.where(Y > 0, X, beyond(0.5 - X))),
    "cosine_embedding_loss": (
        lambda r: F.cosine_embedding_loss(cg.tensor(X), cg.tensor(Y), cg.tensor([1, -1, 1]), -0.5, reduction=r),
        lambda: np.where([1, 0, 1], 1 - cosine(X, Y), beyond(cosine(X, Y) + 0.5))),
    "triplet_margin_loss": (
        lambda r: F.triplet_margin_loss(cg.tensor(X), cg.tensor(Y), cg.tensor(P), swap=True, eps=0.0, reduction=r),
        lambda: beyond(1 + distance(X, Y) - np.minimum(distance(X, P), distance(Y, P)))),
    "cross_entropy": (lambda r: F.cross_entropy(cg.tensor(X), cg.tensor(CLASSES), reduction=r),
                      lambda: -log_softmax(X)[np.arange(3), CLASSES]),
    "cross_entropy of probabilities": (lambda r: F.cross_entropy(cg.tensor(X), cg.tensor(Q), reduction=r, label_smoothing=0.3),
                                       lambda: -(log_softmax(X) * (0.7 * Q + 0.3 / 4)).sum(1)),
    "nll_loss": (lambda r: F.nll_loss(cg.tensor(X), cg.tensor(CLASSES), reduction=r), lambda: -X[np.arange(3), CLASSES]),
    "multi_margin_loss": (lambda r: F.multi_margin_loss(cg.tensor(X), cg.tensor(CLASSES), 2, 0.8, cg.tensor(P[0]), reduction=r),
                          lambda: np.array([sum(beyond(0.8 - row[y] + row[j])**2 for j in range(4) if j != y) * P[0][y] / 4
                                            for row, y in zip(X, CLASSES, strict=True)])),
    "multilabel_margin_loss": (
        lambda r: F.multilabel_margin_loss(cg.tensor(X), cg.tensor([[1, 3, -1, 0], [-1, 0, 1, 2], [0, 1, 2, 3]]), reduction=r),
        lambda: np.array([sum(beyond(1 - X[0, y] + X[0, j]) for y in (1, 3) for j in (0, 2)) / 4, 0, 0])),
    "multilabel_soft_margin_loss": (
        lambda r: F.multilabel_soft_margin_loss(cg.tensor(X), cg.tensor(Q), reduction=r),
        lambda: (Q * np.log1p(np.exp(-X)) + (1 - Q) * np.log1p(np.exp(X))).mean(1)),
}


def cosine(a, b):
    return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))


def distance(a, b):
    return np.sqrt(((a - b)**2).sum(1))


@pytest.mark.filterwarnings("ignore:reduction. 'mean'")
@pytest.mark.parametrize("name", ELEMENTS)
def test_values_and_reductions(name):
    call, definition = ELEMENTS[name]
    expected = definition()
    for reduction, function in (("none", lambda a: a), ("mean", np.mean), ("sum", np.sum)):
        np.testing.assert_allclose(array_of(call(reduction)), function(expected), rtol=1e-12, atol=1e-14)
    for unknown in ("average", None, 3, ["mean"]):
        with pytest.raises(ValueError, match="is not (a )?valid"):
            call(unknown)


def test_batchmean_divides_by_the_samples():
    expected = (Q * np.log(Q / P)).sum() / 3
    assert F.kl_div(cg.tensor(np.log(P)), cg.tensor(Q), reduction="batchmean").item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("older", "reduction"), [({"size_average": False}, "sum"), ({"reduce": False}, "none"), ({"reduce": True}, "mean"),
                                                  ({"size_average": True, "reduce": False}, "none")])
def test_older_arguments_of_the_reduction(older, reduction):
    for loss in (F.mse_loss, F.margin_ranking_loss, F.cross_entropy):
        arguments = (cg.tensor(X), cg.tensor(Q), *[cg.ones(3, 4)] * (loss is F.margin_ranking_loss))
        with pytest.warns(UserWarning, match=f"please use reduction='{reduction}' instead"):
            result = loss(*arguments, **older)
        assert cg.equal(result, loss(*arguments, reduction=reduction))


def test_means_of_weights():
    """Means of mse_loss and l1_loss are by the sum of the weights, the mean of huber_loss by their number, as in torch."""
    x, y, w = map(cg.tensor, (X, Y, P))
    assert F.mse_loss(x, y, weight=w).item() == pytest.approx(np.average((X - Y)**2, weights=P))
    assert F.l1_loss(x, y, weight=w).item() == pytest.approx(np.average(abs(X - Y), weights=P))
    assert F.huber_loss(x, y, weight=w).item() == pytest.approx((rounded(X - Y, 1) * P).mean())


# ----- Classes -----
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("ignore", [-100, 0])
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (2, 3, 2, 2)])
def test_weights_ignored_classes_and_smoothing(shape, ignore, smoothing):
    """Against the sum over samples of the definition, whose mean is by the weights of the classes that count."""
    scores, weight = rng.standard_normal(shape), rng.random(3) + 0.1
    target = rng.integers(0, 3, (shape[0], *shape[2:]))
    target.flat[1] = ignore
    rows, classes = np.moveaxis(log_softmax(scores), 1, -1).reshape(-1, 3), target.reshape(-1)
    total = count = 0
    for row, y in zip(rows, classes, strict=True):
        if y != ignore:
            total -= (1 - smoothing) * weight[y] * row[y] + smoothing / 3 * (weight * row).sum()
            count += weight[y]
    arguments = {"ignore_index": ignore, "weight": cg.tensor(weight), "label_smoothing": smoothing}
    for reduction, expected in (("mean", total / count), ("sum", total)):
        result = F.cross_entropy(cg.tensor(scores), cg.tensor(target), reduction=reduction, **arguments)
        assert result.item() == pytest.approx(expected, rel=1e-12)
    losses = F.cross_entropy(cg.tensor(scores), cg.tensor(target), reduction="none", **arguments)
    assert losses.shape == target.shape and (array_of(losses)[target == ignore] == 0).all()
    got, = gradient(lambda x: F.cross_entropy(x, cg.tensor(target), **arguments), scores)
    assert (np.moveaxis(got, 1, -1)[target == ignore] == 0).all()


def test_one_sample_and_none():
    x = cg.tensor(X[0])
    for target in (cg.tensor(2), cg.tensor([2]), cg.tensor(2, dtype=cg.uint8)):
        assert F.cross_entropy(x, target, reduction="none").shape == ()
        assert F.cross_entropy(x, target).item() == pytest.approx(-log_softmax(X[:1])[0, 2])
    nothing = cg.zeros(0, 4), cg.zeros(0, dtype=cg.int64)
    assert F.cross_entropy(*nothing).isnan() and F.cross_entropy(*nothing, reduction="sum") == 0
    assert F.cross_entropy(cg.zeros(2, 4), cg.tensor([-100, -100])).isnan()


def test_examples_of_vmap_have_targets_of_their_own():
    scores, targets = cg.tensor(rng.standard_normal((5, 3, 4))), cg.tensor(rng.integers(0, 4, (5, 3)))
    targets[2, 1] = -100
    for reduction in ("none", "mean", "sum"):
        together = cg.func.vmap(functools.partial(F.cross_entropy, reduction=reduction))(scores, targets)
        assert cg.allclose(together, cg.stack([F.cross_entropy(x, t, reduction=reduction) for x, t in zip(scores, targets, strict=True)]))
    together = cg.func.vmap(cg.func.grad(F.cross_entropy))(scores, targets)
    assert cg.allclose(together, cg.stack([cg.func.grad(F.cross_entropy)(x, t) for x, t in zip(scores, targets, strict=True)]))
    hessian = cg.func.hessian(F.cross_entropy)(scores[0], targets[0])
    plain = cg.func.hessian(lambda x: F.nll_loss(x.log_softmax(1), targets[0]))(scores[0])
    assert cg.allclose(hessian, plain)


# ----- Ends and ties -----
def test_scores_of_any_size():
    for dtype in (cg.float16, cg.bfloat16, cg.float32, cg.float64):
        size = 1e4 if dtype != cg.float16 else 3e4
        x = cg.tensor([[size, 0.0], [0.0, size], [-size, -size]], dtype=dtype, requires_grad=True)
        loss = F.cross_entropy(x, cg.tensor([1, 1, 0]), reduction="none")
        assert loss.dtype == dtype and cg.allclose(loss, cg.tensor([size, 0.0, np.log(2)], dtype=dtype), 1e-2)
        loss.sum().backward()
        assert cg.allclose(x.grad, cg.tensor([[1.0, -1.0], [0.0, 0.0], [-0.5, 0.5]], dtype=dtype))
        logits = cg.tensor([size, -size, 0.0], dtype=dtype, requires_grad=True)
        for loss in (F.binary_cross_entropy_with_logits, F.soft_margin_loss):
            target = cg.tensor([1.0, 0.0 if loss is F.binary_cross_entropy_with_logits else -1.0, 1.0], dtype=dtype)
            losses = loss(logits, target, reduction="none")
            assert cg.allclose(losses, cg.tensor([0.0, 0.0, np.log(2)], dtype=dtype), 1e-2)
            g, = cg.autograd.grad(losses.sum(), logits)
            assert cg.allclose(g, cg.tensor([0.0, 0.0, -0.5], dtype=dtype))
    tiny = F.cross_entropy(cg.tensor([[40.0, 0.0]], dtype=cg.float64), cg.tensor([0]))
    assert 0 <= tiny.item() < 1e-15


def test_narrow_floats_round_once():
    """A mean of 70,000 squares of 16 bits is computed in float32."""
    for loss in (F.mse_loss, F.l1_loss, F.huber_loss):
        x, zero = cg.full((70000,), 2.0, dtype=cg.float16), cg.zeros(70000, dtype=cg.float16)
        assert loss(x, zero).item() == loss(cg.tensor(2.0), cg.tensor(0.0))
    x = cg.tensor(rng.standard_normal((40, 10))).half()
    for target in (cg.tensor(rng.integers(0, 10, 40)), x.softmax(1)):
        wide = F.cross_entropy(x.float(), target.float() if target.is_floating_point() else target)
        assert F.cross_entropy(x, target) == wide.half()


def test_logarithms_of_0():
    losses = F.binary_cross_entropy(cg.tensor([0.0, 1.0, 0.0, 1.0]), cg.tensor([0.0, 1.0, 1.0, 0.0]), reduction="none")
    assert losses.tolist() == [0, 0, 100, 100]
    got, = gradient(lambda p: F.binary_cross_entropy(p, cg.tensor([0.0, 1.0, 1.0, 0.0]).double(), reduction="none"), [0.0, 1.0, 0.0, 1.0])
    assert got.tolist() == [0, 0, -1e12, 1e12]
    assert F.kl_div(cg.tensor([-2.0, -1.0]), cg.tensor([0.0, 1.0]), reduction="none").tolist() == [0, 1]
    assert F.gaussian_nll_loss(cg.zeros(2), cg.zeros(2), cg.zeros(2), eps=1.0).item() == 0
    got, = gradient(lambda v: F.gaussian_nll_loss(cg.ones(1).double(), cg.zeros(1).double(), v, eps=0.5), [0.1])
    assert got.tolist() == [0.5 * (1 / 0.5 - 1 / 0.25)]     # at the bound, as in torch


@pytest.mark.parametrize(("loss", "at", "expected"), [
    (lambda x: F.l1_loss(x, x.detach(), reduction="none"), [2.0], [0]),
    (lambda x: F.smooth_l1_loss(x, cg.zeros(3).double(), reduction="none"), [0.0, 1.0, -1.0], [0, 1, -1]),
    (lambda x: F.huber_loss(x, cg.zeros(3).double(), "none", 2.0), [0.0, 2.0, -5.0], [0, 2, -2]),
    (lambda x: F.margin_ranking_loss(x, cg.zeros(1).double(), cg.ones(1)), [0.0], [-1]),
    (lambda x: F.hinge_embedding_loss(x, -cg.ones(1)), [1.0], [-1]),
    (lambda x: F.multi_margin_loss(x, cg.tensor(0)), [1.0, 0.0], [0, 0]),
])
def test_gradients_at_ties(loss, at, expected):
    """As in torch: the corner of max(0, x) has the slope 1, the corner of a margin between classes 0."""
    assert gradient(loss, at)[0].tolist() == expected


def test_a_rounded_corner_has_second_derivatives():
    for loss in (F.smooth_l1_loss, F.huber_loss):
        x = cg.tensor([0.0, 0.5, 3.0]).double().requires_grad_()
        g, = cg.autograd.grad(loss(x, cg.zeros(3).double(), reduction="sum"), x, create_graph=True)
        assert cg.autograd.grad(g.sum(), x)[0].tolist() == [1, 1, 0]


# ----- Refusals -----
x, labels = cg.zeros(3, 4), cg.tensor([0, 1, 3])
REFUSED = [
    (lambda: F.cross_entropy(x, cg.tensor([0, 1, 4])), IndexError, "Target 4 is out of bounds."),
    (lambda: F.cross_entropy(x, cg.tensor([0, -1, 3])), IndexError, "Target -1 is out of bounds."),
    (lambda: F.cross_entropy(x, cg.tensor([0, -100, 5])), IndexError, "Target 5 is out of bounds."),
    (lambda: F.nll_loss(cg.zeros(2, 4, 3), cg.full((2, 3), 7)), IndexError, "Target 7 is out of bounds."),
    (lambda: F.cross_entropy(x, cg.tensor([0, 1])), ValueError, r"Expected input batch_size \(3\) to match target batch_size \(2\)."),
    (lambda: F.cross_entropy(x, labels.int()), RuntimeError, "expected target dtype to be Long or Byte, but got Int"),
    (lambda: F.cross_entropy(x, labels, weight=cg.ones(3)), RuntimeError, "weight tensor should be defined either for all 4 classes"),
    (lambda: F.cross_entropy(x, labels, weight=cg.ones(4).double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: F.cross_entropy(x, labels, label_smoothing=1.5), RuntimeError, "label_smoothing must be between 0.0 and 1.0. Got: 1.5"),
    (lambda: F.cross_entropy(x, x.long()), RuntimeError, "Expected floating point type for target with class probabilities, got Long"),
    (lambda: F.cross_entropy(x, x, ignore_index=2), RuntimeError, "ignore_index is not supported for floating point target"),
    (lambda: F.cross_entropy(cg.zeros(2, 4, 3), cg.ones(2, 2).long()), RuntimeError, r"Expected target size \[2, 3\], got \[2, 2\]"),
    (lambda: F.cross_entropy(x.long(), labels), NotImplementedError, '"log_softmax_lastdim_kernel_impl" not implemented for'),
    (lambda: F.nll_loss(cg.zeros(()), cg.tensor(0)), ValueError, r"Expected 1 or more dimensions \(got 0\)"),
    (lambda: F.nll_loss(x.cfloat(), labels), NotImplementedError, '"nll_loss_out_frame" not implemented for'),
    (lambda: F.mse_loss(x.long(), x.long()), NotImplementedError, '"mse_cpu" not implemented for'),
    (lambda: F.mse_loss(x, x, weight=cg.ones(3)), ValueError, "Weights and input must have the same size."),
    (lambda: F.mse_loss(x, 3), TypeError, "argument 'target'"),
    (lambda: F.smooth_l1_loss(x, x, beta=-1), RuntimeError, "smooth_l1_loss does not support negative values for beta."),
    (lambda: F.huber_loss(x, x, delta=0), RuntimeError, "huber_loss does not support non-positive values for delta."),
    (lambda: F.binary_cross_entropy(x + 2, x), RuntimeError, "all elements of input should be between 0 and 1"),
    (lambda: F.binary_cross_entropy(x * INF, x), RuntimeError, "all elements of input should be between 0 and 1"),
    (lambda: F.binary_cross_entropy(x, x - 1), RuntimeError, "all elements of target should be between 0 and 1"),
    (lambda: F.binary_cross_entropy(x, cg.zeros(3, 1)), ValueError, "Using a target size .* that is different to the input size"),
    (lambda: F.binary_cross_entropy(x, x.double()), RuntimeError, "Found dtype Double but expected Float"),
    (lambda: cg.func.vmap(F.binary_cross_entropy)(x + 2, x), RuntimeError, "all elements of input should be between 0 and 1"),
    (lambda: F.binary_cross_entropy_with_logits(x, cg.zeros(3, 1)), ValueError, "Target size .* must be the same as input size"),
    (lambda: F.binary_cross_entropy_with_logits(x, x.long()), RuntimeError, "result type Float can't be cast to the desired"),
    (lambda: F.kl_div(x.cfloat(), x, reduction="sum"), RuntimeError, "kl_div: Complex inputs not supported."),
    (lambda: F.kl_div(x, x.long(), reduction="sum"), RuntimeError, "kl_div: Integral inputs not supported."),
    (lambda: F.gaussian_nll_loss(x, x, x - 1), ValueError, "var has negative entry/entries"),
    (lambda: F.gaussian_nll_loss(x, x, -1.0), ValueError, "var has negative entry/entries"),
    (lambda: F.gaussian_nll_loss(x, x, cg.ones(4)), ValueError, "var is of incorrect size"),
    (lambda: F.gaussian_nll_loss(x, x, "a"), TypeError, "argument 'var'"),
    (lambda: F.margin_ranking_loss(x, x, cg.ones(3)), RuntimeError, "margin_ranking_loss : All input tensors should have same dimension"),
    (lambda: F.cosine_embedding_loss(x, x, cg.ones(3, 1)), RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
    (lambda: F.cosine_embedding_loss(x, x, cg.tensor(1)), RuntimeError, "0D target tensor expects 1D input tensors, but found"),
    (lambda: F.triplet_margin_loss(x, x, x, margin=0), ValueError, "margin must be greater than 0, got 0"),
    (lambda: F.triplet_margin_loss(x, x, cg.ones(4)), RuntimeError, "The anchor, positive, and negative tensors are expected to have the"),
    (lambda: F.triplet_margin_with_distance_loss(x, x, x, distance_function=3), TypeError, "'distance_function' must be a function"),
    (lambda: F.multi_margin_loss(x, cg.tensor([0, 1, 4])), RuntimeError, "target out of range: 4"),
    (lambda: F.multi_margin_loss(x, labels, p=3), ValueError, "only p == 1 and p == 2 supported"),
    (lambda: F.multi_margin_loss(x, labels, weight=cg.ones(3)), RuntimeError, "inconsistent weight size, expected 4 but got"),
    (lambda: F.multi_margin_loss(cg.zeros(2, 3, 4), labels), RuntimeError, "Expected non-empty vector or matrix with optional 0-dim"),
    (lambda: F.multi_margin_loss(x, labels.int()), RuntimeError, "expected scalar type Long but found Int"),
    (lambda: F.multilabel_margin_loss(x, labels), RuntimeError, r"inconsistent target size: \[3\] for input of size: \[3, 4\]"),
    (lambda: F.multilabel_margin_loss(x, cg.full((3, 4), 4)), RuntimeError, "argument #2 'target' is out of range: 4"),
    (lambda: F.multilabel_soft_margin_loss(cg.zeros(()), cg.zeros(())), IndexError, "Dimension specified as -1 but tensor has no"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_other_sizes_warn():
    with pytest.warns(UserWarning, match=r"Using a target size \(cygrad.Size\(\[3, 1\]\)\) that is different to the input size") as noted:
        F.mse_loss(x, cg.zeros(3, 1))
    assert noted[0].filename == __file__
    with pytest.warns(UserWarning, match="divides the total loss by both the batch size and the support size"):
        F.kl_div(x, x)
    for loss, reduction in itertools.product((F.mse_loss, F.cross_entropy), ("elementwise_mean",)):
        with pytest.warns(UserWarning, match="reduction='elementwise_mean' is deprecated"):
            loss(x, x, reduction=reduction)
