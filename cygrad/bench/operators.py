"""The table of operators: each row once, as it reads in the API, beside the best that NumPy can do.

A row is text: the expression that cygrad and torch evaluate, and NumPy's statements, with results in memory that is there already,
nothing computed twice, gradients by hand and in memory of their own, as `.grad` is. Dtypes, sizes, directions and threads are products
over the row. Names of operands stand for their contents (`OPERANDS`); `y` is the result, `g` its seed, `da` the gradient of `a`; the other
NumPy's statements name, `before` makes once.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cygrad.bench.work import BOTH, FORWARD, OVERHEAD
from cygrad.ops.dtypes import DTYPES, DTypeRow

Shape = tuple[int, ...]
Shapes = Callable[[int], dict[str, Shape]]

ROW = 100       # elements of the rows of reductions and of broadcasting


class Operator(NamedTuple):
    """A row. `numpy` and `backward` are NumPy's statements, `complex` is the backward of complex numbers where it is another.

    `together` are both, where the forward alone has a shorter way than the one that a gradient needs.
    `kinds` are the kinds of dtypes that it is computed in, `h` the floats of 16 bits. Without a backward it is not differentiated.
    `peers` are the expressions of other libraries, by name. `flops` counts the operations by the shapes of its operands, one for each
    element by default; a backward takes `factor` times as many.
    """

    text: str
    family: str
    shapes: Shapes
    numpy: str
    backward: str = ""
    complex: str | None = None
    together: str = ""
    before: str = ""
    kinds: str = "hf"
    low: float = -3.0
    high: float = 3.0
    largest: int = 10_000_000
    note: str = ""
    flops: Callable[[dict[str, Shape]], float] | None = None
    factor: int = 2
    peers: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """How it is listed."""
        return f"{self.text}, {self.note}" if self.note else self.text

    def dtypes(self) -> list[str]:
        """Return the dtypes it is computed in."""
        return [row.name for row in DTYPES if kind(row) in self.kinds]

    def gradient(self, dtype: str) -> str:
        """Return NumPy's statements for its gradients in a dtype, none where it is not differentiated."""
        row = next(row for row in DTYPES if row.name == dtype)
        if not row.is_differentiable:
            return ""
        backward = self.backward or self.together
        return backward if self.complex is None or not row.is_complex else self.complex

    def statements(self, dtype: str, direction: str) -> str:
        """Return the function that NumPy executes."""
        if direction == FORWARD:
            return self.numpy
        return self.together or f"{self.numpy}; {self.gradient(dtype)}"

    def directions(self, dtype: str) -> tuple[str, ...]:
        """Return the directions it is measured in."""
        return (FORWARD, BOTH) if self.gradient(dtype) else (FORWARD,)


def kind(row: DTypeRow) -> str:
    """Return the kind of a dtype, as rows name it."""
    return "h" if row.is_opaque else row.kind


NUMBERS = ("x", "a", "b", "v", "w", "row", "column")
MATRICES = ("s",)               # symmetric and positive definite
OPERANDS = (*NUMBERS, *MATRICES, "i", "mask")       # i are positions, each once


def words(text: str) -> list[str]:
    """Return the names in an expression that are not attributes, each once."""
    return list(dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)))


# ----- Shapes -----
def root(n: int) -> int:
    """Return the side of a square of n elements."""
    return max(1, round(math.sqrt(n)))


def flat(text: str) -> Shapes:
    """Return vectors of n elements, for each operand of an expression."""
    names = [name for name in words(text) if name in OPERANDS]
    return lambda n: dict.fromkeys(names, (n,))


