"""Forms of views that copy: the view's values, in memory of their own, with the view's gradient."""

import inspect

import pytest

import calls
import cygrad as cg
import samples

VIEWS = {name: name.removesuffix("_copy") for name in dir(cg) if name.endswith("_copy")}


def of_dense_tensors(view):
    """Return True if there is a view of dense tensors by that name; tests/sparse_tensors has the parts of sparse ones."""
    function = getattr(cg.Tensor, view, getattr(cg, view, None))
    return function is not None and function.__module__ != "cygrad.operators.sparse_tensors"


COPIES = sorted(name for name, view in VIEWS.items() if of_dense_tensors(view))


def calls_of(name):
    """Yield the arguments of the calls of a view, by the function or the method, that the samples make."""
    for owner, attribute, arguments, keywords in calls.recorded_calls():
        if owner in (cg, cg.Tensor) and attribute == VIEWS[name] and isinstance(arguments[0], cg.Tensor):
            yield arguments, keywords


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_the_values_of_the_view(name):
    copying, tested = getattr(cg, name), 0
    short_name = VIEWS[name]
    viewing = getattr(cg.Tensor, short_name) if hasattr(cg.Tensor, short_name) else getattr(cg, short_name)
    for arguments, keywords in calls_of(name):
        x = arguments[0].detach().requires_grad_(arguments[0].is_floating_point())
        results = samples.as_tuple(copying(x, *arguments[1:], **keywords))
        views = samples.as_tuple(viewing(x, *arguments[1:], **keywords))
        for result, view in zip(results, views, strict=True):
            assert samples.same_bits(samples.array_of(result), samples.array_of(view))
            assert result.is_contiguous() and not result._is_view() and (not x.numel() or result.data_ptr() != x.data_ptr())
            assert result.requires_grad == view.requires_grad
        if results and results[0].requires_grad and not results[0].is_complex():
            weights = [cg.rand_like(result) for result in results]
            one, other = (cg.autograd.grad(group, x, weights)[0] for group in (results, views))
            assert one.tolist() == other.tolist()
        tested += 1
    assert tested, "give samples of the view"


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_written_into_out(name):
    copying = getattr(cg, name)
    for arguments, keywords in calls_of(name):
        arguments = (arguments[0].detach(), *arguments[1:])
        results = copying(*arguments, **keywords)
        out = cg.pytree.tree_map(cg.zeros_like, results)
        returned = copying(*arguments, **keywords, out=out)
        for result, written, view in zip(*map(samples.as_tuple, (returned, out, results)), strict=True):
            assert result is written
            assert samples.same_bits(samples.array_of(result), samples.array_of(view))


@pytest.mark.cases("call, message", [
    (lambda x, out: cg.transpose_copy(x, 0, 1, out=out), "out= has shape"),
    (lambda x, out: cg.unbind_copy(x, out=out), "argument 'out' must be tuple of 2 Tensors"),
    (lambda x, out: cg.unbind_copy(x, out=(out, out, out)), "argument 'out' must be tuple of 2 Tensors"),
])
def test_an_out_that_does_not_fit_is_refused(call, message):
    out = cg.zeros(5)
    with pytest.raises((RuntimeError, TypeError), match=message):
        call(cg.ones(2, 3), out)
    assert out.tolist() == [0] * 5


def test_signatures_are_the_views_with_out():
    *parameters, out = inspect.signature(cg.narrow_copy).parameters.values()
    assert parameters == [*inspect.signature(cg.narrow).parameters.values()]
    assert str(out) == "out: 'Tensor | None' = None"
    assert str(inspect.signature(cg.unbind_copy).parameters["out"]) == "out: 'Sequence[Tensor] | None' = None"
