"""Facts about operators for their pages: gradients from declarations; dtypes, errors and NumPy's names from the samples of the tests,
which `tests/operators/operator_facts.py` measures.
"""

import csv
import functools
import os
import subprocess
import sys
from typing import Any

from building.operators.markdown import code
from cygrad.operators import public_name
from cygrad.operators._language.tangents import constant
from cygrad.operators._written import stubs

MEASURED = stubs.PACKAGE.parent / "tests" / "operators" / "operator_facts.csv"
KINDS = {"bool": "bool", "integer": "integers", "unsigned": "uint16 to uint64", "half": "float16, bfloat16", "float": "float32, float64",
         "complex": "complex"}

NARROW = f"integers but {KINDS['unsigned']}"


def measure() -> None:
    """Measure them again, by the samples of the tests, in a process that loads the names as they are written now."""
    paths = [str(MEASURED.parents[1]), str(MEASURED.parents[2]), os.environ.get("PYTHONPATH", "")]
    subprocess.run([sys.executable, str(MEASURED.with_suffix(".py"))], env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, check=True)


@functools.cache
def _measured() -> dict[str, dict[str, str]]:
    with MEASURED.open() as file:
        return {row["operator"]: row for row in csv.DictReader(file)}


def _dtypes(words: list[str], errors: list[str]) -> str:
    if words == [*KINDS]:
        return "Dtypes: all."
    text = ", ".join(KINDS.get(word, word) for word in words).replace(f"{KINDS['half']}, {KINDS['float']}", "floats")
    text = text.replace(f"integers, {KINDS['unsigned']}", "integers") if "unsigned" in words else text.replace("integers", NARROW)
    return f"Dtypes: {text}; others raise {' or '.join(errors)}."


def _gradients(operator: Any) -> str:
    declaration = operator.declaration
    rule = declaration and declaration.rule
    if rule and rule.inputs:
        inputs = [name for name, function in zip(rule.inputs, rule.functions, strict=False) if function is not None]
        return f"Gradients: by {code(inputs)}."
    if rule:
        return "Gradients: by each tensor."
    if declaration and declaration.forward is constant:
        return "Gradients: none."
    return ""


def facts(name: str, operator: Any = None, ufunc: str | None = None) -> str:
    """Return a list of sentences about an operator: dtypes and errors, gradients, names elsewhere.

    The gradients of a row are its formulas: it is given without the operator, and with NumPy's name.
    """
    row = _measured().get(name, {})
    lines = [_gradients(operator)] if operator else []
    if words := row.get("dtypes", "").split():
        lines.insert(0, _dtypes(words, row["errors"].split()))
    numpys = dict.fromkeys([*filter(None, [ufunc]), *row.get("numpy", "").split()])
    if numpys.keys() - {public_name(name)}:
        lines.append(f"NumPy: computes {code(f'np.{function}' for function in numpys)}.")
    if row.get("torch") == "no":
        lines.append("Not in torch.")
    return "\n".join(f"- {line}" for line in lines if line)
