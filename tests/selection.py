"""A plugin that applies `-k` to the parameters of a test before pytest makes its items.

pytest makes an item for each of some 19,000 parameters and drops most of them afterwards: half of the time of `pytest -k name`.
"""

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

    @pytest.hookimpl(trylast=True)      # after the hooks that parametrize
    def pytest_generate_tests(self, metafunc):
        calls = metafunc._calls
        if not calls:
            return
        try:
            expression = Expression.compile(self.expression)
        except SyntaxError:             # pytest reports it once the items are there
            return
        names = KeywordMatcher.from_item(metafunc.definition)._names
        selected = [call for call in calls if expression.evaluate(KeywordMatcher({*names, call.id, *(mark.name for mark in call.marks)}))]
        calls[:] = selected or calls[:1]    # a test without any would be an item without parameters; pytest drops the one that stays
