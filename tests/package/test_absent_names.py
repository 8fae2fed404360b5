"""Names of torch, JAX and HIPS autograd that are not here are answered, and the README names the missing parts."""

import re

import pytest

import cygrad as cg
import public
from cygrad._absent import ELSEWHERE, TOPICS

LIMITS = (public.ROOT / "README.md").read_text().partition("\n## Limits\n")[2] if (public.ROOT / "README.md").exists() else ""


@pytest.mark.cases("topic", TOPICS, ids=lambda topic: topic.words)
def test_names_that_exist_are_not_called_missing(topic):
    assert [name for name in dir(cg) if re.fullmatch(topic.names, name)] == []


@pytest.mark.skipif(not LIMITS, reason="reads the README, and runs beside none")
@pytest.mark.cases("topic", TOPICS, ids=lambda topic: topic.words)
def test_the_limits_name_every_missing_topic(topic):
    assert re.search(rf"\b{topic.words}\b", LIMITS)


@pytest.mark.parametrize(("name", "message"), [
    ("Parameter", "cygrad has no layers; write it with operators"), ("optim", "cygrad.optimize gives SciPy's solvers exact gradients"),
    ("sparse_bsr_tensor", "cygrad has no layouts of sparse blocks"), ("cudnn_batch_norm", "cygrad has no layers"),
    ("batch_norm", r"; did you mean cygrad.nn.functional.batch_norm\?$"), ("lstsq", r"; did you mean cygrad.linalg.lstsq\?$"),
    ("kl_div", r"; did you mean cygrad.nn.functional.kl_div\?$"),
    ("jit", "cygrad has no compiler"), ("autocast", "cygrad has no mixed precision"),
    ("distributed", "mpi4py"), ("grad", r"; did you mean cygrad.func.grad\?$"), ("value_and_grad", "cygrad.func.grad_and_value"),
    ("hessian", "cygrad.func.hessian"), ("custom_vjp", "cygrad.autograd.Function"), ("stop_gradient", r"; did you mean x\.detach\(\)\?$"),
    ("device_put", "; leave it out: there is one device$"), ("symeig", r"; did you mean cygrad.linalg.eigh\?$"),
    ("backward", r"; tensors have it: x\.backward\(\.\.\.\)$"), ("shape", r"; tensors have it: x\.shape$"),
    ("quint8", "this dtype is not supported"),
    ("no_such_name", "has no attribute 'no_such_name'$"), ("_private", "has no attribute '_private'$"),
])
def test_absent_names_are_answered(name, message):
    with pytest.raises(AttributeError, match=message) as raised:
        getattr(cg, name)
    assert raised.value.name == name
    assert raised.value.obj is cg
    assert not hasattr(cg, name)
    with pytest.raises(ImportError):
        exec(f"from cygrad import {name}")


def test_layers_are_answered():
    with pytest.raises(AttributeError, match="module 'cygrad.nn' has no attribute 'Linear': cygrad has no layers"):
        cg.nn.Linear(2, 3)


def test_names_of_other_packages_lead_to_names_that_are_here():
    for name, instead in ELSEWHERE.items():
        assert not hasattr(cg, name)
        for path in re.findall(r"cygrad((?:\.\w+)+)", instead):
            place = cg
            for word in path[1:].split("."):
                place = getattr(place, word)
