"""Losses of scores for classes."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch: scores are real numbers"}
ONE_OF_3 = cg.tensor([2, 0])
PICTURE = cg.tensor([[1, 0, 2, 2], [2, 2, 0, 1]])


def weights(w):
    return w.square() + 0.5


SAMPLES = {
    "at_classes": [sample(lambda x: x._at_classes(ONE_OF_3), (2, 3)), sample(lambda x: x._at_classes(PICTURE), (2, 3, 4))],
    "to_classes": [sample(lambda x: x._to_classes(ONE_OF_3, 3), (2,)), sample(lambda x: x._to_classes(PICTURE, 3), (2, 4))],
    "softmax_loss": [
        sample(lambda x: F.cross_entropy(x, ONE_OF_3), (2, 3), exempt=REAL),
        sample(lambda x: F.cross_entropy(x, ONE_OF_3, reduction="none"), (2, 3), exempt=REAL),
        sample(lambda x: F.cross_entropy(x, PICTURE, ignore_index=2), (2, 3, 4), exempt=REAL),
        sample(lambda x: F.cross_entropy(x, cg.tensor(1), reduction="sum"), (3,), exempt=REAL),
        sample(lambda x, w: F.cross_entropy(x, ONE_OF_3, weights(w)), (2, 3), (3,), exempt=REAL)],
    "softmax_loss_gradient": [
        sample(lambda x: cg.autograd.grad(F.cross_entropy(x, ONE_OF_3, reduction="none").square().sum(), x, create_graph=True)[0]
               if x.requires_grad else x, (2, 3), exempt=REAL | {
                   "transforms": "the call differentiates", "narrow floats": "the call differentiates",
                   "degenerate operands": "the call differentiates"})],
    "nn_functional_cross_entropy": [
        sample(lambda x: F.cross_entropy(x, ONE_OF_3, label_smoothing=0.3), (2, 3), exempt=REAL),
        sample(lambda x, w: F.cross_entropy(x, PICTURE, weights(w), ignore_index=0, label_smoothing=0.3), (2, 3, 4), (3,), exempt=REAL),
        sample(lambda x, y, w: F.cross_entropy(x, y.softmax(1), weights(w), label_smoothing=0.2), (2, 3), (2, 3), (3,), exempt=REAL)],
    "nn_functional_nll_loss": [
        sample(lambda x: F.nll_loss(x, ONE_OF_3), (2, 3), exempt=REAL),
        sample(lambda x, w: F.nll_loss(x, PICTURE, weights(w), ignore_index=2), (2, 3, 4), (3,), exempt=REAL),
        sample(lambda x: F.nll_loss(x, cg.tensor([1])), (3,), exempt=REAL)],
    "nn_functional_multi_margin_loss": [
        sample(lambda x: F.multi_margin_loss(x, ONE_OF_3), (2, 3), exempt=REAL),
        sample(lambda x: F.multi_margin_loss(x, ONE_OF_3, 2, 0.7, cg.tensor([0.5, 2, 1], dtype=x.dtype), reduction="none"), (2, 3),
               exempt=REAL),
        sample(lambda x: F.multi_margin_loss(x, cg.tensor(1)), (3,), exempt=REAL)],
    "nn_functional_multilabel_margin_loss": [
        sample(lambda x: F.multilabel_margin_loss(x, cg.tensor([[2, 0, -1], [1, -1, 0]])), (2, 3), exempt=REAL),
        sample(lambda x: F.multilabel_margin_loss(x, cg.tensor([2, -1, 0])), (3,), exempt=REAL)],
    "nn_functional_multilabel_soft_margin_loss": [
        sample(lambda x, y: F.multilabel_soft_margin_loss(x, y), (2, 3), (2, 3), exempt=REAL),
        sample(lambda x, y, w: F.multilabel_soft_margin_loss(x, y, w, reduction="none"), (2, 3), (2, 3), (3,), exempt=REAL)],
}
