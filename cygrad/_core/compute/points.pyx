# cython: cdivision=True
"""Images (examples, channels, *sizes) of two or three dims, read at points (examples, *outer, coordinates), by the last dim first.

A result is a sum of elements near its point, times a product of weights, one along each dim; `orders` counts the derivatives of each
coordinate's weight. Nothing is recorded.
"""
from libc.math cimport fabs, floor, rint
from libc.stdint cimport intptr_t

from cygrad._core.compute.places cimport dense
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.launches cimport Launch, add_changed, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.memory.sizes cimport parse_sizes
from cygrad._core.operands.operands cimport RELEASE_GIL, refused
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64, MAX_DIMS

ctypedef fused real:
    float
    double

cdef enum:
    DIMS = 3            # of two, the first is a dim of one element
    NEAR = 4            # places along a dim at most
    NEIGHBOURS = 16
    LINEAR = 0          # modes, and paddings, by torch's numbers
    NEAREST = 1
    CUBIC = 2
    ZEROS = 0
    REFLECTION = 2

ctypedef enum Action:
    READ                # the image at the points
    SPREAD              # values, added to the image at the points
    SLOPES              # sums over channels of values times derivatives by the coordinates

cdef struct Reading:
    int dtype
    Action action
    int dims, mode, padding, near
    bint align_corners
    int[DIMS] orders
    intptr_t[DIMS] sizes
    intptr_t examples, channels, area, points

cdef struct Line:
    double[NEAR] weights, next      # next: once more differentiated
    intptr_t[NEAR] places           # -1: outside


# ----- Along one dim -----
cdef inline real within(real x, const Reading* g, int d, double* slope) noexcept nogil:
    """Return a place moved into a dim as the padding has it; `slope` is multiplied by the derivative, 0 at the outer elements."""
    cdef real low, span, turns
    cdef real last = <real>(g.sizes[d] - 1)
    if g.padding == ZEROS:
        return x
    if g.padding == REFLECTION:
        low, span = (0 if g.align_corners else -0.5), (last if g.align_corners else last + 1)
        if span == 0:
            x = x * 0
            slope[0] = 0
        else:
            x = x - low
            if x < 0:
                slope[0] = -slope[0]
            x = fabs(x)
            turns = floor(x / span)
            x = x - turns * span
            if turns - 2 * floor(turns / 2) != 0:
                x = span - x
                slope[0] = -slope[0]
            x = x + low
    if not 0 < x < last:
        slope[0] = 0
    return last if x > last else x if x > 0 else 0      # NaN is the first element


cdef inline real polynomial(real t, int order, real c3, real c2, real c1, real c0) noexcept nogil:
    """Return a derivative of a cubic polynomial."""
    if order == 0:
        return ((c3 * t + c2) * t + c1) * t + c0
    if order == 1:
        return (3 * c3 * t + 2 * c2) * t + c1
    return 6 * c3 * t + 2 * c2 if order == 2 else 6 * c3 if order == 3 else 0


cdef inline real weight(real t, const Reading* g, int k, int order) noexcept nogil:
    """Return the weight of neighbour k, or a derivative, at t behind the place before."""
    cdef real a = -0.75         # cubic convolution (Keys 1981)
    cdef real sign = -1 if order & 1 else 1
    if g.mode == NEAREST:
        return 1 if order == 0 else 0
    if g.mode == LINEAR:
        return (t if k else 1 - t) if order == 0 else (1 if k else -1) if order == 1 else 0
    if k == 0:
        return a * polynomial(t + 1, order, 1, -5, 8, -4)
    if k == 1:
        return polynomial(t, order, a + 2, -(a + 3), 0, 1)
    if k == 2:
        return sign * polynomial(1 - t, order, a + 2, -(a + 3), 0, 1)
    return sign * a * polynomial(2 - t, order, 1, -5, 8, -4)


cdef inline void read_line(Line* line, real x, const Reading* g, int d, bint differentiated) noexcept nogil:
    """Write the places near a coordinate, and their weights."""
    cdef double slope = (g.sizes[d] - 1) / 2.0 if g.align_corners else g.sizes[d] / 2.0, factor = 1, ignored
    cdef real first, at, t = 0
    cdef int k
    x = (x + 1) * <real>((g.sizes[d] - 1) / 2.0) if g.align_corners else ((x + 1) * g.sizes[d] - 1) / 2
    if g.mode != CUBIC:         # its neighbours are moved one by one
        x = within(x, g, d, &slope)
    if g.mode == NEAREST:
        first = rint(x)
    else:
        first = floor(x)
        t = x - first
    for _order in range(g.orders[d]):
        factor *= slope
    for k in range(g.near):
        at = first + k
        if g.mode == CUBIC:
            at = within(at - 1, g, d, &ignored)
        line.places[k] = <intptr_t>at if 0 <= at < g.sizes[d] else -1
        line.weights[k] = weight(t, g, k, g.orders[d]) * factor
        if differentiated:
            line.next[k] = weight(t, g, k, g.orders[d] + 1) * factor * slope


