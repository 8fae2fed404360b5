"""Read handwritten digits: the whole of a training run, with nothing but tensors and `backward()`.

A 3x3 convolution, a rectifier and a linear layer are fitted to scikit-learn's 8x8 digits; a third of them is held out.
The same training is then run with gradients written by hand in NumPy, as a check of the numbers and of the time.

    python examples/digits.py [--output build/digits.png]
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pictures import output_argument, write
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import cygrad as cg

Array = NDArray[Any]
LossAndGradients = Callable[[list[Any], Array, Array], tuple[float, list[Any]]]

CHANNELS, EPOCHS, BATCH = 32, 30, 64
LEARNING_RATE, MEAN_DECAY, SQUARE_DECAY = 3e-3, 0.9, 0.999
SPLIT_SEED, FIRST_SEED, SECOND_SEED = 0, 1, 2
TOLERANCE = 1e-9  # between the two ways to a gradient: of the first gradients (relative) and of the whole loss curve


def initial_parameters(seed: int) -> list[cg.Tensor]:
    """Return kernels, their bias, the weights of the linear layer and their bias."""
    cg.manual_seed(seed)
    kernels = cg.randn(9, CHANNELS, dtype=cg.float64) * (2 / 9) ** 0.5
    weights = cg.randn(36 * CHANNELS, 10, dtype=cg.float64) * (1 / (36 * CHANNELS)) ** 0.5
    biases = cg.zeros(CHANNELS, dtype=cg.float64), cg.zeros(10, dtype=cg.float64)
    return [parameter.requires_grad_() for parameter in (kernels, biases[0], weights, biases[1])]


def log_probabilities(images: cg.Tensor, parameters: Sequence[cg.Tensor]) -> cg.Tensor:
    """Return the network's log-probability of each digit, (images, 10), for images of 8x8 pixels."""
    kernels, kernel_bias, weights, weight_bias = parameters
    # The convolution is one matrix product: nine shifted views, stacked, make each row of `patches` a 3x3 window.
    windows = [images[:, i : i + 6, j : j + 6] for i in range(3) for j in range(3)]
    patches = cg.stack(windows, dim=-1).reshape(-1, 9)
    features = cg.relu(patches @ kernels + kernel_bias).reshape(len(images), -1)
    return cg.log_softmax(features @ weights + weight_bias, dim=1)


def by_tape(parameters: list[cg.Tensor], images: Array, labels: Array) -> tuple[float, list[Any]]:
    """Return the cross-entropy of a batch and its gradient with respect to each parameter, by `backward()`."""
    answers = log_probabilities(cg.from_numpy(images), parameters)
    loss = -answers[cg.arange(len(labels)), cg.from_numpy(labels)].mean()
    for parameter in parameters:
        parameter.grad = None
    loss.backward()
    return loss.item(), [parameter.grad for parameter in parameters]


def by_hand(parameters: list[Array], images: Array, labels: Array) -> tuple[float, list[Array]]:
    """Return the same as `by_tape`, with every derivative worked out on paper."""
    kernels, kernel_bias, weights, weight_bias = parameters
    windows = [images[:, i : i + 6, j : j + 6] for i in range(3) for j in range(3)]
    patches = np.stack(windows, axis=-1).reshape(-1, 9)
    hidden = patches @ kernels + kernel_bias
    features = np.maximum(hidden, 0).reshape(len(images), -1)
    scores = features @ weights + weight_bias
    scores -= scores.max(axis=1, keepdims=True)
    answers = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    picked = np.arange(len(labels)), labels
    loss = -answers[picked].mean()

    d_scores = np.exp(answers)
    d_scores[picked] -= 1
    d_scores /= len(labels)
    d_hidden = (d_scores @ weights.T).reshape(hidden.shape) * (hidden > 0)
    return loss, [patches.T @ d_hidden, d_hidden.sum(axis=0), features.T @ d_scores, d_scores.sum(axis=0)]


def adam_step(parameters: list[Any], gradients: list[Any], moments: list[tuple[Any, Any]], step: int) -> None:
    """Move the parameters, in place, by one step of Adam (Kingma and Ba, 2015); they are tensors or NumPy arrays."""
    with cg.no_grad():
        for parameter, gradient, (mean, square) in zip(parameters, gradients, moments, strict=True):
            mean *= MEAN_DECAY
            mean += (1 - MEAN_DECAY) * gradient
            square *= SQUARE_DECAY
            square += (1 - SQUARE_DECAY) * gradient**2
            unbiased_mean = mean / (1 - MEAN_DECAY**step)
            unbiased_square = square / (1 - SQUARE_DECAY**step)
            parameter -= LEARNING_RATE * unbiased_mean / (unbiased_square**0.5 + 1e-8)


def gradient_difference(parameters: list[cg.Tensor], images: Array, labels: Array) -> float:
    """Return how far, relatively, the gradients by tape are from those by hand.

    The loss curves alone would not show it: Adam takes almost the same steps if a gradient is wrong by a constant factor.
    """
    _, taped = by_tape(parameters, images, labels)
    _, written = by_hand([parameter.detach().numpy() for parameter in parameters], images, labels)
    return max(np.abs(t.numpy() - w).max() / np.abs(w).max() for t, w in zip(taped, written, strict=True))


