"""Nodes of structural operators (see rule_nodes.pxd for the contract)."""
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport intptr_t

from cygrad._core.graph.history cimport attach, connect, edge, with_own_history
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.noted_calls cimport noted_call
from cygrad._core.graph.node cimport NODE_PACKED, NODE_RELEASED, RESULT, Node, finish_node_type
from cygrad._core.graph.rules cimport FIRST_PARAM, GRADIENT, GRADIENTS, SHARED, WHOLE, RuleOp, prepare, rule_of, rule_op
from cygrad._core.graph.saved cimport is_followed, released_error, saved_name
from cygrad._core.graph.tensor cimport TENSOR_TRACKED, VIEW, TensorImpl, needs_grad, stand_alone
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.sizes cimport parse_sizes, sizes_tuple
from cygrad._core.memory.storage cimport dtypes
from cygrad._kernels.drivers.elementwise cimport cg_is_complex, cg_is_differentiable, cg_is_opaque, cg_loops_of
from cygrad._kernels.programs.settings cimport noted
from cygrad._kernels.system.recursion cimport enter_container, leave_container

cdef extern from "Python.h":
    object PyObject_Call(object function, object arguments, PyObject* keywords)

cdef extern from *:
    """
    #include "memory/type_slots.h"
    CG_RECYCLE(rule)
    static __thread unsigned long long cg_skipped_edges = 0;
    static unsigned long long *cg_skipped_edges_address(void) { return &cg_skipped_edges; }
    """
    void cg_recycle_rule(type kind) noexcept
    unsigned long long* cg_skipped_edges_address() noexcept


cdef bint needs_node(TensorImpl a, TensorImpl b):
    """Return True if an operator on these inputs (b may be None) is to be recorded."""
    return (grad_mode()[0] != 0 and (needs_grad(a) or b is not None and needs_grad(b))
            and (is_followed(a) or b is not None and is_followed(b)))