# ----- At a point -----
cdef inline int read_point(Line* lines, const real* point, const Reading* g, intptr_t* places, real* weights,
                           bint differentiated) noexcept nogil:
    """Write the places of a point's neighbours in an image, -1 outside, and their weights; return their number."""
    cdef int d, k0, k1, k2, count = 0, outer = 1 if g.dims == 2 else g.near
    cdef real w0, w1
    cdef intptr_t p0, p1, p2
    for d in range(DIMS - g.dims, DIMS):
        read_line[real](&lines[d], point[DIMS - 1 - d], g, d, differentiated)
    for k0 in range(outer):
        p0 = 0 if g.dims == 2 else lines[0].places[k0]
        w0 = 1 if g.dims == 2 else <real>lines[0].weights[k0]
        for k1 in range(g.near):
            p1, w1 = lines[1].places[k1], w0 * <real>lines[1].weights[k1]
            for k2 in range(g.near):
                p2 = lines[2].places[k2]
                places[count] = -1 if p0 < 0 or p1 < 0 or p2 < 0 else (p0 * g.sizes[1] + p1) * g.sizes[2] + p2
                weights[count] = w1 * <real>lines[2].weights[k2]
                count += 1
    return count


cdef inline void write_slopes(const Line* lines, const real* sums, const Reading* g, real* slopes) noexcept nogil:
    """Write the derivatives by the coordinates of one point: sums of its neighbours times weights, one of which is once more
    differentiated."""
    cdef int d, k0, k1, k2, at, outer = 1 if g.dims == 2 else g.near
    cdef double w0, w1, w2, total
    for d in range(DIMS - g.dims, DIMS):
        total, at = 0, 0
        for k0 in range(outer):
            w0 = 1 if g.dims == 2 else lines[0].next[k0] if d == 0 else lines[0].weights[k0]
            for k1 in range(g.near):
                w1 = w0 * (lines[1].next[k1] if d == 1 else lines[1].weights[k1])
                for k2 in range(g.near):
                    w2 = lines[2].next[k2] if d == 2 else lines[2].weights[k2]
                    total += w1 * w2 * sums[at]
                    at += 1
        slopes[DIMS - 1 - d] = <real>total


cdef void run_points(real* image, const real* points, real* values, real* slopes, const Reading* g) noexcept nogil:
    cdef Line[DIMS] lines
    cdef intptr_t[NEIGHBOURS] places
    cdef real[NEIGHBOURS] weights
    cdef real[NEIGHBOURS] sums
    cdef real total
    cdef real* channel
    cdef intptr_t p, c
    cdef int k, count
    for _example in range(g.examples):
        for p in range(g.points):
            count = read_point(lines, points, g, places, weights, g.action == SLOPES)
            if g.action == READ:
                for c in range(g.channels):
                    channel, total = image + c * g.area, 0
                    for k in range(count):
                        total += weights[k] * (channel[places[k]] if places[k] >= 0 else 0)
                    values[c * g.points + p] = total
            elif g.action == SPREAD:
                for c in range(g.channels):
                    channel, total = image + c * g.area, values[c * g.points + p]
                    for k in range(count):
                        if places[k] >= 0:
                            channel[places[k]] += weights[k] * total
            else:
                for k in range(count):
                    sums[k] = 0
                    for c in range(g.channels if places[k] >= 0 else 0):
                        sums[k] += values[c * g.points + p] * image[c * g.area + places[k]]
                write_slopes(lines, sums, g, slopes)
                slopes += g.dims
            points += g.dims
        image, values = image + g.channels * g.area, values + g.channels * g.points


# ----- Of tensors -----
cdef int read_reading(Reading* g, TensorImpl points, reading, const intptr_t* sizes) except -1:
    """Read how images of some sizes (examples, channels, *sizes) are read; the points are row-major."""
    cdef int d
    g.dims, g.mode, g.padding, g.align_corners = points.ndim - 2, reading.mode, reading.padding, reading.align_corners
    g.near = NEAR if g.mode == CUBIC else 1 if g.mode == NEAREST else 2
    g.examples, g.channels, g.area, g.points = sizes[0], sizes[1], 1, 1
    if points.dtype_nr != CG_FLOAT32 and points.dtype_nr != CG_FLOAT64:
        raise refused("grid_sampler", points.dtype_nr)
    if not 2 <= g.dims <= DIMS - (g.mode == CUBIC):
        raise RuntimeError("images have two dims or three, and three without mode 'bicubic'")
    if len(reading.orders) != g.dims or points.sizes[0] != g.examples or points.sizes[points.ndim - 1] != g.dims:
        raise RuntimeError("points have as many examples as the images, and a coordinate for each dim")
    g.sizes[0] = 1
    for d in range(g.dims):
        g.sizes[DIMS - g.dims + d], g.orders[DIMS - 1 - d] = sizes[2 + d], reading.orders[d]
        g.area *= sizes[2 + d]
        g.points *= points.sizes[1 + d]
    return 0


