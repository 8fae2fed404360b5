"""Window functions: `cygrad.signal.windows.xyz` is the operator that is declared as `signal_windows_xyz`.

>>> import cygrad
>>> cygrad.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from cygrad.operators import namespace as _namespace

__getattr__, __dir__ = _namespace(globals())
