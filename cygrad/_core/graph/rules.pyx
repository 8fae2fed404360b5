# cython: language_level=3, boundscheck=False, wraparound=False
"""Structural operators in the graph (see rules.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cygrad._core.graph.node cimport (NODE_PACKED, NODE_RELEASED, RESULT, Node, attach, connect, edge, finish_node_type, grad_mode,
                                      init_node, with_own_history)
from cygrad._core.graph.saved cimport is_followed, released_error, saved_name
from cygrad._core.graph.tensor cimport TENSOR_TRACKED, VIEW, TensorImpl, needs_grad, stand_alone
from cygrad._core.graph.tracking cimport track_reachable

from cygrad.ops import DATA, RULES

cdef enum:
    GRADIENT = -1
    GRADIENTS = -2              # of all outputs, as a list
    FIRST_PARAM = RESULT + 1    # below are inputs and the result


@cython.final
cdef class RuleOp:
    """A structural operator of the table."""

    def __cinit__(self, rule):
        self.rule, self.name, self.params = rule, rule.name, rule.params
        self.node_name = rule.node
        self.each = rule.each is not None
        sources = {"g": GRADIENT, "gs": GRADIENTS, "y": RESULT}
        sources |= {name: k for k, name in enumerate(rule.inputs)}
        sources |= {name: FIRST_PARAM + k for k, name in enumerate(rule.params)}
        keys = ["each"] if self.each else rule.inputs
        self.functions = (rule.each,) if self.each else tuple([rule.gradients[name] for name in rule.inputs])
        self.plans = tuple([tuple([sources[name] for name in rule.names.get(key, ())]) for key in keys])
        self.may_hold_data = not DATA.isdisjoint(rule.params)
        self.gathers = any([GRADIENTS in plan for plan in self.plans])
        self.reads = tuple([sum([1 << source for source in plan if 0 <= source <= RESULT]) for plan in self.plans])

    cdef bint reads_input(self, int k):
        """Say whether a gradient reads input k."""
        return any([read >> k & 1 for read in self.reads])


rules = {name: RuleOp(rule) for name, rule in RULES.items()}


cdef object preparation = None


def set_preparation(function):
    """Set what imports what the functions of a rule call; the module of tensors, above, brings it."""
    global preparation
    preparation = function


cdef int prepare(RuleOp op) except -1:
    """Import what a backward will need when its first node is made: while Python shuts down nothing can be imported."""
    preparation(op.functions)
    op.prepared = True
    return 0


cdef RuleOp rule_op(str name):
    return rules[name]


cdef bint wanted(TensorImpl a, TensorImpl b):
    """Say whether an operator on these inputs (b may be None) is to be recorded."""
    return (grad_mode()[0] != 0 and (needs_grad(a) or b is not None and needs_grad(b))
            and (is_followed(a) or b is not None and is_followed(b)))


cdef bint holds_data(object value):
    """Say whether a parameter is, or has among its items, more than numbers, slices and the like."""
    if type(value) is tuple:
        return any([holds_data(item) for item in <tuple>value])
    return isinstance(value, (TensorImpl, list)) or hasattr(value, "__array__") and getattr(value, "shape", ()) != ()


cdef class RuleNode(Node):
    """A recorded structural operator."""

    cdef str node_name(self):
        return (<RuleOp>self.op).node_name

    cdef dict saved_places(self):
        cdef RuleOp op = <RuleOp>self.op
        cdef int k, reads = 0
        for k in range(0 if op.each else <int>len(op.reads)):
            reads |= <int>op.reads[k]
        places = {saved_name(name): k for k, name in enumerate(op.rule.inputs) if reads >> k & 1}
        return places | {"result": RESULT} if reads >> RESULT & 1 else places

    cdef dict saved_params(self):
        return dict(zip((<RuleOp>self.op).params, self.params))

    def __getattr__(self, str name):
        return self.saved_attribute(name)

    cdef void release(self):
        """Free the saved values, and the index arrays and tensors among the parameters."""
        Node.release(self)
        if (<RuleOp>self.op).may_hold_data and any([holds_data(value) for value in self.params]):
            self.params = tuple([None if holds_data(value) else value for value in self.params])
            self.flags |= NODE_RELEASED

    cdef object call(self, RuleOp op, int function, PyObject** grads, list unpacked):
        """Call a function of the rule with what it names."""
        cdef TensorImpl tensor
        cdef list arguments = []
        cdef int source, k
        for source in op.plans[function]:
            if source == GRADIENT:
                arguments.append(<object>grads[0])
            elif source == GRADIENTS:
                arguments.append([<object>grads[k] if grads[k] is not NULL else None for k in range(self.outputs)])
            elif source >= FIRST_PARAM:
                arguments.append(self.params[source - FIRST_PARAM])
            else:
                tensor = self.unpack(source) if unpacked is None else unpacked[source]
                arguments.append(with_own_history(tensor, self, 0) if source == RESULT and grad_mode()[0] else tensor)
        return op.functions[function](*arguments)

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef RuleOp op = <RuleOp>self.op
        cdef TensorImpl part
        cdef list unpacked = None
        cdef int k, output_nr
        if self.flags & NODE_RELEASED:
            raise released_error()
        for k in range(self.outputs if op.gathers else 1):
            if grads[k] is not NULL:
                break
        else:
            return 0
        if self.flags & NODE_PACKED:
            unpacked = self.unpack_all()
        parts = self.call(op, 0, grads, unpacked) if op.each else None
        for k in range(self.edges):
            if edge(self, k, &output_nr) is None:
                continue
            part = <TensorImpl?>(parts[k] if op.each else self.call(op, k, grads, unpacked))
            Py_INCREF(part)
            results[k] = <PyObject*>part
        return 0


finish_node_type(RuleNode)


cdef RuleNode node_of(RuleOp op, TensorImpl a, TensorImpl b, TensorImpl result, tuple params, int outputs):
    """Return the node of a result with one or two inputs (b may be None); `params` in the order of the rule."""
    cdef RuleNode node = RuleNode.__new__(RuleNode)
    cdef int reads = 0
    if not op.prepared:
        prepare(op)
    init_node(node, outputs)
    node.op, node.params = op, params
    connect(node, 0, a)
    if needs_grad(a):
        reads = op.reads[0]
    if b is not None:
        connect(node, 1, b)
        if needs_grad(b):
            reads |= <int>op.reads[1]
    if reads & 1:
        node.save(0, a)
    if reads & 2:
        node.save(1, b)
    if reads >> RESULT & 1:
        node.save(RESULT, result)
    if a.flags & TENSOR_TRACKED or b is not None and b.flags & TENSOR_TRACKED:
        track_reachable(node)
    return node


cdef int record(RuleOp op, TensorImpl a, TensorImpl b, TensorImpl result, tuple params, int outputs=1) except -1:
    """Make the node of a result."""
    return attach(result, node_of(op, a, b, result, params, outputs), 0)


cdef int record_outputs(RuleOp op, TensorImpl a, list results, tuple params) except -1:
    """Make the node of several results of one input; the rule reads neither of them."""
    cdef Py_ssize_t k
    record(op, a, None, results[0], params, <int>len(results))
    for k in range(1, len(results)):
        attach(results[k], (<TensorImpl>results[0]).node, <int>k)
    return 0


cdef int record_view(TensorImpl base, TensorImpl view, tuple geometry) except -1:
    """Make the node of a view that is a given part of its base, in place of the one it has."""
    return record(rules["as_strided"], base, None, view, (geometry,))


cdef RuleNode node_of_inputs(RuleOp op, tuple inputs, TensorImpl result, tuple params, int outputs):
    """Return the node of a result with any number of inputs, which may be None; of a rule without `each` up to three are saved."""
    cdef RuleNode node = RuleNode.__new__(RuleNode)
    cdef TensorImpl tensor
    cdef bint tracked = False
    cdef int k, reads = 0
    if not op.prepared:
        prepare(op)
    init_node(node, outputs)
    node.op, node.params = op, params
    for k, tensor in enumerate(inputs):
        if op.each or op.functions[k] is not None:
            connect(node, k, tensor)
        if tensor is not None:
            tracked = tracked or tensor.flags & TENSOR_TRACKED != 0
            if not op.each and needs_grad(tensor):
                reads |= <int>op.reads[k]
    for k in range(RESULT):
        if reads >> k & 1:
            node.save(k, inputs[k])
    if reads >> RESULT & 1:
        node.save(RESULT, result)
    if tracked:
        track_reachable(node)
    return node


cdef bint any_wanted(tuple inputs):
    """Say whether an operator on these inputs, which may be None, is to be recorded."""
    cdef TensorImpl tensor
    cdef bint needed = False, followed = False
    if not grad_mode()[0]:
        return False
    for tensor in inputs:
        if tensor is not None:
            needed = needed or needs_grad(tensor)
            followed = followed or is_followed(tensor)
            if needed and followed:
                return True
    return False


cdef int own(tuple inputs, TensorImpl result) except -1:
    """Have a result that was made as a view, but of none of the inputs, be a tensor of its own."""
    cdef TensorImpl tensor
    if not result.flags & VIEW:
        return 0
    for tensor in inputs:
        if tensor is not None and tensor.storage is result.storage:
            return 0
    stand_alone(result)
    return 0


def record_rule(str name, tuple inputs, TensorImpl result not None, tuple params, int outputs=1):
    """Record a structural operator that was computed without recording; for operators written in Python. An input may be None."""
    own(inputs, result)
    if any_wanted(inputs):
        attach(result, node_of_inputs(rules[name], inputs, result, params, outputs), 0)
    return result


def record_several(str name, tuple inputs, tuple results, tuple params):
    """Record an operator of several results, which are the outputs of one node; its rule may read the first of them."""
    cdef RuleNode node
    cdef int k
    for result in results:
        own(inputs, result)
    if any_wanted(inputs):
        node = node_of_inputs(rules[name], inputs, results[0], params, <int>len(results))
        for k in range(node.outputs):
            attach(results[k], node, k)
    return results
