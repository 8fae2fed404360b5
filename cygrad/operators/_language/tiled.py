"""Formulas of maps and reductions that are computed tile by tile, so that intermediates never leave the cache.

    @tiled
    def _softmax_gradient(g, y, dim):
        return y * (g - (g * y).sum(dim, keepdim=True))

A formula is tensor algebra: operators of rows of the tables, and reductions over its `dim` that keep the dims. Its first reading is the
function itself, which is recorded, and which tangents and examples of vmap see. The second is a list of steps, read by calling it
with symbols; it serves calls that are not recorded. Both give the same bits. A formula may return several tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cygrad._core.compute import composed
from cygrad.operators._language.narrow_floats import widened
from cygrad.ops import ELEMENTWISE, REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DIM = object()      # the dims of a formula while it is read


class Step(NamedTuple):
    """A map or a reduction between values, which are counted."""

    name: str
    reduces: bool
    dtype: str | None
    masks: int
    inputs: tuple[int, ...]
    output: int


class Symbol:
    """A value of a formula that is read: operators on it are noted as steps."""

    def __init__(self, reading: Reading, value: int) -> None:
        self.reading, self.value = reading, value

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        if name in REDUCTIONS:
            return lambda dim, keepdim: self.reading.reduce(name, self, dim, keepdim)
        row = name.removesuffix("_")    # in place of a tensor; a step overwrites values without later readers anyhow
        if row in ELEMENTWISE:
            return lambda *others: self.reading.map(row, self, *others)
        raise AttributeError(f"a formula of tiles has no {name}")

    def masked_fill(self, mask: Symbol, number: float) -> Symbol:
        """Put a number where the mask is true."""
        return self.reading.map("where", mask, number, self)


def _binary(name: str, reflected: bool = False) -> Callable[[Symbol, Any], Symbol]:
    if reflected:
        return lambda self, other: self.reading.map(name, other, self)
    return lambda self, other: self.reading.map(name, self, other)


for _operator, _row in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}.items():
    setattr(Symbol, f"__{_operator}__", _binary(_row))
    setattr(Symbol, f"__r{_operator}__", _binary(_row, True))
for _operator, _row in {"eq": "eq", "ne": "ne", "or": "bitwise_or", "and": "bitwise_and"}.items():
    setattr(Symbol, f"__{_operator}__", _binary(_row))


class Reading:
    """A formula applied to symbols: its values (source, number, dtype, whether reduced), and the steps between them."""

    def __init__(self, formula: Callable[..., Symbol], kinds: Sequence[int]) -> None:
        self.values: list[tuple[int | None, float | None, str | None, bool]] = [
            (k, None, None, kind == 1) for k, kind in enumerate(kinds)]
        self.steps: list[Step] = []
        self.numbers = {k for k, kind in enumerate(kinds) if kind == 2}
        results = formula(*(Symbol(self, k) for k in range(len(kinds))), DIM)
        self.results = tuple(result.value for result in (results if isinstance(results, tuple) else (results,)))

    def new(self, dtype: str | None, reduced: bool, number: float | None = None) -> int:
        self.values.append((None, number, dtype, reduced))
        return len(self.values) - 1

    def map(self, name: str, *operands: Any) -> Symbol:
        """Note a row on symbols and numbers."""
        row = ELEMENTWISE[name]
        masks = sum(1 << k for k, operand in enumerate(row.operands) if operand in row.masks)
        symbols = [x.value for k, x in enumerate(operands) if isinstance(x, Symbol) and not masks >> k & 1 and x.value not in self.numbers]
        kinds = {self.values[value][2] for value in symbols}
        dtype = kinds.pop() if len(kinds) == 1 else None        # floats, unless all are of another kind
        inputs = [x.value if isinstance(x, Symbol) else self.new(dtype, True, x) for x in operands]
        reduced = all(self.values[value][3] or self.values[value][1] is not None or value in self.numbers for value in inputs)
        output = self.new("bool" if row.result == "bool" else dtype, reduced)
        self.steps.append(Step(name, False, dtype, masks, tuple(inputs), output))
        return Symbol(self, output)

    def reduce(self, name: str, x: Symbol, dim: object, keepdim: bool) -> Symbol:
        """Note a reduction, over the dims of the formula."""
        _, _, dtype, reduced = self.values[x.value]
        if dim is not DIM or not keepdim or reduced:
            raise TypeError("a formula of tiles reduces tensors of its whole shape over its own dims, and keeps them")
        output = self.new("int64" if REDUCTIONS[name].result == "widest" and dtype else dtype, True)
        self.steps.append(Step(name, True, dtype, 0, (x.value,), output))
        return Symbol(self, output)

    def are_joined(self, before: Step, step: Step) -> bool:
        """Return True if there is a loop of a step and of the one before, whose result nothing else reads: a map of a difference from a
        reduced value, or a reduction of products."""
        if [value for each in self.steps for value in each.inputs].count(before.output) != 1 or before.output in self.results:
            return False
        reduced = [self.values[value][3] for value in before.inputs]
        if step.reduces:
            return REDUCTIONS[step.name].products and (before.name, reduced) == ("mul", [False, False]) and step.inputs == (before.output,)
        row = ELEMENTWISE[step.name]
        return (row.shifted is not None and (before.name, reduced) == ("sub", [False, True])
                and step.inputs[row.operands.index(row.shifted)] == before.output)

    def compiled(self) -> composed.Steps:
        """Give values slots; a step writes over an input that nothing reads later, and slots are used again, but results have slots
        of their own, which are written once."""
        last = {value: k for k, step in enumerate(self.steps) for value in step.inputs} | dict.fromkeys(self.results, len(self.steps))
        slots: list[tuple[int | None, float | None, str | None, bool]] = []
        place: dict[int, int] = {}
        free: list[int] = []

        def slot_for(value: int) -> int:
            for slot in free if value not in self.results else ():
                if slots[slot][2:] == self.values[value][2:]:
                    free.remove(slot)
                    return slot
            slots.append(self.values[value])
            return len(slots) - 1

        steps = []
        for k, step in enumerate(self.steps):
            for value in step.inputs:
                if value not in place:
                    slots.append(self.values[value])
                    place[value] = len(slots) - 1
            ended = [place[value] for value in dict.fromkeys(step.inputs) if last[value] == k and self.values[value][:2] == (None, None)]
            if not step.reduces:
                free += ended
            place[step.output] = slot_for(step.output)
            if step.reduces:
                free += ended
            joined = k > 0 and self.are_joined(self.steps[k - 1], step)
            steps.append((step.name, step.reduces, joined, step.dtype, step.masks, [place[value] for value in (*step.inputs, step.output)]))
        return composed.Steps(slots, steps, tuple(place[value] for value in self.results))


def tiled(formula: Callable[..., Any]) -> composed.Tiled:
    """Return a formula that is computed tile by tile unless it is recorded; its `values` never are. Its last parameter is the dims that
    it reduces.

    Tiles hold 16-bit numbers in float32 and round the result. Step by step, and in rows too long for a tile, the arguments are converted
    instead: rounded to 16 bits, a sum of 70,000 ones would be inf.
    """
    def step_by_step(*arguments: Any) -> Any:
        wide = widened(arguments)
        if wide is None:
            return formula(*arguments)
        results = by_tiles(*wide.arguments)
        return tuple(result.to(wide.dtype) for result in results) if isinstance(results, tuple) else results.to(wide.dtype)

    by_tiles = composed.Tiled(formula, step_by_step, lambda formula, kinds: Reading(formula, kinds).compiled())
    return by_tiles
