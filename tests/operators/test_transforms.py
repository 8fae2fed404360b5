"""Forward mode and vmap of every operator: tangents against double backward, batches against loops; each row, rule and reduction."""

import numpy as np
import pytest

import cygrad as cg
import public
import samples
from cygrad.autograd import forward_ad as fw
from cygrad.func import grad, jvp, vmap
from cygrad.ops import ELEMENTWISE, REDUCTIONS
from samples import array_of, as_tuple, in_reals

REFUSALS = (RuntimeError, IndexError, TypeError, ValueError)


def floats(results):
    """Return the floating-point results, the parts of complex numbers among them."""
    return [in_reals(item) for item in as_tuple(results) if isinstance(item, cg.Tensor) and item.dtype.is_differentiable]


def by_double_backward(call, tensors, tangents):
    """Return the product of the Jacobian with tangents, without forward mode."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    results = []
    for output in floats(call(*leaves)):
        if not output.requires_grad:
            results.append(np.zeros(output.shape))
            continue
        weight = cg.rand_like(output).requires_grad_()
        products = cg.autograd.grad(output, leaves, weight, create_graph=True, allow_unused=True)
        pairs = [(p, t) for p, t in zip(products, tangents, strict=True) if p is not None and p.requires_grad]
        result = None if not pairs else cg.autograd.grad([p for p, _ in pairs], weight, [t for _, t in pairs], allow_unused=True)[0]
        results.append(np.zeros(output.shape) if result is None else array_of(result))
    return results


def by_forward_mode(call, tensors, tangents):
    with fw.dual_level():
        duals = [fw.make_dual(x.clone(), t.clone()) for x, t in zip(tensors, tangents, strict=True)]
        unpacked = [fw.unpack_dual(output) for output in floats(call(*duals))]
        return [(array_of(primal), np.zeros(primal.shape) if tangent is None else array_of(tangent)) for primal, tangent in unpacked]


def check_tangents(call, tensors, seed=0):
    directions = [np.random.default_rng([seed, k]).uniform(-1, 1, tuple(x.shape)) for k, x in enumerate(tensors)]
    tangents = [cg.tensor(direction.astype(x.dtype.name)) for direction, x in zip(directions, tensors, strict=True)]
    values = [array_of(output) for output in floats(call(*(x.clone() for x in tensors)))]
    expected = by_double_backward(call, tensors, tangents)
    results = by_forward_mode(call, tensors, tangents)
    assert len(results) == len(expected)
    for (primal, tangent), value, other in zip(results, values, expected, strict=True):
        np.testing.assert_allclose(primal, value, rtol=1e-14 if tensors[0].dtype == cg.float64 else 1e-6)     # values come with vectors
        assert tangent.shape == other.shape
        np.testing.assert_allclose(tangent, other, rtol=1e-6 if tensors[0].dtype == cg.float64 else 1e-4, atol=1e-9)
    return len(expected)


def check_batches(call, batches, in_dims):
    """Compare all examples at once with one after the other, and their gradients."""
    count = next(x.shape[d] for x, d in zip(batches, in_dims, strict=True) if d is not None)

    def example(k):
        return [x.clone() if d is None else x.select(d, k).clone() for x, d in zip(batches, in_dims, strict=True)]

    alone = [floats(call(*example(k))) for k in range(count)]
    together = floats(vmap(lambda *x: tuple(floats(call(*x))), in_dims=tuple(in_dims))(*batches))
    assert len(together) == len(alone[0])
    for place, result in enumerate(together):
        expected = np.stack([array_of(item[place]) for item in alone])
        np.testing.assert_allclose(array_of(result), expected, rtol=1e-9, atol=1e-12)


# ----- Rules and reductions -----
@pytest.mark.parametrize("name", samples.names_for("transforms"))
@pytest.mark.cases("number, call, shapes", lambda name: samples.of(name, "transforms"))
def test_tangents_of_rules(name, number, call, shapes):
    check_tangents(call, list(map(cg.tensor, samples.rule_operands(shapes))))


@pytest.mark.cases("sample", [sample for calls in samples.SAMPLES.values() for sample in calls if "vmap" in sample.exempt])
def test_vmap_refuses_results_whose_shape_depends_on_values(sample):
    x, = (cg.tensor(array) for array in samples.rule_operands([(2, *sample.shapes[0])]))
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(sample.call)(x)


@pytest.mark.parametrize("name", samples.names_for("transforms", "vmap"))
@pytest.mark.cases("number, call, shapes", lambda name: samples.of(name, "transforms", "vmap"))
@pytest.mark.cases("mapped", ["all", "first", "last", "elsewhere"])
def test_batches_of_rules(name, number, call, shapes, mapped):
    places = {"all": range(len(shapes)), "first": [0], "last": [len(shapes) - 1], "elsewhere": range(len(shapes))}[mapped]
    arrays = samples.rule_operands([(3, *shape) if k in places else shape for k, shape in enumerate(shapes)])
    dims = [0 if k in places else None for k in range(len(shapes))]
    batches = [cg.tensor(array) for array in arrays]
    if mapped == "elsewhere":
        batches, dims = [x.movedim(0, -1) for x in batches], [x.ndim - 1 for x in batches]
    try:
        check_batches(call, batches, dims)
    except RuntimeError as error:
        # An unbatched tensor cannot hold batched values: torch refuses that too.
        if "inplace arithmetic" not in str(error) or mapped != "last" or len(shapes) == 1:
            raise


@pytest.mark.cases("size", [2, 4])
@pytest.mark.cases("name", samples.names_for("vmap", "degenerate operands"))
def test_vmap_refuses_examples_of_too_few_dims(size, name):
    """The dim of the examples is not taken for one of theirs."""
    for _, call, shapes in samples.of(name, "vmap", "degenerate operands"):
        for count in range(1, max(map(len, shapes), default=0) + 1):
            example = [cg.tensor(array) for array in samples.rule_operands([shape[count:] if len(shape) >= count else shape
                                                                            for shape in shapes])]
            try:
                call(*example)
            except REFUSALS:
                with pytest.raises(REFUSALS):
                    vmap(call)(*(cg.stack([x] * size) for x in example))


@pytest.mark.cases("function, name, keywords", [
    (cg.linalg.matrix_exp, "A", {}), (cg.matrix_exp, "input", {}), (cg.flip, "input", {"dims": (0,)}), (cg.view_as_complex, "input", {}),
    (cg.constant_pad_nd, "input", {"pad": (1, 0)}), (cg.repeat_interleave, "input", {"repeats": 2}), (cg.diff, "input", {"dim": 0}),
    (cg.gather, "input", {"dim": 0, "index": cg.tensor([[1, 0]])}), (cg.softmax, "input", {"dim": 1}), (cg.cumsum, "input", {"axis": 0}),
])
@pytest.mark.cases("transformed", [vmap, lambda f: lambda x: jvp(f, (x,), (x + 1,))[1]], ids=["vmap", "jvp"])
def test_the_first_argument_may_be_given_by_name(transformed, function, name, keywords):
    x = cg.arange(8.0).reshape(2, 2, 2) / 8
    x = x if transformed is vmap else x[0]
    expected = transformed(lambda x: function(x, **keywords))(x)
    assert samples.same_bits(array_of(transformed(lambda x: function(**{name: x}, **keywords))(x)), array_of(expected))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.cases("dtype", ["float32", "int32", "bool"])
def test_batches_of_reductions(name, dtype):
    row = REDUCTIONS[name]
    if not set(samples.KINDS[dtype]) <= set(row.kinds):
        pytest.skip("the reduction takes no such elements")
    x = cg.tensor(samples.draw(dtype, (3, 2, 4)))
    for arguments in ({}, {"dim": 0}, {"axis": -1, "keepdims": True}, {"dim": (1, 0)}):
        result = vmap(lambda x, a=arguments: getattr(x, name)(**a))(x)
        for k in range(3):
            np.testing.assert_array_equal(array_of(result[k]), array_of(getattr(x[k], name)(**arguments)))


# ----- Elementwise rows -----
@pytest.mark.parametrize("name", [name for name, row in ELEMENTWISE.items() if row.partials])
@pytest.mark.cases("shapes", [((3,), (3,), (3,)), ((2, 1), (3,), ())], ids=["same", "broadcast"])
@pytest.mark.cases("dtype", samples.FLOATS)
def test_tangents_of_rows(name, shapes, dtype):
    row = ELEMENTWISE[name]
    arrays = samples.operands(row, dtype, shapes)
    masks = [cg.tensor(array) for array in arrays if array.dtype == bool]
    operands = [cg.tensor(array) for array in arrays if array.dtype != bool]
    check_tangents(lambda *x: cg._core.compute.dispatch.ops[name](*masks, *x), operands)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_batches_of_rows(name):
    row = ELEMENTWISE[name]
    dtype = "float64" if "f" in row.kinds else "int32"
    for shapes, dims in ((((3, 2), (3, 2), (3, 2)), (0, 0, 0)), (((3, 2, 2), (2, 3), (3,)), (0, 1, 0)),
                         (((3,), (2, 2), (2,)), (0, None, None))):
        arrays = samples.operands(row, dtype, shapes)
        batches = [cg.tensor(array) for array in arrays]
        dims = dims[:len(batches)]
        result = vmap(lambda *x: cg._core.compute.dispatch.ops[name](*x), in_dims=dims)(*batches)
        for k in range(3):
            example = [x if d is None else x.select(d, k) for x, d in zip(batches, dims, strict=True)]
            assert samples.same_bits(array_of(result[k]), array_of(cg._core.compute.dispatch.ops[name](*example)))


# ----- Together -----
@pytest.mark.parametrize("name", samples.names_for("transforms", "vmap"))
@pytest.mark.cases("number, call, shapes", lambda name: samples.of(name, "transforms", "vmap"))
def test_nested_transforms_of_rules(name, number, call, shapes):
    """Gradients of each example, tangents of each example, and tangents of gradients."""

    def total(*x):
        return sum((output * output).sum() for output in floats(call(*x)))

    arrays = samples.rule_operands([(2, *shape) for shape in shapes])
    batches, places = list(map(cg.tensor, arrays)), tuple(range(len(shapes)))
    together = vmap(grad(total, places))(*batches)
    tangents = [cg.tensor(np.cos(array)) for array in arrays]
    products = vmap(lambda x, t: jvp(grad(total, places), x, t)[1])(tuple(batches), tuple(tangents))
    for k in range(2):
        example = tuple(x[k].clone() for x in batches)
        for got, expected in zip(together, grad(total, places)(*example), strict=True):
            np.testing.assert_allclose(array_of(got[k]), array_of(expected), rtol=1e-9, atol=1e-12)
        leaves = [x.clone().requires_grad_() for x in example]
        first = cg.autograd.grad(total(*leaves), leaves, create_graph=True, allow_unused=True)
        used = [(g, t[k]) for g, t in zip(first, tangents, strict=True) if g is not None and g.requires_grad]
        second = cg.autograd.grad([g for g, _ in used], leaves, [t for _, t in used], allow_unused=True) if used else [None] * len(leaves)
        alone = jvp(grad(total, places), example, tuple(t[k] for t in tangents))[1]
        for got, one, expected in zip(products, alone, second, strict=True):
            np.testing.assert_allclose(array_of(got[k]), 0 if expected is None else array_of(expected), rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(array_of(one), array_of(got[k]), rtol=1e-6, atol=1e-8)


# ----- The table -----
def test_every_public_operator_declares_its_rule_for_batches():
    operators = {operator for _, operator in public.operators()}
    refused = {"apply_", "map_", "map2_", "resize_", "resize_as_", "set_", "mpi_isend", "mpi_irecv"}
    silent = {operator.name for operator in operators if operator.declaration is None}
    assert silent == refused
    for operator in operators:
        if operator.declaration is not None and operator.declaration.rule is not None:
            assert operator.declaration.batch or operator.declaration.parts, f"{operator.name}: it has no rule for batches"
