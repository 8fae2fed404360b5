"""Image registration: the affine map between two pictures of a head, by `affine_grid`, `grid_sample` and Gauss-Newton.

The second picture shows the head turned, stretched and moved, darker, and with noise. Six numbers of the map and two of the brightness are
fitted, first to pictures that `interpolate` made small, so that far maps are in reach, then to larger ones. The Jacobian of all pixels by
eight unknowns is one call of `jacfwd`.

    python examples/registration.py [--output build/registration.svg]
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

import cygrad as cg
from cygrad.func import jacfwd
from cygrad.nn.functional import affine_grid, grid_sample, interpolate

Array = NDArray[Any]

SIZE, NOISE = 128, 0.03  # pixels, and of a pixel, where the brightest is 1
TURN, STRETCH, SHEAR, MOVE = 14.0, (1.1, 0.93), 0.06, (0.09, -0.12)  # degrees; the picture goes from -1 to 1
DARKER, OFFSET = 0.8, 0.05
SIZES, STEPS = (16, 32, 64, 128), 8  # of the pictures, and of each of them
TOLERANCE = 0.1  # pixels: the largest distance of a corner from its true place


def head() -> cg.Tensor:
    """Return a slice of a head as a magnetic resonance scanner saw it, (1, 1, size, size), from 0 to 1."""
    with gzip.open(cbook.get_sample_data("s1045.ima.gz", asfileobj=False)) as file:
        pixels = np.frombuffer(file.read(), np.uint16).reshape(SIZE, 2, SIZE, 2).mean((1, 3))
    return cg.tensor(np.minimum(pixels / np.quantile(pixels, 0.999), 1))[None, None]


def true_map() -> Array:
    """Return the map from places in the second picture to places in the first, (2, 3)."""
    angle = np.radians(TURN)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.column_stack([turn @ np.diag(STRETCH) @ np.array([[1, SHEAR], [0, 1]]), MOVE])


def warped(image: cg.Tensor, places: cg.Tensor) -> cg.Tensor:
    """Return a picture with, at each place, the brightness where the map leads."""
    return grid_sample(image, affine_grid(places.reshape(1, 2, 3), tuple(image.shape), align_corners=False), align_corners=False)


def small(image: cg.Tensor, size: int) -> cg.Tensor:
    """Return a picture of fewer pixels."""
    return image if size == SIZE else interpolate(image, (size, size), mode="bilinear", align_corners=False, antialias=True)


def residuals(first: cg.Tensor, second: cg.Tensor) -> Callable[[cg.Tensor], cg.Tensor]:
    """Return the function of the unknowns, six of the map and two of the brightness, whose squares are to be least."""
    return lambda unknowns: (unknowns[6] * warped(first, unknowns[:6]) + unknowns[7] - second).reshape(-1)


def registered(first: cg.Tensor, second: cg.Tensor) -> list[Array]:
    """Return the unknowns at the start and after each step of Gauss-Newton, from small pictures to large ones."""
    path = [cg.tensor([1.0, 0, 0, 0, 1, 0, 1, 0], dtype=cg.float64)]
    for size in SIZES:
        f = residuals(small(first, size), small(second, size))
        for _ in range(STEPS):
            path.append(path[-1] - cg.linalg.lstsq(jacfwd(f)(path[-1]), f(path[-1])[:, None]).solution[:, 0])
    return [unknowns.numpy() for unknowns in path]


def corner_errors(path: list[Array]) -> Array:
    """Return the largest distance of the corners from their true places, in pixels, for each step."""
    corners = np.array([[-1, -1, 1], [-1, 1, 1], [1, -1, 1], [1, 1, 1]]).T
    apart = np.array([unknowns[:6].reshape(2, 3) - true_map() for unknowns in path]) @ corners
    return np.sqrt(np.square(apart).sum(1)).max(1) * SIZE / 2


def draw(first: cg.Tensor, second: cg.Tensor, path: list[Array], errors: Array, output: Path) -> None:
    """Write the picture: both pictures, their differences before and after, and the error of the corners."""
    figure = plt.figure(figsize=(11, 5.4), layout="constrained")
    parts = figure.subplot_mosaic([["first", "second", "errors"], ["before", "after", "errors"]], width_ratios=[1, 1, 1.5])
    for name, image in (("first", first), ("second", second)):
        parts[name].imshow(image[0, 0].numpy(), cmap="gray", vmin=0, vmax=1, extent=(-1, 1, 1, -1))
        parts[name].set(title=f"The {name} picture", xticks=[], yticks=[])
    outline = np.array([[-1, 1, 1, -1, -1], [-1, -1, 1, 1, -1], [1] * 5])
    for matrix, style, label in ((true_map(), "w-", "true"), (path[-1][:6].reshape(2, 3), "r--", "fitted")):
        parts["first"].plot(*(matrix @ outline), style, lw=1, label=f"frame of the second, {label}")
    parts["first"].set(xlim=(-1.35, 1.35), ylim=(1.35, -1.35), facecolor="0.3")
    parts["first"].legend(fontsize=6, loc="lower left")
    for name, unknowns, title in (("before", path[0], "Second less first, at the start"), ("after", path[-1], "... as fitted: noise")):
        difference = residuals(first, second)(cg.tensor(unknowns)).reshape(SIZE, SIZE).numpy()
        drawn = parts[name].imshow(-difference, cmap="RdBu", vmin=-0.5, vmax=0.5)
        parts[name].set(title=title, xticks=[], yticks=[])
    figure.colorbar(drawn, ax=parts["after"], label="brightness")
    for name in ("first", "second", "before", "after"):
        parts[name].grid(False)
    for number, size in enumerate(SIZES):
        steps = np.arange(number * STEPS, (number + 1) * STEPS + 1)
        parts["errors"].plot(steps, errors[steps], "o-", ms=4, label=f"pictures of {size} x {size}")
    parts["errors"].set(title="The corners' largest distance from their true places", xlabel="step of Gauss-Newton",
                        ylabel="distance (pixels)", yscale="log", xlim=(0, None))
    parts["errors"].legend()
    write(figure, output)


def main() -> None:
    """Move a picture, find the map back, compare with the truth, and write the picture."""
    output = output_argument("Find the affine map between two pictures.", "build/registration.svg")
    first = head()
    noise = cg.tensor(NOISE * np.random.default_rng(0).standard_normal((1, 1, SIZE, SIZE)))
    second = DARKER * warped(first, cg.tensor(true_map())) + OFFSET + noise
    start = time.perf_counter()
    path = registered(first, second)
    seconds = time.perf_counter() - start
    errors = corner_errors(path)
    draw(first, second, path, errors, output)
    left = residuals(first, second)(cg.tensor(path[-1])).square().mean().sqrt().item()
    names = ("xx", "xy", "x", "yx", "yy", "y", "darker", "offset")
    print(f"two pictures of {SIZE} x {SIZE} pixels with noise of {NOISE}; picture: {output}")
    for name, value, truth in zip(names, path[-1], [*true_map().ravel(), DARKER, OFFSET], strict=True):
        print(f"{name:<7} {truth:8.4f} true {value:8.4f} fitted")
    print(f"the corners' distance from their true places: {errors[0]:.1f} pixels at the start, {errors[-1]:.3f} as fitted; "
          f"brightness is {left:.4f} off")
    print(f"time: {seconds:.2f} s for {len(path) - 1} steps with Jacobians of up to {SIZE**2} x 8 numbers")
    if not errors[-1] <= TOLERANCE:
        sys.exit(f"a corner is more than {TOLERANCE} pixels off")


if __name__ == "__main__":
    main()
