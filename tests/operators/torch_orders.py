"""The operators whose results of transposed operands are not row-major in torch, or that torch lacks, a name a line.

Where torch is installed, `PYTHONPATH=tests python tests/operators/torch_orders.py` writes `tests/operators/torch_orders.txt` anew.
"""

import functools
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")


def read():
    return set(FILE.read_text().split())


def in_torch(value):
    """Return an argument of a call with torch's tensors and dtypes in place of cygrad's."""
    if isinstance(value, cg.dtype | cg.memory_format):
        return getattr(torch, value.name)
    if isinstance(value, cg.Tensor):
        return torch.from_numpy(value.numpy())
    if type(value) in (tuple, list):
        return type(value)(map(in_torch, value))
    return {key: in_torch(item) for key, item in value.items()} if isinstance(value, dict) else value


def strided():
    """Yield the name of each recorded call whose result in torch shares no memory with an operand and is not row-major."""
    for owner, name, arguments, keywords in calls.recorded_calls():
        place = torch.Tensor if owner is cg.Tensor else functools.reduce(getattr, owner.__name__.split(".")[1:], torch)
        if not hasattr(place, name):
            yield public.declared_name(owner, name)
            continue
        positional, named = in_torch(calls.transposed((arguments, keywords)))
        try:
            result = getattr(place, name)(*positional, **named)
        except (AttributeError, TypeError, RuntimeError, ValueError, IndexError):       # torch takes other arguments
            continue
        memory = {tensor.untyped_storage().data_ptr() for tensor in tree_leaves((positional, named)) if isinstance(tensor, torch.Tensor)}
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in memory and not tensor.is_contiguous():
                yield public.declared_name(owner, name)


if __name__ == "__main__":
    import torch
    from torch.utils._pytree import tree_leaves

    import calls
    import cygrad as cg
    import public

    FILE.write_text("".join(f"{name}\n" for name in sorted(set(strided()))))
