"""Deconvolution: a blurred and noisy picture of a head is restored through `cygrad.fft`.

A slice of a head, as a magnetic resonance scanner saw it, is blurred by a broad beam, and noise is added. The restored picture minimises
the misfit to the blurred one plus a penalty of its slopes: of their squares, where the minimum is known (the Wiener filter), or of their
lengths, with brightness between black and white, which leaves edges sharp and has no such formula. SciPy's L-BFGS has gradients by
transforms of transforms.

    python examples/deconvolution.py [--output build/deconvolution.svg]
"""

import gzip
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.optimize import Bounds, minimize

import cygrad as cg
from cygrad.optimize import value_and_grad

Array = NDArray[Any]
Penalty = Callable[[cg.Tensor, cg.Tensor], cg.Tensor]

WIDTH, NOISE = 1.8, 0.01  # of the beam in pixels, and of a pixel, where the brightest is 1
EDGE = 0.03  # the slope from which on it is an edge
SQUARE_WEIGHT, LENGTH_WEIGHT = 2.5e-3, 3e-4
TOLERANCE = 1e-3  # between the minimum by gradients and the Wiener filter, of the brightest pixel


def picture() -> Array:
    """Return a slice of a head, each pixel the mean of four, from 0 to 1."""
    with gzip.open(cbook.get_sample_data("s1045.ima.gz", asfileobj=False)) as file:
        pixels = np.frombuffer(file.read(), np.uint16).reshape(128, 2, 128, 2).mean((1, 3))
    return np.minimum(pixels / np.quantile(pixels, 0.999), 1)


def beam(size: int) -> cg.Tensor:
    """Return the half spectrum of a Gaussian beam, which is its own transform: exp(-(2 pi f w)^2 / 2) at the frequency f."""
    down, across = cg.fft.fftfreq(size, dtype=cg.float64), cg.fft.rfftfreq(size, dtype=cg.float64)
    return (-2 * (np.pi * WIDTH) ** 2 * (down[:, None].square() + across.square())).exp()


def blurred(image: cg.Tensor, spectrum: cg.Tensor) -> cg.Tensor:
    """Return a picture as the beam sees it."""
    return cg.fft.irfft2(spectrum * cg.fft.rfft2(image), tuple(image.shape))


def squares(down: cg.Tensor, across: cg.Tensor) -> cg.Tensor:
    """Return half the sum of squares of slopes."""
    return (down.square() + across.square()).sum() / 2


def lengths(down: cg.Tensor, across: cg.Tensor) -> cg.Tensor:
    """Return the sum of lengths of slopes, rounded off at 0 (the total variation of Rudin, Osher and Fatemi 1992)."""
    return (down.square() + across.square() + EDGE**2).sqrt().sum()


def restored(seen: Array, spectrum: cg.Tensor, penalty: Penalty, weight: float, start: Array, bounds: Bounds | None = None) -> Array:
    """Return the picture that minimises misfit and penalty."""
    data = cg.from_numpy(seen)

    def f(image: cg.Tensor) -> cg.Tensor:
        misfit = (blurred(image, spectrum) - data).square().sum() / 2
        return misfit + weight * penalty(image.roll(-1, 0) - image, image.roll(-1, 1) - image)

    objective = value_and_grad(f, start)
    fit = minimize(objective, objective.x0, jac=True, method="L-BFGS-B", bounds=bounds,
                   options={"maxiter": 150, "ftol": 1e-12, "gtol": 1e-7, "maxcor": 20})
    return objective.unflatten(fit.x).numpy()


def wiener(seen: Array, spectrum: cg.Tensor, weight: float) -> Array:
    """Return the minimum for squares of slopes: each frequency by itself, in NumPy."""
    size, transfer = len(seen), spectrum.numpy()
    slopes = 4 * np.sin(np.pi * np.fft.fftfreq(size)[:, None]) ** 2 + 4 * np.sin(np.pi * np.fft.rfftfreq(size)) ** 2
    return np.fft.irfft2(transfer * np.fft.rfft2(seen) / (transfer**2 + weight * slopes), seen.shape)


def error(image: Array, true: Array) -> float:
    """Return the root of the mean square of the difference."""
    return float(np.sqrt(np.square(image - true).mean()))


def draw(panels: dict[str, Array], output: Path) -> None:
    """Write the picture: the pictures with their errors, and a row of pixels through all."""
    figure = plt.figure(figsize=(10, 5.6), layout="constrained")
    parts = figure.subplot_mosaic([["0", "1", "2", "3"], ["row"] * 4], height_ratios=[1.3, 1])
    true, row = panels["true"], 62
    for number, ((name, image), colour) in enumerate(zip(panels.items(), ("black", "tab:gray", "tab:orange", "tab:blue"), strict=True)):
        axes = parts[str(number)]
        axes.imshow(image, cmap="gray", vmin=0, vmax=1)
        axes.axhline(row, color="tab:red", lw=0.8, ls=":")
        axes.set(title=name if image is true else f"{name}: error {error(image, true):.3f}", xticks=[], yticks=[])
        parts["row"].plot(image[row], ":" if name == "seen" else "-", color=colour, lw=2.5 if image is true else 1.2,
                          alpha=0.4 if image is true else 1, label=name)
    parts["row"].set(title="The row of pixels that is dotted above", xlabel="place (pixels)", ylabel="brightness", xlim=(10, 118),
                     ylim=(-0.1, 1.2))
    parts["row"].legend(ncols=4, loc="upper center")
    write(figure, output)


def main() -> None:
    """Blur, restore by both penalties, compare with the Wiener filter, and write the picture."""
    output = output_argument("Restore a blurred picture.", "build/deconvolution.svg")
    true = picture()
    spectrum = beam(len(true))
    seen = blurred(cg.from_numpy(true), spectrum).numpy() + NOISE * np.random.default_rng(0).standard_normal(true.shape)
    start = time.perf_counter()
    smooth = restored(seen, spectrum, squares, SQUARE_WEIGHT, seen)
    middle = time.perf_counter()
    sharp = restored(seen, spectrum, lengths, LENGTH_WEIGHT, smooth, Bounds(0, 1))
    end = time.perf_counter()
    draw({"true": true, "seen": seen, "squares of slopes": smooth, "lengths of slopes": sharp}, output)
    apart = np.abs(smooth - wiener(seen, spectrum, SQUARE_WEIGHT)).max()
    print(f"{true.size} pixels, a beam of {WIDTH} pixels, noise of {NOISE}; picture: {output}")
    print(f"error of a pixel: {error(seen, true):.4f} seen, {error(smooth, true):.4f} by squares of slopes, "
          f"{error(sharp, true):.4f} by their lengths")
    print("beyond the head, on average: {:.4f} by squares, {:.4f} by lengths, {:.4f} is true".format(
        *(np.abs(image[:, -20:]).mean() for image in (smooth, sharp, true))))
    print(f"the minimum for squares differs from the Wiener filter by {apart:.1e}")
    print(f"time: {middle - start:.2f} s for squares, {end - middle:.2f} s for lengths")
    if not apart <= TOLERANCE:
        sys.exit(f"gradients and the Wiener filter differ by more than {TOLERANCE:.0e}: one of them is wrong")


if __name__ == "__main__":
    main()
