"""Notes of a thread's steps (see notes.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.launches cimport NO_TRAITS, Launch, Traits
from cygrad._core.graph.node cimport last_sequence_nr
from cygrad._core.graph.tensor cimport REQUIRES_GRAD, TensorImpl, special_active
from cygrad._core.memory.looks cimport Looks, count_looks_in, line_of_caller, note_look, refuse_change
from cygrad._core.memory.sizes cimport bytes_between
from cygrad._core.memory.storage cimport VISIBLE_BITS, Storage, is_foreign, noting_number, owner_of, settle, settle_all
from cygrad._core.memory.writes cimport is_stale, note_write
from cygrad._kernels.drivers.copying cimport Move, run_move
from cygrad._kernels.drivers.elementwise cimport CG_UINT8, cg_itemsize

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef extern from *:
    """
    static __thread void *cg_notes;
    static void **cg_notes_place(void) { return &cg_notes; }
    """
    void** cg_notes_place() noexcept nogil

cdef unsigned long long last_notes = 0
cdef unsigned long long FNV_PRIME = 0x100000001b3       # Fowler, Noll and Vo's hash, word by word
cdef unsigned long long FIXED = <unsigned long long>-1     # in place of the number of a slot
cdef unsigned long long SLOT_BITS = 0xffffffff          # of `Storage.note`; as a literal, it would be a Python int
cdef const char* NUMBER = "value of an index"

cdef enum:
    OWN_REFERENCES = 2      # to a tensor among the notes of gradients: the note, and the variable that reads it


cpdef Notes current_notes():
    """Return the notes that this thread takes, or None."""
    return <Notes>cg_notes_place()[0] if cg_notes_place()[0] is not NULL else None


cdef dict part_copies_of_notes():
    """Return the copies of parts of the notes that this thread takes; None if these follow no places."""
    return None if current_notes() is None else current_notes().part_copies


def end_notes(Notes outer):
    """End the notes that this thread has begun since it took some others, or none."""
    while current_notes() is not outer:
        current_notes().__exit__()


cpdef bint is_noting() noexcept:
    return cg_notes_place()[0] is not NULL


cdef void* with_room(void* items, Py_ssize_t count, Py_ssize_t* room, size_t itemsize) except NULL:
    cdef void* memory = items
    if count == room[0]:
        memory = realloc(items, (2 * room[0] + 16) * itemsize)
        if memory is NULL:
            raise MemoryError()
        room[0] = 2 * room[0] + 16
    return memory


def state_now(list memory not None, list gradients not None):
    """Return memory with the versions and bytes that it has now, (Storage, version, bytes) each, and tensors with their gradients."""
    cdef Storage storage
    return ([(storage, storage.version, (<const char*>storage.data)[:len(values)]) for storage, _, values in memory],
            [(tensor, (<TensorImpl?>tensor).gradient) for tensor, _ in gradients])


def put_back(list memory not None, list gradients not None):
    """Give memory and tensors the state of another time, as `state_now` returns it; this needs no memory."""
    cdef Storage storage
    cdef intptr_t nbytes, step = 1
    for tensor, gradient in gradients:
        (<TensorImpl?>tensor).gradient = gradient
    for storage, version, values in memory:
        settle(storage)
        memcpy(storage.data, <const char*>values, len(values))
        storage.version = version
        if storage.writes is not NULL:      # the latest writes that it lists were undone: all of it was written before these
            nbytes = <intptr_t>storage.nbytes
            storage.version -= 1ULL << VISIBLE_BITS
            note_write(storage, storage.data, 1, 1, &nbytes, &step)


@cython.final
@cython.binding(False)
cdef class Notes:
    """Notes in a `with` statement; they may be nested, and the innermost ones note."""

    def __cinit__(self, bint follows_places=False):
        global last_notes
        last_notes += 1
        self.number = last_notes << 32
        self.outside, self.constants, self.by_address, self.owners, self.calls = {}, {}, {}, [], []
        self.gradients, self.looks, self.hooks, self.generators, self.leaves, self.arrays = {}, Looks(), [], {}, {}, []
        self.replaced, self.independent_histories, self.reached = {}, [], {}
        self.first_message, self.looks.newest_node = -1, last_sequence_nr
        self.part_copies, self.thawed, self.patterns, self.places = {} if follows_places else None, [], [], []

    def __dealloc__(self):
        cdef Py_ssize_t k
        for k in range(self.count):
            if not self.notes[k].borrowed:
                free(self.notes[k].arguments)
        free(self.notes)
        free(self.slots)

    def __len__(self):
        return self.count

    def __enter__(self):
        global special_active
        settle_all()
        settings.count_noting(1)
        special_active += 1
        self.outer = current_notes()
        Py_INCREF(self)
        cg_notes_place()[0] = <void*>self
        noting_number()[0] = self.number
        count_looks_in(self.looks)
        return self

    def __exit__(self, *_):
        global special_active
        cg_notes_place()[0] = NULL if self.outer is None else <void*>self.outer
        noting_number()[0] = 0 if self.outer is None else (<Notes>self.outer).number
        count_looks_in(None if self.outer is None else (<Notes>self.outer).looks)
        settings.count_noting(-1)
        special_active -= 1
        Py_XDECREF(<PyObject*>self)

    def changed_gradients(self):
        """Return the tensors whose `.grad` was touched, each with the gradient that it had before; not those that nothing else refers to
        any more, or whose memory is new and whose `.grad` was only read.
        """
        cdef TensorImpl tensor
        cdef list changed = []
        for pair in self.gradients.values():
            tensor = (<tuple>pair)[0]
            if Py_REFCNT(<PyObject*>tensor) > OWN_REFERENCES and (tensor.gradient is not (<tuple>pair)[1]
                                                                  or not self.is_fresh(owner_of(tensor.storage))):
                changed.append(pair)
        return changed

    def is_new_leaf(self, TensorImpl tensor not None):
        """Return True if a tensor has required no gradient before the steps."""
        required = self.leaves.get(id(tensor), self.flags.get(id(tensor)) if self.flags else None)
        return required is not None and not required[1]

    def has_other_flag(self, TensorImpl tensor not None):
        """Return True if the steps have set whether a tensor requires a gradient to another value than it had."""
        required = self.leaves.get(id(tensor))
        return required is not None and <unsigned>required[1] != tensor.flags & REQUIRES_GRAD

    def keep_values(self):
        """Keep the values of memory from before that steps are about to change, for `changes`."""
        self.before = {}

    def changes(self):
        """Return the state that memory, gradients and generators had before the steps: memory and gradients as `put_back` takes them, and
        positions of generators."""
        before, self.before = self.before, None
        return [*before.values()], [pair for pair in self.changed_gradients() if not self.is_new_leaf(pair[0])], self.generators

    def begin_repeated(self):
        """Say that from now on steps run besides the call of the user: `restore` undoes their changes."""
        if self.repeats:
            return
        self.repeats = self.looks.repeats = True
        self.first_repeated, self.before, self.flags, self.handles, self.generators = self.slot_count, {}, {}, [], {}
        self.flags_before_backward = self.handles_before_backward = 0
        self.before_gradients = {number: (<TensorImpl>(<tuple>pair)[0]).gradient for number, pair in self.gradients.items()}

    def begin_backward(self):
        """Say that from now on the steps are a backward's: other tensors than the function's own must keep their flags and hooks."""
        self.flags_before_backward, self.handles_before_backward = len(self.flags), len(self.handles)

    def restore(self):
        """Give memory from before the repeated steps the values and versions that it had, and tensors their gradients."""
        cdef TensorImpl tensor
        if self.before is None:
            return
        for number, pair in enumerate(self.flags.values()):
            tensor = (<tuple>pair)[0]
            if Py_REFCNT(<PyObject*>tensor) > OWN_REFERENCES and tensor.flags & REQUIRES_GRAD != <unsigned>(<tuple>pair)[1]:
                tensor.flags ^= REQUIRES_GRAD
                self.changes_tensors |= number >= self.flags_before_backward
        tensor = pair = None
        self.flags.clear()      # tensors of the steps die here, and hooks on them
        for number, handle in enumerate(self.handles):
            if handle.hooks_dict_ref() is not None:
                handle.remove()
                self.changes_tensors |= number >= self.handles_before_backward
        put_back([*self.before.values()], [((<tuple>pair)[0], self.before_gradients.get(number, (<tuple>pair)[1]))
                                           for number, pair in self.gradients.items()])
        self.before = None

    cdef bint is_from_before(self, Storage owner) noexcept:
        """Return True for memory that is older than the repeated steps."""
        return not self.is_fresh(owner) or 0 <= self.number_of(owner) < self.first_repeated

    cdef int keep_value(self, Storage storage) except -1:
        """Keep the value of memory that a step is about to change, if it is from before."""
        cdef Storage owner = owner_of(storage)
        if not self.is_from_before(owner):
            return 0
        for changed in (owner, storage):
            if id(changed) not in self.before:
                values = (<const char*>owner.data)[:owner.nbytes] if changed is owner else b""
                self.before[id(changed)] = changed, (<Storage>changed).version, values
        return 0

    def decides_after(self, Py_ssize_t first):
        """Return True if a step from a number on is a decision, which may give a replay up."""
        cdef Py_ssize_t k
        return any([self.notes[k].kind == DECISION for k in range(first, self.count)])

    def reads_numbers(self, Py_ssize_t first=0):
        """Return True if a step from a number on has read a number, with which code of Python computes."""
        cdef Py_ssize_t k
        return any([self.notes[k].name is NUMBER for k in range(first, self.count)])

    def touches(self, TensorImpl tensor not None):
        """Return True if a step has touched the memory of a tensor."""
        return self.number_of(owner_of(tensor.storage)) >= 0

    def is_part_copy(self, TensorImpl tensor not None):
        return id(owner_of(tensor.storage)) in self.part_copies

    cdef bint refuses_numbers(self, Py_ssize_t first) except -1:
        """Note a look, and return True, if steps from a number on, which are to become a call, have read a number."""
        if self.reads_numbers(first):
            note_look("its value is an index, or a number of an operator")
            return True
        return False

    def path(self):
        """Return a number for the steps so far: another way through a function has another one.

        Of memory from outside only distances count: an argument may be a view at another offset.
        """
        cdef Note* note
        cdef Place* place
        cdef intptr_t start
        cdef unsigned long long path = <unsigned long long>self.slot_count
        cdef Py_ssize_t k
        cdef int j
        for k in range(self.count):
            note = &self.notes[k]
            path = (path ^ <size_t>note.run ^ <size_t>note.outcome) * FNV_PRIME
            for j in range(note.count):
                place = &note.places[j]
                start = self.slots[place.slot].first if self.slots[place.slot].origin == OUTSIDE else 0
                path = (path ^ <size_t>place.slot) * FNV_PRIME
                path = (path ^ <size_t>(place.first - start) ^ <size_t>(place.end - start) << 32) * FNV_PRIME
        return path

    def forget_steps(self):
        """Forget the steps so far: later ones may read the values that they have made."""
        cdef Py_ssize_t k
        self.free_steps(0)
        self.forgotten_slots, self.thawed = self.slot_count, []
        for k in range(self.slot_count):
            self.slots[k].met = -1

    cdef void forget_tensors(self):
        """Let go of tensors and their memory: there is a program, and the steps are all that it needs."""
        self.outside = self.by_address = self.gradients = self.before_gradients = self.flags = self.leaves = None
        self.hooks = self.handles = self.thawed = self.patterns = self.places = self.independent_histories = None

    # ----- Slots -----
    cdef bint is_fresh(self, Storage storage) noexcept:
        return storage.note & ~SLOT_BITS == self.number

    cdef int number_of(self, Storage storage):
        """Return the slot of a storage that owns its memory; -1: no step has touched it."""
        if self.is_fresh(storage):
            return <int>(storage.note & SLOT_BITS) - 1
        return self.by_address.get(<size_t><void*>storage, -1)

    cdef int new_slot(self, Origin origin, size_t nbytes) except -1:
        cdef Slot* slot
        self.slots = <Slot*>with_room(self.slots, self.slot_count, &self.slot_room, sizeof(Slot))
        slot = &self.slots[self.slot_count]
        memset(slot, 0, sizeof(Slot))
        slot.origin, slot.nbytes, slot.met, slot.first = origin, nbytes, <int>self.count, <intptr_t>nbytes
        self.slot_count += 1
        return <int>self.slot_count - 1

    cdef int slot_of(self, Storage storage, bint reads) except -1:
        """Return the slot of a storage that owns its memory."""
        cdef Slot* slot
        cdef bint fresh = self.is_fresh(storage)
        cdef int number = self.number_of(storage)
        if number < 0:
            number = self.new_slot(FRESH if fresh else OUTSIDE, storage.nbytes)
            slot = &self.slots[number]
            if fresh:
                storage.note = self.number | <unsigned long long>(number + 1)
            elif storage.note == FIXED:
                self.by_address[<size_t><void*>storage] = number
                slot.origin, self.constants[number] = CONSTANT, (<const char*>storage.data)[:storage.nbytes]
                self.owners.append(storage)
            else:
                self.by_address[<size_t><void*>storage] = number
                self.outside[number] = storage
        if storage.exports:
            note_look("its memory is shared with NumPy or another library")
        elif reads and fresh and not self.slots[number].written and self.slots[number].origin != CONSTANT and storage.nbytes:
            note_look("its values were not computed by operators")
        return number

    cdef int add_place(self, Place* place, TensorImpl tensor, char* data, bint reads, bint writes) except -1:
        """Set the place of a tensor of a step."""
        cdef Storage storage = owner_of(tensor.storage)
        cdef Slot* slot
        cdef intptr_t first, end
        if reads and self.part_copies is not None and is_stale(self.part_copies, storage):
            note_look("it is a part of a tensor that was written since")
        place.slot = self.slot_of(storage, reads and tensor.count)
        place.offset = place.first = place.end = data - storage.data
        slot = &self.slots[place.slot]
        if slot.origin == CONSTANT and is_foreign(storage):
            self.check_array(place.slot, storage, writes)
        if tensor.count:
            bytes_between(tensor.ndim, tensor.sizes, tensor.strides, cg_itemsize[tensor.dtype_nr], &first, &end)
            place.first, place.end = place.offset + first, place.offset + end
            slot.first, slot.end = min(slot.first, place.first), max(slot.end, place.end)
            slot.written |= writes
        return 0

    cdef int check_values(self, Storage storage) except -1:
        """Note a look if a step is about to write a part of NumPy's result: the rest would be no step's."""
        cdef int number = self.number_of(storage)
        if is_foreign(storage) and self.is_fresh(storage) and storage.nbytes and (number < 0 or not self.slots[number].written):
            note_look("its values were not computed by operators")
        return 0

    cdef int thaw(self, TensorImpl tensor) except -1:
        """Give the memory of a constant that a step is about to write another slot, into which each replay copies the constant."""
        cdef Storage storage = owner_of(tensor.storage)
        cdef int number = self.number_of(storage) if self.is_fresh(storage) else -1
        if number >= 0 and self.slots[number].origin == CONSTANT:
            self.thawed.append((storage, storage.note, self.count))
            storage.note = self.number | <unsigned long long>(self.copy_constant(number, storage.nbytes) + 1)
        return 0

    def thaw_results(self, list results not None):
        """Give the memory of constants among results such slots: each replay has new memory of the same size."""
        cdef TensorImpl result
        cdef Storage storage
        cdef int number
        for result in results:
            storage = owner_of(result.storage)
            number = self.number_of(storage)
            if number < 0 or self.slots[number].origin != CONSTANT or result.count == 0:
                continue
            if self.is_fresh(storage):
                self.thaw(result)
            else:       # memory of NumPy's, or of a constant of the package
                self.by_address[<size_t><void*>storage] = self.copy_constant(number, storage.nbytes)

    cdef int copy_constant(self, int number, size_t nbytes) except -1:
        """Add a step that copies a constant into a new slot, which is returned."""
        cdef int target = self.new_slot(FRESH, nbytes), j
        cdef Note* note = self.next_note()
        self.slots[target].written = True
        note.name, note.run, note.count, note.written, note.argument_bytes = "constant", run_move, 2, 1 << 1, sizeof(Move)
        note.arguments = malloc(sizeof(Move))
        if note.arguments is NULL:
            raise MemoryError()
        (<Move*>note.arguments).count, (<Move*>note.arguments).dtype = <intptr_t>nbytes, CG_UINT8
        for j in range(2):
            note.places[j].slot, note.places[j].end = target if j else number, <intptr_t>nbytes
            self.slots[note.places[j].slot].first, self.slots[note.places[j].slot].end = 0, <intptr_t>nbytes
        self.count += 1
        return target

    cdef int freeze(self, Py_ssize_t count) except -1:
        """Undo copies of constants by steps from a number on."""
        cdef Storage storage
        while self.thawed and self.thawed[len(self.thawed) - 1][2] >= count:
            storage, note, _ = self.thawed.pop()
            storage.note = note
        return 0

    cdef int check_array(self, int number, Storage storage, bint writes) except -1:
        """Note a look if a step is about to write into the memory of an array of NumPy's, or other code has done so."""
        cdef bytes values = self.constants[number]
        if writes or memcmp(<const char*>values, storage.data, storage.nbytes):
            note_look("it is an array of NumPy's, into which the function writes")

    def is_in_array(self, TensorImpl tensor not None):
        """Return True for a tensor over an array of NumPy's that is a constant."""
        cdef Storage owner = owner_of(tensor.storage)
        return is_foreign(owner) and self.number_of(owner) in self.constants

    def writes_arrays(self):
        """Return True if a step writes from outside into memory that arrays of NumPy's may have as well."""
        cdef Py_ssize_t k
        return any([self.slots[k].written and is_foreign(self.outside[k]) for k in range(self.slot_count) if k in self.outside])

    # ----- Steps -----
    cdef Note* next_note(self) except NULL:
        self.notes = <Note*>with_room(self.notes, self.count, &self.room, sizeof(Note))
        memset(&self.notes[self.count], 0, sizeof(Note))
        self.notes[self.count].traits = &NO_TRAITS
        return &self.notes[self.count]

    cdef int add(self, const Launch* launch, char** data, int kind, int outcome) except -1:
        cdef Note* note
        cdef const Traits* traits = launch.traits
        cdef int k
        for k in range(launch.count):
            if launch.written >> k & 1:
                self.thaw(<TensorImpl>launch.tensors[k])
                self.check_values(owner_of((<TensorImpl>launch.tensors[k]).storage))
        note = self.next_note()
        note.name, note.run, note.count, note.argument_bytes = launch.name, launch.run, launch.count, launch.argument_bytes
        note.traits, note.written, note.kind, note.outcome = traits, launch.written, kind, outcome
        for k in range(launch.count):
            if self.before is not None and launch.written >> k & 1:
                self.keep_value((<TensorImpl>launch.tensors[k]).storage)
            self.add_place(&note.places[k], <TensorImpl>launch.tensors[k], data[k], (launch.read & ~launch.partly) >> k & 1,
                           launch.written >> k & 1)
        if launch.owner is not NULL:
            self.owners.append(<object>launch.owner)
        if traits.store is not NULL:
            note.run, note.argument_bytes = traits.run_stored, traits.store(launch.arguments, NULL) * sizeof(intptr_t)
        note.arguments = malloc(max(note.argument_bytes, <size_t>1))
        if note.arguments is NULL:
            raise MemoryError()
        if note.run is launch.run:
            memcpy(note.arguments, launch.arguments, launch.argument_bytes)
        else:
            traits.store(launch.arguments, <intptr_t*>note.arguments)
        self.count += 1
        return 0

    cdef void free_steps(self, Py_ssize_t count):
        cdef Py_ssize_t k
        for k in range(self.count - 1, count - 1, -1):
            free(self.notes[k].arguments)
            if self.notes[k].kind == CALL:
                self.calls.pop()
        self.count = count

    cdef int drop(self, Py_ssize_t count) except -1:
        """Forget the steps from a number on. Slots that were met there have values that no step makes."""
        cdef Py_ssize_t k
        self.freeze(count)
        self.free_steps(count)
        self.first_message = min(self.first_message, count)
        for k in range(self.slot_count):
            if self.slots[k].origin == FRESH and self.slots[k].met >= count:
                self.slots[k].written, self.slots[k].lost, self.slots[k].met = False, True, count


