"""NumPy's errors about indices, in torch's words."""

from typing import Any


def refused_index(shape: list[int], items: tuple[Any, ...], text: str) -> IndexError:
    """Return the error for an index of ints, slices, None, an ellipsis and arrays into a tensor of some shape; `text`: NumPy's words."""
    if text.startswith("only integers"):
        right = int, slice, type(None), type(...)
        wrong = [item for item in items if not (isinstance(item, right) or hasattr(item, "shape"))]
        return IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices"
                          + (f" (got {type(wrong[0]).__name__})" if wrong else ""))
    if text.startswith("shape mismatch"):
        shapes = ", ".join(str(list(item.shape)) for item in items if hasattr(item, "shape"))
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    if text.startswith("boolean index"):
        dim = 0
        for item in items:
            if not hasattr(item, "shape") or item.dtype.kind != "b":
                dim += item is not None
                continue
            for d, size in enumerate(item.shape):
                if dim + d >= len(shape) or size != shape[dim + d]:
                    return IndexError(f"The shape of the mask {list(item.shape)} at index {d} does not match the shape of the indexed "
                                      f"tensor {shape} at index {dim + d}")
            dim += item.ndim
    return IndexError(text.replace("axis", "dimension").replace("array", "tensor"))
