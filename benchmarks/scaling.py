"""How time grows with size, family by family: the slope of its logarithm over the last two of five decades.

Work that costs the same for each element has exponent 1, for each pair of elements 2. A size counts elements, nodes, tensors or
multiplications, the quantity that the work is proportional to. Processor time, one thread, the quickest of a few executions. Where the last
decades are where caches end, the exponent is up to 1.4: the first row shows the exponent of NumPy's copy.
"""

import copy
import math
import pickle
import time
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import cygrad
from benchmarks.timing import Row, selected
from cygrad.autograd import forward_ad
from cygrad.autograd.functional import hvp, jacobian
from cygrad.autograd.profiler import profile
from cygrad.bench.libraries import Run, differentiated
from cygrad.func import vmap

LIMIT = 1.5
DECADES, FITTED = 5, 2
EXECUTIONS, SECONDS = 3, 0.05


class Family(NamedTuple):
    """Work whose size is given: `make(n)` returns the function to execute."""

    work: str
    largest: int
    make: Callable[[int], Callable[[], Any]]


def numbers(*shape: int) -> Any:
    """Return doubles between 0 and 1."""
    return cygrad.rand(*shape, dtype=cygrad.float64)


def positions(n: int, *shape: int) -> Any:
    """Return indices below n."""
    return cygrad.randint(0, n, shape)


def backward(function: Callable[..., Any], *shapes: tuple[int, ...], data: Any = ()) -> Run:
    """Return a function that differentiates the sum of a function of leaves, and of data."""
    return differentiated(cygrad, lambda *leaves: function(*leaves, *data).sum(), *(numbers(*shape).numpy() for shape in shapes))


def repeated(step: Callable[[Any], Any], times: int, start: Any) -> Any:
    """Apply a function again and again."""
    for _ in range(times):
        start = step(start)
    return start


def leaves(n: int) -> list[Any]:
    """Return n leaves of one element."""
    return [cygrad.tensor(1.0, dtype=cygrad.float64, requires_grad=True) for _ in range(n)]


def recorded(n: int) -> Any:
    """Return a leaf of n elements."""
    return numbers(n).requires_grad_()


# ----- Graphs of many nodes -----
def differentiate(outputs: Any, inputs: Any) -> Any:
    """Differentiate without touching `.grad`."""
    return cygrad.autograd.grad(outputs, inputs)


def wide(n: int) -> Run:
    """Differentiate a sum of leaves, each added in turn."""
    inputs = leaves(n)
    return lambda: differentiate(sum(inputs[1:], inputs[0]), inputs)


def stacked(n: int) -> Run:
    """Differentiate the sum of leaves that are stacked first."""
    inputs = leaves(n)
    return lambda: differentiate(cygrad.stack(inputs).sum(), inputs)


def many_outputs(n: int) -> Run:
    """Differentiate many outputs of one leaf at once."""
    x = cygrad.tensor(1.0, requires_grad=True)
    return lambda: differentiate([x * 2.0 for _ in range(n)], [x])


def many_backwards(n: int) -> Callable[[], None]:
    """Accumulate into one leaf by many backwards."""
    x = cygrad.tensor(1.0, requires_grad=True)

    def run() -> None:
        for _ in range(n):
            (x * 2.0).backward()

    return run


def parts(n: int, take: Callable[[Any, int], Any]) -> Run:
    """Take n parts of a leaf, join them and differentiate."""
    return backward(lambda x: cygrad.stack([take(x, i) for i in range(n)]), (n,))


def written(n: int) -> Run:
    """Write the elements of a recorded tensor one by one, and differentiate."""
    def fill(x: Any) -> Any:
        y = x * 1.0
        for i in range(n):
            y[i] = 2.0
        return y

    return backward(fill, (n,))


