"""Facts on the reference pages of operators: the file that the pages read agrees with the samples as they are measured now."""

import pytest

import operator_facts
from cygrad.numpy_functions.rows import name_of

AGAIN = "python -m building.operators"


@pytest.mark.cases("name, row", operator_facts.read().items())
def test_dtypes_and_errors_are_those_on_the_page(name, row):
    assert (row["dtypes"], row["errors"]) == operator_facts.measured(name), AGAIN


def test_each_operator_with_a_sample_has_its_row():
    assert [*operator_facts.read()] == operator_facts.names(), AGAIN


def test_numpys_names_are_those_on_the_page():
    """But functions that an older NumPy lacks."""
    rows = operator_facts.read()
    measured = {(name, function) for name, functions in operator_facts.numpys_names().items() if name in rows for function in functions}
    present = {name_of(function).removeprefix("np.") for function in operator_facts.test_numpy_functions.SAMPLES}
    assert measured == {(name, function) for name, row in rows.items() for function in row["numpy"].split() if function in present}, AGAIN
