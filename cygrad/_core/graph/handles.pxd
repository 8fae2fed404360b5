"""Tables of hooks: a hook is put among others by a handle, which takes it away again."""
from cygrad._core.graph.node cimport Hooks, Node

cpdef object register_among(Hooks hooks, str kind, object hook, Node node=*)
cpdef object register(object table, object hook)
