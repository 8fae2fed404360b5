"""Solutions of equations on the tape: the derivative of a solution is one linear solve (implicit function theorem).

x is given by f(x, *args) == 0. Where the arguments move by da, x moves by -J^-1 (df/da) da, J = df/dx at x. So the gradient solves with
the adjoint of J, and pulls the result back through f as a function of its arguments: both are differentiable again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad._core.operands.arrays import from_array
from cygrad.autograd import no_grad
from cygrad.autograd.function import Function
from cygrad.func import jacrev, jvp, vjp
from cygrad.operators.solving import linalg_solve
from cygrad.pytree import tree_flatten
from cygrad.tensor import Tensor

Map = Callable[..., Tensor]
Linear = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor, bool], Tensor]


def dense_solve(f: Callable[[Tensor], Tensor], x: Tensor, b: Tensor, adjoint: bool) -> Tensor:
    """Return the solution for b of the Jacobian of f at x, or of its adjoint, made as a dense matrix."""
    matrix = jacrev(f)(x).reshape(x.numel(), x.numel())
    return linalg_solve(matrix.mH if adjoint else matrix, b.reshape(-1)).reshape(x.shape)


class Equation:
    """f(x, *args) == 0: `solve(x, arguments, b)` and `solve_adjoint` solve with J; arguments are the tensors among args."""

    def __init__(self, f: Map, args: Any, linear_solve: Linear = dense_solve) -> None:
        self.f, self.linear_solve = f, linear_solve
        leaves, self._spec = tree_flatten(args if isinstance(args, tuple) else (args,))
        self._leaves = leaves
        self._places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.dtype.is_differentiable]
        self.arguments = [leaves[k] for k in self._places]

    def at(self, arguments: Any) -> Callable[[Tensor], Tensor]:
        """Return f as a function of x, with other tensors among its arguments."""
        args = self.args(arguments)
        return lambda x: self.f(x, *args)

    def detached(self) -> tuple[Any, ...]:
        """Return the arguments of f as data."""
        return self.args([argument.detach() for argument in self.arguments])

    def args(self, arguments: Any) -> tuple[Any, ...]:
        """Return the arguments of f with other tensors among them."""
        leaves = list(self._leaves)
        for place, argument in zip(self._places, arguments, strict=True):
            leaves[place] = argument
        return self._spec.unflatten(leaves)

    def solve(self, x: Tensor, arguments: Any, b: Tensor) -> Tensor:
        """Return the solution for b of J."""
        return self.linear_solve(self.at(arguments), x, b, False)

    def solve_adjoint(self, x: Tensor, arguments: Any, g: Tensor) -> Tensor:
        """Return the solution for g of the adjoint of J."""
        return self.linear_solve(self.at(arguments), x, g, True)

    def check(self, name: str, x: Tensor) -> None:
        """Refuse an f of another shape than x, and one that computes with tensors on the tape which are not among its arguments."""
        value = self.f(x, *self.detached())
        if tuple(value.shape) != tuple(x.shape):
            raise RuntimeError(f"{name}: the function must return a tensor of the shape of x, {list(x.shape)}, but returned "
                               f"{list(value.shape)}")
        if value.requires_grad:
            raise RuntimeError(f"{name}: the function computes with a tensor that requires a gradient and is none of its arguments, so its "
                               "gradient would be lost: give it in args=, or detach() it")


class _Solution(Function):
    """A solution, with the equation it belongs to."""

    @staticmethod
    def forward(equation: Equation, x: Tensor, *arguments: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        equation, _, *arguments = inputs
        ctx.equation = equation
        ctx.save_for_backward(output, *arguments)
        ctx.save_for_forward(output, *arguments)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, *arguments = ctx.saved_tensors
        weight = ctx.equation.solve_adjoint(x, arguments, g)
        gradients = vjp(lambda *arguments: ctx.equation.at(arguments)(x), *arguments)[1](-weight)
        return None, None, *gradients

    @staticmethod
    def jvp(ctx: Any, _: None, x_tangent: Any, *tangents: Any) -> Tensor:
        x, *arguments = ctx.saved_tensors
        moved = [argument.new_zeros(argument.shape) if tangent is None else tangent
                 for argument, tangent in zip(arguments, tangents, strict=True)]
        change = jvp(lambda *arguments: ctx.equation.at(arguments)(x), tuple(arguments), tuple(moved))[1]
        return -ctx.equation.solve(x, arguments, change)


def solution_of(name: str, equation: Equation, solve: Callable[[Callable[[Tensor], Tensor]], Tensor]) -> Tensor:
    """Return the solution of an equation that `solve(f)` finds, on the tape of its arguments."""
    args = equation.detached()
    with no_grad():
        x = solve(lambda x: equation.f(x, *args)).detach()
    equation.check(name, x)
    return _Solution.apply(equation, x, *equation.arguments) if equation.arguments else x


def start_of(x0: Any) -> Tensor:
    """Return the tensor that a solver starts from: float64 for arrays and numbers."""
    return x0.detach() if isinstance(x0, Tensor) else from_array(np.array(x0, np.float64))


# ----- For a user's own solver -----
def custom_root(f: Map, x0: Any, solve: Callable[[Callable[[Tensor], Tensor], Tensor], Tensor], args: Any = (),
                linear_solve: Linear = dense_solve) -> Tensor:
    """Return x of f(x, *args) == 0 by `solve(f, x0)`, a function of x alone there; gradients are for the tensors in args.

    `f` returns a tensor of the shape of x. A derivative is one solve with the Jacobian of f at x, by `linear_solve(f, x, b, adjoint)`:
    by default with a dense matrix. Forward mode and derivatives of any order are solves, too. RuntimeError for an f of another shape,
    and for one that computes with other tensors that require a gradient.

    >>> import cygrad
    >>> a = cygrad.tensor(9., requires_grad=True)
    >>> x = cygrad.optimize.custom_root(lambda x, a: x * x - a, cygrad.tensor(1.), lambda f, x0: cygrad.tensor(3.), args=(a,))
    >>> x.backward()
    >>> a.grad                                       # 1 / (2 sqrt(a))
    tensor(0.1667)
    """
    start = start_of(x0)
    return solution_of("custom_root()", Equation(f, args, linear_solve), lambda f: solve(f, start))


Solver = Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]


class LinearEquation(Equation):
    """matvec(x, *args) == b, by a solver for the map, and one for its adjoint; the arguments are b and args."""

    def __init__(self, matvec: Map, adjoint: Map, b: Tensor, args: Any, solver: Solver, adjoint_solver: Solver) -> None:
        super().__init__(lambda x, b, *args: matvec(x, *args) - b, (b, *args))
        self._matvec, self._adjoint, self._solver, self._adjoint_solver = matvec, adjoint, solver, adjoint_solver

    def solution(self) -> Tensor:
        """Return x, on the tape."""
        b, *args = self.detached()
        return solution_of("custom_linear_solve()", self, lambda _: self._solver(lambda x: self._matvec(x, *args), b))

    def solve(self, x: Tensor, arguments: Any, b: Tensor) -> Tensor:
        _, *args = self.args(arguments)
        return LinearEquation(self._matvec, self._adjoint, b, args, self._solver, self._adjoint_solver).solution()

    def solve_adjoint(self, x: Tensor, arguments: Any, g: Tensor) -> Tensor:
        _, *args = self.args(arguments)
        return LinearEquation(self._adjoint, self._matvec, g, args, self._adjoint_solver, self._solver).solution()


def adjoint_of(matvec: Map, like: Tensor) -> Map:
    """Return the adjoint of a linear map of tensors of a shape, by reverse mode."""
    zeros = like.detach().new_zeros(like.shape)
    return lambda g, *args: vjp(lambda x: matvec(x, *args), zeros)[1](g)[0]


def custom_linear_solve(matvec: Map, b: Tensor, solve: Solver, transpose_solve: Solver | None = None, symmetric: bool = False,
                        args: Any = ()) -> Tensor:
    """Return x of matvec(x, *args) == b by `solve(matvec, b)`, a function of x alone there; gradients are for b and the tensors in args.

    `matvec` is linear in x. The gradient is one solve with its adjoint, by `transpose_solve(adjoint, g)`: by `solve` where the map is
    `symmetric`, its own adjoint. Forward mode and derivatives of any order are solves, too. RuntimeError for a gradient without a
    `transpose_solve`, and where `matvec` computes with other tensors that require a gradient.

    >>> import cygrad
    >>> d = cygrad.tensor([2., 4.], requires_grad=True)
    >>> x = cygrad.optimize.custom_linear_solve(lambda x, d: d * x, cygrad.ones(2), lambda A, b: b / d.detach(), symmetric=True, args=(d,))
    >>> x.sum().backward()
    >>> d.grad
    tensor([-0.2500, -0.0625])
    """
    def refused(adjoint: Any, g: Tensor) -> Tensor:
        raise RuntimeError("custom_linear_solve(): this derivative needs a solve with the adjoint map: give transpose_solve=, or "
                           "symmetric=True")

    adjoint = matvec if symmetric else adjoint_of(matvec, b)
    args = args if isinstance(args, tuple) else (args,)
    return LinearEquation(matvec, adjoint, b, args, solve, transpose_solve or (solve if symmetric else refused)).solution()
