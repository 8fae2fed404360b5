"""A backward in a destructor that runs while Python shuts down, when nothing can be imported any more."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import builtins, sys, warnings
    sys.path.insert(0, {tests!r})
    import cygrad as cg
    import samples
    from cygrad.ops import ELEMENTWISE

    class Twice(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3
        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    class Last:
        def __del__(self, print=builtins.print, sys=sys):
            assert sys.meta_path is None
            for name, result in self.results:
                try:
                    result.backward(create_graph={create_graph})
                except BaseException as error:
                    print(name, repr(error), file=sys.stderr)
            print(len(self.results))

    warnings.simplefilter("ignore")
    results = [("Function", Twice.apply(cg.ones(2, requires_grad=True))[0].sum())]
    for row in ELEMENTWISE.values():
        if row.partials:
            operands = [samples.LAYOUTS["contiguous"](array) for array in samples.operands(row, "float64", [(3, 4)] * len(row.operands))]
            operands = [operand.requires_grad_() if operand.is_floating_point() else operand for operand in operands]
            results.append((row.name, samples.function(row)(*operands).sum()))
    for name, number, call, shapes in samples.rule_cases():
        outputs = samples.as_tuple(call(*map(samples.leaf, samples.rule_operands(shapes))))
        results.append((name, sum(samples.in_reals(output).sum() for output in outputs if output is not None and output.requires_grad)))
    last = Last()
    last.results = results
"""


@pytest.mark.parametrize("create_graph", [False, True])
def test_every_row_and_rule_has_imported_the_modules_of_its_backward(create_graph):
    program = textwrap.dedent(PROGRAM.format(tests=str(Path(__file__).parents[1]), create_graph=create_graph))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert int(done.stdout) > 200
