"""A record of a benchmark that was not measured: times by a formula, so that its tables are known."""

import itertools

LIBRARIES = {"numpy": "2.4.6", "torch": "2.13.0", "jax": "0.10.0", "autograd": "1.8.0", "numexpr": "2.14.0", "casadi": "3.7.0"}
RATES = {"memory": 1e10, "float32": 1.2e11, "float64": 6e10}      # of one thread
SIZES = (10, 100_000, 10_000_000)
# (family, work, bytes and operations for each element, numpy's time by cygrad's, sizes)
WORKS = (
    ("overhead", "x + y", 3, 1, 4.0, (4,)),
    ("overhead", "x.sum()", 1, 1, 2.0, (4,)),
    ("elementwise", "x + y", 3, 1, 1.2, SIZES),
    ("elementwise", "exp(x)", 2, 20, 2.5, SIZES),
    ("elementwise", "where(x > 0, x, y)", 3, 1, 0.8, SIZES),
    ("reductions", "x.sum()", 1, 1, 1.0, SIZES),
    ("reductions", "x.std(0)", 1, 4, 3.0, SIZES),
    ("matmul", "x @ y", 3, 700, 1.0, SIZES[1:]),
    ("indexing", "x[i]", 2, 0, 1.1, SIZES),
    ("linalg", "cholesky(x)", 2, 90, 1.0, SIZES[1:]),
)
NUMBER_BYTES = {"float32": 4, "float64": 8}


def spread(median, part=0.03):
    return {"median": median, "low": median * (1 - part), "high": median * (1 + part)}


def level(working_set, rate):
    return {"working_set": working_set, "bytes_per_second": rate, "by": "copy by streaming stores",
            "write_allocate": "its stores do not read the lines that they overwrite"}


def ceiling(threads):
    rate = threads ** 0.8
    return {"bandwidth": {**level(2 ** 28, rate * RATES["memory"]), "levels": [level(2 ** 15, 8 * rate * RATES["memory"])]},
            "flops": {dtype: rate * RATES[dtype] for dtype in NUMBER_BYTES},
            "flops_by": {dtype: "NumPy's product of 1024 x 1024" for dtype in NUMBER_BYTES}}


def row(work, family, dtype, size, direction="forward", threads=1, moved=3, operations=1, numpy=1.0, libraries=("numpy",), **fields):
    """Return a row; `moved` and `operations` are numbers and operations for each element, `numpy` its time by cygrad's."""
    rate = threads ** 0.7 if size > 50_000 else 1.0
    backward = 2.2 if direction != "forward" else 1.0
    nbytes, flops = int(moved * NUMBER_BYTES[dtype] * size * backward), int(operations * size * backward)
    seconds = 1.25 * max(nbytes / RATES["memory"], flops / RATES[dtype]) / rate + (2e-7 if fields.get("kind") != "workload" else 1e-3)
    share = {}
    if size > 10_000:
        part = ceiling(threads)
        share = {"bandwidth": nbytes / seconds / part["bandwidth"]["bytes_per_second"]}
        if operations >= 50:
            share = {"flops": flops / seconds / part["flops"][dtype]}
    result = {
        "work": work, "family": family, "kind": "operator", "dtype": dtype, "size": size, "shape": str(size), "direction": direction,
        "threads": threads, "bytes": nbytes, "flops": flops,
        "times": {"cygrad": {**spread(seconds), "rounds": 31},
                  **{name: {**spread(seconds * numpy * (1 + number)), "rounds": 31} for number, name in enumerate(libraries)}},
        "ratios": {name: spread(1 / numpy / (1 + number)) for number, name in enumerate(libraries)},
        "share": share, "noise": [], "note": None, "error": None,
    }
    return result | fields


def record(libraries=("numpy", "torch"), threads=(1, 2), works=WORKS, directions=("forward", "forward + backward"), **fields):
    """Return a record of all works, with one noisy row."""
    rows = [
        row(work, family, dtype, size, direction, count, moved, operations, numpy, libraries)
        for count, each, dtype, direction in itertools.product(threads, works, NUMBER_BYTES, directions)
        for family, work, moved, operations, numpy, sizes in [each] for size in sizes
    ]
    rows += [row("pairwise potential", "programs", "float64", 100_000, "forward + backward", count, numpy=1.4, libraries=libraries,
                 kind="workload", share={}, bytes=0, flops=0) for count in threads]
    rows[1]["noise"] = ["cygrad: the deviation is 20% of the median"]
    info = {"processor": "Some Processor 9000", "node_cpus": 2, "platform": "Linux-6.1-x86_64", "python": {"version": "3.11.7"},
            "instruction_set": {"chosen": "x86-64-v4"}, "blas": {"name": "OpenBLAS", "version": "0.3.31", "kernels": "SkylakeX"},
            "threads": {"threads": 2}}
    return {
        "format": 1, "version": "0.2.0.dev0", "started": "2026-11-22T15:00:00+00:00", "seconds": 55.1, "complete": True, "info": info,
        "libraries": {name: LIBRARIES[name] for name in libraries},
        "missing": {name: f"pip install {name}" for name in LIBRARIES if name not in libraries},
        "settings": {"quick": True, "only": "", "threads": [*threads], "dtypes": [*NUMBER_BYTES], "libraries": [*libraries],
                     "seconds": 60.0},
        "ceilings": {str(count): ceiling(count) for count in threads}, "rows": rows, "errors": [],
    } | fields


def with_error():
    """Return a record in which a row stands above its ceiling, and another has no finished round."""
    result = record()
    fast, unfinished = (next(row for row in result["rows"] if row["work"] == work and row["size"] == size)
                        for work, size in (("exp(x)", 100_000), ("x + y", 10_000_000)))
    fast |= {"share": {"bandwidth": 1.42}, "error": "exp(x), 1e5 float32: 142 % of the bandwidth ceiling"}
    unfinished |= {"times": {}, "ratios": {}, "share": {}, "error": "x + y, 1e7 float64: no round was finished"}
    result["errors"] = [fast["error"], unfinished["error"]]
    return result
