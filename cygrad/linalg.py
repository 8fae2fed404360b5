"""Linear algebra: `cygrad.linalg.xyz` is the operator that a family of `cygrad/operators` declares as `linalg_xyz`."""

from numpy.linalg import LinAlgError as _LinAlgErrorOfNumPy

from cygrad._imports import at_first_use as _at_first_use
from cygrad.operators import modules_of as _modules_of
from cygrad.operators import registry as _registry


class LinAlgError(RuntimeError, _LinAlgErrorOfNumPy):
    """A matrix is singular where it must not be, or an algorithm did not converge."""


__getattr__, __dir__ = _at_first_use(globals(), _modules_of(_registry.LINALG), prefix="linalg_")