cdef int check_values(TensorImpl values, TensorImpl points, const Reading* g) except -1:
    """Refuse values that are not one for each channel and point."""
    cdef bint fits = values.ndim == points.ndim and values.sizes[0] == g.examples and values.sizes[1] == g.channels
    cdef int d
    for d in range(g.dims if fits else 0):
        fits = fits and values.sizes[2 + d] == points.sizes[1 + d]
    if not fits:
        raise RuntimeError("the values have no longer the sizes of the points")
    return 0


cdef int run_reading(void* arguments, char** data) noexcept nogil:
    """Run with the image, the points, the values, and the slopes, if there are any."""
    cdef Reading* g = <Reading*>arguments
    cdef char* slopes = data[3] if g.action == SLOPES else NULL
    if g.dtype == CG_FLOAT64:
        run_points[double](<double*>data[0], <const double*>data[1], <double*>data[2], <double*>slopes, g)
    else:
        run_points[float](<float*>data[0], <const float*>data[1], <float*>data[2], <float*>slopes, g)
    return 0


cdef void launch_reading(Reading* g, Action action, TensorImpl image, TensorImpl points, TensorImpl values, TensorImpl slopes) noexcept:
    """Read, spread or write slopes; only the last have a tensor of slopes."""
    cdef Launch launch
    g.dtype, g.action = points.dtype_nr, action
    begin_launch(&launch, "points", run_reading, g, sizeof(Reading))
    if action == SPREAD:
        add_changed(&launch, image)
    else:
        add_input(&launch, image)
    add_input(&launch, points)
    if action == READ:
        add_output(&launch, values)
    else:
        add_input(&launch, values)
    if action == SLOPES:
        add_output(&launch, slopes)
    run_launch(&launch, g.examples * g.channels * g.points >= RELEASE_GIL)


def read_at_points(TensorImpl input not None, TensorImpl grid not None, reading):
    """Return an image at points, (examples, channels, *outer)."""
    cdef Reading g
    cdef TensorImpl image = dense(input, input.dtype_nr), points = dense(grid, input.dtype_nr), result
    cdef intptr_t shape[MAX_DIMS]
    cdef int d
    clear_arguments(&g, sizeof(g))
    read_reading(&g, points, reading, image.sizes)
    shape[0], shape[1] = g.examples, g.channels
    for d in range(g.dims):
        shape[2 + d] = points.sizes[1 + d]
    result = empty(image.dtype_nr, image.ndim, shape)
    if result.count:
        launch_reading(&g, READ, image, points, result, None)
    return result


def spread_from_points(TensorImpl input not None, TensorImpl grid not None, reading, sizes):
    """Return images (examples, channels, *sizes) of zeros to which values (examples, channels, *outer) are added at points."""
    cdef Reading g
    cdef TensorImpl values = dense(input, input.dtype_nr), points = dense(grid, input.dtype_nr), result
    cdef intptr_t shape[MAX_DIMS]
    clear_arguments(&g, sizeof(g))
    shape[0], shape[1] = values.sizes[0], values.sizes[1]
    if len(sizes) + 2 != points.ndim:
        raise RuntimeError("images have a size for each dim")
    parse_sizes(sizes, &shape[2])
    read_reading(&g, points, reading, shape)
    check_values(values, points, &g)
    result = empty(values.dtype_nr, values.ndim, shape)
    zero(result)
    if values.count and result.count:
        launch_reading(&g, SPREAD, result, points, values, None)
    return result


def slopes_at_points(TensorImpl gradient not None, TensorImpl input not None, TensorImpl grid not None, reading):
    """Return sums over channels of values (examples, channels, *outer) times the derivatives of the image by the coordinates of points."""
    cdef Reading g
    cdef TensorImpl values = dense(gradient, input.dtype_nr), image = dense(input, input.dtype_nr), points = dense(grid, input.dtype_nr)
    cdef TensorImpl result
    clear_arguments(&g, sizeof(g))
    read_reading(&g, points, reading, image.sizes)
    check_values(values, points, &g)
    result = empty(points.dtype_nr, points.ndim, points.sizes)
    if result.count:
        launch_reading(&g, SLOPES, image, points, values, result)
    return result
