"""Forms of views that copy: the view's values, in memory of their own, with the view's gradient."""

import inspect

import pytest

import calls
import cygrad as cg
import samples

VIEWS = {name: name.removesuffix("_copy") for name in dir(cg) if name.endswith("_copy")}
COPIES = sorted(name for name, view in VIEWS.items() if hasattr(cg.Tensor, view) or hasattr(cg, view))


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


def test_signatures_are_the_views():
    assert inspect.signature(cg.narrow_copy) == inspect.signature(cg.narrow)
