"""The rules of structural operators, by name (see rules.pxd), and their declaration."""
cimport cython

from cygrad._core.graph.node cimport NODE_PLACES, RESULT
from cygrad._core.memory.upward cimport upward


@cython.final
cdef class RuleOp:
    """The gradients of a structural operator: made at the first look-up of its name, complete from its declaration on."""

    def __cinit__(self, str name not None):
        self.name = name

    def __repr__(self):
        return f"<rule of {self.name}>"

    cdef bint reads_input(self, int k) except -1:
        """Return True if a gradient reads input k."""
        if not self.prepared:
            prepare(self)
        return any([read >> k & 1 for read in self.reads])


rules = {}                      # RuleOp by name


cpdef RuleOp rule_op(str name, tuple params=None):
    """Return the rule of that name; it may be declared later. `params` names the values that the core records with it, in their order."""
    cdef RuleOp op = (<dict>rules).get(name)
    if op is None:
        op = (<dict>rules)[name] = RuleOp(name)
    if params is not None:
        op.recorded = params
    return op


def declare_rule(str name not None, *, each=None, str node="", place=None, into=None, bint adjoints=False, tuple results=(),
                 shared=None, **gradients):
    """Declare the gradients of an operator, one function per differentiable input, and return the rule.

    The functions are written as tensor algebra, so that they differentiate again. `dinput=`, `dsrc=`, ... give the gradient for the input
    of that name, None where an input is only read by others; the record has the inputs in this order. The parameters of a function are
    the values it needs: `g` the incoming gradient (`gs`: the gradients of all outputs, None where nothing arrived), inputs, `y` the
    result, `y1`, `y2`, `y3` the further ones, parameters. The node saves these values. `each` serves an operator of any number of inputs:
    it returns the gradients of all of them. `node` is the name of the node in torch, `results` are the names of several results. With
    `adjoints` the functions are written for complex numbers. `shared` is computed once for all functions that name it: the common
    beginning of several gradients.

    An operator that reads a part of one input may say where its gradient belongs, so that it need not be spread over zeros: `place`
    returns the part of `whole`, a tensor of the shape of the input, that it is added to (of several outputs, a tuple of parts);
    `into` adds `g` itself. The shape is the parameter `shape` or `<input>_shape`.
    """
    cdef RuleOp op = rule_op(name)
    functions = {argument[1:]: function for argument, function in gradients.items()}
    if sorted(functions, key=lambda word: functions[word] is None) != [*functions]:
        raise TypeError(f"{name}: of the gradients for {', '.join(functions)}, None comes last, as the input does in the record")
    op.inputs = tuple(functions)
    if each is not None:
        functions = {"each": each}
    op.place, op.adds = into if place is None else place, place is None
    names = [() if function is None else function.__code__.co_varnames[:function.__code__.co_argcount]
             for function in (*functions.values(), shared, op.place)]
    sources = {"g": GRADIENT, "gs": GRADIENTS, "whole": WHOLE, "shared": SHARED} | {word: k for k, word in enumerate(op.inputs)}
    sources |= {word: RESULT + k for k, word in enumerate(("y", "y1", "y2", "y3"))}
    op.params = tuple(dict.fromkeys([word for words in names for word in words if word not in sources]))
    if op.recorded is not None:
        unknown = [word for word in op.params if word not in op.recorded]
        if unknown:
            raise TypeError(f"the gradient of {name} names {', '.join(unknown)}: the core records "
                            f"{', '.join(op.recorded) or 'no parameter'}")
        op.params = op.recorded
    if op.place is not None:
        (op.shape_param,) = [k for k, word in enumerate(op.params) if word in ("shape", f"{op.inputs[0]}_shape")]
        op.node_flags = NODE_PLACES
    of_inputs = {f"{word}_{field}": 2 * k + number for k, word in enumerate(op.inputs) for number, field in enumerate(("shape", "dtype"))}
    op.param_sources = tuple([of_inputs.get(word, -1) for word in op.params])
    sources |= {word: FIRST_PARAM + k for k, word in enumerate(op.params)}
    op.node_name = node or "".join([word.capitalize() for word in name.split("_")]) + "Backward0"
    op.each = each is not None
    op.functions = tuple(functions.values())
    plans = [tuple([sources[word] for word in words]) for words in names]
    op.place_plan = plans.pop()
    op.shared, op.shared_plan = shared, plans.pop()
    op.plans = tuple(plans)
    op.takes_all = any([GRADIENTS in plan for plan in (op.shared_plan, *op.plans)])
    whole_plans = [plan + op.shared_plan if SHARED in plan else plan for plan in op.plans]
    op.reads = tuple([sum([1 << source for source in set(plan) if 0 <= source < FIRST_PARAM]) for plan in whole_plans])
    op.reads_results = any([read >> RESULT > 1 for read in op.reads])
    op.adjoints, op.results = adjoints, results or tuple(["result", *[f"result{k}" for k in range(1, FIRST_PARAM - RESULT)]])
    op.declared = True
    return op


cdef int prepare(RuleOp op) except -1:
    """Import the modules that a backward will need when its first node is made: while Python shuts down nothing can be imported."""
    upward.prepare(op)
    op.prepared = True
    return 0


cpdef RuleOp rule_of(operator):
    """Return the rule of a declared operator; TypeError where it has none."""
    cdef RuleOp op = operator.declaration.rule
    if op is None:
        raise TypeError(f"{operator.name} is recorded, and declares no gradients: declare them, or return the result as it is")
    return op