def rows_changed(n: int) -> Run:
    """Multiply the elements of a recorded tensor in place, one by one, and differentiate."""
    def change(x: Any) -> Any:
        y = x * 1.0
        for i in range(n):
            y[i].mul_(2.0)
        return y

    return backward(change, (n,))


def hooked(n: int) -> Run:
    """Differentiate a chain with a hook on each tensor."""
    def step(x: Any) -> Any:
        y = x * 1.0
        y.register_hook(lambda gradient: None)
        return y

    return backward(partial(repeated, step, n), (1,))


def many_hooks(n: int) -> Callable[[], None]:
    """Register many hooks on one tensor, differentiate, and remove them."""
    def run() -> None:
        y = recorded(1) * 1.0
        handles = [y.register_hook(lambda gradient: None) for _ in range(n)]
        y.sum().backward()
        for handle in handles:
            handle.remove()

    return run


def retained(n: int) -> Run:
    """Differentiate a chain whose gradients are kept."""
    def step(x: Any) -> Any:
        y = x * 1.0
        y.retain_grad()
        return y

    return backward(partial(repeated, step, n), (1,))


def forward_mode(n: int) -> Callable[[], Any]:
    """Carry a tangent through a chain."""
    def run() -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(repeated(lambda x: x * 1.0, n, forward_ad.make_dual(numbers(1), numbers(1)))).tangent

    return run


def profiled(n: int) -> Callable[[], Any]:
    """Record the events of a chain, and sum them up by name."""
    def run() -> Any:
        with profile() as events:
            repeated(lambda x: x * 1.0, n, numbers(1))
        return events.key_averages()

    return run


def twice(n: int) -> Callable[[], Any]:
    """Differentiate the gradient of a chain."""
    x = recorded(1)

    def run() -> Any:
        (first,) = cygrad.autograd.grad(repeated(lambda y: y * 1.0001, n, x * x).sum(), x, create_graph=True)
        return differentiate(first.sum(), x)

    return run


def shared(n: int) -> Run:
    """Differentiate a chain each link of which uses the one before twice."""
    return backward(partial(repeated, lambda x: x + x * 0.5, n), (1,))


def root(n: int, degree: int = 2) -> int:
    """Return the size that takes n multiplications, say, where work grows by a power."""
    return max(1, round(n ** (1 / degree)))


