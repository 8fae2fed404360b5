# cython: cdivision=True
"""Loops over matrices and vectors as functions of tensors (see matrices.pxd for the contract)."""
cimport cython
cimport numpy
from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from libc.limits cimport INT_MAX
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.launches cimport Traits, add_input, add_output, begin_launch, clear_arguments, run_decision, run_launch
from cygrad._core.graph.rule_nodes cimport needs_node, record
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport TensorImpl, empty, empty_strided
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport DType, dtypes
from cygrad._core.operands.arrays cimport array_of, tensor_of_array
from cygrad._kernels.drivers.elementwise cimport (CG_DTYPES, CG_FLOAT32, CG_FLOAT64, MAX_DIMS, cg_complex, cg_is_complex,
                                                  cg_is_differentiable, cg_itemsize, cg_loops_of, cg_real)
from cygrad._kernels.drivers.packing cimport count_elements
from cygrad._kernels.matrices.loops cimport BLAS_THREADS, matrix_kernel_of, matrix_kernel, matrix_loop, note_blas

import re

import numpy

from cygrad._core.memory.storage import dtype_by_name

numpy.import_umath()

cdef RuleOp FFT_C2C = rule_op("fft_c2c", ("input_dtype", "dim", "norm", "forward"))
cdef RuleOp FFT_R2C = rule_op("fft_r2c", ("dim", "norm", "size"))
cdef RuleOp FFT_C2R = rule_op("fft_c2r", ("input_dtype", "dim", "norm", "last_dim_size"))

cdef enum:
    WORK = 8            # multiplications by element of a vector that is transformed

cdef extern from "numpy/ufuncobject.h":
    # Declared here since NumPy 2.5's own declaration has no `types`: Cython would read Python's attribute of that name.
    ctypedef struct UfuncFields "PyUFuncObject":
        int nargs
        int ntypes
        void** functions
        void** data
        char* types


# ----- Batches -----
cdef int run_call(void* arguments, char** places) noexcept nogil:
    """Run a loop over all matrices; `places`: where the arguments are."""
    cdef Call* call = <Call*>arguments
    if call.batch:
        run_batch(call, places)
    else:
        call.loop(places, call.dims, call.strides, call.data)
    return 0


cdef void run_batch(Call* call, char** places) noexcept nogil:
    """Run a loop over all matrices of a batch, a call for each place in all dims of the batch but the last."""
    cdef char* pointers[MAX_ARGUMENTS]
    cdef intptr_t index[MAX_DIMS]
    cdef int outer = call.batch - 1, k, d
    for d in range(outer):
        index[d] = 0
    while True:
        for k in range(call.arguments):
            pointers[k] = places[k]
        call.loop(pointers, call.dims, call.strides, call.data)     # which moves the pointers
        d = outer - 1
        while d >= 0:
            index[d] += 1
            for k in range(call.arguments):
                places[k] += call.steps[k][d]
            if index[d] < call.shape[d]:
                break
            for k in range(call.arguments):
                places[k] -= call.steps[k][d] * call.shape[d]
            index[d] = 0
            d -= 1
        if d < 0:
            return


cdef Traits STEADY_MATRICES = Traits(steady=True, safe=False, large=NULL, store=NULL, run_stored=NULL, fuse=NULL)


cdef void begin_matrices(Launch* launch, Call* call, matrix_loop loop, void* data) noexcept:
    cdef int outer = call.batch - 1, k
    call.loop, call.data, call.dims[0] = loop, data, call.shape[outer] if call.batch else 1
    for k in range(call.arguments):
        call.strides[k] = call.steps[k][outer] if call.batch else 0
    begin_launch(launch, "matrices", run_call, call, sizeof(Call) if call.batch else <size_t>(<char*>call.shape - <char*>call))
    launch.traits = &STEADY_MATRICES


cdef int check_memory() except -1:
    """Raise the error that a loop of LAPACK has left: there was no memory for its workspace."""
    return 0 if PyErr_Occurred() is NULL else -1


# ----- NumPy's loops -----
cdef bint numpy_loop(object ufunc, int dtype, matrix_loop* loop, void** data, int* types) except -1:
    """Find the loop for a dtype in a ufunc's table of types, and the dtypes of its arguments, and return True; False if there is none."""
    cdef UfuncFields* fields = <UfuncFields*><PyObject*>ufunc
    cdef dict numbers = {numpy.dtype(each.name).num: each.number for each in dtypes if each.loops is each}
    cdef int number_of_type = numpy.dtype(dtypes[dtype].name).num, k, j
    for k in range(fields.ntypes):
        if fields.types[k * fields.nargs] == number_of_type:
            for j in range(fields.nargs):
                types[j] = numbers[fields.types[k * fields.nargs + j]]
            loop[0], data[0] = <matrix_loop>fields.functions[k], NULL if fields.data is NULL else fields.data[k]
            return True
    return False


