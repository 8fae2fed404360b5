"""Functions of neural networks are in `cygrad.nn.functional`. There are no layers: these are objects that hold their parameters.

>>> import cygrad
>>> cygrad.nn.functional.relu(cygrad.tensor([-1., 2.]))
tensor([0., 2.])
"""

from cygrad._absent import why_absent as _why_absent
from cygrad._imports import at_first_use as _at_first_use
from cygrad.nn import functional as functional
from cygrad.tensor import Tensor as _Tensor

__getattr__, __dir__ = _at_first_use(globals(), {}, lambda name: _why_absent(name, _Tensor))