ELEMENTS = (
    Family("NumPy's copy", 10**7, lambda n: partial(np.copyto, np.ones(n), np.ones(n))),
    Family("a + b", 10**7, lambda n: partial(cygrad.add, numbers(n), numbers(n))),
    Family("a.add_(b)", 10**7, lambda n: partial(numbers(n).add_, numbers(n))),
    Family("exp", 10**7, lambda n: numbers(n).exp),
    Family("erfc", 10**6, lambda n: numbers(n).erfc),
    Family("pow", 10**6, lambda n: partial(cygrad.pow, numbers(n), numbers(n))),
    Family("chain of three, recorded, and backward", 10**7, lambda n: backward(lambda x: (x * 2).tanh() + x, (n,))),
    Family("to float32", 10**7, lambda n: numbers(n).float),
    Family("rows of 100 plus one row", 10**7, lambda n: partial(cygrad.add, numbers(n // 100, 100), numbers(100))),
    Family("rows of 100 plus one row, and backward", 10**7, lambda n: backward(cygrad.add, (n // 100, 100), (100,))),
    Family("rows of 3 times a column", 10**7, lambda n: partial(cygrad.mul, numbers(n // 3, 3), numbers(n // 3, 1))),
    Family("rows of 3 times a column, and backward", 10**7, lambda n: backward(cygrad.mul, (n // 3, 3), (n // 3, 1))),
    Family("transposed plus dense", 10**7, lambda n: partial(cygrad.add, numbers(root(n), root(n)).t(), numbers(root(n), root(n)))),
    Family("where", 10**7, lambda n: partial(cygrad.where, numbers(n) > 0.5, numbers(n), 0.0)),
    Family("clone of a transposed", 10**7, lambda n: numbers(root(n), root(n)).t().contiguous),
)

REDUCTIONS_AND_SCANS = (
    Family("sum", 10**7, lambda n: numbers(n).sum),
    Family("sum of a first dim of rows of 100", 10**7, lambda n: partial(numbers(n // 100, 100).sum, 0)),
    Family("sum of rows of 100", 10**7, lambda n: partial(numbers(n // 100, 100).sum, 1)),
    Family("sum of rows of 3", 10**7, lambda n: partial(numbers(n // 3, 3).sum, 1)),
    Family("sum of 100 rows", 10**7, lambda n: partial(numbers(100, n // 100).sum, 1)),
    Family("sum of 3 rows into one", 10**7, lambda n: partial(numbers(3, n // 3).sum, 0)),
    Family("sum of a middle dim", 10**7, lambda n: partial(numbers(n // 300, 100, 3).sum, 1)),
    Family("amax of rows of 100, and backward", 10**7, lambda n: backward(lambda x: x.amax(1), (n // 100, 100))),
    Family("max of all, and backward", 10**7, lambda n: backward(lambda x: x.max(), (n,))),
    Family("var of rows of 100, and backward", 10**7, lambda n: backward(lambda x: x.var(1), (n // 100, 100))),
    Family("softmax of rows of 100, and backward", 10**7, lambda n: backward(lambda x: x.softmax(1), (n // 100, 100))),
    Family("logsumexp of one row, and backward", 10**7, lambda n: backward(lambda x: x.logsumexp(0), (n,))),
    Family("prod, and backward", 10**6, lambda n: backward(lambda x: x.prod(), (n,))),
    Family("cumsum, and backward", 10**7, lambda n: backward(lambda x: x.cumsum(0), (n,))),
    Family("cumprod, and backward", 10**6, lambda n: backward(lambda x: x.cumprod(0), (n,))),
    Family("logcumsumexp, and backward", 10**6, lambda n: backward(lambda x: x.logcumsumexp(0), (n,))),
    Family("cummax, and backward", 10**6, lambda n: backward(lambda x: x.cummax(0)[0], (n,))),
    Family("argmax", 10**7, lambda n: numbers(n).argmax),
    Family("sort, and backward", 10**6, lambda n: backward(lambda x: x.sort()[0], (n,))),
    Family("median, and backward", 10**6, lambda n: backward(lambda x: x.median(), (n,))),
    Family("topk(5), and backward", 10**6, lambda n: backward(lambda x: x.topk(5)[0], (n,))),
    Family("unique", 10**6, lambda n: partial(cygrad.unique, positions(n, n))),
)

PLACES = (
    Family("cat of two, and backward", 10**7, lambda n: backward(lambda a, b: cygrad.cat([a, b]), (n // 2,), (n // 2,))),
    Family("cat of many", 10**6, lambda n: partial(cygrad.cat, [numbers(1) for _ in range(n)])),
    Family("stack of many leaves, and backward", 10**5, stacked),
    Family("split into many, cat, and backward", 10**6, lambda n: backward(lambda x: cygrad.cat(x.split(1)), (n,))),
    Family("unbind, stack, and backward", 10**6, lambda n: backward(lambda x: cygrad.stack(x.unbind()), (n,))),
    Family("selects of one leaf, and backward", 10**5, lambda n: parts(n, lambda x, i: x[i])),
    Family("slices of one leaf, and backward", 10**5, lambda n: parts(n, lambda x, i: x[i:i + 1])),
    Family("narrows of one leaf, and backward", 10**5, lambda n: parts(n, lambda x, i: x.narrow(0, i, 1))),
    Family("look-ups of one leaf by lists, and backward", 10**5, lambda n: parts(n, lambda x, i: x[[i]])),
    Family("selects of a recorded tensor, and backward", 10**5,
           lambda n: backward(lambda x: sum((y[i] for y in [x * 1.0] for i in range(n)), 0.0), (n,))),
    Family("elements written one by one, and backward", 10**5, written),
    Family("elements changed one by one, and backward", 10**5, rows_changed),
    Family("iteration over elements", 10**6, lambda n: partial(list, numbers(n))),
    Family("slice, and backward", 10**7, lambda n: backward(lambda x: x[1:-1], (n,))),
    Family("strided slice, and backward", 10**7, lambda n: backward(lambda x: x[::2], (n,))),
    Family("expand, and backward", 10**7, lambda n: backward(lambda x: x.expand(100, -1), (n // 100,))),
    Family("diagonal, and backward", 10**7, lambda n: backward(lambda x: x.diagonal(), (root(n), root(n)))),
    Family("unfold, and backward", 10**7, lambda n: backward(lambda x: x.unfold(0, 10, 5), (n // 2,))),
    Family("x[positions], and backward", 10**6, lambda n: backward(lambda x, i: x[i], (n,), data=[positions(n, n)])),
    Family("x[positions] of rows of 100, and backward", 10**7,
           lambda n: backward(lambda x, i: x[i], (n // 100, 100), data=[positions(n // 100, n // 100)])),
    Family("gather, and backward", 10**6, lambda n: backward(lambda x, i: x.gather(0, i), (n,), data=[positions(n, n)])),
    Family("scatter_add, and backward", 10**6,
           lambda n: backward(lambda x, s, i: x.scatter_add(0, i, s), (n,), (n,), data=[positions(n, n)])),
    Family("masked_select, and backward", 10**6, lambda n: backward(lambda x, m: x[m], (n,), data=[numbers(n) > 0.5])),
    Family("nonzero", 10**6, lambda n: (numbers(n) > 0.5).nonzero),
    Family("repeat_interleave, and backward", 10**6, lambda n: backward(lambda x: x.repeat_interleave(10), (n // 10,))),
    Family("roll, flip, and backward", 10**7, lambda n: backward(lambda x: x.roll(7).flip(0), (n,))),
    Family("tensor of a list", 10**6, lambda n: partial(cygrad.tensor, numbers(n).tolist())),
    Family("tolist", 10**6, lambda n: numbers(n).tolist),
    Family("pickle", 10**6, lambda n: partial(pickle.dumps, numbers(n))),
    Family("deep copy of many tensors", 10**5, lambda n: partial(copy.deepcopy, [numbers(1) for _ in range(n)])),
    Family("deep copy of many views of one", 10**5, lambda n: partial(copy.deepcopy, list(numbers(n).unbind()))),
    Family("pickle of many views of one", 10**5, lambda n: partial(pickle.dumps, list(numbers(n).unbind()))),
)

PRODUCTS = (
    Family("matrix times vector", 10**7, lambda n: partial(cygrad.mv, numbers(root(n), root(n)), numbers(root(n)))),
    Family("square matrices", 10**9, lambda n: partial(cygrad.mm, numbers(root(n, 3), root(n, 3)), numbers(root(n, 3), root(n, 3)))),
    Family("many 4 x 4 products, and backward", 10**7, lambda n: backward(cygrad.matmul, (n // 16, 4, 4), (n // 16, 4, 4))),
    Family("outer product, and backward", 10**7, lambda n: backward(cygrad.outer, (root(n),), (root(n),))),
    Family("many 4 x 4 products by einsum", 10**7,
           lambda n: partial(cygrad.einsum, "bij,bjk->bik", numbers(n // 16, 4, 4), numbers(n // 16, 4, 4))),
)

GRAPHS = (
    Family("chain, and backward", 10**6, lambda n: backward(partial(repeated, lambda x: x * 1.0, n), (1,))),
    Family("chain of views, and backward", 10**6, lambda n: backward(partial(repeated, lambda x: x.view(1), n), (1,))),
    Family("chain of views", 10**6, lambda n: partial(repeated, lambda x: x.view(1), n, numbers(1))),
    Family("chain of changes in place, and backward", 10**6,
           lambda n: backward(lambda x: repeated(lambda y: y.mul_(1.0), n, x * 1.0), (1,))),
    Family("chain of changes of a view, and backward", 10**5,
           lambda n: backward(lambda x: repeated(lambda y: y.mul_(1.0), n, (x * 1.0)[:1]), (2,))),
    Family("links that use the one before twice, backward", 10**6, shared),
    Family("sum of many leaves, and backward", 10**5, wide),
    Family("many outputs", 10**5, many_outputs),
    Family("many backwards into one leaf", 10**5, many_backwards),
    Family("chain, differentiated twice", 10**5, twice),
    Family("chain with a hook each, and backward", 10**5, hooked),
    Family("many hooks on one tensor", 10**4, many_hooks),
    Family("chain with gradients retained, and backward", 10**5, retained),
    Family("chain in forward mode", 10**5, forward_mode),
    Family("chain with its profile", 10**5, profiled),
)

FUNCTIONS = (
    Family("jacobian, vectorize=True", 10**6, lambda n: partial(jacobian, lambda v: v[1:] * v[:-1], numbers(root(n)), vectorize=True)),
    Family("jacobian", 10**6, lambda n: partial(jacobian, lambda v: v[1:] * v[:-1], numbers(root(n)))),
    Family("hvp", 10**6, lambda n: partial(hvp, lambda v: (v[1:] * v[:-1] ** 2).sum(), numbers(n), numbers(n))),
    Family("vmap over many", 10**6, lambda n: partial(vmap(lambda v: v.tanh() * 2.0), numbers(n))),
    Family("vmap of a sum over rows of 100", 10**7, lambda n: partial(vmap(lambda v: v.sum() * v), numbers(n // 100, 100))),
    Family("vmap of look-ups", 10**6, lambda n: partial(vmap(lambda v, i: v[i]), numbers(n // 10, 10), positions(10, n // 10))),
    Family("vmap in chunks", 10**6, lambda n: partial(vmap(lambda v: v.tanh() * 2.0, chunk_size=max(1, n // 10)), numbers(n))),
    Family("checkpoint of a chain", 10**5, lambda n: backward(
        lambda x: cygrad.checkpoint.checkpoint(partial(repeated, lambda y: y * 1.0, n), x, use_reentrant=False), (1,))),
)

FAMILIES = ELEMENTS + REDUCTIONS_AND_SCANS + PLACES + PRODUCTS + GRAPHS + FUNCTIONS


def quickest(run: Callable[[], Any]) -> float:
    """Return the least processor time of an execution by this thread."""
    timer = timeit.Timer("run()", "import gc; gc.enable()", time.thread_time, {"run": run})
    elapsed, count = timer.timeit(1), 1     # loads the modules that load at first use, unless it takes so long that this is nothing
    while elapsed < SECONDS / EXECUTIONS:
        count *= 2
        elapsed = timer.timeit(count)
    return min(elapsed, *timer.repeat(EXECUTIONS - 1, count)) / count


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return the slope of a line through the logarithms."""
    return float(np.polyfit([math.log(size) for size in sizes], [math.log(seconds) for seconds in times], 1)[0])


def rows() -> Iterator[Row]:
    """Yield the exponent of each family, beside the time for each element, node or tensor of the largest."""
    cygrad.set_num_threads(1)
    for family in FAMILIES:
        work = f"{family.work}, {family.largest:.0e}"
        if selected(work):
            sizes = [family.largest // 10**k for k in range(DECADES, -1, -1) if family.largest // 10**k >= 10]
            times = [quickest(family.make(size)) for size in sizes]
            slope = exponent(sizes[-1 - FITTED:], times[-1 - FITTED:])
            yield Row(work, slope, LIMIT, "each", times[-1] / sizes[-1], unit="")
