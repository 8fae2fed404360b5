"""Operands that are no dense array of the loop's dtype: read in place row by row, as a number for each row, from a repeated period, or
packed into blocks. In all ways, results have the bits that dense copies of the operands give, and nothing beyond a row is touched.

The sizes lie around the limits: rows of a few elements, of a vector, of 128; periods; blocks of 512; repetitions of 1024; tiles.
"""

import ctypes
import itertools
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
import samples
from samples import DTYPES, FLOATS, LAYOUTS, WRITABLE, array_of, same_bits

LENGTHS = samples.sizes((1, 2, 3, 5, 7, 8, 10, 16, 25, 33, 100, 127, 128, 200, 513, 1100))
# Of two operands: one of the others is repeated along all of its dims of size 1.
PAIRS = samples.sizes((
    *(((1 + 1400 // n, n), (1 + 1400 // n, 1)) for n in LENGTHS),
    *(((1 + 1400 // n, n), (n,)) for n in LENGTHS),
    *(((1 + 700 // n, 2, n), (1 + 700 // n, 1, n)) for n in LENGTHS),
    ((40, 1, 3), (1, 40, 3)), ((30, 1, 10), (25, 10)), ((3, 1, 700), (1, 2, 1)), ((3, 2, 600, 1), (3, 1, 1, 2)),
    ((4, 1, 5, 1, 7), (1, 6, 1, 3, 7)), ((2, 1, 400, 3), (2, 5, 1, 3)), ((1600, 2), (1, 1)), ((7, 1), (1, 1300)),
))  # fmt: skip
# Kinds of kernels: exact or vector mathematics, of one to three operands, in the dtype of their operands or another one.
KERNELS = {
    "exact": lambda a, b: cg.mul(a, b),
    "the other way round": lambda a, b: cg.sub(b, a),
    "truth": lambda a, b: cg.gt(a, b),
    "of three, one a mask": lambda a, b: cg.where(b > 0, a, b),
    "of three": lambda a, b: cg.addcmul(b, a, b, value=2),
}
VECTORISED = {"of one": lambda a, b: cg.exp(b), "of two": cg.logaddexp, "of two, a number": lambda a, b: np.logaddexp(b, 0.5)}
PLACES = ({"a": "contiguous", "b": "contiguous"}, {"a": "cut", "b": "stepped"}, {"a": "transposed", "b": "foreign"},
          {"a": "stepped", "b": "transposed"}, {"a": "foreign", "b": "cut"})  # fmt: skip


def drawn(dtype, shapes):
    return [samples.draw(dtype, shape, position=position) for position, shape in enumerate(shapes)]


def dense(array, shape):
    return cg.tensor(np.ascontiguousarray(np.broadcast_to(array, shape)))


def test_repeated_operands_count_as_dense_copies():
    for dtype, (number, shapes) in itertools.product(("uint8", "int64", *FLOATS), enumerate(PAIRS)):
        arrays = drawn(dtype, shapes)
        whole = np.broadcast_shapes(*shapes)
        place = PLACES[number % len(PLACES)]
        tensors = [LAYOUTS[place[name]](array) for name, array in zip("ab", arrays, strict=True)]
        copies = [dense(array, whole) for array in arrays]
        for name, call in (KERNELS | (VECTORISED if dtype in FLOATS else {})).items():
            for order in (1, -1):
                got, expected = call(*tensors[::order]), call(*copies[::order])
                shape = np.broadcast_to(array_of(got), whole)
                assert same_bits(shape, array_of(expected)), (name, dtype, shapes, place, order)


def test_every_layout_beside_every_other():
    for dtype, shape in itertools.product(FLOATS, ((70, 3), (3, 200), (9, 33), (2, 1100), (20, 4, 8))):
        arrays = drawn(dtype, [shape, shape])
        expected = {name: array_of(call(*map(cg.tensor, arrays))) for name, call in (KERNELS | VECTORISED).items()}
        for first, second in itertools.product(WRITABLE, repeat=2):
            a, b = LAYOUTS[first](arrays[0]), LAYOUTS[second](arrays[1])
            for name, call in (KERNELS | VECTORISED).items():
                assert same_bits(array_of(call(a, b)), expected[name]), (name, dtype, shape, first, second)


@pytest.mark.parametrize("method", ["mul_", "logaddexp_out", "exp_"])
def test_writes_stay_within_their_elements(method):
    """A target is written in place, row by row or from blocks; memory behind it and between its rows is as it was."""
    for dtype, (shape, other) in itertools.product((*FLOATS, "int64"), PAIRS):
        whole = np.broadcast_shapes(shape, other)
        if whole != shape or method != "mul_" and dtype == "int64":
            continue
        a, b = drawn(dtype, [shape, other])
        wide = samples.draw(dtype, (shape[0] + 2, *shape[1:-1], shape[-1] + 3), seed=1)
        rows = (slice(1, -1), ...)
        for source, part in ((wide[..., 3:], rows), (wide, (*rows, slice(1, -2))), (np.repeat(wide, 2, -1), (*rows, slice(1, -5, 2)))):
            memory, expected = cg.tensor(source), source.copy()
            target = memory[part]
            if method == "mul_":
                target.copy_(cg.tensor(a)).mul_(cg.tensor(b))
                result = cg.tensor(a) * dense(b, whole)
            elif method == "exp_":
                target.copy_(cg.tensor(a)).exp_()
                result = cg.tensor(a).exp()
            else:
                cg.logaddexp(cg.tensor(a), cg.tensor(b), out=target)
                result = cg.logaddexp(cg.tensor(a), dense(b, whole))
            expected[part] = array_of(result)
            assert same_bits(array_of(memory), expected), (dtype, shape, other, part)


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_between_layouts_and_dtypes(dtype):
    shapes = ((70, 3), (3, 70), (9, 33), (100, 130), (130, 20), (2, 1100), (5, 4, 6, 7), (600, 2), (1, 5))
    for (shape, other), (number, layout) in itertools.product(((s, d) for s in shapes for d in DTYPES), enumerate(WRITABLE)):
        (array,) = drawn(dtype, [shape])
        expected = cg.tensor(array.astype(other))
        tensor = LAYOUTS[layout](array)
        assert same_bits(array_of(tensor.to(getattr(cg, other))), array_of(expected))
        target = LAYOUTS[WRITABLE[(number + len(shape) + DTYPES.index(other)) % len(WRITABLE)]](np.zeros(shape, other))
        assert same_bits(array_of(target.copy_(tensor)), array_of(expected)), (shape, dtype, other, layout)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
def test_expanded_and_joined(dtype):
    for shape, _ in PAIRS:
        for choices in itertools.product((0, 1), repeat=len(shape)):
            (array,) = drawn(dtype, [[n if keep else 1 for n, keep in zip(shape, choices, strict=True)]])
            assert same_bits(array_of(cg.tensor(array).expand(shape).contiguous()), np.broadcast_to(array, shape).copy())
        parts = [LAYOUTS[layout](samples.draw(dtype, shape, position)) for position, layout in enumerate(("transposed", "cut", "stepped"))]
        for dim in range(len(shape)):
            assert same_bits(array_of(cg.cat(parts, dim)), np.concatenate([array_of(part) for part in parts], dim))


def test_threads_begin_in_the_middle_of_rows():
    shapes = (((30011, 3), (30011, 1)), ((3001, 33), (33,)), ((701, 131), (701, 1)), ((41, 2, 1201), (41, 1, 1201)))
    for dtype, (shape, other), layout in itertools.product(FLOATS, shapes, ("contiguous", "cut", "transposed")):
        arrays = drawn(dtype, [shape, other])
        a, b = (LAYOUTS[layout](array) for array in arrays)
        results = []
        for count in (1, 2):
            with samples.threads(count):
                results.append([array_of(cg.logaddexp(a, b)), array_of(cg.logaddexp(b, a, out=LAYOUTS[layout](np.zeros(shape, dtype))))])
        expected = array_of(cg.logaddexp(cg.tensor(arrays[0]), dense(arrays[1], shape)))
        assert all(same_bits(result, expected) for pair in results for result in pair), (dtype, shape, layout)


@pytest.mark.slow
def test_large_results_of_every_way():
    """Exact kernels and copies write large results past the caches, in `out=` too, from rows and blocks alike."""
    shapes = (((400_003, 3), (400_003, 1)), ((9001, 133), (133,)), ((700, 1710), (700, 1)), ((1_200_001,), ()))
    for (number, (shape, other)), layout in itertools.product(enumerate(shapes), ("contiguous", "cut")):
        dtype = FLOATS[number % 2]
        arrays = drawn(dtype, [shape, other])
        a, b = (LAYOUTS[layout](array) for array in arrays)
        product, repeated = arrays[0] * arrays[1], np.broadcast_to(arrays[1], shape)
        out = cg.zeros(shape, dtype=getattr(cg, dtype))
        unaligned = cg.zeros(out.numel() + 1, dtype=out.dtype)[1:].view(shape)
        with samples.threads(2):
            for result in (a * b, cg.mul(a, b, out=out), cg.mul(b, a, out=unaligned), a.clone().mul_(b)):
                assert same_bits(result.numpy(), product), (dtype, shape, layout)
            for result in (out.copy_(a), unaligned.copy_(a), a.contiguous()):
                assert same_bits(result.numpy(), arrays[0]), (dtype, shape, layout)
            assert same_bits(a.to(cg.float64).numpy(), arrays[0].astype("float64"))
            assert same_bits(b.expand(shape).contiguous().numpy(), repeated)


# ----- Memory that ends where nothing may be read -----
def at_the_end(array):
    """Return a copy in memory that is followed by a page that must not be touched."""
    pages = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(address + pages), mmap.PAGESIZE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    place = np.frombuffer(memory, array.dtype, array.size, pages - array.nbytes).reshape(array.shape)
    place[...] = array
    return place


def run_at_the_end():
    """Compute with operands and targets whose last element is the last that may be touched."""
    ways = {"dense": (1, slice(None)), "cut": (2, slice(None)), "stepped": (2, slice(1, None, 2))}
    for dtype, n, (first, second) in itertools.product((*FLOATS, "uint8"), LENGTHS[1:], itertools.product(ways, repeat=2)):
        a, b, out = (
            cg.from_numpy(at_the_end(samples.draw(dtype, (2 + 600 // n, ways[way][0] * n), seed))[:, ways[way][1]][:, -n:])
            for seed, way in enumerate((first, second, first))
        )
        for column in (b, b[:, -1:], b[-1]):
            for call in (*KERNELS.values(), *(VECTORISED.values() if dtype in FLOATS else ())):
                call(a, column)
            (cg.logaddexp if dtype in FLOATS else cg.mul)(a, column, out=out)
            out.copy_(column)
            a.to(cg.float64 if dtype != "float64" else cg.float32)
            column.expand(a.shape).contiguous()
            cg.cat([a, a], 1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="protects a page in the way of Linux")
def test_nothing_beyond_foreign_memory_is_touched():
    folders = [Path(__file__).parent, Path(__file__).parents[1], Path(cg.__file__).parents[1]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])}
    script = "import test_packing; test_packing.run_at_the_end()"
    subprocess.run([sys.executable, "-c", script], env=environment, timeout=120, check=True)
