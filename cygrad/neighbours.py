"""Packages that choose their functions by the type of a tensor: each learns of ours by its own registration, when both are imported.

- einops: a backend, as it has one for each library.
- autoray: the names and arguments of its functions, as registered for torch, whose API this is.

opt_einsum finds the functions by the name of the module. Importing cygrad imports none of these packages: `_imports` notes when one is
imported, and calls `register`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cygrad._imports import NEIGHBOURS


# ----- Registrations -----
def _with_einops(einops: ModuleType) -> None:
    cygrad, backends = import_module("cygrad"), import_module("einops._backends")

    class Backend(backends.AbstractBackend):  # type: ignore[name-defined]  # einops is not there for mypy
        """The functions that einops calls on tensors, as on arrays."""

        framework_name = "cygrad"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, cygrad.Tensor)

        def from_numpy(self, x: Any) -> Any:
            tensor = cygrad.from_numpy(x)
            return tensor.requires_grad_() if self.is_float_type(tensor) else tensor

        def to_numpy(self, x: Any) -> Any:
            return x.detach().numpy()

        def arange(self, start: int, stop: int) -> Any:
            return cygrad.arange(start, stop)

        def reduce(self, x: Any, operation: str, axes: Sequence[int]) -> Any:
            if operation in ("min", "max"):
                return getattr(x, f"a{operation}")(tuple(axes))
            if operation == "prod":     # of one dim at a time
                for axis in sorted(axes, reverse=True):
                    x = x.prod(axis)
                return x
            return getattr(x, operation)(tuple(axes))

        def transpose(self, x: Any, axes: Sequence[int]) -> Any:
            return x.permute(*axes)

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            return cygrad.stack(tensors)

        def tile(self, x: Any, repeats: Sequence[int]) -> Any:
            return x.repeat(*repeats)

        def concat(self, tensors: list[Any], axis: int) -> Any:
            return cygrad.cat(tensors, axis)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
            for position in pos2len:
                x = x.unsqueeze(position)
            return x.expand([pos2len.get(axis, -1) for axis in range(n_axes)])

        def is_float_type(self, x: Any) -> bool:
            return x.dtype.is_floating_point

        def einsum(self, pattern: str, *x: Any) -> Any:
            return cygrad.einsum(pattern, *x)

    # einops finds the class among the subclasses of its own; the registry holds it as long as einops is there.
    setattr(backends, "cygrad_backend", Backend)  # noqa: B010 - a name that the module has not


def _codes(code: CodeType) -> list[CodeType]:
    return [code, *(inner for each in code.co_consts if isinstance(each, CodeType) for inner in _codes(each))]


def _uses_torch(function: Any) -> bool:
    """Return True if a function of autoray's imports torch, or asks for torch's dtypes."""
    return isinstance(function, FunctionType) and any(
        "torch" in code.co_consts or "get_torch" in code.co_names for code in _codes(function.__code__))


def _with_autoray(autoray: ModuleType) -> None:
    cygrad, core, register = import_module("cygrad"), import_module("autoray.autoray"), autoray.register_function
    for (backend, name), alias in [*core._FUNC_ALIASES.items()]:
        if backend == "torch":
            register("cygrad", name, alias=alias)
    for (backend, name), module in [*core._SUBMODULE_ALIASES.items()]:
        if backend == "torch":
            register("cygrad", name, module=module.replace("torch", "cygrad"))
    for (backend, name), wrapper in [*core._CUSTOM_WRAPPERS.items()]:
        if backend == "torch" and not _uses_torch(wrapper):
            register("cygrad", name, wrapper=wrapper)
    for (backend, name), function in [*core._FUNCS.items()]:
        if backend == "torch" and not _uses_torch(function):
            register("cygrad", name, function)

    def with_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
        def numpy_like(*arguments: Any, dtype: Any = None, **keywords: Any) -> Any:
            dtype = autoray.to_backend_dtype(dtype, like="cygrad") if isinstance(dtype, str) else dtype
            return function(*arguments, dtype=dtype, **keywords)

        return numpy_like

    def drawn(draw: Callable[..., Any], low: float, scale: float, size: Any, dtype: Any) -> Any:
        return with_dtype(draw)(size if isinstance(size, (tuple, list)) else (() if size is None else (size,)), dtype=dtype) * scale + low

    for name in ("zeros", "ones"):
        register("cygrad", name, wrapper=with_dtype)
    register("cygrad", "eye", with_dtype(lambda N, M=None, **keywords: cygrad.eye(N, M, **keywords)))
    register("cygrad", "from_numpy", with_dtype(cygrad.as_tensor))
    # NumPy's functions take tensors.
    for name, function in (("imag", np.imag), ("take", np.take), ("repeat", np.repeat)):
        register("cygrad", name, function)
    register("cygrad", "indices", lambda dimensions: cygrad.meshgrid(*map(cygrad.arange, dimensions), indexing="ij"))
    register("cygrad", "scipy.linalg.solve_triangular", lambda a, b, lower=False, unit_diagonal=False: cygrad.linalg.solve_triangular(
        a, b, upper=not lower, unitriangular=unit_diagonal))
    register("cygrad", "random.seed", lambda seed=None: cygrad.seed() if seed is None else cygrad.manual_seed(seed))
    register("cygrad", "random.normal", lambda loc=0.0, scale=1.0, size=None, dtype=None: drawn(cygrad.randn, loc, scale, size, dtype))
    register("cygrad", "random.uniform", lambda low=0.0, high=1.0, size=None, dtype=None: drawn(cygrad.rand, low, high - low, size, dtype))


_REGISTRATIONS = dict(zip(NEIGHBOURS, (_with_einops, _with_autoray), strict=True))
_done: set[str] = set()


def register() -> None:
    """Register tensors with all of these packages that are imported; a package that is as it was not expected to be gets a warning.

    >>> import cygrad.neighbours
    >>> cygrad.neighbours.register()
    """
    for name, registration in _REGISTRATIONS.items():
        if name in sys.modules and name not in _done:
            _done.add(name)
            try:
                registration(sys.modules[name])
            except (AttributeError, ImportError, TypeError, ValueError) as error:
                warnings.warn(f"cygrad could not register its tensors with {name}: {type(error).__name__}: {error}", RuntimeWarning,
                              stacklevel=2)