# ----- Functions of tensors -----
def our_loop(str name not None):
    """Return the loop of `_kernels/matrices` of that name."""
    cdef const matrix_kernel* row = matrix_kernel_of(name)
    cdef MatrixLoop loop = MatrixLoop(row.signature.decode())
    cdef int k, j
    for k in range(CG_DTYPES):
        loop.loops[k] = row.loops[k]
        for j in range(loop.arguments):
            loop.types[k][j] = dtype_by_name["int32"].number if row.kinds[j] == b"i" else cg_real[k] if row.kinds[j] == b"r" else k
    return loop


def is_matrix(value, bint square=False):
    """Return True if a value is a tensor of (square) matrices in the last two dims, of a dtype that LAPACK computes in."""
    cdef TensorImpl tensor
    if not isinstance(value, TensorImpl):
        return False
    tensor = value
    return (tensor.ndim >= 2 and cg_loops_of[tensor.dtype_nr] == tensor.dtype_nr and cg_is_differentiable[tensor.dtype_nr] != 0
            and (not square or tensor.sizes[tensor.ndim - 1] == tensor.sizes[tensor.ndim - 2]))


cdef struct Failures:
    int dtype
    intptr_t count


cdef int find_failure(void* arguments, char** data) noexcept nogil:
    """Return the number, from 1 on, of the first result that is not 0, or NaN; 0 if there is none."""
    cdef Failures* failures = <Failures*>arguments
    cdef intptr_t k
    for k in range(failures.count):
        if failures.dtype == CG_FLOAT64:
            if (<const double*>data[0])[k] == (<const double*>data[0])[k]:
                continue
        elif failures.dtype == CG_FLOAT32:
            if (<const float*>data[0])[k] == (<const float*>data[0])[k]:
                continue
        elif not (<const int*>data[0])[k]:
            continue
        return <int>min(k + 1, INT_MAX)
    return 0


def first_failure(TensorImpl results not None, int dims=0):
    """Return which item of a batch, each of so many dims, is the first to have a number other than 0, or NaN; None: none has."""
    cdef intptr_t each = 1
    cdef int d, number
    cdef Failures failures
    clear_arguments(&failures, sizeof(failures))
    for d in range(results.ndim - dims, results.ndim):
        each *= results.sizes[d]
    failures.dtype, failures.count = results.dtype_nr, results.count
    number = run_decision("failures", find_failure, &failures, sizeof(failures), results)
    return (number - 1) // each if number else None


ctypedef fused real_number:
    float
    double


cdef bint is_finite(const real_number* matrix, const intptr_t* sizes, const intptr_t* strides, int parts, int triangle) noexcept nogil:
    """Return True if a matrix has neither NaN nor infinities; `triangle`: -1 looks at the lower one, 1 at the upper one."""
    cdef const real_number* column
    cdef intptr_t first, last, i, j
    cdef int k, bad = 0
    for j in range(sizes[1]):
        first, last = j if triangle < 0 else 0, min(j + 1, sizes[0]) if triangle > 0 else sizes[0]
        column = matrix + j * strides[1] * parts
        for k in range(parts):
            for i in range(first, last):
                bad |= column[i * strides[0] * parts + k] - column[i * strides[0] * parts + k] != 0
        if bad:
            return False
    return True


cdef struct Finiteness:
    int dtype, ndim, triangle
    intptr_t sizes[MAX_DIMS]
    intptr_t strides[MAX_DIMS]


cdef int find_nonfinite(void* arguments, char** data) noexcept nogil:
    """Return the number, from 1 on, of the first matrix of a batch that is not finite; 0 if there is none."""
    cdef Finiteness* matrices = <Finiteness*>arguments
    cdef intptr_t index[MAX_DIMS]
    cdef intptr_t count = 1, offset = 0, number
    cdef int batch = matrices.ndim - 2, d, parts = 1 + cg_is_complex[matrices.dtype]
    cdef const intptr_t* sizes = &matrices.sizes[batch]
    cdef const intptr_t* strides = &matrices.strides[batch]
    cdef bint finite
    for d in range(batch):
        count, index[d] = count * matrices.sizes[d], 0
    for number in range(count):
        if cg_real[matrices.dtype] == CG_FLOAT64:
            finite = is_finite[double](<const double*>data[0] + offset * parts, sizes, strides, parts, matrices.triangle)
        else:
            finite = is_finite[float](<const float*>data[0] + offset * parts, sizes, strides, parts, matrices.triangle)
        if not finite:
            return <int>min(number + 1, INT_MAX)
        d = batch - 1
        while d >= 0:
            index[d] += 1
            offset += matrices.strides[d]
            if index[d] < matrices.sizes[d]:
                break
            offset -= matrices.strides[d] * index[d]
            index[d] = 0
            d -= 1
    return 0


