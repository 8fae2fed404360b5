"""The path `utils.checkpoint` of torch, which leads to `cygrad.checkpoint`; nothing else lives here."""

from cygrad._imports import at_first_use as _at_first_use

__getattr__, __dir__ = _at_first_use(globals(), {"checkpoint": "cygrad.utils.checkpoint"})
