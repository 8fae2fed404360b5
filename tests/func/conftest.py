import pytest

from cygrad.func import control


@pytest.fixture
def loops(monkeypatch):
    """Count the loops that ran, in a list."""
    ran, looped = [], control.looped

    def counted(*arguments):
        result = looped(*arguments)
        ran.extend([1] * (result is not None))
        return result

    monkeypatch.setattr(control, "looped", counted)
    return ran
