"""Bundle adjustment by Gauss-Newton: the places of six cameras and the scene, from pictures alone.

The corners and edges of a house are seen, with errors of half a pixel, by cameras whose places and directions are known roughly. All 6 x 6
numbers of the cameras and 3 of each point are unknown. Each step of Gauss-Newton is one Jacobian by `cygrad.func.jacrev` and one least
squares problem by `cygrad.linalg.lstsq`. Pictures do not determine where the whole scene lies, how it is turned and how large it is, so
seven directions are free: lstsq takes the shortest step. The answer is compared with SciPy's least_squares.

    python examples/bundle_adjustment.py [--output build/bundle_adjustment.svg]
"""

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation
from threadpoolctl import threadpool_limits

import cygrad as cg
from cygrad.func import jacrev

Array = NDArray[Any]

CAMERAS, FOCAL, PIXELS = 6, 800.0, 0.5  # focal length and errors in pixels
DISTANCE, SPREAD = 9.0, 1.1  # of the cameras from the house, m, and how far round it they stand, radians
ROUGHLY = {"turns": 0.05, "places": 0.4, "points": 0.4}  # errors of the start: radians, m, m
FREE = 1e-10  # singular values below this share of the largest are directions that pictures do not determine
MOST_STEPS, SETTLED = 20, 1e-10  # and the change of the error, relative, that ends them
TOLERANCE = 1e-8  # between our error and SciPy's, relative


def house() -> tuple[Array, Array]:
    """Return corners, (10, 3) in m, y upwards and z away from the cameras; and the pairs of them that edges join."""
    front = np.array([[-2, -1.5, -1.5], [2, -1.5, -1.5], [2, 1, -1.5], [0, 2.5, -1.5], [-2, 1, -1.5]])
    corners = np.concatenate([front, front + [0, 0, 3]])
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    return corners, np.concatenate([ring, ring + 5, np.arange(5)[:, None] + [0, 5]])


def cameras() -> tuple[Array, Array]:
    """Return how the cameras are turned, as rotation vectors, and where they stand."""
    angle = np.linspace(-SPREAD, SPREAD, CAMERAS)
    height = 1.5 * np.cos(3 * angle)
    turns = Rotation.from_euler("yx", np.stack([angle, np.arctan2(height, DISTANCE)], axis=1)).inv().as_rotvec()
    return turns, np.stack([-DISTANCE * np.sin(angle), height, -DISTANCE * np.cos(angle)], axis=1)


def unpacked(x: Any, points: int) -> tuple[Any, Any, Any]:
    """Return the parts of a vector of all unknowns: turns and places of the cameras, and the points."""
    turns, places = x[: 3 * CAMERAS], x[3 * CAMERAS : 6 * CAMERAS]
    return turns.reshape(-1, 3), places.reshape(-1, 3), x[6 * CAMERAS :].reshape(points, 3)


def rotations(turns: cg.Tensor) -> cg.Tensor:
    """Return the matrices of rotation vectors: the exponentials of the matrices of their cross products."""
    x, y, z = turns.unbind(dim=1)
    zero = cg.zeros_like(x)
    return cg.linalg.matrix_exp(cg.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=1).reshape(-1, 3, 3))


def projected(turns: cg.Tensor, places: cg.Tensor, points: cg.Tensor) -> cg.Tensor:
    """Return where each camera sees each point, (cameras, points, 2), in pixels from the centre."""
    seen = (points - places[:, None]) @ rotations(turns).mT
    return FOCAL * seen[..., :2] / seen[..., 2:]


def gauss_newton(residuals: Any, x: cg.Tensor) -> list[cg.Tensor]:
    """Return the unknowns at the start and after each step, until the sum of squares changes no more."""
    path, left = [x], residuals(x)
    while len(path) <= MOST_STEPS:
        step = cg.linalg.lstsq(jacrev(residuals)(path[-1]), -left[:, None], rcond=FREE).solution[:, 0]
        path.append(path[-1] + step)
        before, left = left, residuals(path[-1])
        if abs(1 - before.square().sum() / left.square().sum()) <= SETTLED:
            break
    return path


def aligned(points: Array, targets: Array) -> tuple[float, Array, Array]:
    """Return scale, rotation and shift that bring points next to targets (S. Umeyama, IEEE PAMI 13 (1991) 376-380)."""
    centre, goal = points.mean(axis=0), targets.mean(axis=0)
    left, size, right = (part.numpy() for part in cg.linalg.svd(cg.from_numpy((targets - goal).T @ (points - centre))))
    sign = np.array([1, 1, np.sign(np.linalg.det(left @ right))])
    rotation = left * sign @ right
    scale = float(size @ sign / np.square(points - centre).sum())
    return scale, rotation, goal - scale * rotation @ centre


def upright(points: Array) -> Array:
    """Return the coordinates as Matplotlib draws them: its third axis points upwards."""
    return points[..., [0, 2, 1]].T


