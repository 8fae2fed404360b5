"""Names of torch without mathematics: questions about tensors, typed constructors, storages as objects.

Promises torch's answers and errors.
Uses the core and the factories; only the public namespace and ported code use it.
"""
