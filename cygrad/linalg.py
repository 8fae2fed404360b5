"""Linear algebra: `cygrad.linalg.xyz` is the operator that a family of `cygrad/operators` declares as `linalg_xyz`."""

from cygrad.operators import namespace as _namespace
from cygrad.operators._language.matrices import LinAlgError as LinAlgError

__getattr__, __dir__ = _namespace(globals())