def draw(true: tuple[Array, ...], stages: dict[str, tuple[Array, ...]], errors: Array, joined: Array, output: Path) -> None:
    """Write the picture: house and cameras at the start and at the end, and the error after each step."""
    figure = plt.figure(figsize=(11, 3.7), layout="constrained")
    parts: Any = figure.subfigures(1, 3, width_ratios=(1, 1, 0.8), wspace=0.05)
    for part, (title, (turns, places, points)) in zip(parts, stages.items(), strict=False):
        axes = part.add_subplot(projection="3d")
        ahead = Rotation.from_rotvec(turns).as_matrix()[:, 2]
        axes.scatter(*upright(true[1]), marker="s", s=28, facecolors="none", edgecolors="black", label="camera, true")
        axes.scatter(*upright(places), color="tab:orange", s=14, label="camera")
        axes.quiver(*upright(places), *upright(ahead), length=2, color="tab:orange", lw=1.2)
        for number, pair in enumerate(joined):
            axes.plot(*upright(true[2][pair]), color="black", lw=0.8, label=None if number else "house, true")
        axes.scatter(*upright(points), color="tab:blue", s=6, label="point")
        axes.set(xlabel="x (m)", ylabel="z (m)", xlim=(-9, 9), ylim=(-9, 3), zlim=(-2, 4), zticks=[-2, 0, 2])
        axes.set_zlabel("y (m)", labelpad=-4)
        axes.set_box_aspect((18, 12, 6), zoom=1.05)
        axes.view_init(elev=40, azim=-75)
        axes.legend(loc="upper center", ncols=4, columnspacing=1, handletextpad=0.2)
        part.suptitle(title, fontsize=10)
    axes = parts[-1].subplots()
    axes.plot(errors, "o-", color="tab:blue", ms=4, label="residual, root mean square")
    axes.axhline(PIXELS, color="grey", ls="--", lw=1, label="errors of the pictures")
    axes.set(xlabel="step of Gauss-Newton", ylabel="residual (pixels)", yscale="log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="upper right")
    parts[-1].suptitle("The fit", fontsize=10)
    write(figure, output)


def main() -> None:
    """Simulate, adjust, compare with SciPy, and write the picture."""
    output = output_argument("Adjust cameras and points to pictures.", "build/bundle_adjustment.svg")
    corners, joined = house()
    along = np.array([0.25, 0.5, 0.75])[:, None, None]
    points = np.concatenate([corners, ((1 - along) * corners[joined[:, 0]] + along * corners[joined[:, 1]]).reshape(-1, 3)])
    turns, places = cameras()
    true = turns, places, points
    random = np.random.default_rng(0)
    exact = projected(*(cg.from_numpy(part) for part in true))
    measured = exact + cg.from_numpy(random.normal(scale=PIXELS, size=tuple(exact.shape)))
    x0 = np.concatenate([(part + random.normal(scale=error, size=part.shape)).ravel()
                         for part, error in zip(true, ROUGHLY.values(), strict=True)])

    def residuals(x: cg.Tensor) -> cg.Tensor:
        return (projected(*unpacked(x, len(points))) - measured).flatten()

    with threadpool_limits(1, "blas"):
        start = time.perf_counter()
        steps = gauss_newton(residuals, cg.from_numpy(x0))
        middle = time.perf_counter()
        reference = least_squares(lambda x: residuals(cg.tensor(x)).numpy(), x0, jac=lambda x: jacrev(residuals)(cg.tensor(x)).numpy())
        end = time.perf_counter()

    stages: dict[str, tuple[Array, ...]] = {}
    for title, x in {"The start": steps[0], "After Gauss-Newton, moved onto the truth": steps[-1]}.items():
        turned, placed, result = unpacked(x.numpy(), len(points))
        scale, rotation, shift = aligned(np.concatenate([placed, result]), np.concatenate([places, points]))
        turned = (Rotation.from_rotvec(turned) * Rotation.from_matrix(rotation).inv()).as_rotvec()
        stages[title] = turned, scale * placed @ rotation.T + shift, scale * result @ rotation.T + shift
    errors = np.array([residuals(x).square().mean().sqrt().item() for x in steps])
    draw(true, stages, errors, joined, output)

    unknown, freedom = len(x0), len(x0) - 7
    apart = abs(errors[-1] ** 2 * len(residuals(steps[0])) / (2 * reference.cost) - 1)
    print(f"{CAMERAS} cameras, {len(points)} points: {unknown} unknowns, {measured.numel()} coordinates in pictures; picture: {output}")
    print(f"residual (pixels): {' '.join(f'{error:.3f}' for error in errors)}; "
          f"expected of {freedom} parameters: {PIXELS * np.sqrt(1 - freedom / measured.numel()):.3f}")
    for title, (_, placed, result) in stages.items():
        off = [1000 * np.sqrt(np.square(a - b).sum(axis=1).mean()) for a, b in ((placed, places), (result, points))]
        print(f"{title}: cameras are {off[0]:.0f} mm off, points {off[1]:.0f} mm")
    print(f"time: {middle - start:.2f} s for {len(steps) - 1} steps; SciPy's least_squares {end - middle:.2f} s for {reference.njev}, "
          f"its sum of squares differs by {apart:.0e}")
    if not apart <= TOLERANCE:
        sys.exit(f"Gauss-Newton and SciPy differ by more than {TOLERANCE:.0e}: one of them is wrong")


if __name__ == "__main__":
    main()
