"""The signatures that torch's stubs declare of functions and methods that are here too, one overload a line.

A method that torch also has as a function has a line for that as well.

Where torch is installed, `python tests/package/torch_signatures.py` writes `tests/package/torch_signatures.txt` anew.
"""

import ast
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")
# Overloads for missing features: named dims, products in another dtype (for GPUs only), an order of arguments that torch
# deprecates; a function that takes no keyword in torch; numbers by name in result_type; the old constructor `new`; switches of cuDNN.
ABSENT = {"names", "out_dtype", "self", "num", "scalar", "scalar1", ".new", "cudnn_enable", "cudnn_enabled"}


def declared(path, name=""):
    """Yield (name, parameters) of the functions of a stub, or of a class in it; those that take dims by name excepted."""
    body = ast.parse(Path(path).read_text()).body
    if name:
        body = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name).body
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = [*node.args.args, *filter(None, [node.args.vararg]), *node.args.kwonlyargs]
            if not any(a.annotation and "str | EllipsisType | None" in ast.unparse(a.annotation) for a in arguments):
                yield node.name, [a.arg for a in arguments]


def read():
    """Return [(name, parameters)] of the file; names of methods begin with a dot."""
    lines = (line.partition("(") for line in FILE.read_text().splitlines())
    return [(name, [word for word in words.rstrip(")").split(", ") if word]) for name, _, words in lines]


if __name__ == "__main__":
    import torch

    import cygrad

    folder = Path(torch.__file__).parent / "_C"
    signatures = [(name, words) for name, words in declared(folder / "_VariableFunctions.pyi")
             if hasattr(cygrad, name) or hasattr(cygrad.Tensor, name)]
    signatures += [(f".{name}", words[1:]) for name, words in declared(folder / "__init__.pyi", "TensorBase")
              if callable(getattr(cygrad.Tensor, name, None))]
    lines = {f"{name}({', '.join(words)})" for name, words in signatures if not ABSENT & {name, *words}}
    FILE.write_text("".join(f"{line}\n" for line in sorted(lines)))
