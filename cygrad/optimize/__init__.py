"""Solutions as operators, and the bridge to scipy.optimize.

`value_and_grad` and `hessp` give SciPy's minimisers exact derivatives. `root`, `fixed_point`, `minimize` and `least_squares` return
solutions that are on the tape; `custom_root` and `custom_linear_solve` put solutions of a user's own solver there.
"""

from cygrad.optimize.implicit import custom_linear_solve as custom_linear_solve
from cygrad.optimize.implicit import custom_root as custom_root
from cygrad.optimize.newton import sparse_solve as sparse_solve
from cygrad.optimize.objective import Objective as Objective
from cygrad.optimize.objective import hessp as hessp
from cygrad.optimize.objective import value_and_grad as value_and_grad
from cygrad.optimize.roots import fixed_point as fixed_point
from cygrad.optimize.roots import least_squares as least_squares
from cygrad.optimize.roots import minimize as minimize
from cygrad.optimize.roots import root as root
