"""Garbage collection of tensors and nodes.

They are created untracked: a tracked survivor counts towards full collections, which makes graphs of some thousand nodes
several times slower. Code that closes a cycle tracks the objects it reaches; objects made from them are tracked too.
"""
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport TensorImpl

cdef void track_node(Node node) noexcept
cdef void track_tensor(TensorImpl tensor) noexcept
cdef int track_reachable(object start) except -1