def first_nonfinite(TensorImpl matrices not None, int triangle=0):
    """Return which matrix of a batch is the first with NaN or an infinity, which LAPACK may not end with; None: none has.

    `triangle`: -1 looks at the lower one alone, 1 at the upper one.
    """
    cdef Finiteness finiteness
    cdef int number
    clear_arguments(&finiteness, sizeof(finiteness))
    finiteness.dtype, finiteness.ndim, finiteness.triangle = matrices.dtype_nr, matrices.ndim, triangle
    memcpy(finiteness.sizes, matrices.sizes, matrices.ndim * sizeof(intptr_t))
    memcpy(finiteness.strides, matrices.strides, matrices.ndim * sizeof(intptr_t))
    number = run_decision("finiteness", find_nonfinite, &finiteness, sizeof(finiteness), matrices)
    return number - 1 if number else None


cdef class MatrixLoop:
    """A loop over matrices, of all dtypes that it has, as a function of tensors; batches broadcast.

    `signature` is NumPy's, such as "(m,n)->(m,n),(p)"; p is the smaller of the first two sizes, or `size`. Results are new, dense, and
    those that are matrices column-major, as LAPACK and torch have them. Nothing is recorded.
    """
    cdef readonly str signature
    cdef object otherwise                   # computes the results from arrays, where there is no loop
    cdef bint is_lapack                     # NumPy's own, of its linalg
    cdef int inputs, arguments              # how many
    cdef int names, known                   # sizes, and how many of them inputs have
    cdef int ndim[MAX_ARGUMENTS]            # of the matrices of each argument
    cdef int dims[MAX_ARGUMENTS][2]         # which of the sizes they have
    cdef matrix_loop[CG_DTYPES] loops
    cdef (void*)[CG_DTYPES] data
    cdef int types[CG_DTYPES][MAX_ARGUMENTS]

    def __cinit__(self, str signature not None, ufunc=None, otherwise=None):
        cdef list names = []
        cdef int k
        self.signature, self.otherwise = signature, otherwise
        before, _, after = signature.partition("->")
        self.add(before, names)
        self.inputs, self.known = self.arguments, <int>len(names)
        self.add(after, names)
        self.names = <int>len(names)
        if ufunc is not None and (<UfuncFields*><PyObject*>ufunc).nargs == self.arguments:
            self.is_lapack = True
            for k in range(CG_DTYPES):
                if cg_loops_of[k] == k:
                    numpy_loop(ufunc, k, &self.loops[k], &self.data[k], self.types[k])

    cdef int add(self, str side, list names) except -1:
        """Add the arguments of a side of the signature."""
        for argument in re.findall(r"\(([^)]*)\)", side):
            dims = [name.strip() for name in argument.split(",") if name.strip()]
            names.extend([name for name in dict.fromkeys(dims) if name not in names])
            if self.arguments == MAX_ARGUMENTS or len(names) > MAX_NAMES or len(dims) > 2:
                raise ValueError(f"a signature has at most {MAX_ARGUMENTS} arguments of 2 dims and {MAX_NAMES} sizes, not {self.signature}")
            for position, name in enumerate(dims):
                self.dims[self.arguments][position] = names.index(name)
            self.ndim[self.arguments] = <int>len(dims)
            self.arguments += 1
        return 0

    def __repr__(self):
        return f"<loop over matrices {self.signature}>"

    def __call__(self, *tensors, intptr_t size=-1):
        """Return the result, or a tuple of several, of matrices in the last dims of tensors."""
        cdef Call call
        cdef Launch launch
        cdef TensorImpl tensor
        cdef list results = []
        cdef double work
        cdef intptr_t count
        cdef int dtype, k
        clear_arguments(&call, sizeof(call))
        if len(tensors) != self.inputs:
            raise TypeError(f"a loop {self.signature} takes {self.inputs} tensors, got {len(tensors)}")
        dtype = (<TensorImpl?>tensors[0]).dtype_nr
        if self.loops[dtype] is NULL:
            return self.by_arrays(tensors)
        work = self.measure(&call, tensors, dtype, size)
        count = count_elements(call.batch, call.shape)
        for k in range(self.inputs, self.arguments):
            results.append(self.result(&call, k, self.types[dtype][k]))
        if count:
            begin_matrices(&launch, &call, self.loops[dtype], self.data[dtype])
            for tensor in tensors:
                add_input(&launch, tensor)
            for tensor in results:
                add_output(&launch, tensor)
            run_launch(&launch, work * <double>count >= RELEASE_GIL)
            check_memory()
            if self.is_lapack and work >= BLAS_THREADS:
                note_blas()
        return tuple(results) if len(results) > 1 else results[0]

    cdef double measure(self, Call* call, tuple tensors, int dtype, intptr_t free_size) except -1:
        """Note shapes and strides of the inputs; return about how many multiplications one matrix takes."""
        cdef TensorImpl tensor
        cdef intptr_t size
        cdef double work = 1
        cdef int at = self.arguments, k, d, front, batch_dim, item, number
        call.arguments, call.batch = self.arguments, 0
        for k in range(self.inputs):
            tensor = <TensorImpl?>tensors[k]
            if tensor.ndim < self.ndim[k] or tensor.dtype_nr != self.types[dtype][k]:
                raise RuntimeError(f"a loop {self.signature} of {dtypes[dtype].name} takes {dtypes[self.types[dtype][k]].name} of at least "
                                   f"{self.ndim[k]} dims as argument {k}, got {dtypes[tensor.dtype_nr].name} of {tensor.ndim}")
            call.batch = max(call.batch, tensor.ndim - self.ndim[k])
        for d in range(call.batch):
            call.shape[d] = 1
        for d in range(self.names):
            call.dims[1 + d] = -1
        for k in range(self.inputs):
            tensor = tensors[k]
            front, item = tensor.ndim - self.ndim[k], cg_itemsize[tensor.dtype_nr]
            for d in range(call.batch - front):
                call.steps[k][d] = 0
            for d in range(front):
                batch_dim, size = d + call.batch - front, tensor.sizes[d]
                call.steps[k][batch_dim] = 0 if size == 1 else tensor.strides[d] * item
                if call.shape[batch_dim] == 1:
                    call.shape[batch_dim] = size
                elif size != 1 and size != call.shape[batch_dim]:
                    raise RuntimeError(f"The size of tensor a ({call.shape[batch_dim]}) must match the size of tensor b ({size}) at "
                                       f"non-singleton dimension {batch_dim}: the batch dimensions must broadcast")
            for d in range(self.ndim[k]):
                number, size = self.dims[k][d], tensor.sizes[front + d]
                call.strides[at] = tensor.strides[front + d] * item
                at += 1
                if call.dims[1 + number] < 0:
                    call.dims[1 + number] = size
                    work *= <double>size
                elif call.dims[1 + number] != size:
                    raise RuntimeError(f"a loop {self.signature} takes matrices whose sizes agree, got {call.dims[1 + number]} and {size}")
        for d in range(self.known, self.names):
            call.dims[1 + d] = min(call.dims[1], call.dims[2]) if free_size < 0 else free_size
        if self.known == 1:                     # of a square matrix
            work *= <double>max(call.dims[1], 1)
        return work * <double>max(call.dims[1], 1)

    cdef TensorImpl result(self, Call* call, int k, int dtype):
        """Make a result, and note its strides."""
        cdef intptr_t shape[MAX_DIMS]
        cdef intptr_t strides[MAX_DIMS]
        cdef intptr_t step = 1, item = cg_itemsize[dtype]
        cdef int at = self.arguments, d
        if call.batch + self.ndim[k] > MAX_DIMS:
            raise RuntimeError(f"a tensor has at most {MAX_DIMS} dims")
        for d in range(k):
            at += self.ndim[d]
        for d in range(self.ndim[k]):
            shape[call.batch + d], strides[call.batch + d] = call.dims[1 + self.dims[k][d]], step
            call.strides[at + d] = step * item
            step *= max(shape[call.batch + d], 1)
        for d in range(call.batch - 1, -1, -1):
            shape[d], strides[d], call.steps[k][d] = call.shape[d], step, step * item
            step *= max(shape[d], 1)
        return empty_strided(dtype, call.batch + self.ndim[k], shape, strides)

    cdef object by_arrays(self, tuple tensors):
        """Compute the results by NumPy's public function."""
        cdef TensorImpl tensor
        if self.otherwise is None:
            raise NotImplementedError(f"a loop {self.signature} has none for {dtypes[(<TensorImpl>tensors[0]).dtype_nr].name}")
        results = self.otherwise(*[array_of(tensor) for tensor in tensors])
        if type(results) is tuple:
            return tuple([tensor_of_array(numpy.ascontiguousarray(result)) for result in results])
        return tensor_of_array(numpy.asarray(results))


