"""Discrete Fourier transforms: `cygrad.fft.xyz` is the operator that is declared as `fft_xyz`.

>>> import cygrad
>>> cygrad.fft.rfft(cygrad.tensor([1., 2., 3., 4.]))
tensor([10.+0.j, -2.+2.j, -2.+0.j])
"""

from cygrad._imports import at_first_use as _at_first_use
from cygrad.operators import modules_of as _modules_of
from cygrad.operators._written import registry as _registry

__getattr__, __dir__ = _at_first_use(globals(), _modules_of(_registry.FFT), prefix="fft_")