cdef bint holds_data(object value) except -1:
    """Return True if a parameter is, or has among its items, more than numbers, slices and the like; a list is an index."""
    if value is None or isinstance(value, (int, float, str, slice)):
        return False
    if type(value) is tuple:
        enter_container(" while a parameter is read")
        try:
            for item in <tuple>value:
                if holds_data(item):
                    return True
            return False
        finally:
            leave_container()
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
        return ({saved_name(name): k for k, name in enumerate(op.inputs) if reads >> k & 1}
                | {name: RESULT + k for k, name in enumerate(op.results) if reads >> (RESULT + k) & 1})

    cdef dict saved_params(self):
        return dict(zip((<RuleOp>self.op).params, self.parameters()))

    def __getattr__(self, str name):
        return self.saved_attribute(name)

    cdef void release(self):
        """Free the saved values, and the index arrays and tensors among the parameters."""
        Node.release(self)
        if holds_data(self.params):
            self.params = tuple([None if holds_data(value) else value for value in self.params])
            self.flags |= NODE_RELEASED

    cdef bint frees_values(self) except -1:
        return Node.frees_values(self) or holds_data(self.params)

    cdef object call(self, object function, tuple plan, PyObject** grads, list unpacked, TensorImpl whole, object shared=None):
        """Call a function of the rule with the values that it names.

        Rules are written for real numbers, but those with adjoints. Where the gradient is complex, they multiply it by the
        conjugate of the values that are read.
        """
        cdef TensorImpl tensor
        cdef object argument
        cdef tuple arguments = PyTuple_New(len(plan)), params = self.parameters()
        cdef Py_ssize_t position
        cdef int source, k
        for position in range(len(plan)):
            source = plan[position]
            if source >= FIRST_PARAM:
                argument = params[source - FIRST_PARAM]
                if type(argument) is complex and not (<RuleOp>self.op).adjoints:
                    argument = argument.conjugate()
            elif source == GRADIENT:
                argument = <object>grads[0]
            elif source == WHOLE:
                argument = whole
            elif source == SHARED:
                argument = shared
            elif source == GRADIENTS:
                argument = [<object>grads[k] if grads[k] is not NULL else None for k in range(self.outputs)]
            else:
                tensor = self.unpack(source) if unpacked is None else unpacked[source]
                argument = tensor
                if source >= RESULT and grad_mode()[0] and cg_is_differentiable[tensor.dtype_nr]:
                    argument = with_own_history(tensor, self, source - RESULT)
                if (tensor is not None and cg_is_complex[tensor.dtype_nr] and not (<RuleOp>self.op).adjoints
                        and self.arrived_complex(grads)):
                    argument = argument.conj_physical()
            Py_INCREF(argument)
            PyTuple_SET_ITEM(arguments, position, argument)
        return PyObject_Call(function, arguments, NULL) if not noted else noted_call(function, arguments, {})

    cdef bint arrived_complex(self, PyObject** grads) noexcept:
        """Return True if the results were complex; the absolute value of something is not."""
        cdef int k
        for k in range(self.outputs):
            if grads[k] is not NULL:
                return cg_is_complex[(<TensorImpl>grads[k]).dtype_nr] != 0
        return False

    cdef tuple parameters(self):
        """Return the parameters in the order of the rule."""
        return self.params

    cdef int input_sizes(self, intptr_t* sizes) except -1:
        """Write the shape of the input in which `place_in` gives the place, and return its number of dims."""
        return parse_sizes(self.params[(<RuleOp>self.op).shape_param], sizes)

    cdef object place_in(self, TensorImpl whole, PyObject** grads):
        """Return the part, or the parts, of a tensor in the shape of the input where the gradient belongs; or add that there."""
        cdef RuleOp op = <RuleOp>self.op
        return self.call(op.place, op.place_plan, grads, None, whole)

    cdef intptr_t run_in(self, TensorImpl whole, TensorImpl g) noexcept:
        """Return at which element of a row-major whole the place of a row-major gradient begins; -1 where it is not known to be one run."""
        return -1

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef RuleOp op = <RuleOp>self.op
        cdef TensorImpl part
        cdef list unpacked = None
        cdef object shared = None
        cdef unsigned long long skipped = cg_skipped_edges_address()[0]
        cdef int k, output_nr
        cg_skipped_edges_address()[0] = 0       # the functions of gradients may apply other nodes
        if self.flags & NODE_RELEASED:
            raise released_error()
        for k in range(self.outputs if op.takes_all else 1):
            if grads[k] is not NULL:
                break
        else:
            return 0
        if self.flags & NODE_PACKED:
            unpacked = self.unpack_all()
        parts = self.call(op.functions[0], op.plans[0], grads, unpacked, None) if op.each else None
        for k in range(self.edges):
            if edge(self, k, &output_nr) is None or k < EDGE_BITS and skipped >> k & 1:
                continue
            if op.shared is not None and shared is None and SHARED in <tuple>op.plans[k]:
                shared = self.call(op.shared, op.shared_plan, grads, unpacked, None)
            part = <TensorImpl?>(parts[k] if op.each else self.call(op.functions[k], op.plans[k], grads, unpacked, None, shared))
            Py_INCREF(part)
            results[k] = <PyObject*>part
        return 0


cdef unsigned long long* skipped_edges() noexcept:
    return cg_skipped_edges_address()


finish_node_type(RuleNode)
cg_recycle_rule(RuleNode)


cdef RuleNode rule_node(RuleOp op, TensorImpl a, TensorImpl b, TensorImpl result, tuple params, int outputs):
    """Return the node of a result with one or two inputs (b may be None); `params` in the order of the rule."""
    cdef RuleNode node = RuleNode.__new__(RuleNode)
    cdef int reads = 0
    init_rule_node(node, op, outputs)
    node.params = params
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
    return attach(result, rule_node(op, a, b, result, params, outputs), 0)


cdef int record_outputs(RuleOp op, TensorImpl a, list results, tuple params) except -1:
    """Make the node of several results of one input; the rule reads neither of them."""
    cdef Py_ssize_t k
    record(op, a, None, results[0], params, <int>len(results))
    for k in range(1, len(results)):
        attach(results[k], (<TensorImpl>results[0]).node, <int>k)
    return 0


cdef RuleOp AS_STRIDED = rule_op("as_strided", ("geometry",))


cdef int record_view(TensorImpl base, TensorImpl view, tuple geometry) except -1:
    """Make the node of a view that is a given part of its base, in place of the one it has."""
    return record(AS_STRIDED, base, None, view, (geometry,))


cdef RuleNode rule_node_of_inputs(RuleOp op, tuple inputs, TensorImpl result, tuple params, int outputs):
    """Return the node of a result with any number of inputs, which may be None; of a rule without `each` up to three are saved.

    Of one that reads further results none is saved.
    """
    cdef RuleNode node = RuleNode.__new__(RuleNode)
    cdef TensorImpl tensor
    cdef bint tracked = False
    cdef int k, reads = 0
    init_rule_node(node, op, outputs)
    node.params = params
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
    if reads >> RESULT & 1 and not op.reads_results:
        node.save(RESULT, result)
    if tracked:
        track_reachable(node)
    return node


