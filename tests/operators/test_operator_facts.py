"""Facts on the reference pages of operators: the file that the pages read agrees with the samples as they are measured now."""

import pytest

import operator_facts

AGAIN = "PYTHONPATH=tests python tests/operators/operator_facts.py, where torch is installed, then python -m cygrad.operators"


@pytest.mark.cases("name, row", operator_facts.read().items())
def test_dtypes_and_errors_are_those_on_the_page(name, row):
    assert (row["dtypes"], row["errors"]) == operator_facts.measured(name), AGAIN


def test_each_operator_with_a_sample_has_its_row():
    assert [*operator_facts.read()] == operator_facts.names(), AGAIN


def test_numpys_names_are_those_on_the_page():
    names = {name: " ".join(functions) for name, functions in operator_facts.numpys_names().items()}
    assert {name: row["numpy"] for name, row in operator_facts.read().items() if row["numpy"]} == {
        name: text for name, text in names.items() if name in operator_facts.read()}, AGAIN
