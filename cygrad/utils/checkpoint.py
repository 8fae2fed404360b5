"""The names of `cygrad.checkpoint`, for `from torch.utils.checkpoint import checkpoint` with the name of the library changed."""

from cygrad.checkpoint import *  # noqa: F403
