"""Random programs of maps over arrays of any geometry, run as one and by the operators one by one."""

import ctypes
import functools
import math
import mmap
from typing import NamedTuple

import numpy as np

import cygrad as cg
from cygrad._core.compute.dispatch import ops
from cygrad._testing import run_steps
from cygrad.ops import ELEMENTWISE
from cygrad.ops.dtypes import DTYPES, NUMBER
from samples import same_bits

PADDING = 64
REGION = 1 << 23        # bytes of the largest array
ROWS = {row.name: row for row in DTYPES}
NAMES = tuple(ROWS)
SIZES = (1, 7, 64, 64, 1000, 1000, 1000, 1000, 1000, 70000)
# Loops that may differ between positions for operands that operators refuse, or that are drawn from a domain of their own.
LEFT_OUT = {"bitwise_left_shift", "bitwise_right_shift"}
ROWS_OF_MAPS = [row for row in ELEMENTWISE.values() if row.name not in LEFT_OUT and not row.select]
_guarded: list = []     # regions of memory before a page that cannot be read


def guarded_region(place):
    """Return the address after the last byte that can be read of a region of memory."""
    while len(_guarded) <= place:
        memory = mmap.mmap(-1, REGION + mmap.PAGESIZE)
        end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + REGION
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0) == 0
        _guarded.append((memory, end))
    return _guarded[place][1]


def array_at(address, dtype, shape):
    nbytes = max(1, math.prod(shape) * dtype.itemsize)
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype, math.prod(shape)).reshape(shape)


def numpy_dtype(name):
    return np.dtype("uint16" if name == "bfloat16" else name)


def tensor_of(array, name):
    tensor = cg.tensor(np.array(array, order="C"))
    return tensor.view(cg.bfloat16) if name == "bfloat16" else tensor


def array_of(tensor):
    """Return the elements of a tensor; elements of bfloat16 as float32."""
    return (tensor.float() if tensor.dtype == cg.bfloat16 else tensor).numpy()


def values_of(array, name):
    """Return the elements as `array_of` returns them."""
    return (array.astype(np.uint32) << 16).view(np.float32).reshape(array.shape) if name == "bfloat16" else array


