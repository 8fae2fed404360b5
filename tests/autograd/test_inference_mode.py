"""inference_mode: the tensors made inside, and their uses outside."""

import threading

import pytest

import cygrad as cg


@pytest.fixture
def leaf():
    return cg.ones(3, requires_grad=True)


@pytest.fixture
def inference_tensor(leaf):
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
            assert cg.is_inference_mode_enabled() and cg.is_grad_enabled()
            assert not (leaf * 2).requires_grad
            with cg.no_grad():
                assert not cg.is_grad_enabled()
            with cg.inference_mode(False):
                assert (leaf * 2).requires_grad
            assert cg.is_grad_enabled() and not (leaf * 2).requires_grad
        assert not cg.is_grad_enabled()
        cg.set_grad_enabled(True)
        assert cg.is_grad_enabled() and not (leaf * 2).requires_grad
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


def test_tensors_made_inside(leaf):
    plain = cg.ones(3)
    with cg.inference_mode():
        inference_tensor = leaf * 2
        assert (inference_tensor.requires_grad, inference_tensor.is_inference(), inference_tensor.is_leaf) == (False, True, True)
        assert inference_tensor[0].is_inference()
        assert inference_tensor.detach().is_inference()
        assert inference_tensor.data.is_inference()
        assert not plain[0].is_inference()
        assert (leaf.view(3).is_inference(), leaf.view(3).requires_grad) == (False, True)
        plain.add_(1)
        inference_tensor.add_(1)
        inner_leaf = cg.ones(2, requires_grad=True)
        assert inner_leaf.is_inference()
        assert not (inner_leaf * 2).requires_grad
    assert plain._version == 1
    assert not (inference_tensor * 2).is_inference()
    assert not inference_tensor.clone().is_inference()


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
def test_refused_outside(inference_tensor, leaf, use, message):
    with pytest.raises(RuntimeError) as error:
        use(inference_tensor, leaf)
    assert str(error.value).startswith(message)
    assert inference_tensor.tolist() == [2, 2, 2]


@pytest.fixture
def made_leaf():
    with cg.inference_mode():
        return cg.ones(2, 3, requires_grad=True)


VIEWS = {
    "view": lambda c: c.view(-1), "slice": lambda c: c[1:], "select": lambda c: c[0], "unbind": lambda c: c.unbind()[1],
    "t": lambda c: c.T, "expand": lambda c: c.expand(2, 2, 3), "as_strided": lambda c: c.as_strided((2,), (1,)),
    "unfold": lambda c: c.unfold(1, 2, 1), "diagonal": lambda c: c.diagonal(), "squeeze": lambda c: c.unsqueeze(0),
    "of a view": lambda c: c[1:][0], "detach": lambda c: c.detach(),
}
ALONE = {       # all operands are inference tensors
    "unary": lambda c: -c, "saves its input": lambda c: c * c, "saves its result": lambda c: c.exp(), "number": lambda c: c * 2 + 1,
    "reduction": lambda c: c.sum(0), "prod": lambda c: c.prod(), "mm": lambda c: c @ c.T, "cat": lambda c: cg.cat([c, c]),
    "index array": lambda c: c[cg.tensor([0])], "softmax": lambda c: c.softmax(-1), "of a view": lambda c: c[0] * c[1],
    "cumsum": lambda c: c.cumsum(0), "std": lambda c: c.std(),
}
WITH_OTHERS = {     # one operand is no inference tensor
    "add": lambda c, q: c + q, "mul": lambda c, q: c * q, "cat": lambda c, q: cg.cat([q, c]), "where": lambda c, q: cg.where(q > 0, c, c),
    "in place": lambda c, q: q.add_(c), "copy_": lambda c, q: q.copy_(c), "clone": lambda c, q: c.clone(), "to": lambda c, q: c.double(),
    "mm": lambda c, q: c @ q.T, "rule in Python": lambda c, q: q.scatter(0, cg.tensor([[0, 1, 0]]), c),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_an_inference_tensor_has_no_place_in_a_graph(made_leaf, view):
    result = VIEWS[view](made_leaf)
    assert (result.is_inference(), result.requires_grad, result.grad_fn) == (True, False, None)
    assert (result.is_leaf, result._is_view()) == (True, False)
    assert made_leaf.requires_grad


@pytest.mark.parametrize("operator", ALONE)
def test_results_of_inference_tensors_alone_are_not_recorded(made_leaf, operator):
    result = ALONE[operator](made_leaf)
    assert (result.is_inference(), result.requires_grad, result.grad_fn) == (False, False, None)


@pytest.mark.parametrize("operator", WITH_OTHERS)
def test_an_inference_leaf_gathers_its_gradient_beside_other_operands(made_leaf, operator):
    other = cg.ones(2, 3)
    result = WITH_OTHERS[operator](made_leaf, other)
    assert (result.is_inference(), result.requires_grad) == (False, True)
    result.sum().backward()
    assert made_leaf.grad.shape == (2, 3) and made_leaf.grad.any()


def test_a_derivative_computed_in_inference_mode_follows_views(made_leaf):
    with cg.inference_mode():
        gradient = cg.func.grad(lambda c: (c.view(-1)[1:] * c.T.reshape(-1)[1:]).sum())(made_leaf.detach())
    assert gradient.shape == (2, 3) and gradient.any()


def test_allowed_outside(inference_tensor, leaf):
    assert (leaf + inference_tensor).requires_grad  # a sum saves nothing
    (inference_tensor.clone() * leaf).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]
    with cg.no_grad():
        assert (inference_tensor * leaf).tolist() == [2, 2, 2]


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


@pytest.mark.parametrize("mode", [cg.no_grad, cg.inference_mode])
@pytest.mark.parametrize("both", [False, True])
def test_a_view_of_a_view_names_the_block_that_made_the_view(mode, both):
    """Whether the second view was made in the block, too; and where the base requires a gradient only afterwards."""
    for requires_grad in (False, True):
        x = cg.ones(4) * 1
        with mode():
            view = x.view(2, 2)
            part = view[0]
        part = part if both else view[0]
        x.requires_grad_(requires_grad)
        with pytest.raises(RuntimeError, match=f"A view was created in {mode.__name__.replace('inference_', 'inference ')}"):
            part.mul_(cg.ones(2, requires_grad=True))
        assert x.tolist() == [1, 1, 1, 1]
