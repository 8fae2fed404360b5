"""Facts about operators for their reference pages, measured by the samples: dtypes, errors, NumPy's name, whether torch has the name.

`python -m building.operators` runs this file, which writes `operator_facts.csv`, and reads that for the pages. An operator takes a dtype
that one of its calls computes with. NumPy's functions are those that the operator computes for tensors. Torch is asked for names where it
is installed; else they stay as they are, and a new name counts as torch's.
"""

import csv
import importlib
import warnings
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np

import cygrad as cg
import samples
from cygrad.numpy_functions.rows import name_of
from cygrad.operators import public_name
from cygrad.ops import ELEMENTWISE
from interchange import test_numpy_functions
from torch_refusals import GROUPS, calls_of, tensor_of

catalogue = importlib.import_module("cygrad.operators._written.catalogue")
CONVERSIONS = {"to"}
FILE = Path(__file__).with_suffix(".csv")
KINDS = {"bool": ("bool",), "integer": GROUPS["integer"], "unsigned": GROUPS["unsigned"], "half": GROUPS["half"],
         "float": ("float32", "float64"), "complex": GROUPS["complex"]}


def measured(name):
    """Return (dtypes, errors) of an operator: groups of dtypes that it takes, and the exceptions for all others."""
    accepted, errors = set(), set()
    for dtype in (dtype for group in KINDS.values() for dtype in group):
        raised = set()
        for _, call, arrays in calls_of(name):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(*(tensor_of(cg, array, dtype) for array in arrays))
                accepted.add(dtype)
            except Exception as error:
                raised.add(type(error).__name__)
        if dtype not in accepted:
            errors |= raised
    words = [group if accepted >= set(dtypes) else dtype for group, dtypes in KINDS.items()
             for dtype in (dtypes if not accepted >= set(dtypes) else dtypes[:1]) if dtype in accepted]
    return " ".join(words), " ".join(sorted(errors))


def numpys_names():
    """Return {operator: names of NumPy's functions}: those whose calls are mostly this operator alone, and never without it."""
    results = defaultdict(list)
    for function, calls in test_numpy_functions.SAMPLES.items():
        traces = [trace for call in calls for dtype in (np.float64, np.complex128) if (trace := _trace(call, dtype))]
        common, count = Counter(traces).most_common(1)[0] if traces else ((), 0)
        if len(common) == 1 and 2 * count > len(traces) and all(common[0] in trace for trace in traces):
            results[common[0]].append(name_of(function).removeprefix("np."))
    return results


def _trace(call, dtype):
    """Return the operators that a call of NumPy's runs, in their order; none where it does not take the dtype."""
    tensors = map(cg.from_numpy, test_numpy_functions.drawn(call.shapes, dtype))
    with cg.autograd.profiler.profile() as profile, warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        call.call(*tensors)
    operators = tuple(event.name.removeprefix("aten::") for event in profile.function_events if event.cpu_parent is None)
    return tuple(operator for operator in operators if operator not in CONVERSIONS) or operators


def names():
    """Return the rows, and the declared operators that have samples, in the order of the alphabet."""
    declared = {entry.name for entry in catalogue.entries()}
    return sorted({*ELEMENTWISE, *(declared & (samples.SAMPLES | samples.PLAIN).keys())})


def read():
    """Return {operator: row} of the file."""
    with FILE.open() as file:
        return {row["operator"]: row for row in csv.DictReader(file)}


def _in_torch(name, known):
    """Return "no" for a name that torch lacks, else "": as torch says, or as it was where torch is not installed."""
    try:
        import torch
    except ImportError:
        return known[name]["torch"] if name in known else ""
    places = (torch, torch.Tensor, torch.linalg, torch.fft, torch.special, torch.nn.functional, torch.signal.windows)
    return "" if any(hasattr(place, public_name(name).rpartition(".")[2]) for place in places) else "no"


if __name__ == "__main__":
    numpys, known = numpys_names(), read()
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["operator", "dtypes", "errors", "numpy", "torch"])
        writer.writerows([name, *measured(name), " ".join(numpys.get(name, ())), _in_torch(name, known)] for name in names())
