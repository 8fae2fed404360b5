"""Calls among the notes of a thread (see noted_calls.pxd for the contract)."""
cimport cython

from cygrad._core.graph.notes cimport CALL, Note, Notes, Place, current_notes, is_noting
from cygrad._core.graph.tensor cimport SPECIAL, TensorImpl, needs_grad, new_address, tensor_type
from cygrad._core.memory.storage cimport DType, owner_of, version_of
from cygrad._kernels.system.recursion cimport enter_container, leave_container


cdef list tensors_among(object value, list tensors):
    if isinstance(value, TensorImpl):
        tensors.append(value)
    elif isinstance(value, (tuple, list, dict)):
        enter_container(" while arguments are read")
        try:
            for item in value.values() if isinstance(value, dict) else value:
                tensors_among(item, tensors)
        finally:
            leave_container()
    return tensors


cdef set plain_types = set()     # classes whose values have the same meaning each time


def declare_plain(type kind not None):
    """Say of a class that its values have the same meaning each time: they may be arguments of calls in programs."""
    plain_types.add(kind)


cdef bint is_plain(object value) except -1:
    """Return True if a value is a tensor, or has the same meaning each time, or is a tuple, list or dict of such."""
    if type(value) in plain_types:
        return True
    if isinstance(value, slice):
        value = value.start, value.stop, value.step
    if isinstance(value, (tuple, list, dict)):
        enter_container(" while arguments are read")
        try:
            for item in value.values() if isinstance(value, dict) else value:
                if not is_plain(item):
                    return False
            return True
        finally:
            leave_container()
    return value is None or value is Ellipsis or isinstance(value, (TensorImpl, int, float, complex, str, DType))


cdef object with_own_containers(object value):
    """Return a value with copies of its lists and dicts, which the user may change."""
    if not isinstance(value, (list, tuple, dict)):
        return value
    enter_container(" while arguments are read")
    try:
        if type(value) is dict:
            return {key: with_own_containers(item) for key, item in (<dict>value).items()}
        return type(value)([with_own_containers(item) for item in value]) if type(value) in (list, tuple) else value
    finally:
        leave_container()


@cython.final
cdef class Call:
    """A call of a function that is no kernel: its arguments and results have tensors, which a replay makes over slots."""


cdef object begin_call(tuple arguments, dict keywords):
    cdef Notes notes = current_notes()
    cdef list tensors = tensors_among(keywords, tensors_among(arguments, []))
    cdef list versions = [version_of((<TensorImpl>tensor).storage) for tensor in tensors]
    if notes is not None and notes.before is not None:
        for tensor in tensors:
            notes.keep_value((<TensorImpl>tensor).storage)
    return notes, notes.count, notes.looks.count, arguments, keywords, tensors, versions


cdef int end_call(object frame, object function, object result, bint changes=False, int special=SPECIAL) except -1:
    cdef Notes notes
    cdef Call call
    cdef Note* note
    cdef TensorImpl tensor
    cdef list tensors, versions, results = tensors_among(result, [])
    cdef long long looks
    cdef Py_ssize_t count, k
    cdef set storages
    notes, count, looks, arguments, keywords, tensors, versions = frame
    if notes.looks.count == looks or notes.looks.lasts or notes is not current_notes() or not is_plain((arguments, keywords, result)):
        return 0
    storages = {id(owner_of((<TensorImpl>tensor).storage)) for tensor in tensors}
    for tensor in tensors + results:
        if tensor.flags & special or type(tensor) is not tensor_type or owner_of(tensor.storage).exports:
            return 0
    for tensor in results:
        if id(owner_of(tensor.storage)) in storages and not any([tensor is other for other in tensors]):
            return 0        # a view of an argument
    if notes.refuses_numbers(count):
        return 0
    notes.drop(count)
    notes.looks.count = looks
    call = Call.__new__(Call)
    call.function, call.reason = function, notes.looks.reason
    call.arguments, call.keywords = with_own_containers(arguments), with_own_containers(keywords)
    call.inputs, call.outputs, call.places = tensors, [each for each in results if not any([each is other for other in tensors])], []
    for k, tensor in enumerate(tensors):
        if changes or versions[k] != version_of(tensor.storage):
            notes.thaw(tensor)
    note = notes.next_note()
    note.name, note.kind, note.outcome = "call", CALL, <int>len(notes.calls)
    for k, tensor in enumerate(tensors):
        call.places.append(place_for(notes, tensor, not changes, changes or versions[k] != version_of(tensor.storage)))
    for tensor in call.outputs:
        call.places.append(place_for(notes, tensor, False, True))
    note_saved(notes, call)
    notes.count += 1
    notes.calls.append(call)
    return 0


cdef int note_saved(Notes notes, Call call) except -1:
    """Add the tensors that the node of the results saves and the call has computed by itself: a backward reads them."""
    cdef TensorImpl tensor
    cdef list saved = tensors_of_node(call.outputs)
    cdef int number
    call.saved = []
    for k, tensor in enumerate(saved):
        number = notes.number_of(owner_of(tensor.storage)) if notes.is_fresh(owner_of(tensor.storage)) else 0
        if number < 0 or notes.slots[number].lost and not notes.slots[number].written:
            if owner_of(tensor.storage).exports:
                return 0
            call.saved.append(k)
            call.places.append(place_for(notes, tensor, False, True))
            call.outputs.append(tensor)
    call.needs_grad = tuple([needs_grad(<TensorImpl>tensor) for tensor in call.inputs]) if call.saved else ()
    return 0


cdef list tensors_of_node(list results):
    cdef TensorImpl tensor
    cdef list saved = []
    for tensor in results:
        if tensor.node is not None:
            tensors_among((tensor.node.saved0, tensor.node.saved1, tensor.node.saved2, tensor.node.result, tensor.node.params), saved)
            break
    return saved


cdef object noted_call(object function, tuple arguments, dict keywords, bint may_give_up=False, int special=SPECIAL):
    frame = begin_call(arguments, keywords) if is_noting() else None
    result = function(*arguments, **keywords)
    if frame is not None and may_give_up and result is None:
        (<Notes>frame[0]).drop(frame[1])
        (<Notes>frame[0]).looks.count = frame[2]
    elif frame is not None:
        end_call(frame, function, result, False, special)
    return result


def call_again(object function not None, tuple arguments not None, dict keywords not None):
    """Call a function that looks at values and has the same meaning each time: a program calls it again."""
    return noted_call(function, arguments, keywords)


cdef tuple place_for(Notes notes, TensorImpl tensor, bint reads, bint writes):
    """Return the slot and the offset of a tensor, and whether a call writes there."""
    cdef Place place
    notes.add_place(&place, tensor, new_address(tensor), reads, writes)
    return place.slot, place.offset, writes
