"""cygrad: torch.autograd's API on the CPU, with Cython nodes and OpenMP kernels.

>>> import cygrad
>>> x = cygrad.tensor([1., 2., 3.], requires_grad=True)
>>> x.tanh().sum().backward()
>>> x.grad
tensor([0.4200, 0.0707, 0.0099])
"""

import sys as _sys

if _sys.argv[:1] == ["-m"]:     # of Python, which has not found the module to run yet
    from cygrad import _interruption

    _interruption.end_at_once()

from cygrad import _imports

_imports.install()

import cygrad.tensor as _tensor
from cygrad import autograd as autograd
from cygrad._core.graph.modes import is_grad_enabled as is_grad_enabled
from cygrad._core.memory.formats import Layout as layout  # noqa: F401
from cygrad._core.memory.formats import MemoryFormat as memory_format  # noqa: F401
from cygrad._core.memory.formats import channels_last as channels_last
from cygrad._core.memory.formats import channels_last_3d as channels_last_3d
from cygrad._core.memory.formats import contiguous_format as contiguous_format
from cygrad._core.memory.formats import preserve_format as preserve_format
from cygrad._core.memory.formats import sparse_coo as sparse_coo
from cygrad._core.memory.formats import sparse_csc as sparse_csc
from cygrad._core.memory.formats import sparse_csr as sparse_csr
from cygrad._core.memory.formats import strided as strided
from cygrad._core.memory.sizes import Size as Size
from cygrad._core.memory.storage import DType as dtype  # noqa: F401
from cygrad._core.memory.storage import OutOfMemoryError as OutOfMemoryError
from cygrad._core.memory.storage import dtype_by_name as _dtype_by_name
from cygrad._kernels.system.threads import get_num_threads as get_num_threads
from cygrad._kernels.system.threads import set_num_threads as set_num_threads
from cygrad.data.creation import *  # noqa: F403
from cygrad.device import device as device
from cygrad.operators import modules_of as _modules_of
from cygrad.operators._written import registry as _registry
from cygrad.operators.elementwise import functions as _functions
from cygrad.operators.elementwise import in_place_methods as _in_place_functions
from cygrad.ops.dtypes import why_unsupported as _why_unsupported

Tensor = _tensor.Tensor
__version__ = "0.2.0.dev0"
inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None

globals().update(_functions | _in_place_functions)
globals().update(_dtype_by_name)



def _why_missing(name: str) -> str:
    from cygrad._absent import why_absent
    return _why_unsupported(name) or why_absent(name, Tensor)


# Loaded at first use: importing cygrad stays quick and opens few files.
__getattr__, __dir__ = _imports.at_first_use(globals(), _modules_of(_registry.OTHERS) | _modules_of(_registry.FUNCTIONS), _why_missing)
_imports.remove()
_imports.watch()
