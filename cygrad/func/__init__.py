"""Functions of functions: derivatives and batches that nest in any order; torch.func's names, and JAX's `value_and_grad` and loops.

>>> import cygrad
>>> from cygrad.func import grad, vmap
>>> vmap(grad(lambda x: x ** 3))(cygrad.tensor([1., 2.]))
tensor([ 3., 12.])
"""

from cygrad.func.control import cond as cond
from cygrad.func.control import fori_loop as fori_loop
from cygrad.func.control import scan as scan
from cygrad.func.control import while_loop as while_loop
from cygrad.func.forward import hessian as hessian
from cygrad.func.forward import jacfwd as jacfwd
from cygrad.func.forward import jvp as jvp
from cygrad.func.forward import linearize as linearize
from cygrad.func.reverse import grad as grad
from cygrad.func.reverse import grad_and_value as grad_and_value
from cygrad.func.reverse import jacrev as jacrev
from cygrad.func.reverse import value_and_grad as value_and_grad
from cygrad.func.reverse import vjp as vjp
from cygrad.func.sparse_jacobians import coloured as coloured
from cygrad.func.sparse_jacobians import sparse_hessian as sparse_hessian
from cygrad.func.sparse_jacobians import sparse_jacobian as sparse_jacobian
from cygrad.func.sparsity import hessian_sparsity as hessian_sparsity
from cygrad.func.sparsity import sparsity as sparsity
from cygrad.func.vmapping import vmap as vmap

__all__ = ["coloured", "cond", "fori_loop", "grad", "grad_and_value", "hessian", "hessian_sparsity", "jacfwd", "jacrev", "jvp", "linearize",
           "scan", "sparse_hessian", "sparse_jacobian", "sparsity", "value_and_grad", "vjp", "vmap", "while_loop"]