# ----- Fourier transforms, by NumPy's loops over vectors -----
# NumPy's functions take longer to read their arguments than a small transform takes. Transforms are planned once for a shape.
cdef object planned = None      # the transforms of an operator, or a function that computes all of them
planner_number = 0


def set_planner(function, int number):
    """Set the function that plans: (name, shape, dims, norm, dtype, size of the result along the last dim or None), and its number."""
    global planned, planner_number
    planned, planner_number = function, number


@cython.final
cdef class Transform:
    """A transform along a dim, to a size: the loop of NumPy's ufunc for a dtype, and the factor that it takes."""
    cdef matrix_loop loop
    cdef void* data             # of the loop
    cdef TensorImpl factor
    cdef intptr_t size
    cdef int dim, source, target    # dtypes

    def __cinit__(self, ufunc, DType dtype not None, TensorImpl factor not None, int dim, intptr_t size):
        cdef int types[3]
        if not isinstance(ufunc, numpy.ufunc) or not numpy_loop(ufunc, dtype.number, &self.loop, &self.data, types):
            raise RuntimeError(f"{ufunc!r} takes no {dtype.name}")
        self.factor, self.dim, self.size, self.source, self.target = factor, dim, size, dtype.number, types[2]

    cdef TensorImpl apply(self, TensorImpl x):
        """Transform the vectors along the dim; the result is row-major."""
        cdef TensorImpl result
        cdef Call call
        cdef Launch launch
        cdef intptr_t shape[MAX_DIMS]
        cdef int d, before = cg_itemsize[self.source], after = cg_itemsize[self.target]
        clear_arguments(&call, sizeof(call))
        memcpy(shape, x.sizes, x.ndim * sizeof(intptr_t))
        shape[self.dim] = self.size
        result = empty(self.target, x.ndim, shape)
        if not result.count:
            return result
        call.arguments, call.batch = 3, 0
        for d in range(x.ndim):
            if d != self.dim:
                call.shape[call.batch], call.steps[0][call.batch] = shape[d], x.strides[d] * before
                call.steps[1][call.batch], call.steps[2][call.batch] = 0, result.strides[d] * after
                call.batch += 1
        call.dims[1], call.dims[2] = x.sizes[self.dim], self.size
        call.strides[3], call.strides[4] = x.strides[self.dim] * before, result.strides[self.dim] * after
        begin_matrices(&launch, &call, self.loop, self.data)
        add_input(&launch, x)
        add_input(&launch, self.factor)
        add_output(&launch, result)
        run_launch(&launch, WORK * max(x.count, result.count) >= RELEASE_GIL)
        check_memory()
        return result