cdef void note_launch(const Launch* launch, char** data, int kind, int outcome) noexcept:
    cdef Notes notes = current_notes()
    if notes is not None:
        try:
            notes.add(launch, data, kind, outcome)
        except MemoryError:
            notes.failed = True


cdef int note_constant(TensorImpl tensor, object frame) except -1:
    """Note that Python has written into a new tensor the values that it writes each time; `frame`: of `begin_call`, before."""
    cdef Notes notes = frame[0]
    cdef Storage storage = owner_of(tensor.storage)
    if notes is current_notes() and notes.is_fresh(storage) and not storage.exports and not notes.refuses_numbers(frame[1]):
        notes.drop(frame[1])
        notes.looks.count = frame[2]
        notes.slots[notes.slot_of(storage, False)].origin = CONSTANT
        notes.constants[notes.number_of(storage)] = (<const char*>storage.data)[:storage.nbytes]
    return 0


def fixed(TensorImpl tensor not None):
    """Return a tensor of the package whose values never change: programs may copy them."""
    owner_of(tensor.storage).note = FIXED
    return tensor


cdef int note_gradient(TensorImpl tensor) except -1:
    """Note that the gradient of a tensor is about to change."""
    cdef Notes notes = current_notes()
    if notes is not None:
        notes.gradients.setdefault(id(tensor), (tensor, tensor.gradient))
    return 0


