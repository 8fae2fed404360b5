"""Memory that goes out and comes in: DLPack, plain bytes, tensors laid over other memory.

Promises that nothing handed out moves or dies, and that layouts from outside are checked.
Uses all rooms below; Python alone uses it.
"""
