"""A plugin that applies `-k` before pytest makes items: to functions without arguments, and to the parameters of the others.

pytest makes an item for each of some 19,000 parameters and drops most of them afterwards: half of the time of `pytest -k name`.
"""

import types

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression


def pytest_configure(config):
    expression = config.option.keyword.strip()
    if expression:
        config.pluginmanager.register(EarlySelection(expression), "early selection")


class EarlySelection:
    """Keeps the parameters of a test whose item `-k` would select."""

    def __init__(self, expression):
        self.expression = expression

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector, name, obj):
        """Make no item of a function whose names do not match, and which has no arguments that could bring others."""
        if not isinstance(obj, types.FunctionType) or obj.__code__.co_argcount or not collector.funcnamefilter(name):
            return None
        expression = self.compiled()
        marks = (mark.name for mark in getattr(obj, "pytestmark", ()))
        names = KeywordMatcher.from_item(collector)._names
        return None if expression is None or expression.evaluate(KeywordMatcher({*names, name, *marks, *obj.__dict__})) else []

    def compiled(self):
        """Return the expression, None if there is an error in it, which pytest reports once the items are there."""
        try:
            return Expression.compile(self.expression)
        except SyntaxError:
            return None

    @pytest.hookimpl(trylast=True)      # after the hooks that parametrize
    def pytest_generate_tests(self, metafunc):
        calls, expression = metafunc._calls, self.compiled()
        if not calls or expression is None:
            return
        names = KeywordMatcher.from_item(metafunc.definition)._names
        selected = [call for call in calls if expression.evaluate(KeywordMatcher({*names, call.id, *(mark.name for mark in call.marks)}))]
        calls[:] = selected or calls[:1]    # a test without any would be an item without parameters; pytest drops the one that stays
