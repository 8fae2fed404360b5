"""`progress=True`: a bar counts the work, results stay, and a missing tqdm is named."""

import sys

import pytest

import cygrad as cg
from cygrad import checkpoint, optimize
from cygrad.checkpoint import loop

pytest.importorskip("tqdm")


@pytest.fixture
def bars(monkeypatch):
    """The bars that were made; a bar that is closed is disabled."""
    import tqdm.auto

    shown = []

    class Bar(tqdm.auto.tqdm):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            shown.append(self)

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    return shown


@pytest.mark.parametrize("steps, snapshots", [(1, 1), (7, 2), (100, 5), (455, 12)])
def test_a_loop_counts_the_calls_of_its_step(steps, snapshots, capsys):
    def gradient(progress):
        calls = []
        rate = cg.tensor(0.01, requires_grad=True)

        def step(x, number):
            calls.append(number)
            return x - rate * x

        checkpoint.checkpoint_loop(step, cg.ones(2), steps, snapshots, progress=progress).sum().backward()
        return rate.grad.item(), len(calls)

    expected = gradient(False)
    assert gradient(True) == expected and expected[1] == loop.calls_of_step(steps, snapshots)
    assert f"{expected[1]}/{expected[1]}" in capsys.readouterr().err


def test_a_loop_without_gradients_counts_its_steps(capsys):
    with cg.no_grad():
        checkpoint.checkpoint_loop(lambda x, number: x + 1, cg.ones(2), 5, 2, progress=True)
    assert "5/5" in capsys.readouterr().err


def test_a_loop_closes_its_bar_where_a_step_fails(bars):
    def step(x, number):
        if number == 3:
            raise ArithmeticError("the third step")
        return x + 1

    with pytest.raises(ArithmeticError):
        checkpoint.checkpoint_loop(step, cg.ones(2), 5, 2, progress=True)
    assert [bar.disable for bar in bars] == [True]


def test_an_objective_counts_gradients(bars, capsys):
    with optimize.value_and_grad(lambda x: x.square().sum(), cg.ones(2), progress=True) as objective:
        assert objective([1.0, 2.0])[0] == 5.0
        assert [bar.disable for bar in bars] == [False]
    assert [bar.disable for bar in bars] == [True]
    assert "gradients: 1" in capsys.readouterr().err


@pytest.mark.parametrize("check", [cg.autograd.gradcheck, cg.autograd.gradgradcheck])
def test_a_check_counts_calls_of_its_function(check, capsys):
    assert check(cg.sin, cg.ones(3, dtype=cg.float64, requires_grad=True), progress=True)
    assert "calls: " in capsys.readouterr().err


@pytest.mark.parametrize("check", [cg.autograd.gradcheck, cg.autograd.gradgradcheck])
def test_a_check_closes_its_bar(check, bars):
    x = cg.ones(3, dtype=cg.float64, requires_grad=True)
    wrong = lambda x: x.sin() * (x * x).detach()  # noqa: E731
    assert check(cg.sin, x, progress=True) and not check(wrong, x, raise_exception=False, progress=True)
    with pytest.raises(RuntimeError, match="Jacobian"):
        check(wrong, x, progress=True)
    with pytest.raises(ZeroDivisionError):
        check(lambda x: x * (1 // 0), x, progress=True)
    assert len(bars) >= 3 and all(bar.disable for bar in bars)      # a second derivative computes the function before its check


def test_a_missing_tqdm_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        optimize.value_and_grad(lambda x: x.sum(), cg.ones(2), progress=True)