def draw(rng, name, shape):
    """Return an array of random elements, the ends of the dtype among them."""
    kind, dtype = ROWS[name].kind, numpy_dtype(name)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        limits = np.iinfo(dtype)
        ends = np.array([limits.min, limits.max, 0, 1], dtype)
        numbers = rng.integers(0 if limits.min == 0 else -9, 10, shape).astype(dtype)
        return np.where(rng.random(shape) < 0.05, rng.choice(ends, shape), numbers).astype(dtype)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
    numbers = np.where(rng.random(shape) < 0.03, rng.choice(ends, shape), rng.normal(0, 2, shape))
    if kind == "c":
        return (numbers + 1j * rng.normal(0, 2, shape)).astype(dtype)
    if name == "bfloat16":
        return (np.asarray(numbers, np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(shape)
    return numbers.astype(dtype)


class Array(NamedTuple):
    """An array in memory: its view over the space of a program, and the name of its dtype."""

    view: np.ndarray
    name: str
    padded: bool
    dense: bool

    def argument(self):
        return self.view.__array_interface__["data"][0], NUMBER[self.name], self.view.strides, self.padded


def place_array(rng, place, name, shape):
    """Return an array of a random layout; where it is not padded, memory after it cannot be read."""
    dtype, padded = numpy_dtype(name), bool(rng.random() < 0.5)
    way = rng.choice(["dense", "number", "any"], p=[0.35, 0.15, 0.5])
    ndim = len(shape)
    order, steps, repeated, extra = np.arange(ndim), np.ones(ndim, int), np.full(ndim, way == "number"), np.zeros(ndim, int)
    if way == "any":
        order = rng.permutation(ndim) if rng.random() < 0.4 else order
        steps = rng.choice([1, 1, 1, 1, 2, 3, -1, -2], ndim)
        repeated, extra = rng.random(ndim) < 0.25, rng.choice([0, 0, 0, 1, 5], ndim)
    sizes = [1 if repeated[d] else (max(shape[d], 1) - 1) * abs(steps[d]) + 1 + extra[d] for d in range(ndim)]
    if math.prod(sizes) * dtype.itemsize > REGION // 2:
        steps, extra = np.sign(steps), np.zeros(ndim, int)
        sizes = [1 if repeated[d] else max(shape[d], 1) for d in range(ndim)]
    stored = [int(sizes[d]) for d in order]
    end = guarded_region(place) - (PADDING if padded else 0)
    base = array_at(end - math.prod(stored) * dtype.itemsize, dtype, stored)
    base[...] = draw(rng, name, base.shape)
    view = base.transpose(np.argsort(order)) if ndim else base
    view = view[(..., *(slice(None) if repeated[d] else slice(None, None, int(steps[d])) for d in range(ndim)))]      # 0-d: no copy
    view = view[(..., *(slice(0, 1 if repeated[d] else shape[d]) for d in range(ndim)))]
    return Array(np.broadcast_to(view, shape), name, padded, way == "dense")


def widened(name):
    return ROWS[name].loops or name


@functools.cache
def has_own_loop(row_name, name):
    """Return True if a row has a loop that reads 16-bit floats as they are."""
    row = ELEMENTWISE[row_name]
    if not (row.narrow or row.stored):
        return False
    memory = np.zeros(64, np.uint16)
    step = row.name, NUMBER[name], 0, 0, (0,) * len(row.operands), NUMBER[name], NUMBER[name], memory.ctypes.data
    try:
        return bool(run_steps((1,), ((memory.ctypes.data + 64, NUMBER[name], (2,), True),), (step,)))
    except ValueError:
        return False


def reads(name, dtype):
    """Return True if values of a dtype may be read by a loop for another one with the bits of a conversion before it."""
    if name == dtype:
        return True
    return widened(dtype) == dtype and ROWS[name].kind in {"b": "b", "i": "biu", "f": "biuf", "c": "biufc"}[ROWS[dtype].kind]


class Program:
    """A random program, and the results of its steps by the operators of the package."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.shape = self.draw_shape()
        self.arrays, self.sources, self.steps, self.results, self.alive = [], [], [], [], []
        for _ in range(int(rng.integers(1, 9))):
            for _ in range(20):
                if self.add_step():
                    break
        self.targets = self.draw_targets()

    def draw_shape(self):
        rng, left = self.rng, int(self.rng.choice(SIZES))
        if rng.random() < 0.02:
            left = 300_000      # past the caches
        shape = []
        for _ in range(int(rng.integers(0, 4))):
            shape.append(int(rng.choice([1, 2, 3, 4, 10, 16, 64])))
            left //= shape[-1]
        shape.append(max(left, 1))
        if rng.random() < 0.5:
            rng.shuffle(shape)
        if rng.random() < 0.02:
            shape[0] = 0
        return () if shape == [1] and rng.random() < 0.5 else tuple(shape)

    def input(self, dtype):
        """Return the place of an operand that a loop for a dtype reads: a result, an array again, or a new one."""
        rng = self.rng
        before = [-1 - k for k, tensor in enumerate(self.results) if reads(tensor.dtype.name, dtype)]
        again = [k for k, array in enumerate(self.arrays) if reads(array.name, dtype)]
        for places in (before, again):
            if places and rng.random() < 0.5:
                return int(rng.choice(places[-3:]))
        name = dtype if rng.random() < 0.7 else str(rng.choice([name for name in NAMES if reads(name, dtype)]))
        self.arrays.append(place_array(rng, len(self.arrays), name, self.shape))
        self.sources.append(tensor_of(self.arrays[-1].view, name))
        return len(self.arrays) - 1

    def value(self, place, dtype):
        tensor = self.sources[place] if place >= 0 else self.results[-1 - place]
        return tensor if tensor.dtype.name == dtype else tensor.to(getattr(cg, dtype))

    def add_step(self):
        """Add a map, or a conversion; False where the operator refuses its operands."""
        rng = self.rng
        if rng.random() < 0.08:
            place = self.input(str(rng.choice(NAMES)))
            source = self.arrays[place].name if place >= 0 else self.results[-1 - place].dtype.name
            name = str(rng.choice([name for name in NAMES if ROWS[name].kind == ROWS[source].kind or ROWS[source].kind == "b"]))
            self.results.append(self.value(place, source).to(getattr(cg, name), copy=True))
            self.steps.append((None, NUMBER[source], 0, 0, (place,), NUMBER[source], NUMBER[name]))
            return True
        row = ROWS_OF_MAPS[int(rng.integers(len(ROWS_OF_MAPS)))]
        names = [name for name in NAMES if ROWS[name].kind in row.kinds and not (row.integers and ROWS[name].kind in "iu")]
        if not names:
            return False
        dtype = str(rng.choice(names))
        masks = sum(1 << k for k, operand in enumerate(row.operands) if operand in row.masks)
        places = tuple(self.input("bool" if masks >> k & 1 else dtype) for k in range(len(row.operands)))
        values = [self.value(place, "bool" if masks >> k & 1 else dtype) for k, place in enumerate(places)]
        try:
            result = ops[row.name](*values)
        except (RuntimeError, TypeError, NotImplementedError):
            return False
        loop = dtype if ROWS[dtype].is_opaque and has_own_loop(row.name, dtype) and (row.stored or rng.random() < 0.5) else widened(dtype)
        out = result.dtype.name
        loop_out = out if loop == dtype and out == dtype else widened(out)
        params = np.array([*row.params.values()] or [0], numpy_dtype(loop))
        self.alive.append(params)
        self.results.append(result)
        self.steps.append((row.name, NUMBER[loop], masks, params.ctypes.data, places, NUMBER[loop_out], NUMBER[out]))
        return True

    def draw_targets(self):
        """Return an array for each result that leaves, or None: some lie over an array that no later step reads."""
        rng, targets = self.rng, []
        last_reads = {place: k for k, step in enumerate(self.steps) for place in step[4]}
        free = {k for k, array in enumerate(self.arrays) if array.dense and array.padded}
        for k, result in enumerate(self.results):
            if -1 - k in last_reads and rng.random() < 0.5:
                targets.append(None)
                continue
            name = result.dtype.name
            over = [place for place in free if self.arrays[place].name == name and last_reads.get(place, -1) <= k and result.numel() > 0]
            if over and rng.random() < 0.5:
                free.remove(over[0])
                targets.append(array_at(self.arrays[over[0]].argument()[0], numpy_dtype(name), self.shape))
                continue
            nbytes = result.numel() * numpy_dtype(name).itemsize
            memory = np.full(nbytes + 4 * PADDING, 0xA5, np.uint8)
            self.alive.append(memory)
            start = PADDING + -memory.ctypes.data % PADDING
            targets.append(memory[start:start + nbytes].view(numpy_dtype(name)).reshape(self.shape))
        return targets

    def run(self):
        """Run the steps that a program has room for, and return how many."""
        steps = tuple((*step, 0 if target is None else target.__array_interface__["data"][0])
                      for step, target in zip(self.steps, self.targets, strict=True))
        self.ran = run_steps(self.shape, tuple(array.argument() for array in self.arrays), steps)
        return self.ran

    def sum(self):
        """Run the program and return the sum of its last result, which is not written; None if it has no room, or the sum is no row."""
        name = self.results[-1].dtype.name
        if widened(name) != name or name == "bool":
            return None
        steps = [(*step, 0 if target is None else target.__array_interface__["data"][0])
                 for step, target in zip(self.steps, self.targets, strict=True)]
        steps[-1] = (*steps[-1][:-1], 0)
        total = np.zeros(1, self.results[-1].sum().numpy().dtype)
        self.ran = run_steps(self.shape, tuple(array.argument() for array in self.arrays), tuple(steps), 0, ("sum", total.ctypes.data))
        return total.reshape(()) if self.ran == len(steps) else None

    def differences(self, but=-1):
        """Return the steps whose results have other bits than their operators, or that wrote outside of them."""
        wrong = []
        for k, (target, result) in enumerate(zip(self.targets, self.results, strict=True)):
            if target is not None and k < self.ran and k != but and not same_bits(values_of(target, result.dtype.name), array_of(result)):
                wrong.append((k, self.steps[k], self.shape))
        for memory in self.alive:
            if memory.dtype == np.uint8 and memory.size >= 4 * PADDING:
                start = PADDING + -memory.ctypes.data % PADDING
                if (memory[:start] != 0xA5).any() or (memory[memory.size - 4 * PADDING + start + PADDING:] != 0xA5).any():
                    wrong.append(("outside", self.shape))
        return wrong
