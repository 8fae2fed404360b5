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


# ----- Reductions -----
def extremum_parts(whole, elementwise):
    def parts(x, dim=None, keepdim=False, *, other=None):
        other = dim if is_tensor(dim) else other
        if other is not None:
            return getattr(x, elementwise)(other)
        return getattr(x, whole)() if dim is None and x.numel() and not keepdim else NotImplemented

    return parts


def place_parts(name):
    def parts(x, dim=None, keepdim=False):
        if dim is not None or not x.numel():
            return NotImplemented
        place = getattr(x.reshape(-1), name)(0)
        return place.reshape([1] * x.ndim) if keepdim else place

    return parts


def variance_parts(name):
    def parts(x, dim=None, unbiased=None, keepdim=False, **keywords):
        return getattr(x, name)(None, correction=int(dim), keepdim=keepdim, **keywords) if isinstance(dim, bool) else NotImplemented

    return parts
