"""Functions of neural networks: `cygrad.nn.functional.xyz` is the operator that is declared as `nn_functional_xyz`, as its own name or
another.
"""

from cygrad.operators import namespace as _namespace

__getattr__, __dir__ = _namespace(globals())
