"""Special functions: `cygrad.special.xyz` is the operator that is declared as `special_xyz`, as its own name or another."""

from cygrad._imports import at_first_use as _at_first_use
from cygrad.operators import modules_of as _modules_of
from cygrad.operators._written import registry as _registry

__getattr__, __dir__ = _at_first_use(globals(), _modules_of(_registry.SPECIAL), prefix="special_")
