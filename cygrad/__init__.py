"""cygrad: torch.autograd's API on the CPU, with Cython nodes and OpenMP kernels.

>>> import cygrad
>>> x = cygrad.tensor([1., 2., 3.], requires_grad=True)
>>> x.tanh().sum().backward()
>>> x.grad
tensor([0.4200, 0.0707, 0.0099])
"""

from cygrad import _imports

_imports.install()

import cygrad.tensor as _tensor
from cygrad import autograd as autograd
from cygrad._core.graph.modes import is_grad_enabled as is_grad_enabled
from cygrad._core.graph.tensor import Size as Size
from cygrad._core.memory.formats import Layout as layout  # noqa: F401
from cygrad._core.memory.formats import MemoryFormat as memory_format  # noqa: F401
from cygrad._core.memory.formats import channels_last as channels_last
from cygrad._core.memory.formats import channels_last_3d as channels_last_3d
from cygrad._core.memory.formats import contiguous_format as contiguous_format
from cygrad._core.memory.formats import preserve_format as preserve_format
from cygrad._core.memory.formats import strided as strided
from cygrad._core.memory.storage import DType as dtype  # noqa: F401
from cygrad._core.memory.storage import OutOfMemoryError as OutOfMemoryError
from cygrad._core.memory.storage import dtype_by_name as _dtype_by_name
from cygrad._kernels.system.threads import get_num_threads as get_num_threads
from cygrad._kernels.system.threads import set_num_threads as set_num_threads
from cygrad.autograd import enable_grad as enable_grad
from cygrad.autograd import inference_mode as inference_mode
from cygrad.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from cygrad.autograd import no_grad as no_grad
from cygrad.autograd import set_grad_enabled as set_grad_enabled
from cygrad.creation import *  # noqa: F403
from cygrad.device import device as device
from cygrad.operators import registry as _registry
from cygrad.operators.arguments import checked_tensor as _checked_tensor
from cygrad.operators.elementwise import LATE as _LATE
from cygrad.operators.elementwise import functions as _functions
from cygrad.ops.dtypes import DTYPES as _DTYPES

Tensor = _tensor.Tensor
__version__ = "0.1.0"
inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None

globals().update(_functions)
globals().update(_dtype_by_name)

# Loaded at first use: importing cygrad stays quick and opens few files.
__getattr__, __dir__ = _imports.at_first_use(globals(), {name: module for module, names in {
    "cygrad.random": "random Generator default_generator manual_seed seed initial_seed rand randn randint randperm normal rand_like "
                     "randn_like randint_like bernoulli get_rng_state set_rng_state",
    "cygrad.limits": "finfo iinfo promote_types result_type can_cast",
    "cygrad.tensor_types": "set_default_tensor_type " + " ".join(row.tensors for row in _DTYPES),
    "cygrad.cuda": "cuda",
    "cygrad.utils": "utils",
    "cygrad.config": "config show_config",
    "cygrad.printing": "printing set_printoptions",
    "cygrad.serialization": "serialization load save",
    "cygrad.checkpoint": "checkpoint",
    "cygrad.func": "func vmap",
    "cygrad.optimize": "optimize",
    "cygrad.pytree": "pytree",
    "cygrad.autograd.anomaly_mode": "is_anomaly_enabled is_anomaly_check_nan_enabled set_anomaly_enabled",
    **{module: f"{methods_too} {others}" for module, (methods_too, others, _) in _LATE.items()},
    **_registry.FUNCTIONS,
}.items() for name in names.split()})
_imports.remove()


def is_tensor(obj: object) -> bool:
    """Say whether an object is a tensor.

    >>> import cygrad
    >>> cygrad.is_tensor([1.])
    False
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Say whether the elements are floating-point numbers."""
    return _checked_tensor("is_floating_point", input).is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Say whether the elements are complex numbers."""
    return _checked_tensor("is_complex", input).is_complex()


def is_signed(input: Tensor) -> bool:
    """Say whether the elements can be negative."""
    return _checked_tensor("is_signed", input).is_signed()


def is_inference(input: Tensor) -> bool:
    """Say whether a tensor was made in inference mode.

    >>> import cygrad
    >>> with cygrad.inference_mode():
    ...     x = cygrad.ones(2)
    >>> cygrad.is_inference(x)
    True
    """
    return _checked_tensor("is_inference", input).is_inference()


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return _checked_tensor("numel", input).numel()
