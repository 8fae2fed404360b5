"""Programs as users write them; `test_stubs` has mypy check it strictly, and runs it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor, checkpoint, func, optimize
from cygrad.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x: Tensor
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x.square()

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        x: Tensor = ctx.saved_tensors[0]
        return 3 * x**2 * tangent


class Network:
    def __init__(self, sizes: list[int], generator: cygrad.Generator | None = None) -> None:
        self.weights = [
            (cygrad.randn(inputs, outputs, generator=generator) / inputs**0.5).requires_grad_()
            for inputs, outputs in zip(sizes, sizes[1:], strict=False)
        ]
        self.biases = [cygrad.zeros((outputs,), requires_grad=True) for outputs in sizes[1:]]

    def parameters(self) -> Iterator[Tensor]:
        yield from self.weights
        yield from self.biases

    def __call__(self, x: Tensor) -> Tensor:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = (x @ weight + bias).tanh()
        return cygrad.log_softmax(x @ self.weights[-1] + self.biases[-1], dim=1)


def loss_of(scores: Tensor, labels: Tensor) -> Tensor:
    rows = cygrad.arange(len(labels))
    return -scores[rows, labels].mean()


@cygrad.no_grad()
def accuracy(scores: Tensor, labels: Tensor) -> float:
    return (scores.argmax(dim=1) == labels).float().mean().item()


def train(steps: int = 3) -> float:
    generator = cygrad.Generator().manual_seed(0)
    network = Network([4, 8, 3], generator)
    x = cygrad.from_numpy(np.linspace(-1, 1, 40).reshape(10, 4)).to(cygrad.float32)
    labels = cygrad.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0], dtype=cygrad.int64)
    loss = cygrad.zeros(())
    for _ in range(steps):
        loss = loss_of(network(x), labels)
        loss.backward()
        with cygrad.no_grad():
            for parameter in network.parameters():
                assert parameter.grad is not None
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    assert 0 <= accuracy(network(x), labels) <= 1
    return float(loss)


def shapes(x: Tensor) -> tuple[int, ...]:
    rows, columns = x.shape
    taller = x.reshape(-1, 1).view((rows * columns, 1)).expand(-1, 2).contiguous()
    parts: tuple[Tensor, ...] = taller.split([rows, taller.size(0) - rows], dim=0)
    joined: Tensor = cygrad.cat([*parts, cygrad.stack([x[0, :2], x[1, :2]])], dim=0)
    best = joined.max(dim=0)
    values, indices = best
    mask = (joined > 0) & ~joined.isnan() | (joined == best.values)
    joined[mask] = 0
    joined[..., None, 0].sum(dim=(0, 1), keepdim=True).div_(2, rounding_mode="floor").clamp_(min=0)
    array: np.ndarray = indices.numpy()
    transposed: Tensor = values.reshape(1, -1).T
    return transposed.shape + transposed.stride() + array.shape


def second_derivative() -> list[float]:
    x = cygrad.linspace(0, 1, 3, dtype=cygrad.float64, requires_grad=True)
    handle = x.register_hook(lambda grad: grad * 2)
    (gradient,) = cygrad.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    handle.remove()
    gradient.sum().backward()
    assert cygrad.autograd.gradcheck(lambda x: cygrad.where(x > -1, x.exp(), 0.0).add(x, alpha=2), x)
    limits = cygrad.finfo(x.dtype)
    assert x.grad is not None and limits.bits == 64 and 2.0 - x.grad is not x
    numbers: list[float] = x.grad.double().tolist()
    return numbers


@cygrad.compile
def energy(x: Tensor) -> Tensor:
    return (x.sin() * x).sum()


def descent(start: Tensor, steps: int) -> Tensor:
    """Return the end of some steps downhill, of functions that are compiled, batched, looped and differentiated."""
    def step(x: Tensor, number: int) -> Tensor:
        value: Tensor
        gradient: Tensor
        value, gradient = func.value_and_grad(energy)(x)
        assert value.ndim == 0
        return x - gradient / (number + 10)

    batch: Tensor = func.vmap(energy)(cygrad.stack([start, start]))
    jacobian: Tensor = func.jacfwd(lambda x: x * x)(start)
    carry: Tensor
    carry, sums = func.scan(lambda c, x: (c + x, c), cygrad.zeros(()), cygrad.arange(4.0))
    assert batch.shape == (2,) and jacobian.ndim == 2 and carry.item() == 6 and sums is not None
    end: Tensor = checkpoint.checkpoint_loop(step, start, steps, 3, progress=False)
    return end


def objective() -> tuple[float, np.ndarray]:
    """Return value and gradient of a function of a tree of parameters, as SciPy's solvers take them."""
    def misfit(p: dict[str, Tensor]) -> Tensor:
        return (p["slope"] * cygrad.arange(3) + p["offset"]).square().sum()

    with optimize.value_and_grad(misfit, {"slope": 1.0, "offset": np.zeros(3)}) as function:
        product: np.ndarray = function.hessp(function.x0, np.ones(4))
        value, gradient = function(function.x0)
    return value, gradient + 0 * product
