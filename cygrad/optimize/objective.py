"""The bridge to scipy.optimize: value, gradient and Hessian-vector products of a function of trees of parameters.

SciPy minimises functions of one vector of doubles. An `Objective` is that view of a function that takes its parameters in a tree of
tensors (see `cygrad.pytree`) and returns a scalar tensor. It is one object rather than separate callables because value, gradient and
Hessian products at one point share a graph: SciPy asks for many products where it has just asked for the gradient. SciPy is needed
only to call its solvers; nothing here imports it.

    objective = cygrad.optimize.value_and_grad(f, x0)
    result = scipy.optimize.minimize(objective, objective.x0, jac=True, hessp=objective.hessp, method="trust-ncg")
    fitted = objective.unflatten(result.x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cygrad._core.operands.arrays import from_array, to_array
from cygrad._progress import bar
from cygrad.autograd import enable_grad, grad
from cygrad.pytree import tree_flatten
from cygrad.tensor import Tensor

Vector = NDArray[np.float64]


class Objective:
    """A function of a tree of parameters as SciPy calls it: `objective(x)` is its value, a float, and its gradient, for a vector x.

    A single parameter is a number as well as a vector of one. Made by `value_and_grad`. `x0` is the start that was given, as a vector;
    `flatten` and `unflatten` go from trees to vectors and back. The point of the last `hessp` is remembered with the graph of its gradient,
    so f must depend on its parameters alone.
    """

    def __init__(self, f: Callable[[Any], Tensor], x0: Any, progress: bool = False) -> None:
        leaves, self._spec = tree_flatten(x0)
        self._f = f
        parameters = [_parameter(leaf, path) for leaf, path in zip(leaves, self._spec.paths("x0"), strict=True)]
        self._shapes, self._dtypes = [array.shape for array in parameters], [_precise(array) for array in parameters]
        self._ends = np.cumsum([_parts(array).size for array in parameters], dtype=int).tolist()
        if not self._ends or not self._ends[-1]:
            raise ValueError(f"x0 holds no parameters: {self._spec}")
        self.x0 = self.flatten(x0)
        self._recorded: _Point | None = None    # the last point, recorded by __call__ once products have been asked for
        self._gradient: _Point | None = None    # the last point of hessp, with the gradient's graph
        self._keep_graph = False
        self._bar = bar("gradients") if progress else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the bar of progress."""
        if self._bar is not None:
            self._bar.close()

    def flatten(self, tree: Any) -> Vector:
        """Return a tree of the structure and shapes of x0 as a vector of doubles, e.g. of bounds; ValueError if it has others.

        >>> import cygrad
        >>> objective = cygrad.optimize.value_and_grad(lambda p: p["a"] * p["b"].sum(), {"a": 2., "b": cygrad.ones(2)})
        >>> objective.flatten({"a": 0., "b": cygrad.tensor([3., 4.])})
        array([0., 3., 4.])
        """
        leaves = self._spec.flatten_up_to(tree)
        arrays = [_parameter(leaf, path) for leaf, path in zip(leaves, self._spec.paths(), strict=True)]
        for array, shape, path in zip(arrays, self._shapes, self._spec.paths(), strict=True):
            if array.shape != shape:
                raise ValueError(f"{path} has shape {array.shape}, but the parameter has {shape}")
        return np.concatenate([_parts(array.astype(dtype)) for array, dtype in zip(arrays, self._dtypes, strict=True)])

    def unflatten(self, x: Any) -> Any:
        """Return the tree of float64 tensors, as f takes it, for a vector; ValueError if its size is not x0's.

        >>> import cygrad
        >>> objective = cygrad.optimize.value_and_grad(lambda p: p["a"] * p["b"].sum(), {"a": 2., "b": cygrad.ones(2)})
        >>> objective.unflatten([1., 2., 3.])
        {'a': tensor(1., dtype=cygrad.float64), 'b': tensor([2., 3.], dtype=cygrad.float64)}
        """
        return self._spec.unflatten(self._tensors(self._checked(x, "x")))

    def __call__(self, x: Any) -> tuple[float, Vector]:
        """Return the value and the gradient at a vector x, infinite and NaN ones too, which SciPy judges."""
        value, gradient = self._evaluated(x)
        if self._bar is not None:
            self._bar.set_postfix_str(f"value {value:.6g}", refresh=False)
            self._bar.update()
        return value, gradient

    def _evaluated(self, x: Any) -> tuple[float, Vector]:
        self._recorded = None                   # frees the graph before the next one is made
        point = self._record(self._checked(x, "x"))
        gradient = grad(point.value, point.leaves, retain_graph=self._keep_graph, materialize_grads=True)
        if self._keep_graph:
            self._recorded = point
        return point.value.item(), _joined(gradient).reshape(np.shape(x))

    def hessp(self, x: Any, p: Any) -> Vector:
        """Return the product of the Hessian at a vector x with a vector p, by reverse mode over reverse mode.

        The first product at a point makes the graph of the gradient, from the value's where `objective(x)` came just before; each
        further one is a backward through it. Such a product costs a few gradients for any number of parameters (B. Pearlmutter,
        Fast exact multiplication by the Hessian, Neural Computation 6 (1994) 147-160); forward mode over reverse mode, which computes
        f and its gradient again for each product, was slower in all that was measured.

        >>> import cygrad
        >>> objective = cygrad.optimize.value_and_grad(lambda x: (x ** 3).sum(), cygrad.tensor([1., 2.]))
        >>> objective.hessp([1., 2.], [1., 10.])
        array([  6., 120.])
        """
        shape, x, p = np.shape(p), self._checked(x, "x"), self._checked(p, "p")
        point = self._gradient
        if point is None or not np.array_equal(point.x, x):
            self._gradient = None
            point = self._gradient = self._with_gradient(x)
        pairs = [(g, v) for g, v in zip(point.gradient, self._tensors(p), strict=True) if g.requires_grad]
        if not pairs:                           # the function is linear
            return np.zeros(shape)
        gradients, weights = zip(*pairs, strict=True)
        return _joined(grad(gradients, point.leaves, weights, retain_graph=True, materialize_grads=True)).reshape(shape)

    def _with_gradient(self, x: Vector) -> _Point:
        self._keep_graph = True
        point = self._recorded
        if point is None or not np.array_equal(point.x, x):
            point = self._record(x)
        self._recorded = None
        point.gradient = grad(point.value, point.leaves, create_graph=True, materialize_grads=True)
        return point

    def _record(self, x: Vector) -> _Point:
        """Compute f at a point."""
        leaves = [tensor.requires_grad_() for tensor in self._tensors(x)]
        with enable_grad():
            value = self._f(self._spec.unflatten(leaves))
        if not isinstance(value, Tensor):
            raise TypeError(f"f must return a scalar Tensor, but returned {type(value).__name__}")
        if value.numel() != 1:
            raise RuntimeError(f"grad can be implicitly created only for scalar outputs; f returned shape {list(value.shape)}: reduce it, "
                               "e.g. with .sum()")
        if not value.requires_grad:
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn: the result of f was not computed "
                               "from its parameters by operations on tensors")
        return _Point(x, leaves, value)

    def _checked(self, vector: Any, name: str) -> Vector:
        """Return a copy: SciPy may change its vectors in place."""
        array = np.array(vector, ndmin=1 if self._ends[-1] == 1 else 0)
        if array.shape != (self._ends[-1],):
            raise ValueError(f"{name} has shape {array.shape}, but there are {self._ends[-1]} parameters: it must be ({self._ends[-1]},)")
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{name} must hold real numbers, but its dtype is {array.dtype}")
        return array.astype(np.float64, copy=False)

    def _tensors(self, vector: Vector) -> list[Tensor]:
        """Return the parts of a vector, in its memory, as tensors of the shapes of the parameters."""
        parts = np.split(vector, self._ends[:-1])
        return [from_array(part.view(dtype).reshape(shape)) for part, dtype, shape in zip(parts, self._dtypes, self._shapes, strict=True)]


