"""Automatic differentiation: `backward`, `grad`, and torch's names around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad._core.graph.modes import is_grad_enabled as is_grad_enabled
from cygrad._imports import at_first_use as _at_first_use
from cygrad.autograd.derivatives import backward as backward
from cygrad.autograd.derivatives import grad as grad
from cygrad.autograd.gradcheck import gradcheck as gradcheck
from cygrad.autograd.gradcheck import gradgradcheck as gradgradcheck

if TYPE_CHECKING:
    from cygrad.autograd import function as function
    from cygrad.autograd import grad_mode as grad_mode
    from cygrad.autograd import graph as graph
    from cygrad.autograd.function import Function as Function
    from cygrad.autograd.grad_mode import enable_grad as enable_grad
    from cygrad.autograd.grad_mode import inference_mode as inference_mode
    from cygrad.autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
    from cygrad.autograd.grad_mode import no_grad as no_grad
    from cygrad.autograd.grad_mode import set_grad_enabled as set_grad_enabled

# Loaded at first use: importing cygrad stays quick and opens few files.
__getattr__, __dir__ = _at_first_use(globals(), {
    **dict.fromkeys(("anomaly_mode", "detect_anomaly", "set_detect_anomaly"), "cygrad.autograd.anomaly_mode"),
    **dict.fromkeys(("functional", "jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"), "cygrad.autograd.functional"),
    **dict.fromkeys(("variable", "Variable"), "cygrad.autograd.variable"),
    **dict.fromkeys(("function", "Function"), "cygrad.autograd.function"),
    **dict.fromkeys(("grad_mode", "enable_grad", "inference_mode", "is_inference_mode_enabled", "no_grad", "set_grad_enabled"),
                    "cygrad.autograd.grad_mode"),
    "graph": "cygrad.autograd.graph", "forward_ad": "cygrad.autograd.forward_ad", "profiler": "cygrad.autograd.profiler",
    "profiler_util": "cygrad.autograd.profiler_util", "kineto_available": "cygrad.autograd.profiler",
    "SavedTensor": "cygrad._core.graph.saved",
    **dict.fromkeys(("is_multithreading_enabled", "set_multithreading_enabled"), "cygrad.autograd.multithreading"),
})
