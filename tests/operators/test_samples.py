"""Every operator has samples, which reach its node; those that name NumPy's function give its values, in every layout and dtype."""

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import calls
import cygrad as cg
import public
import samples
from cygrad.operators._written import catalogue
from samples import DTYPES, KINDS, LAYOUTS, array_of, as_tuple


def public_operators():
    """Return {operator: its names} of the functions and methods."""
    operators = {}
    for name, operator in public.operators():
        operators.setdefault(operator.name, (operator, set()))[1].add(name)
    return operators


def rules():
    """Return the rules that are declared; the calls of messages stand in `tests/mpi`."""
    modules = dict(catalogue.rules())
    return {name: rule for name, rule in catalogue.load().items() if not sends(modules.get(name))}


def sends(module):
    """Return True if a family sends messages: it needs mpi4py, and several processes."""
    return module is not None and "cygrad.operators._messages" in Path(importlib.import_module(module).__file__).read_text()


def takes_tensors(operator):
    return any("Tensor" in str(parameter.annotation) for name, parameter in inspect.signature(operator).parameters.items() if name != "out")


def test_every_public_operator_has_a_sample():
    """By its name, by a call inside a sample, or as a form of an operator; random fills and factories have tests of their own."""
    sampled = {*samples.SAMPLES, *samples.PLAIN, *samples.ELEMENTWISE}
    sampled |= {public.declared_name(place, name) for place, name in calls.recorded_names()}
    without = {
        name for name, (operator, names) in public_operators().items()
        if not {name, name.removesuffix("_"), name.removesuffix("_copy")} & sampled and not names & sampled
        and not operator.__module__.endswith("random_fills") and operator.__module__ != "cygrad.mpi" and takes_tensors(operator)
    }
    assert without == set(), "give samples in the file of the family in tests/samples"


def test_samples_stand_in_the_file_of_their_family():
    families = {entry.name.strip("_"): entry.module for entry in catalogue.entries()}
    for family in samples.FAMILIES:
        for name in {**getattr(family, "SAMPLES", {}), **getattr(family, "PLAIN", {})}:
            assert families.get(name.strip("_"), family.__name__).endswith(family.__name__.removeprefix("samples")), name


def test_every_rule_has_samples():
    assert set(rules()) <= set(samples.SAMPLES), "give samples in the file of the family in tests/samples"


def test_every_sample_is_of_an_operator():
    names = {name for _, names in public_operators().values() for name in names}
    assert set(samples.SAMPLES) - set(catalogue.load()) - names == set(samples.PLAIN) - names == set()


@pytest.mark.cases("rule, declared", lambda: rules().items())
def test_a_rule_is_reached_by_its_samples(rule, declared):
    for _, call, shapes in samples.of(rule):
        results = as_tuple(call(*[samples.leaf(array) for array in samples.rule_operands(shapes)]))
        assert declared.node_name in samples.graph_names([r for r in results if r.requires_grad])


def compared(name):
    return [(number, sample) for number, sample in enumerate((samples.SAMPLES | samples.PLAIN)[name]) if sample.numpy]


@pytest.mark.parametrize("name", [name for name, calls in (samples.SAMPLES | samples.PLAIN).items() if any(s.numpy for s in calls)])
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", lambda sample: [dtype for dtype in DTYPES if KINDS[dtype] in sample.kinds])
@pytest.mark.cases("number, sample", compared)
def test_values_are_numpys(name, number, sample, layout, dtype):
    tensors = [LAYOUTS[layout](samples.draw(dtype, shape, position=k)) for k, shape in enumerate(sample.shapes)]
    result, expected = sample.call(*tensors), sample.numpy(*map(array_of, tensors))
    is_tuple = isinstance(expected, list | tuple)
    for one, other in zip(as_tuple(result), expected if is_tuple else [expected], strict=True):
        one = array_of(one) if isinstance(one, cg.Tensor) else np.asarray(one)
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(one, np.asarray(other).astype(one.dtype), rtol=1e-12 if one.dtype == float else 1e-5, atol=1e-6)
