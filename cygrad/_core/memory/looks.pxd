"""Looks: code that reads values by itself, or gives memory away, where this thread takes notes (graph.notes). They make notes useless."""

cdef class Looks:
    cdef readonly long long count
    cdef readonly str reason        # of the first one
    cdef readonly object line       # where that was, outside of the package: (file, line), or None
    cdef readonly bint lasts        # a look that a call of an operator would not repeat, as its result was recorded with the value
    cdef bint is_package            # the package asks, not the user
    cdef bint repeats               # the code runs besides the call of the user
    cdef unsigned long long newest_node     # of the graph, from before; accumulators of leaves count as newer

cdef int count_looks_in(Looks looks) except -1      # looks of this thread; None: nowhere
cdef void note_look(str reason) noexcept
cdef int note_question(str reason) except -1        # note a look, if it is not the package that asks
# Call a function for the package, which user code may call, too: questions in it are no looks.
cdef object asked_by_package(object function, tuple arguments)
cdef void note_lasting_look(str reason) noexcept    # note a look that ends the capture inside of a call of an operator, too
cdef void note_node(unsigned long long sequence_nr) noexcept    # note a look at a node of the graph, if it is from before
cdef object line_of_caller()        # the file and the line of the innermost code outside of the package that runs, or None
cpdef int refuse_change(str reason) except -1       # RuntimeError in code that runs besides the call of the user
