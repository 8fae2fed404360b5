"""The rule of a structural operator: its gradients, and where their functions take their arguments from."""
from cygrad._core.graph.node cimport RESULT

cdef enum:
    GRADIENT = -1
    GRADIENTS = -2              # of all outputs, as a list
    WHOLE = -3                  # the tensor that the gradient is added to
    SHARED = -4                 # the common beginning of several gradients
    FIRST_PARAM = RESULT + 4    # below are inputs and up to four results

cdef class RuleOp:
    cdef readonly str name
    cdef readonly str node_name
    cdef readonly tuple inputs          # names
    cdef readonly tuple params
    cdef tuple recorded                 # the parameters that the core records, in its order; None: they are recorded by name
    cdef tuple param_sources            # of each: twice an input, and 0 for its shape, 1 for its dtype; -1: it is always given
    cdef readonly tuple functions       # of the inputs in order; one, for all, where `each`
    cdef tuple plans                    # where the arguments of each function come from
    cdef tuple reads                    # bit k: input k, bit RESULT: the result, and behind it the further ones
    cdef tuple results                  # names of several, as torch has them
    cdef bint reads_results             # it reads further results
    cdef bint adjoints                  # it is written for complex numbers, with adjoints
    cdef bint each
    cdef readonly bint declared
    cdef bint takes_all                 # reads the gradients of several outputs
    cdef readonly object shared         # computed once for all functions that name it; None: nothing
    cdef tuple shared_plan
    cdef readonly object place          # the function of `place=` or `into=`, None: none
    cdef tuple place_plan               # where its arguments come from
    cdef int shape_param                # the parameter that is the shape of the input
    cdef bint adds                      # it was given as `into=`
    cdef unsigned node_flags            # of its nodes
    cdef bint prepared                  # the operators that its functions call are imported
    cdef bint reads_input(self, int k) except -1

cpdef RuleOp rule_op(str name, tuple params=*)
cpdef RuleOp rule_of(operator)
cdef int prepare(RuleOp op) except -1
