"""The namespace of sparse tensors: torch's functions of them, SciPy's matrices, solves."""

from cygrad.operators._sparse.scipy_matrices import from_scipy as from_scipy
from cygrad.sparse.functions import addmm as addmm
from cygrad.sparse.functions import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from cygrad.sparse.functions import log_softmax as log_softmax
from cygrad.sparse.functions import mm as mm
from cygrad.sparse.functions import sampled_addmm as sampled_addmm
from cygrad.sparse.functions import softmax as softmax
from cygrad.sparse.functions import spdiags as spdiags
from cygrad.sparse.functions import sum as sum
from cygrad.sparse.functions import to_scipy as to_scipy
from cygrad.sparse.iterations import bicgstab as bicgstab
from cygrad.sparse.iterations import cg as cg
from cygrad.sparse.iterations import gmres as gmres
from cygrad.sparse.solving import factorized as factorized
from cygrad.sparse.solving import spsolve as spsolve

__all__ = ["addmm", "bicgstab", "cg", "check_sparse_tensor_invariants", "factorized", "from_scipy", "gmres", "log_softmax", "mm",
           "sampled_addmm", "softmax", "spdiags", "spsolve", "sum", "to_scipy"]