class _Point:
    """The recorded point: parameters and value, and the gradient if that was recorded, too."""

    def __init__(self, x: Vector, leaves: list[Tensor], value: Tensor) -> None:
        self.x, self.leaves, self.value = x, leaves, value
        self.gradient: tuple[Tensor, ...] = ()


def value_and_grad(f: Callable[[Any], Tensor], x0: Any, *, progress: bool = False) -> Objective:
    """Return a function for `scipy.optimize.minimize` with `jac=True`: a function of a vector that returns value and gradient of f.

    `f` takes the parameters, a tree with the structure of `x0`, and returns a scalar tensor. The leaves of `x0` are tensors, arrays or
    numbers; f is given tensors of float64 or complex128 in their places, in any precision. Of a complex parameter the vector has
    both parts of each number, one behind the other. A parameter that f does not use has gradient 0.
    `progress=True` counts the gradients, beside the last value, on a bar of tqdm; as a context manager the objective closes it.
    TypeError for leaves that are no floating-point numbers; when called, ValueError for a vector of another size than `x0`, TypeError or
    RuntimeError if f returns no scalar tensor, or one that was not computed from the parameters.

    >>> import cygrad
    >>> objective = cygrad.optimize.value_and_grad(lambda p: p["a"] * p["b"].sum(), {"a": 2., "b": cygrad.ones(2)})
    >>> objective.x0
    array([2., 1., 1.])
    >>> objective(objective.x0)
    (4.0, array([2., 2., 2.]))
    """
    return Objective(f, x0, progress)


def hessp(f: Callable[[Any], Tensor], x0: Any) -> Callable[[Any, Any], Vector]:
    """Return a function of two vectors, x and p, that is the product of the Hessian of f at x with p.

    It is `value_and_grad(f, x0).hessp`; where value and gradient are needed too, as by SciPy's solvers, take all from one Objective,
    and f is computed half as often.

    >>> import cygrad
    >>> product = cygrad.optimize.hessp(lambda p: p["a"] * p["b"].sum(), {"a": 2., "b": cygrad.ones(2)})
    >>> product([2., 1., 1.], [1., 0., 0.])
    array([0., 1., 1.])
    """
    return value_and_grad(f, x0).hessp


def _parameter(leaf: Any, path: str) -> NDArray[Any]:
    """Return a leaf of the start as an array; only tensors with gradients are parameters."""
    array = to_array(leaf.detach()) if isinstance(leaf, Tensor) else np.asarray(leaf)
    if array.dtype.kind not in "fc":
        kind = f"{type(leaf).__name__} of dtype {array.dtype}" if isinstance(leaf, (Tensor, np.ndarray)) else type(leaf).__name__
        raise TypeError(f"{path} is no parameter: only tensors, arrays and numbers of floating-point dtype have a gradient, but this is "
                        f"{kind}. Convert it, or let f take it from elsewhere, e.g. by functools.partial")
    return array


def _precise(array: NDArray[Any]) -> np.dtype[Any]:
    """Return the dtype of double precision that a parameter is given to f in."""
    return np.result_type(array, np.float64)


def _parts(array: NDArray[Any]) -> Vector:
    """Return a parameter as a vector of doubles: of a complex number both parts."""
    return np.ascontiguousarray(array, _precise(array)).ravel().view(np.float64)


def _joined(tensors: tuple[Tensor, ...]) -> Vector:
    return np.concatenate([_parts(to_array(tensor.detach())) for tensor in tensors])
