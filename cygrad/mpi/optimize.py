"""The bridge to SciPy's solvers of `cygrad.optimize`, for functions that are sums over ranks.

Each rank runs the same solver on a copy of the parameters, and computes its own share of the function. Value, gradient and point have the
same bits on all ranks: sums are made on rank 0, and come from there.

>>> import cygrad, scipy.optimize
>>> objective = cygrad.mpi.optimize.value_and_grad(lambda x: ((x - 2) ** 2).sum(), cygrad.zeros(3))
>>> result = scipy.optimize.minimize(objective, objective.x0, jac=True, method="L-BFGS-B")
>>> result.x.round(6)
array([2., 2., 2.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad import optimize
from cygrad.operators._messages.agreement import agree_on
from cygrad.operators._messages.checks import checked_communicator
from cygrad.operators._messages.library import mpi

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


class Objective(optimize.Objective):
    """The sum over ranks of a scalar function of a tree of parameters, as SciPy calls it; made by `value_and_grad`."""

    def __init__(self, f: Callable[[Any], Tensor], x0: Any, comm: Any = None, progress: bool = False) -> None:
        self.comm = checked_communicator(value_and_grad, comm)
        super().__init__(f, x0, progress and self.comm.rank == 0)
        self.x0 = self._from_root(self.x0)

    def _evaluated(self, x: Any) -> tuple[float, Any]:
        """Return the sums over ranks of the value and the gradient at a vector x, which rank 0 sends to all."""
        value, gradient = super()._evaluated(self._from_root(x))
        sums = self._sum(np.append(np.ravel(gradient), value))
        return float(sums[-1]), sums[:-1].reshape(gradient.shape)

    def hessp(self, x: Any, p: Any) -> Any:
        """Return the sum over ranks of the products of the Hessians at a vector x with a vector p."""
        return self._sum(super().hessp(self._from_root(x), self._from_root(p)))

    def _from_root(self, vector: Any) -> Any:
        array = np.array(vector, np.float64)
        agree_on(self.comm, f"a point of optimize, of {list(array.shape)}", "float64")
        self.comm.Bcast(array, 0)
        return array

    def _sum(self, array: Any) -> Any:
        result = np.ascontiguousarray(array)
        agree_on(self.comm, f"a sum of optimize, of {list(result.shape)}", "float64")
        self.comm.Reduce(mpi().IN_PLACE if self.comm.rank == 0 else result, result if self.comm.rank == 0 else None, root=0)
        self.comm.Bcast(result, 0)
        return result


def value_and_grad(f: Callable[[Any], Tensor], x0: Any, comm: Any = None, *, progress: bool = False) -> Objective:
    """Return the function of a vector for `scipy.optimize.minimize` with `jac=True`: the sum over ranks of f, and its gradient.

    `f` and `x0` are as for `cygrad.optimize.value_and_grad`; f returns this rank's share of the sum, for example the log-likelihood of
    its rows. It may send messages, such as halos: the gradient is the sum's. The start is rank 0's. All ranks call it, and the solver
    with the same options. `progress=True` shows the bar of `cygrad.optimize.value_and_grad` on rank 0.
    """
    return Objective(f, x0, comm, progress)


def hessp(f: Callable[[Any], Tensor], x0: Any, comm: Any = None) -> Callable[[Any, Any], Any]:
    """Return a function of two vectors, x and p: the product of p with the Hessian at x of the sum over ranks of f."""
    return value_and_grad(f, x0, comm).hessp
