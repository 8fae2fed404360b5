"""Linear algebra: `cygrad.linalg.xyz` is the operator that a family of `cygrad/operators` declares as `linalg_xyz`."""

from cygrad._imports import at_first_use as _at_first_use
from cygrad.operators import modules_of as _modules_of
from cygrad.operators import registry as _registry
from cygrad.operators.matrices import LinAlgError as LinAlgError

__getattr__, __dir__ = _at_first_use(globals(), _modules_of(_registry.LINALG), prefix="linalg_")
