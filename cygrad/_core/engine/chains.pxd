"""Chains: elementwise nodes of a backward that follow each other on one large gradient, computed together, block by block.

A gradient that only the next node reads is never written to memory. The engine runs a chain in place of a node where nothing could
see the difference: no hooks, nothing recorded, nothing special.
"""
from cygrad._core.engine.run cimport Run

cdef bint run_chain(Run* run, Py_ssize_t index, bint keep_graph) except -1
