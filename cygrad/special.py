"""Special functions: `cygrad.special.xyz` is the operator that is declared as `special_xyz`, as its own name or another."""

from cygrad.operators import namespace as _namespace

__getattr__, __dir__ = _namespace(globals())
