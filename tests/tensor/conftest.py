"""Fixtures of several files."""

import pytest

import cygrad as cg


@pytest.fixture
def x():
    return cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