cpdef int note_array(object array) except -1:
    """Note that an array of NumPy's is read as a constant: the function has made it, or guards must have it."""
    cdef Notes notes = current_notes()
    if notes is not None:
        notes.arrays.append(array)
    return 0


cpdef TensorImpl note_array_below(TensorImpl tensor, object array):
    """Note that an array of NumPy's, or a copy of it, is read as a constant through a tensor over it, which is returned."""
    cdef Notes notes = current_notes()
    cdef Storage storage = tensor.storage
    if notes is not None:
        storage.note = 0        # its memory was there before
        number = notes.new_slot(CONSTANT, storage.nbytes)
        notes.by_address[<size_t><void*>storage], notes.constants[number] = number, (<const char*>storage.data)[:storage.nbytes]
        notes.owners.append(storage)
        notes.arrays.append(array)
    return tensor


def note_draw(object generator not None, object position):
    """Note that random numbers are about to be drawn from a generator, which is at a position."""
    cdef Notes notes = current_notes()
    if notes is not None:
        notes.generators.setdefault(generator, position)


def note_pattern(object pattern not None):
    """Note that a pattern of places was made, of which operators read index tensors."""
    cdef Notes notes = current_notes()
    if notes is not None:
        notes.patterns.append(pattern)


def note_places(TensorImpl index not None):
    """Note that the elements of a tensor are read as the places of values: a program is for that tensor, unchanged."""
    cdef Notes notes = current_notes()
    cdef Storage storage = owner_of(index.storage)
    if notes is None:
        return
    if not notes.is_fresh(storage):
        notes.places.append(index)
    elif notes.slots[notes.slot_of(storage, False)].origin != CONSTANT:
        note_look("its elements are the indices of a sparse tensor")


