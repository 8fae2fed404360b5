"""Devices: there is one, the CPU; others are refused with torch's words."""

from __future__ import annotations

from typing import Any

_KNOWN = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan",
          "mps", "meta", "hpu", "mtia", "privateuseone")


class device:
    """Where a tensor lives, as in torch: `device("cpu")`.

    >>> import cygrad
    >>> cygrad.device("cpu")
    device(type='cpu')
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, type: str | device, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        name, _, number = type.partition(":")
        if name not in _KNOWN or (number and not number.isdigit()):
            raise RuntimeError(f"Expected one of {', '.join(_KNOWN)} device type at start of device string: {type}")
        self.type, self.index = name, int(number) if number else index

    def __repr__(self) -> str:
        return f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))


CPU = device("cpu")


def resolve_device(value: str | device | None) -> device:
    """Return the device asked for; refuse all but the CPU."""
    if value is None:
        return CPU
    place = value if isinstance(value, device) else device(value)
    if place.type != "cpu":
        raise AssertionError(f"Torch not compiled with CUDA enabled: cygrad computes on the CPU only, got device={str(place)!r}; "
                             "use device='cpu' or leave it out"
                             if place.type == "cuda" else
                             f"cygrad computes on the CPU only, got device={str(place)!r}; use device='cpu' or leave it out")
    return CPU