cdef TensorImpl transformed(RuleOp op, str name, TensorImpl x, tuple dim, str norm, object size):
    """Compute the transforms that are planned for a shape, and record them; the planner has checked the dims."""
    cdef TensorImpl result = x
    cdef tuple params
    plan = planned(name, sizes_tuple(x.ndim, x.sizes), dim, norm, dtypes[x.dtype_nr], size)
    if type(plan) is not tuple:
        result = plan(x)
    else:
        if op is not FFT_R2C and not cg_is_complex[x.dtype_nr]:
            result = dense(x, cg_complex[x.dtype_nr])
        for transform in <tuple>plan:
            result = (<Transform>transform).apply(result)
    if needs_node(x, None):
        if op is FFT_R2C:
            params = (dim, norm, x.sizes[<int>dim[len(dim) - 1]])
        else:
            params = (dtypes[x.dtype_nr], dim, norm, name == "fft" if op is FFT_C2C else size)
        record(op, x, None, result, params)
    return result


def fft_c2c(TensorImpl input not None, tuple dim not None, str norm not None, bint forward):
    """Transform numbers, real ones too, to complex numbers: by exp(-2 pi i jk / n) forward, by exp(2 pi i jk / n) backward."""
    return transformed(FFT_C2C, "fft" if forward else "ifft", input, dim, norm, None)


def fft_r2c(TensorImpl input not None, tuple dim not None, str norm not None):
    """Transform real numbers forward, to the first half of their spectrum along the last of the dims."""
    return transformed(FFT_R2C, "rfft", input, dim, norm, None)


def fft_c2r(TensorImpl input not None, tuple dim not None, str norm not None, last_dim_size):
    """Transform the first half of a Hermitian spectrum backward, to real numbers, `last_dim_size` along the last of the dims."""
    return transformed(FFT_C2R, "irfft", input, dim, norm, last_dim_size)
