"""Calls among the notes of a thread: of operators that look at values by themselves, and so are steps as a whole."""
from cygrad._core.graph.tensor cimport TensorImpl

cdef class Call:
    cdef object function, arguments, keywords
    cdef str reason                 # why it is a call
    cdef list inputs, outputs       # tensors among arguments, and among results
    cdef list places                # of them, in this order: (slot, offset, whether it is written)
    cdef list saved                 # which of the tensors that the node of a result keeps are made anew: further places
    cdef tuple needs_grad           # of inputs, where the node is made again
    cdef list layouts               # of the places, in place of the tensors, once there is a program
    cdef int argument_count         # of the places

# Append the tensors in a value and in the tuples, lists and dicts of it.
cdef list tensors_among(object value, list tensors)
# Return the frame for `end_call`: an operator begins, which may look at values.
cdef object begin_call(tuple arguments, dict keywords)
# Note a call in place of its steps, if it has looked at values: they are right for these values only. `changes`: it writes its arguments,
# even if their versions are the same. `special`: flags that no argument may have.
cdef int end_call(object frame, object function, object result, bint changes=*, int special=*) except -1
# Call a function, and note the call if it looks at values. One that has given up returns None, and is not noted; a replay gives up where it
# does. `special`: as for `end_call`.
cdef object noted_call(object function, tuple arguments, dict keywords, bint may_give_up=*, int special=*)
# Return the tensors that the first node of some results keeps.
cdef list tensors_of_node(list results)
