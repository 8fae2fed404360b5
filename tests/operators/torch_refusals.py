"""Torch's errors for dtypes that an operator does not take: the calls of each row and each sample, there, with operands of each dtype.

Where torch is installed, `PYTHONPATH=tests python tests/operators/torch_refusals.py` writes `tests/operators/torch_refusals.csv` anew. Of a
message the first clause stands there, with `{dtype}` for torch's name of the dtype; behind `#` are numbers of samples.
"""

import csv
import re
import types
from collections import defaultdict
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".csv")
GROUPS = {
    "integer": ("uint8", "int8", "int16", "int32", "int64"), "unsigned": ("uint16", "uint32", "uint64"),
    "half": ("float16", "bfloat16"), "complex": ("complex64", "complex128"),
}


def read():
    """Yield (operator, numbers of samples or [] for all, dtype, exception, clause)."""
    with FILE.open() as file:
        for line in csv.DictReader(file):
            for word in line["operators"].split():
                name, _, numbers = word.partition("#")
                for group in line["dtypes"].split():
                    for dtype in GROUPS.get(group, (group,)):
                        yield name, [int(number) for number in numbers.split(",") if number], dtype, line["exception"], line["clause"]


def calls_of(name):
    """Return (number, function, arrays) of the calls of an operator."""
    import samples
    from cygrad.ops import ELEMENTWISE

    if name in ELEMENTWISE:
        row = ELEMENTWISE[name]
        arrays = samples.operands(row, "float64", ((3, 2), (2,), ()))
        arrays = [np.abs(array) + 1 if row.integers and place else array for place, array in enumerate(arrays)]
        return [(0, samples.function(row), arrays)]
    entries = samples.SAMPLES.get(name) or samples.PLAIN[name]
    return [(number, sample.call, samples.rule_operands(sample.shapes)) for number, sample in enumerate(entries)]


def tensor_of(package, array, dtype):
    """Return an array as a tensor of a package, of a dtype; masks stay as they are."""
    if array.dtype.kind == "b":
        return package.tensor(array)
    values = array > 0 if dtype == "bool" else np.abs(array) if dtype.startswith("uint") else array
    return package.tensor(values).to(getattr(package, dtype))


# ----- In torch -----
def in_torch(name, call):
    """Return a call of a sample, or of a row, with torch in place of cygrad; None if torch has no such function."""
    if name in ELEMENTWISE:
        public = next((row.name for row in ELEMENTWISE.values() if row.select and name in row.select[1].values()), name)
        place = next((place for place in (torch, torch.nn.functional, torch.special) if hasattr(place, public)), None)
        return place and (lambda *operands: getattr(place, public)(*operands, **samples.parameters_of(name)))
    return with_torch(call)


MODULES = {}        # the names of modules of samples, with torch's in place of cygrad's


def with_torch(value):
    """Return a function of a module of samples, or a tensor, with torch in place of cygrad, in the functions that it calls too."""
    if isinstance(value, cg.Tensor):
        return torch.from_numpy(value.detach().numpy())
    if not isinstance(value, types.FunctionType) or not value.__module__.startswith("samples."):
        return value
    cells = tuple(types.CellType(with_torch(cell.cell_contents)) for cell in value.__closure__ or ())
    return types.FunctionType(value.__code__, names_of(value), value.__name__, value.__defaults__, cells)


def names_of(function):
    """Return the names that a function of a module of samples may use."""
    if function.__module__ not in MODULES:
        names = MODULES[function.__module__] = dict(function.__globals__)
        names.update({name: with_torch(value) for name, value in names.items()})
        names.update({name: thing for name, thing in (("cg", torch), ("vmap", torch.func.vmap)) if name in names})
    return MODULES[function.__module__]


def refusal_of(call, arrays, dtype):
    """Return (exception, first clause); None where torch computes, or refuses two dtypes beside each other."""
    try:
        call(*(tensor_of(torch, array, dtype) for array in arrays))
    except TypeError:       # a sample computes between with another dtype
        return None
    except RuntimeError as error:
        if re.search("same (dtype|scalar type)|dtypes match|same dtypes", str(error)):
            return None
        title = DTYPES[NUMBER[dtype]].title
        words = re.sub(r"^(\w+)\(.*\) : ", r"\1(): ", str(error).strip())      # errors of stft have all its arguments
        clause = re.split(r"\. |\.$|; |\n|,? (?:but|use|[Gg]ot|and in a future) |, e\.g\. ", words)[0]
        return type(error).__name__, re.sub(rf"\b{title}\b", "{dtype}", clause)
    return None


def is_callable(call, arrays, dtype):
    """Return True if torch has the functions that a call needs, and computes in the dtype."""
    try:
        call(*(tensor_of(torch, array, dtype) for array in arrays))
    except (AssertionError, AttributeError, IndexError, RuntimeError, TypeError, ValueError):
        return False
    return True


def collected():
    """Return {(exception, clause): {operator: {number: dtypes}}}."""
    table = defaultdict(lambda: defaultdict(dict))
    for name in [*ELEMENTWISE, *samples.SAMPLES, *samples.PLAIN]:
        for number, call, arrays in calls_of(name):
            there = in_torch(name, call)
            if there is not None and (is_callable(there, arrays, "float64") or is_callable(there, arrays, "int64")):
                for dtype in NUMBER:
                    refused = refusal_of(there, arrays, dtype)
                    if refused:
                        table[refused][name].setdefault(number, []).append(dtype)
    return table


def in_groups(dtypes):
    """Return the words for dtypes: a group's name for all of it."""
    whole = [group for group, members in GROUPS.items() if set(members) <= set(dtypes)]
    covered = {member for group in whole for member in GROUPS[group]}
    return " ".join([*(dtype for dtype in dtypes if dtype not in covered), *whole])


def lines():
    """Yield the lines of the file: operators with one error for the same dtypes stand together."""
    for (exception, clause), operators in sorted(collected().items()):
        words = defaultdict(list)
        for name, numbers in sorted(operators.items()):
            by_dtypes = defaultdict(list)
            for number, dtypes in numbers.items():
                by_dtypes[in_groups(dtypes)].append(number)
            for dtypes, chosen in by_dtypes.items():
                words[dtypes].append(name if len(chosen) == len(calls_of(name)) else f"{name}#{','.join(map(str, chosen))}")
        for dtypes, names in words.items():
            yield exception, clause, dtypes, " ".join(names)


if __name__ == "__main__":
    import torch

    import cygrad as cg
    import samples
    from cygrad.ops import ELEMENTWISE
    from cygrad.ops.dtypes import DTYPES, NUMBER

    with FILE.open("w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerows([("exception", "clause", "dtypes", "operators"), *lines()])