cdef bint any_needs_node(tuple inputs):
    """Return True if an operator on these inputs, which may be None, is to be recorded."""
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


cdef int stand_alone_unless_shared(tuple inputs, TensorImpl result) except -1:
    """Have a result that was made as a view, but of none of the inputs, be a tensor of its own."""
    cdef TensorImpl tensor
    if not result.flags & VIEW:
        return 0
    for tensor in inputs:
        if tensor is not None and tensor.storage is result.storage:
            return 0
    stand_alone(result)
    return 0


cdef tuple params_of(RuleOp op, tuple inputs, dict by_name):
    """Return the parameters of a rule in its order; `<input>_shape` and `<input>_dtype` are the input's where they are not given."""
    cdef tuple params
    cdef TensorImpl tensor
    cdef PyObject* known
    cdef object value
    cdef Py_ssize_t k
    cdef int source
    if not op.prepared:
        prepare(op)
    if not op.each and len(inputs) != len(op.inputs):
        raise TypeError(f"{op.name} is recorded with {len(inputs)} inputs, for {len(op.inputs)} of which it declares a gradient "
                        f"({', '.join([f'd{word}' for word in op.inputs])}): declare one for each, None if it is only read")
    params = PyTuple_New(len(op.params))
    for k in range(len(op.params)):
        known = PyDict_GetItemWithError(by_name, op.params[k])
        source = op.param_sources[k]
        if known is not NULL:
            value = <object>known
        elif source < 0:
            raise TypeError(f"the gradient of {op.name} names {op.params[k]}, which is not recorded: give it by that name")
        else:
            tensor = inputs[source >> 1]
            value = None if tensor is None else dtypes[tensor.dtype_nr] if source & 1 else sizes_tuple(tensor.ndim, tensor.sizes)
        Py_INCREF(value)
        PyTuple_SET_ITEM(params, k, value)
    return params


cdef TensorImpl with_node(RuleOp op, tuple inputs, TensorImpl result, int outputs, dict params):
    attach(result, rule_node_of_inputs(op, inputs, result, params_of(op, inputs, params), outputs), 0)
    return result


def record_rule(RuleOp op not None, tuple inputs, TensorImpl result not None, **params):
    """Record an operator that was computed without recording: a node with these inputs (one may be None) and parameters, by name."""
    stand_alone_unless_shared(inputs, result)
    return with_node(op, inputs, result, 1, params) if any_needs_node(inputs) else result


cdef TensorImpl in_dtype_of(tuple inputs, TensorImpl result):
    """Return a result in the dtype of the first input, where that is stored only and NumPy has computed in another."""
    cdef TensorImpl first = inputs[0] if inputs else None
    if first is None or not cg_is_opaque[first.dtype_nr] or cg_loops_of[first.dtype_nr] != result.dtype_nr:
        return result
    return <TensorImpl>(<object>result).detach().to(dtypes[first.dtype_nr])


def recorded(operator, tuple inputs, TensorImpl result not None, int outputs=1, /, **params):
    """Return a result that a declared operator computed without recording, recorded: with a node of these inputs and parameters."""
    result = in_dtype_of(inputs, result)
    stand_alone_unless_shared(inputs, result)
    return with_node(rule_of(operator), inputs, result, outputs, params) if any_needs_node(inputs) else result


def record_several(RuleOp op not None, tuple inputs, tuple results, **params):
    """Record an operator of several results, which are the outputs of one node; its rule may read up to four of them."""
    cdef RuleNode node
    cdef int k, reads = 0
    results = tuple([in_dtype_of(inputs, result) for result in results])
    for result in results:
        stand_alone_unless_shared(inputs, result)
    if any_needs_node(inputs):
        node = rule_node_of_inputs(op, inputs, results[0], params_of(op, inputs, params), <int>len(results))
        for k in range(node.outputs):
            if cg_is_differentiable[(<TensorImpl>results[k]).dtype_nr]:
                attach(results[k], node, k)
        if op.reads_results:
            for k, tensor in enumerate(inputs):
                if tensor is not None and needs_grad(tensor):
                    reads |= <int>op.reads[k]
            node.save_results(results, reads >> RESULT)
    return results
