"""Window functions: `cygrad.signal.windows.xyz` is the operator that is declared as `signal_windows_xyz`.

>>> import cygrad
>>> cygrad.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from cygrad._imports import at_first_use as _at_first_use
from cygrad.operators import modules_of as _modules_of
from cygrad.operators._written import registry as _registry

__getattr__, __dir__ = _at_first_use(globals(), _modules_of(_registry.SIGNAL_WINDOWS), prefix="signal_windows_")
