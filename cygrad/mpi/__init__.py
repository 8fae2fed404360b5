"""Messages between processes, with gradients, by MPI: `cygrad.mpi.xyz` is the operator that is declared as `mpi_xyz`.

Every process runs the same program, `mpiexec -n 4 python -m mpi4py program.py`, and calls the same operators in the same order. mpi4py is
imported, and MPI initialised, with the first message. Differentiated is the sum, over all ranks, of the tensors that each rank calls
`backward` on: see docs/mpi.md.

>>> import cygrad
>>> cygrad.mpi.allreduce(cygrad.tensor([1., 2.]))
tensor([1., 2.])
"""

from cygrad.mpi import optimize as optimize
from cygrad.mpi.data_parallel import average_gradients as average_gradients
from cygrad.mpi.failures import abort_on_error as abort_on_error
from cygrad.mpi.failures import barrier as barrier
from cygrad.mpi.failures import debug as debug
from cygrad.mpi.tape import Tape as Tape
from cygrad.operators import namespace as _namespace

__getattr__, __dir__ = _namespace(globals())
abort_on_error()