cdef int note_replacement(TensorImpl tensor) except -1:
    """Note that a tensor is about to get other memory, or another shape."""
    cdef Notes notes = current_notes()
    if notes is not None:
        if notes.is_from_before(owner_of(tensor.storage)):
            refuse_change("it was given other memory")
        notes.replaced.setdefault(id(tensor), line_of_caller())
    return 0


cdef int note_flags(TensorImpl tensor) except -1:
    """Note that a tensor is about to require a gradient, or to require none."""
    cdef Notes notes = current_notes()
    if notes is not None:
        (notes.flags if notes.repeats else notes.leaves).setdefault(id(tensor), (tensor, tensor.flags & REQUIRES_GRAD))
    return 0


class Unrepeatable(Exception):
    """A repeated step is about to change something that cannot be undone."""


cdef int refuse_repeated_history(TensorImpl tensor) except -1:
    """Unrepeatable if a repeated step is about to give a tensor from before another history, or another tangent."""
    cdef Notes notes = current_notes()
    if notes is not None and notes.repeats and notes.is_from_before(owner_of(tensor.storage)):
        raise Unrepeatable("it changes a tensor from outside in place that has a history, or a tangent: change a copy, by .clone()")
    return 0


def noted_steps():
    """Return how many steps this thread has noted, if it takes notes."""
    cdef Notes notes = current_notes()
    return 0 if notes is None else notes.count


def refuse_decisions(Py_ssize_t first, str reason not None):
    """Make the notes useless, for a reason, if a step from a number on is a decision."""
    cdef Notes notes = current_notes()
    if notes is not None and notes.decides_after(first):
        note_look(reason)


def note_message():
    """Note that a message is about to be sent: no later step of a program may give the replay up, as the message would be sent twice."""
    cdef Notes notes = current_notes()
    if notes is None:
        return
    if notes.repeats:
        raise RuntimeError("it sends a message to another process")
    if notes.first_message < 0:
        notes.first_message = notes.count