def rows_of(width: int, **others: Callable[[int, int], Shape]) -> Shapes:
    """Return `x`, rows of so many elements, or one row of fewer, and operands whose shapes follow from the numbers of rows and columns."""
    def shapes(n: int) -> dict[str, Shape]:
        columns = min(n, width)
        return {"x": (n // columns, columns), **{name: shape(n // columns, columns) for name, shape in others.items()}}

    return shapes


def square(*names: str, **others: Callable[[int], Shape]) -> Shapes:
    """Return square matrices of n elements, and operands whose shapes follow from their side."""
    return lambda n: {**dict.fromkeys(names, (root(n), root(n))), **{name: shape(root(n)) for name, shape in others.items()}}


def batch(side: int, *names: str, **others: Callable[[int], Shape]) -> Shapes:
    """Return batches of small matrices, n elements in all."""
    def shapes(n: int) -> dict[str, Shape]:
        count = max(1, n // side**2)
        return {**dict.fromkeys(names, (count, side, side)), **{name: shape(count) for name, shape in others.items()}}

    return shapes


# ----- Rows -----
OPERATORS: list[Operator] = []


def operator(text: str, family: str, numpy: str, backward: str = "", shapes: Shapes | None = None, **fields: Any) -> None:
    """Add a row; its operands are vectors where nothing else is said."""
    OPERATORS.append(Operator(text, family, shapes or flat(text), numpy, backward, **fields))


def elementwise(text: str, numpy: str, backward: str = "", **fields: Any) -> None:
    """Add a row that reads the same in other libraries of arrays."""
    operator(text, "elementwise", numpy, backward, **{"peers": {"jax": text, "numexpr": text}} | fields)


LIKE_Y = "t = empty_like(y)"
MASK = "m = empty(x.shape, bool)"

elementwise("a * b", "multiply(a, b, out=y)", "multiply(g, b, out=da); multiply(g, a, out=db)", kinds="biuhfc",
            complex="conjugate(b, out=da); multiply(da, g, out=da); conjugate(a, out=db); multiply(db, g, out=db)")
elementwise("a + b", "add(a, b, out=y)", "copyto(da, g); copyto(db, g)", kinds="bihfc")
elementwise("a / b", "divide(a, b, out=y)", "divide(g, b, out=da); multiply(da, y, out=db); negative(db, out=db)", kinds="hfc", low=0.3,
            complex="conjugate(b, out=da); divide(g, da, out=da); conjugate(y, out=db); multiply(db, da, out=db); negative(db, out=db)")
elementwise("a // b", "floor_divide(a, b, out=y)", kinds="i", peers={"jax": "a // b"})
elementwise("a & b", "bitwise_and(a, b, out=y)", kinds="bi")
elementwise("a > b", "greater(a, b, out=y)", kinds="bihf")
elementwise("pow(a, b)", "power(a, b, out=y)", "multiply(g, y, out=t); log(a, out=db); multiply(db, t, out=db); multiply(t, b, out=t); "
            "divide(t, a, out=da)", before=LIKE_Y, low=0.3, high=2.0, peers={"jax": "a ** b", "numexpr": "a ** b"})
elementwise("x * x", "multiply(x, x, out=y)", "multiply(g, x, out=dx); multiply(dx, 2, out=dx)", kinds="bihf")
elementwise("exp(x)", "exp(x, out=y)", "multiply(g, y, out=dx)", complex="conjugate(y, out=dx); multiply(dx, g, out=dx)", kinds="hfc")
elementwise("log(x)", "log(x, out=y)", "divide(g, x, out=dx)", complex="conjugate(x, out=dx); divide(g, dx, out=dx)", kinds="hfc", low=0.3)
elementwise("sin(x)", "sin(x, out=y)", "cos(x, out=dx); multiply(dx, g, out=dx)", kinds="hfc",
            complex="cos(x, out=dx); conjugate(dx, out=dx); multiply(dx, g, out=dx)")
elementwise("tanh(x)", "tanh(x, out=y)", "multiply(y, y, out=dx); subtract(1, dx, out=dx); multiply(dx, g, out=dx)", kinds="hfc",
            complex="multiply(y, y, out=dx); subtract(1, dx, out=dx); conjugate(dx, out=dx); multiply(dx, g, out=dx)")
elementwise("sqrt(x)", "sqrt(x, out=y)", "divide(g, y, out=dx); multiply(dx, 0.5, out=dx)", kinds="hfc", low=0.3,
            complex="conjugate(y, out=dx); divide(g, dx, out=dx); multiply(dx, 0.5, out=dx)")
elementwise("sigmoid(x)", "negative(x, out=y); exp(y, out=y); add(y, 1, out=y); reciprocal(y, out=y)",
            "subtract(1, y, out=dx); multiply(dx, y, out=dx); multiply(dx, g, out=dx)",
            peers=dict.fromkeys(("jax", "numexpr"), "1 / (1 + exp(-x))"))
elementwise("abs(x)", "absolute(x, out=y)", "sign(x, out=dx); multiply(dx, g, out=dx)", kinds="ihf")
elementwise("maximum(a, b)", "maximum(a, b, out=y)", kinds="bihf", peers={"jax": "maximum(a, b)"})
elementwise("clamp(x, -1, 1)", "clip(x, -1, 1, out=y)", "equal(x, y, out=m); multiply(g, m, out=dx)", before=MASK,
            peers={"jax": "clip(x, -1, 1)"})
elementwise("where(mask, a, b)", "y = where(mask, a, b)", "multiply(g, mask, out=da); subtract(g, da, out=db)",
            kinds="bihfc")


def broadcasting(text: str, shapes: Shapes, numpy: str, backward: str, **fields: Any) -> None:
    """Add a row whose operands differ in shape or order."""
    operator(text, "broadcasting", numpy, backward, shapes, peers={"jax": text, "numexpr": text}, **fields)


broadcasting("x + row", rows_of(ROW, row=lambda rows, columns: (columns,)), "add(x, row, out=y)",
             "copyto(dx, g); sum(g, axis=0, out=drow)", kinds="ifc")
broadcasting("x * column", rows_of(10, column=lambda rows, columns: (rows, 1)), "multiply(x, column, out=y)",
             "multiply(g, column, out=dx); vecdot(g, x, out=dcolumn[:, 0])", kinds="if")
broadcasting("column - row", lambda n: {"column": (root(n), 1), "row": (root(n),)}, "subtract(column, row, out=y)",
             "sum(g, axis=1, keepdims=True, out=dcolumn); sum(g, axis=0, out=drow); negative(drow, out=drow)", kinds="ifc")
OPERATORS.append(Operator("a.T + b", "broadcasting", square("a", "b"), "add(a.T, b, out=y)", "copyto(da, g.T); copyto(db, g)",
                          kinds="ihfc", peers={"jax": "a.T + b"}))


def reduction(text: str, numpy: str, backward: str = "", shapes: Shapes | None = None, **fields: Any) -> None:
    """Add a row that reduces the rows of x."""
    operator(text, "reductions", numpy, backward, shapes or rows_of(ROW), **{"peers": {"jax": text}} | fields)


reduction("x.sum()", "sum(x, dtype=y.dtype, out=y)", "copyto(dx, g)", flat("x"), kinds="bihfc")
reduction("x.sum(0)", "sum(x, axis=0, dtype=y.dtype, out=y)", "copyto(dx, g)", kinds="bihfc")
reduction("x.sum(1)", "sum(x, axis=1, dtype=y.dtype, out=y)", "copyto(dx, g[:, None])", kinds="bihfc")
reduction("x.mean(1)", "mean(x, axis=1, out=y)", "divide(g[:, None], x.shape[1], out=dx)", kinds="hfc")
reduction("x.var(1)", "mean(x, axis=1, keepdims=True, out=m); subtract(x, m, out=t); vecdot(t, t, out=y); "
          "divide(y, x.shape[1] - 1, out=y)", "multiply(t, (g * (2 / (x.shape[1] - 1)))[:, None], out=dx)",
          before="m = empty((len(x), 1), x.dtype); t = empty_like(x)", kinds="hf", peers={"jax": "x.var(1, ddof=1)"})
reduction("x.norm()", "y = sqrt(dot(x, x))", "multiply(x, g / y, out=dx)", flat("x"), kinds="hf", peers={"jax": "linalg.norm(x)"})
reduction("x.amax(1)", "amax(x, axis=1, out=y)", "equal(x, y[:, None], out=m); divide(g, sum(m, axis=1), out=u); "
          "multiply(m, u[:, None], out=dx)", before=f"{MASK}; u = empty_like(y)", kinds="ihf", peers={"jax": "x.max(1)"})
reduction("x.argmax(1)", "argmax(x, axis=1, out=y)", kinds="ihf")
reduction("x.cumsum(1)", "cumsum(x, axis=1, dtype=y.dtype, out=y)", "cumsum(g[:, ::-1], axis=1, out=dx[:, ::-1])", kinds="ifc")
reduction("x.softmax(1)", "amax(x, axis=1, keepdims=True, out=m); subtract(x, m, out=y); exp(y, out=y); "
          "sum(y, axis=1, keepdims=True, out=m); divide(y, m, out=y)",
          "vecdot(g, y, out=m[:, 0]); subtract(g, m, out=dx); multiply(dx, y, out=dx)",
          before="m = empty((len(x), 1), x.dtype)", kinds="hf", peers={"jax": "softmax(x, 1)"})
reduction("x.logsumexp(1)", "amax(x, axis=1, keepdims=True, out=m); subtract(x, m, out=t); exp(t, out=t); sum(t, axis=1, out=u); "
          "log(u, out=y); add(y, m[:, 0], out=y)", "divide(g, u, out=u); multiply(t, u[:, None], out=dx)",
          before="m = empty((len(x), 1), x.dtype); t = empty_like(x); u = empty_like(y)", kinds="hf", peers={"jax": "logsumexp(x, 1)"})
reduction("x.sort()[0]", "copyto(y, x); y.sort()", shapes=flat("x"), kinds="if", peers={"jax": "sort(x)"}, largest=1_000_000)


def product(text: str, shapes: Shapes, numpy: str, backward: str, **fields: Any) -> None:
    """Add a product; a backward has two of the same size."""
    operator(text, "matmul", numpy, backward, shapes, **{"peers": {"jax": text}, "kinds": "hfc", "factor": 3} | fields)


def multiplications(shapes: dict[str, Shape]) -> float:
    """Return the operations of the product of `a` and `b`, or of vectors."""
    first, second = shapes.values()
    return 2 * math.prod(first) * (second[-1] if len(second) > 1 else 1)


product("a @ b", square("a", "b"), "matmul(a, b, out=y)", "matmul(g, b.T, out=da); matmul(a.T, g, out=db)",
        complex="matmul(g, b.conj().T, out=da); matmul(a.conj().T, g, out=db)", flops=multiplications, largest=1_000_000)
product("a @ b", batch(4, "a", "b"), "matmul(a, b, out=y)", "matmul(g, b.mT, out=da); matmul(a.mT, g, out=db)",
        complex="matmul(g, b.conj().mT, out=da); matmul(a.conj().mT, g, out=db)", flops=multiplications, largest=1_000_000,
        note="4 x 4 each")
product("a @ v", square("a", v=lambda side: (side,)), "matmul(a, v, out=y)", "outer(g, v, out=da); matmul(a.T, g, out=dv)",
        complex="outer(g, v.conj(), out=da); matmul(a.conj().T, g, out=dv)", flops=multiplications)
product("v @ w", flat("v @ w"), "dot(v, w, out=y)", "multiply(w, g, out=dv); multiply(v, g, out=dw)",
        complex="conjugate(w, out=dv); multiply(dv, g, out=dv); conjugate(v, out=dw); multiply(dw, g, out=dw)", flops=multiplications)
product("outer(v, w)", lambda n: dict.fromkeys("vw", (root(n),)), "multiply(v[:, None], w, out=y)",
        "matmul(g, w, out=dv); matmul(v, g, out=dw)", complex="matmul(g, w.conj(), out=dv); matmul(v.conj(), g, out=dw)")


def indexing(text: str, numpy: str, backward: str = "", shapes: Shapes | None = None, **fields: Any) -> None:
    """Add a row that finds, or places, elements."""
    operator(text, "indexing", numpy, backward, shapes, **{"peers": {"jax": text}, "kinds": "biuhfc"} | fields)


indexing("x[1:] - x[:-1]", "subtract(x[1:], x[:-1], out=y)", "dx[-1] = 0; negative(g, out=dx[:-1]); add(dx[1:], g, out=dx[1:])",
         kinds="ihfc")
indexing("x[1:-1]", "y = x[1:-1]", "dx[0] = dx[-1] = 0; dx[1:-1] = g", largest=OVERHEAD)
indexing("x[i]", "take(x, i, out=y, mode='clip')", "dx.fill(0); add.at(dx, i, g)")
indexing("x[mask]", "compress(mask, x, out=y)", peers={},
         together="t = flatnonzero(mask); take(x, t, out=y, mode='clip'); dx.fill(0); dx[t] = g")
indexing("x.index_add(0, i, v)", "copyto(y, x); add.at(y, i, v)", "copyto(dx, g); take(g, i, out=dv, mode='clip')", kinds="ihfc",
         peers={"jax": "x.at[i].add(v)"})
indexing("cat([a, b])", "concatenate((a, b), out=y)", "copyto(da, g[:a.size]); copyto(db, g[a.size:])",
         peers={"jax": "concatenate([a, b])"})
indexing("a.T.contiguous()", "copyto(y, a.T)", "copyto(da, g.T)", square("a"), peers={"jax": "copy(a.T)"})
indexing("x.flip(0)", "copyto(y, x[::-1])", "copyto(dx, g[::-1])", peers={"jax": "flip(x)"})


def cubes(part: float) -> Callable[[dict[str, Shape]], float]:
    """Return a function that counts so many operations for each cube of a matrix's side."""
    def count(shapes: dict[str, Shape]) -> float:
        *batches, _, side = shapes["s"]
        return part * math.prod(batches) * side**3

    return count


def decomposition(text: str, numpy: str, part: float, largest: int = 1_000_000, **fields: Any) -> None:
    """Add two rows, of a large matrix and of a batch of small ones; complex ones have no gradient by hand."""
    common: dict[str, Any] = {"kinds": "fc", "complex": "", "flops": cubes(part), "peers": {"jax": text}} | fields
    second = "b" in words(text)
    operator(text, "linalg", numpy, shapes=square("s", "b") if second else square("s"), largest=largest, **common)
    operator(text, "linalg", numpy, shapes=batch(3, "s", "b") if second else batch(3, "s"), largest=1_000_000, note="3 x 3 each", **common)


decomposition("linalg.solve(s, b)", "y = linalg.solve(s, b)", 8 / 3,
              backward="db = linalg.solve(s.mT, g); ds = matmul(db, y.mT); negative(ds, out=ds)")
decomposition("linalg.inv(s)", "y = linalg.inv(s)", 2, backward="ds = y.mT @ g @ y.mT; negative(ds, out=ds)")
decomposition("linalg.slogdet(s)[1]", "y = linalg.slogdet(s)[1]", 2 / 3, backward="ds = linalg.inv(s).mT * g[..., None, None]")
decomposition("linalg.cholesky(s)", "y = linalg.cholesky(s)", 1 / 3, before="d = arange(s.shape[-1])",
              backward="t = tril(y.mT @ g); t[..., d, d] *= 0.5; u = linalg.inv(y); t = u.mT @ t @ u; ds = (t + t.mT) / 2")
decomposition("linalg.eigvalsh(s)", "y = linalg.eigvalsh(s)", 4 / 3, 100_000,
              together="y, t = linalg.eigh(s); ds = matmul(t * g[..., None, :], t.mT)")
decomposition("linalg.svdvals(s)", "y = linalg.svd(s, compute_uv=False)", 4 / 3, 100_000,
              together="t, y, u = linalg.svd(s); ds = matmul(t * g[..., None, :], u)")
