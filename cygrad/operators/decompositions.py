"""Operators composed of others: what stands for them where an argument has a tangent or is one example of many.

Each function takes the operator's arguments and returns its result, or NotImplemented where it does not apply. Rows of `transforms`
name them. Standard library only; methods of tensors.
"""


from .batches import is_tensor


# ----- Writing -----
def set_all(x, value, non_blocking=False):
    x[...] = value
    return x


def filled_with(x, value):
    return NotImplemented if is_tensor(value) and value.ndim else set_all(x, value)
