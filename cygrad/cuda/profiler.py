"""The profiler of CUDA's driver: there is none, so each function raises torch's AssertionError.

`cygrad.autograd.profiler.profile` measures the CPU.
"""

from __future__ import annotations

from cygrad.cuda import _refusal

__all__ = ["profile", "start", "stop"]

start = _refusal("start")
stop = _refusal("stop")
profile = _refusal("profile")
