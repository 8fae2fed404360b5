"""Placement: the gradient of a part, added where it belongs in the gradient of the whole.

A node that reads a part of a tensor need not spread its gradient over zeros of the whole. The engine lets a node add to the gradient that
is being gathered for its input, where no hook could see the difference: no hooks, nothing recorded, no example of many that is special
otherwise. Parts of parts are added at once where no other node adds to the parts between.
"""
from cygrad._core.engine.run cimport Run

cdef bint run_placement(Run* run, Py_ssize_t index, bint keep_graph) except -1
