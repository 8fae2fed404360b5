"""inference_mode: what it makes, and what may be done with that outside."""

import threading

import pytest

import cygrad as cg


@pytest.fixture
def leaf():
    return cg.ones(3, requires_grad=True)


@pytest.fixture
def made(leaf):
    with cg.inference_mode():
        return leaf * 2


def test_modes(leaf):
    assert not cg.is_inference_mode_enabled()
    with cg.inference_mode():
        assert (cg.is_inference_mode_enabled(), cg.is_grad_enabled()) == (True, False)
        with cg.inference_mode(False):
            assert (cg.is_inference_mode_enabled(), cg.is_grad_enabled()) == (False, True)
            assert (leaf * 2).requires_grad
            assert not cg.ones(1).is_inference()
        with cg.enable_grad():
            assert cg.is_inference_mode_enabled()
    assert (cg.is_inference_mode_enabled(), cg.is_grad_enabled()) == (False, True)
    with cg.no_grad(), cg.inference_mode(False):
        assert cg.is_grad_enabled()


def test_modes_end_with_an_exception():
    with pytest.raises(ZeroDivisionError), cg.inference_mode():
        raise ZeroDivisionError
    assert (cg.is_inference_mode_enabled(), cg.is_grad_enabled()) == (False, True)


def test_the_mode_belongs_to_its_thread():
    seen = []
    with cg.inference_mode():
        thread = threading.Thread(target=lambda: seen.extend((cg.is_inference_mode_enabled(), cg.ones(1).is_inference())))
        thread.start()
        thread.join()
    assert seen == [False, False]


def test_as_a_decorator(leaf):
    @cg.inference_mode()
    def called(x):
        return x * 2

    @cg.inference_mode
    def bare(x):
        return x * 2

    @cg.inference_mode()
    def generator(x):
        yield x * 2
        yield cg.is_inference_mode_enabled()

    assert called(leaf).is_inference()
    assert bare(leaf).is_inference()
    values = generator(leaf)
    assert next(values).is_inference()
    assert not cg.is_inference_mode_enabled()
    assert next(values)


def test_what_is_made(leaf):
    plain = cg.ones(3)
    with cg.inference_mode():
        made = leaf * 2
        assert (made.requires_grad, made.is_inference(), made.is_leaf) == (False, True, True)
        assert made[0].is_inference()
        assert made.detach().is_inference()
        assert made.data.is_inference()
        assert not plain[0].is_inference()
        assert (leaf.view(3).is_inference(), leaf.view(3).requires_grad) == (False, True)
        plain.add_(1)
        made.add_(1)
        own = cg.ones(2, requires_grad=True)
        assert own.is_inference()
        assert not (own * 2).requires_grad
    assert plain._version == 1
    assert not (made * 2).is_inference()
    assert not made.clone().is_inference()


@pytest.mark.parametrize(("use", "message"), [
    (lambda y, x: y * x, "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode"),
    (lambda y, x: x * y, "Inference tensors cannot be saved for backward"),
    (lambda y, x: x @ y, "Inference tensors cannot be saved for backward"),
    (lambda y, x: y.add_(1), "Inplace update to inference tensor outside InferenceMode is not allowed"),
    (lambda y, x: y[0].zero_(), "Inplace update to inference tensor outside InferenceMode is not allowed"),
    (lambda y, x: y.__setitem__(0, 1), "Inplace update to inference tensor outside InferenceMode is not allowed"),
    (lambda y, x: cg.add(cg.ones(3), 1, out=y), "Inplace update to inference tensor outside InferenceMode is not allowed"),
    (lambda y, x: y._version, "Inference tensors do not track version counter"),
    (lambda y, x: y.requires_grad_(), "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"),
])
def test_refused_outside(made, leaf, use, message):
    with pytest.raises(RuntimeError) as error:
        use(made, leaf)
    assert str(error.value).startswith(message)
    assert made.tolist() == [2, 2, 2]


def test_allowed_outside(made, leaf):
    assert (leaf + made).requires_grad  # a sum saves nothing
    (made.clone() * leaf).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]
    with cg.no_grad():
        assert (made * leaf).tolist() == [2, 2, 2]


@pytest.mark.parametrize("grad", [True, False])
def test_views_made_inside_are_not_changed_outside(leaf, grad):
    plain = cg.ones(3)
    with cg.inference_mode():
        view, of_leaf = plain[:2], leaf.view(3)
    view.add_(1)
    assert plain.tolist() == [2, 2, 1]
    for change in (lambda: view.mul_(leaf[:2]), lambda: of_leaf.mul_(2)):
        with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"):
            change()
