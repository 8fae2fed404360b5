"""Discrete Fourier transforms: `cygrad.fft.xyz` is the operator that is declared as `fft_xyz`.

>>> import cygrad
>>> cygrad.fft.rfft(cygrad.tensor([1., 2., 3., 4.]))
tensor([10.+0.j, -2.+2.j, -2.+0.j])
"""

from cygrad.operators import namespace as _namespace

__getattr__, __dir__ = _namespace(globals())
