"""Losses of numbers."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch: the loss is of real numbers"}
ORDERED = {"complex numbers": "the formula is of real numbers: it compares them"}


def chances(x):
    """Return probabilities away from 0 and 1."""
    return x.sigmoid() * 0.5 + 0.25


def of_two(name, *, exempt=REAL, change=lambda x: x, **arguments):
    """Return samples of a loss of two tensors: its mean, and the losses of all elements."""
    loss = getattr(F, f"{name}")
    return [sample(lambda x, y: loss(change(x), change(y), **arguments), (2, 3), (2, 3), exempt=exempt),
            sample(lambda x, y: loss(change(x), change(y), reduction="none", **arguments), (3,), (3,), exempt=exempt)]


SAMPLES = {
    "nn_functional_mse_loss": [
        *of_two("mse_loss"), sample(lambda x, y, w: F.mse_loss(x, y, weight=w.square() + 1), (2, 2), (2, 2), (2, 2), exempt=REAL),
        sample(lambda x, y: F.mse_loss(x, y, reduction="sum"), (2, 3), (2, 3), numpy=lambda a, b: ((a - b)**2).sum(), kinds="f",
               exempt=REAL)],
    "nn_functional_l1_loss": [
        sample(lambda x, y: F.l1_loss(x, y + 0.1, reduction="none"), (2, 3), (2, 3)),
        sample(lambda x, y, w: F.l1_loss(x, y + 0.1, weight=w.square() + 1), (2, 2), (2, 2), (2, 2), exempt=ORDERED),
        sample(lambda x, y: F.l1_loss(x, y), (2, 3), (2, 3), numpy=lambda a, b: abs(a - b).mean(), kinds="f")],
    "nn_functional_smooth_l1_loss": [
        *of_two("smooth_l1_loss", beta=0.6), sample(lambda x, y: F.smooth_l1_loss(x, y + 0.1, beta=0.0), (3,), (3,), exempt=REAL)],
    "nn_functional_huber_loss": [
        *of_two("huber_loss", delta=0.6),
        sample(lambda x, y, w: F.huber_loss(x, y, "sum", 0.9, weight=w), (2, 2), (2, 2), (2, 2), exempt=REAL)],
    "binary_cross_entropy": [
        *of_two("binary_cross_entropy", change=chances),
        sample(lambda x, y, w: F.binary_cross_entropy(chances(x), chances(y), w), (2, 3), (2, 3), (3,), exempt=REAL)],
    "nn_functional_binary_cross_entropy_with_logits": [
        *of_two("binary_cross_entropy_with_logits"),
        sample(lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p), (2, 3), (2, 3), (3,), (3,), exempt=REAL)],
    "nn_functional_soft_margin_loss": of_two("soft_margin_loss", exempt=ORDERED),
    "nn_functional_kl_div": [
        sample(lambda x, y: F.kl_div(x, chances(y), reduction="batchmean"), (2, 3), (2, 3), exempt=REAL),
        sample(lambda x, y: F.kl_div(x, y, reduction="none", log_target=True), (2, 3), (3,), exempt=REAL)],
    "nn_functional_gaussian_nll_loss": [
        sample(lambda x, y, v: F.gaussian_nll_loss(x, y, chances(v), full=True), (2, 3), (2, 3), (2, 3), exempt=ORDERED),
        sample(lambda x, y, v: F.gaussian_nll_loss(x, y, chances(v), reduction="none"), (2, 3), (2, 3), (2, 1), exempt=ORDERED),
        sample(lambda x, y: F.gaussian_nll_loss(x, y, 0.5), (2, 3), (2, 3), exempt=ORDERED)],
    "nn_functional_poisson_nll_loss": [
        sample(lambda x, y: F.poisson_nll_loss(x, y * y + 1.5, full=True), (2, 3), (2, 3), exempt=ORDERED),
        sample(lambda x, y: F.poisson_nll_loss(chances(x), y, False, reduction="none"), (2, 3), (2, 3), exempt=ORDERED)],
}