def train(
    parameters: list[Any], images: Array, labels: Array, loss_and_gradients: LossAndGradients, seed: int, title: str
) -> Array:
    """Fit the parameters in place and return the loss of every batch, (epochs, batches)."""
    shuffle = np.random.default_rng(seed)
    with cg.no_grad():
        moments = [(0 * parameter, 0 * parameter) for parameter in parameters]
    losses: list[float] = []
    progress = tqdm(range(EPOCHS), desc=title, unit="epoch", disable=None)  # None: no bar where there is no terminal
    for _ in progress:
        order = shuffle.permutation(len(labels))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            loss, gradients = loss_and_gradients(parameters, images[batch], labels[batch])
            losses.append(loss)
            adam_step(parameters, gradients, moments, step=len(losses))
        progress.set_postfix(loss=f"{loss:.4f}")
    return np.array(losses).reshape(EPOCHS, -1)


def probabilities(images: Array, parameters: Sequence[cg.Tensor]) -> Array:
    """Return the fitted network's probability of each digit, (images, 10)."""
    with cg.no_grad():
        return log_probabilities(cg.from_numpy(images), parameters).exp().numpy()


def draw(losses: Array, losses_by_hand: Array, images: Array, labels: Array, answers: Array, output: Path) -> None:
    """Write the picture: the loss curve, some digits read right and the digits read wrong."""
    read, confidence = answers.argmax(axis=1), answers.max(axis=1)
    right, wrong = np.flatnonzero(read == labels), np.flatnonzero(read != labels)
    figure = plt.figure(figsize=(13, 7), layout="constrained")
    halves = figure.add_gridspec(1, 2, width_ratios=(1, 1.25), wspace=0.04)
    curve_part, digits_part = figure.add_subfigure(halves[0]), figure.add_subfigure(halves[1])

    axes = curve_part.subplots()
    epoch = np.arange(1, EPOCHS + 1)
    axes.plot(np.linspace(0, EPOCHS, losses.size), losses.ravel(), color="tab:blue", alpha=0.25, lw=0.8, label="batch")
    axes.plot(epoch, losses.mean(axis=1), color="tab:blue", lw=2, label="epoch mean, gradients by cygrad")
    axes.plot(epoch, losses_by_hand.mean(axis=1), "o", color="black", ms=4, mfc="none", label="epoch mean, by hand")
    axes.set(title="Training loss", xlabel="epoch", ylabel="cross-entropy (nats)", yscale="log", xlim=(0, EPOCHS))
    axes.legend(loc="upper right")

    # Above: of each digit, the image that was hardest to read right. Below: the mistakes, the most confident first.
    good = [min(right[labels[right] == digit], key=lambda image: confidence[image]) for digit in range(10)]
    bad = wrong[np.argsort(-confidence[wrong])][:10]
    rows = digits_part.add_gridspec(2, 1, hspace=0.03)
    upper, lower = digits_part.add_subfigure(rows[0]), digits_part.add_subfigure(rows[1])
    share = f"{len(right)} of {len(labels)} held-out images, {100 * len(right) / len(labels):.1f} %"
    upper.suptitle(f"Read right: {share} (the least certain of each digit)")
    lower.suptitle(f"Read wrong: {len(wrong)} ({'all of them' if len(wrong) <= 10 else 'the 10 most certain'})")
    for part, chosen, colour in ((upper, good, "tab:green"), (lower, bad, "tab:red")):
        for place, axes in enumerate(part.subplots(2, 5).flat):
            axes.set_axis_off()
            if place < len(chosen):
                image = chosen[place]
                truth = "" if read[image] == labels[image] else f", is {labels[image]}"
                axes.imshow(images[image], cmap="gray_r", vmin=0, vmax=1)
                axes.set_title(
                    f"read {read[image]}{truth}\n{100 * confidence[image]:.0f} % certain", color=colour, fontsize=9
                )
    write(figure, output)


def main() -> None:
    """Train twice by tape and once by hand, compare, and write the picture."""
    output = output_argument("Fit a small network to handwritten digits.", "build/digits.png")

    digits = load_digits()
    images, test_images, labels, test_labels = train_test_split(
        digits.images / 16, digits.target, test_size=1 / 3, random_state=SPLIT_SEED, stratify=digits.target
    )

    parameters = initial_parameters(FIRST_SEED)
    parameters_by_hand = [parameter.detach().numpy().copy() for parameter in parameters]
    gradients_apart = gradient_difference(parameters, images[:BATCH], labels[:BATCH])
    start = time.perf_counter()
    losses = train(parameters, images, labels, by_tape, FIRST_SEED, "cygrad")
    middle = time.perf_counter()
    losses_by_hand = train(parameters_by_hand, images, labels, by_hand, FIRST_SEED, "by hand")
    end = time.perf_counter()
    parameters_again = initial_parameters(SECOND_SEED)
    train(parameters_again, images, labels, by_tape, SECOND_SEED, "second seed")

    answers = probabilities(test_images, parameters)
    answers_again = probabilities(test_images, parameters_again)
    accuracy, accuracy_again = (100 * (p.argmax(axis=1) == test_labels).mean() for p in (answers, answers_again))
    losses_apart = np.abs(losses - losses_by_hand).max()
    draw(losses, losses_by_hand, test_images, test_labels, answers, output)

    print(f"trained on {len(labels)} images, tested on {len(test_labels)}; picture: {output}")
    print(f"loss: {losses[0, 0]:.3f} in the first batch, {losses[-1].mean():.5f} in the last epoch")
    print(f"by tape against by hand: first gradients differ by {gradients_apart:.1e}, losses by {losses_apart:.1e}")
    print(f"test accuracy: {accuracy:.1f} % (second seed: {accuracy_again:.1f} %)")
    print(f"time: {middle - start:.2f} s, by hand in NumPy: {end - middle:.2f} s")
    if not max(gradients_apart, losses_apart) <= TOLERANCE:
        sys.exit(f"by tape and by hand differ by more than {TOLERANCE:.0e}: one of them is wrong")


if __name__ == "__main__":
    main()
