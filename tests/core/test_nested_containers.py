"""Containers that contain themselves, or are nested deep, end as errors: code in C that walks through them has an end, too."""

import subprocess
import sys

# Expressions of a tensor x, and of a list that has itself: with a tensor, with a number; a dict; a list nested 100,000 deep.
EXPRESSIONS = """
cg.tensor(own) cg.tensor(numbers) cg.tensor(deep) cg.cat(own) cg.cat(deep) cg.stack(own) cg.where(x>0,numbers,deep) cg.zeros(numbers)
x[own] x[numbers] x[deep] x[tuple(own)] x.__setitem__(own,1) x.__setitem__(0,numbers) x.__setitem__(0,deep) x.reshape(numbers) x.sum(deep)
x+own cg.einsum('i,i',own) cg.meshgrid(own) cg.linalg.multi_dot(own) cg.sin(x,out=own) np.concatenate([x,own]) cg.split(x,numbers)
cg.autograd.grad(own,own) cg.autograd.backward(deep) cg.autograd.gradcheck(abs,(own,)) cg.autograd.functional.jacobian(len,own)
Saved.apply(own) Saved.apply(deep) cg.checkpoint.checkpoint(len,deep,use_reentrant=False) cg.save(deep,'/dev/null')
func.grad(len)(own) func.vmap(len)(deep) func.jvp(len,(own,),(own,)) func.scan(print,own,x) func.fori_loop(0,2,print,deep)
cg.compile(len)(own) cg.compile(len)(deep) cg.compile(len)(of_itself) cg.compile(lambda:own)() cg.compile(lambda:deep)()
cg.compile(lambda:[x,own])() cg.compile(lambda:cg.cat(own))() cg.compile(lambda:x[numbers])() cg.compile(lambda:Saved.apply(own))()
profiled(own) profiled(deep) cg.cat([x.as_subclass(Subclass),own]) func.vmap(lambda row:row[numbers])(x.reshape(1,2))
func.jvp(lambda y:cg.cat([y,own]),(x,),(x,)) func.vmap(lambda row:cg.stack([row,own]))(x.reshape(1,2))
""".split()

PROGRAM = """
import warnings
import numpy as np
import cygrad as cg
from cygrad import func
warnings.simplefilter("ignore")
x = cg.ones(2, requires_grad=True)
own, numbers, of_itself, deep = [x], [1], {}, []
own.append(own)
numbers.append(numbers)
of_itself["itself"] = of_itself
for _ in range(100_000):
    deep = [deep]
class Subclass(cg.Tensor):
    pass
class Saved(cg.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return cg.ones(2)
    @staticmethod
    def backward(ctx, gradient):
        return None
def profiled(value):
    with cg.autograd.profiler.profile(record_shapes=True):
        cg.cat(value)
for expression in EXPRESSIONS:
    print(expression, flush=True)
    try:
        eval(expression)
    except Exception as error:
        print("   ", type(error).__name__)
os._exit(0)     # Python itself frees lists nested so deep
"""


def test_no_container_ends_the_process():
    program = f"import os\nEXPRESSIONS = {EXPRESSIONS!r}\n{PROGRAM}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-300:] + run.stderr[-1000:]
    assert run.stdout.count("Error") > len(EXPRESSIONS) // 2
