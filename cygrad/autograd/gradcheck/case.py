"""The subject of gradcheck: a function at its arguments, and errors of the arguments."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cygrad._core.levels.sparse import sparse_part
from cygrad.autograd.gradcheck.errors import GradcheckError
from cygrad.tensor import Tensor


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of `gradcheck` that set tolerances and choose checks."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool


class Case:
    """A function at its arguments.

    Inputs are the arguments that require a gradient, outputs the results that do. Both are numbered without the values
    between them, as in torch's messages.
    """

    def __init__(self, func: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.func, self.arguments = func, arguments
        self.results = tensors_of(func(*arguments))
        self.input_positions = positions_of_differentiable(arguments)
        self.output_positions = positions_of_differentiable(self.results)
        self.inputs: tuple[Tensor, ...] = tuple(arguments[position] for position in self.input_positions)
        self.outputs = tuple(self.results[position] for position in self.output_positions)

    def run(self, arguments: Sequence[Any]) -> tuple[Tensor, ...]:
        """Return the results at some arguments."""
        results = tensors_of(self.func(*arguments))
        if len(results) != len(self.results):
            raise AssertionError("Expected `func` to return the same number of outputs each time, but got "
                                 f"{len(self.results)} and {len(results)}.")
        return results

    def run_outputs(self, arguments: Sequence[Any]) -> tuple[Tensor, ...]:
        """Return those results at some arguments that are outputs at the given ones."""
        results = self.run(arguments)
        return tuple(results[position] for position in self.output_positions)

    def replaced(self, replacements: Sequence[Any]) -> list[Any]:
        """Return the arguments with others in the place of the inputs."""
        arguments = list(self.arguments)
        for position, replacement in zip(self.input_positions, replacements, strict=True):
            arguments[position] = replacement
        return arguments

    def numbering(self) -> str:
        """Say which arguments and results the numbers of inputs and outputs stand for; nothing where they are the same."""
        parts = [f"{kind} {', '.join(map(str, range(len(positions))))} = {thing} {', '.join(map(str, positions))}"
                 for kind, thing, positions in (("input", "argument", self.input_positions), ("output", "result", self.output_positions))
                 if positions != tuple(range(len(positions)))]
        return f"Only tensors that require gradients have a number: {'; '.join(parts)}." if parts else ""

    def company(self, input: int) -> str:
        """Say which other arguments lie in the memory of an input, and so move with it."""
        tensor = self.inputs[input]
        others = [position for position, argument in enumerate(self.arguments) if isinstance(argument, Tensor) and argument is not tensor
                  and np.shares_memory(memory_of(argument), memory_of(tensor))]
        return f"Input {input} shares memory with argument {', '.join(map(str, others))}: they move together.\n" if others else ""


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def on_values(func: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function of the values of sparse arguments, and these: their gradients are checked where there are values."""
    fronts = tuple(map(sparse_part, arguments))
    if not any(fronts):
        return func, arguments

    def of_values(*values: Any) -> Any:
        return func(*(value if front is None else front.around(value) for front, value in zip(fronts, values, strict=True)))

    return of_values, tuple(argument if front is None else front.inner for front, argument in zip(fronts, arguments, strict=True))


def tensors_of(returned: Any) -> tuple[Tensor, ...]:
    """Return a function's results as a tuple of tensors."""
    results = as_tuple(returned)
    for position, result in enumerate(results):
        if _is_sparse(result):
            raise ValueError("Sparse output is not supported at gradcheck yet. Make the result a dense tensor in the function.")
        if not isinstance(result, Tensor):
            raise AttributeError(f"{type(result).__name__!r} object has no attribute 'requires_grad': gradcheck needs a function that "
                                 f"returns a tensor or a tuple of tensors, and result {position} is neither")
    return results


def positions_of_differentiable(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(position for position, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad)


def memory_of(tensor: Tensor) -> np.ndarray:
    """Return an array over a tensor's memory; no version counter sees a change through it."""
    return tensor.detach().numpy()


def check_sparse_inputs(arguments: Sequence[Any], masked: bool) -> None:
    """Refuse sparse tensors if they are not to be checked at their values, and sparse objects that are no tensors if they are."""
    for position, argument in enumerate(arguments):
        is_tensor = isinstance(argument, Tensor)
        if masked and _is_sparse(argument) and not is_tensor:
            raise ValueError(f"gradcheck expects all tensor inputs are dense, or sparse tensors, but the {position}th is of the sparse "
                             f"type {type(argument).__name__}: sparse.from_scipy() makes a tensor of a matrix of SciPy's.")
        if not masked and is_tensor and sparse_part(argument) is not None:
            raise GradcheckError("gradcheck expects all tensor inputs are dense when check_sparse_nnz is set to False. A sparse tensor, "
                                 f"such as the {position}th input, has gradients at its values only: give masked=True.")


def check_inputs(arguments: Sequence[Any]) -> None:
    """Refuse arguments that cannot be checked, and warn of those that are not precise enough."""
    for position, argument in enumerate(arguments):
        if not (isinstance(argument, Tensor) and argument.requires_grad):
            continue
        memory = memory_of(argument)
        precise = np.result_type(memory.dtype, np.float64)
        if memory.dtype != precise:
            warnings.warn(f"Input #{position} requires gradient and is not a double precision floating point or complex. This check will "
                          f"likely fail: it has dtype {argument.dtype}, make it {precise}.", stacklevel=3)
        if not memory.flags.writeable:
            raise RuntimeError(f"The {position}th input is read-only. gradcheck moves its elements one at a time. You should call .clone() "
                               "on the input before passing it to gradcheck.")
        if _shares_elements(argument):
            detail = "a dimension with stride 0" if 0 in argument.stride() else "elements that share memory"
            raise RuntimeError(f"The {position}th input has {detail}. gradcheck only supports inputs that are non-overlapping to be able "
                               "to compute the numerical gradients correctly. You should call .contiguous on the input before passing it "
                               "to gradcheck.")
    if not positions_of_differentiable(arguments):
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")


def _is_sparse(value: Any) -> bool:
    """Return True if a value is sparse: a tensor here or of another library, or a matrix of SciPy's."""
    if isinstance(value, Tensor):
        return sparse_part(value) is not None
    return type(value).__module__.startswith("scipy.sparse") or bool(getattr(value, "is_sparse", False))


def _shares_elements(tensor: Tensor) -> bool:
    if tensor.is_contiguous():
        return False
    steps = (np.arange(size) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    offsets = functools.reduce(np.add.outer, steps, np.zeros((), np.int64))
    return len(np.unique(offsets)) < tensor.numel()
