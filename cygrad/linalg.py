"""Linear algebra: `cygrad.linalg.xyz` is the operator that a family of `cygrad/operators` declares as `linalg_xyz`."""

from cygrad._imports import at_first_use as _at_first_use
from cygrad.operators import modules_of as _modules_of
from cygrad.operators._language.matrices import LinAlgError as LinAlgError
from cygrad.operators._written import registry as _registry

__getattr__, __dir__ = _at_first_use(globals(), _modules_of(_registry.LINALG), prefix="linalg_")
