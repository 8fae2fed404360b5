"""The dtype that operators compute in, for all rows and dtypes: tensors with dims, 0-d tensors and numbers, in this order.

The rule is written in another way than in the core: the highest kind of all operands, from the first category that has the kind.
"""

import itertools
import operator
from functools import partial, reduce

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad._core.compute.dispatch import ops
from cygrad.func import vmap
from cygrad.ops import ELEMENTWISE
from cygrad.ops.refusals import REFUSALS
from samples import DTYPES, KINDS, as_tuple
from test_promotion import PAIRS, name

TENSORS, SCALARS, NUMBERS = ([(rank, kind) for kind in kinds] for rank, kinds in enumerate((DTYPES, DTYPES, ("bool", "int64", "float32"))))
OPERANDS = [*TENSORS, *SCALARS, *NUMBERS]
HOLDS_BOTH = {(left, right): result for left, right, result in PAIRS}
NUMBER_OF = {"b": "bool", "i": "int64", "f": "float32"}
EXCEPTIONS = {"isclose"}      # as in torch: takes tensors of one dtype
ROWS = {arity: [row for row in ELEMENTWISE.values() if len(row.operands) == arity and row.name not in EXCEPTIONS] for arity in (1, 2, 3)}


def common(*operands):
    """Return the dtype of operands, which are (category, dtype)."""
    kind = max((KINDS[dtype] for _, dtype in operands), key="bif".index)
    categories = ([dtype for rank, dtype in operands if rank == category] for category in range(3))
    return next(reduce(lambda a, b: HOLDS_BOTH[a, b], dtypes) for dtypes in categories if any(KINDS[d] == kind for d in dtypes))


def make(operand):
    rank, dtype = operand
    if rank == 2:
        return {"bool": True, "int64": 1, "float32": 1.0}[dtype]
    return cg.ones((2,) if rank == 0 else (), dtype=getattr(cg, dtype))


VALUES = {operand: make(operand) for operand in OPERANDS}


def result_of(row, operands):
    """Return the dtype of a row's result, or None if it refuses the operands."""
    used = [operand for name, operand in zip(row.operands, operands, strict=True) if name not in row.masks]
    if any(name in row.bounds and rank == 2 for name, (rank, _) in zip(row.operands, operands, strict=True)):
        used = [(2, NUMBER_OF[KINDS[kind]]) if name in row.bounds and rank == 1 else (rank, kind)
                for name, (rank, kind) in zip(row.operands, operands, strict=True)]
    dtype = common(*used)
    if row.no_bools and any(KINDS[kind] == "b" for _, kind in used):
        return None
    if (row.name, KINDS[dtype]) in REFUSALS:
        return None
    if row.kinds.startswith("f") and KINDS[dtype] not in row.kinds:
        dtype = "float32"
    if row.counts_bools and dtype == "bool":
        return "int64"
    if KINDS[dtype] not in row.kinds:
        return None
    return "bool" if row.result == "bool" else dtype


def outcome(call, *arguments):
    """Return the names of the dtypes of results, or None for a refusal."""
    try:
        return name(call(*arguments))
    except RuntimeError:
        return None


def check(row, call, combinations):
    wrong = [(operands, expected, actual) for operands in combinations
             if (actual := outcome(call, *(VALUES[operand] for operand in operands))) != (expected := result_of(row, operands))]
    assert not wrong, f"{len(wrong)} combinations, such as {wrong[:5]}"


def with_tensors(count):
    return [operands for operands in itertools.product(OPERANDS, repeat=count) if any(rank < 2 for rank, _ in operands)]


# ----- All rows -----
@pytest.mark.parametrize("row", samples.named(ROWS[1]))
def test_one_operand(row):
    fitting = {param: max(value, 0) for param, value in row.params.items()}     # which uint8 holds
    check(row, partial(getattr(cg, row.name), **fitting), [(operand,) for operand in [*TENSORS, *SCALARS]])


@pytest.mark.parametrize("row", samples.named(ROWS[2]))
def test_two_operands(row):
    check(row, ops[row.name] if row.tensors else getattr(cg, row.name), with_tensors(2))


@pytest.mark.parametrize("row", samples.named(ROWS[3]))
def test_three_operands(row):
    call = getattr(cg, row.name)
    if row.masks:
        check(row, call, [((0, "bool"), *pair) for pair in itertools.product(OPERANDS, repeat=2)])
    else:
        check(row, call, [operands for operands in with_tensors(3) if operands[0][0] < 2])


OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    "lt": "lt", "le": "le", "eq": "eq", "ne": "ne", "gt": "gt", "ge": "ge",
}


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_of_python(symbol):
    check(ELEMENTWISE[OPERATORS[symbol]], getattr(operator, symbol), with_tensors(2))


@pytest.mark.parametrize("row", samples.named(row for row in ROWS[2] if row.in_place))
def test_in_place_and_out(row):
    """A result of a higher kind than the target's dtype is refused."""
    tensors = [*TENSORS, *SCALARS]
    for target, other in itertools.product(tensors, tensors if row.operands[1] in row.tensors else OPERANDS):
        if target[0] == 1 and other[0] == 0:
            continue        # another shape
        result = result_of(row, (target, other))
        expected = target[1] if result and "bif".index(KINDS[result]) <= "bif".index(KINDS[target[1]]) else None
        assert outcome(getattr(cg.Tensor, row.name + "_"), make(target), VALUES[other]) == expected, (target, other)
        out = cg.zeros(VALUES[target].shape, dtype=getattr(cg, target[1]))
        assert outcome(partial(getattr(cg, row.name), out=out), VALUES[target], VALUES[other]) == expected, (target, other)


def test_result_type_and_can_cast():
    for pair in itertools.product(OPERANDS, repeat=2):
        assert cg.result_type(*(VALUES[operand] for operand in pair)) == getattr(cg, common(*pair)), pair
    for source, target in itertools.product(DTYPES, repeat=2):
        expected = "bif".index(KINDS[source]) <= "bif".index(KINDS[target])
        assert cg.can_cast(getattr(cg, source), getattr(cg, target)) is expected
    with pytest.raises(TypeError, match="must be Tensor or Number, not list"):
        cg.result_type([1], 2)
    with pytest.raises(TypeError):
        cg.can_cast(cg.float32, 3)


JOINS = [cg.cat, cg.stack, cg.hstack, cg.vstack, cg.dstack, cg.column_stack]


@pytest.mark.parametrize("join", JOINS)
def test_joined_tensors(join):
    for a, b in [*itertools.product(TENSORS, repeat=2), *(itertools.product(SCALARS, repeat=2) if join is not cg.cat else ())]:
        joined = join([VALUES[a], VALUES[b]])
        assert name(joined) == common(a, b)
        for dtype in DTYPES:
            expected = dtype if "bif".index(KINDS[common(a, b)]) <= "bif".index(KINDS[dtype]) else None
            assert outcome(partial(join, out=joined.to(getattr(cg, dtype))), [VALUES[a], VALUES[b]]) == expected


MATRIX, BATCH = (lambda t: t.expand(2, 2)), (lambda t: t.expand(1, 2, 2))
PRODUCTS = {
    "mm": (MATRIX, MATRIX), "bmm": (BATCH, BATCH), "mv": (MATRIX, cg.clone), "dot": (cg.clone, cg.clone), "vdot": (cg.clone, cg.clone),
    "inner": (cg.clone, cg.clone), "matmul": (MATRIX, BATCH), "addmm": (MATRIX, MATRIX, MATRIX), "addmv": (cg.clone, MATRIX, cg.clone),
    "baddbmm": (BATCH, BATCH, BATCH), "addbmm": (MATRIX, BATCH, BATCH), "tensordot": (MATRIX, MATRIX),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_products_take_one_dtype(product):
    shapes = PRODUCTS[product]
    for operands in itertools.product(TENSORS, repeat=len(shapes)):
        tensors = [shape(VALUES[operand]) for shape, operand in zip(shapes, operands, strict=True)]
        expected = operands[0][1] if len({*operands}) == 1 else None
        assert outcome(getattr(cg, product), *tensors) == expected, operands


@pytest.mark.parametrize("factors", [{}, {"alpha": 2}, {"beta": 2}, {"beta": 0}, {"alpha": True, "beta": False}])
def test_factors_do_not_change_the_dtype(factors):
    for operands in itertools.product(TENSORS, repeat=3):
        input, *vectors = (VALUES[operand] for operand in operands)
        assert outcome(partial(cg.addr, **factors), MATRIX(input), *vectors) == common(*operands), operands
    one = cg.ones(2, dtype=cg.uint8)
    assert cg.addr(cg.tensor(3), one, one).dtype == cg.int64        # one element counts as the matrix that it broadcasts to
    total = cg.addr(cg.ones(2, 2, dtype=cg.int32), VALUES[0, "bool"], VALUES[0, "bool"], alpha=3)
    assert total.tolist() == [[4, 4], [4, 4]]


def test_blocks_of_a_matrix():
    for operands in itertools.product([*TENSORS, *SCALARS], repeat=2):
        assert outcome(cg.block_diag, *(VALUES[operand] for operand in operands)) == common(*operands), operands


@pytest.mark.parametrize("condition", ["bool", "uint8"])
def test_the_condition_does_not_change_the_dtype(condition):
    for operands in itertools.product(TENSORS, repeat=2):
        first, second = (VALUES[operand] for operand in operands)
        assert outcome(first.where, VALUES[0, condition], second) == common(*operands), operands


# ----- Reductions -----
ACCUMULATING = ["sum", "prod", "nansum", "cumsum", "cumprod"]


@pytest.mark.parametrize("name", ACCUMULATING)
def test_an_out_sets_the_dtype_of_the_computation(name):
    """As `dtype` does: the elements are converted first."""
    values = [[0.5, 3, 2], [1.25, 1, 0.5]]
    for source, target in itertools.product(DTYPES, repeat=2):
        x = cg.tensor(values).to(getattr(cg, source))
        out = cg.zeros(x.shape if name.startswith("cum") else 3, dtype=getattr(cg, target))
        if name == "nansum" and KINDS[source] == "f" != KINDS[target]:
            with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
                cg.nansum(x, 0, out=out)
            with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
                cg.nansum(x, 0, dtype=out.dtype)
            continue
        assert getattr(cg, name)(x, 0, out=out) is out
        assert out.tolist() == getattr(cg, name)(x, 0, dtype=out.dtype).tolist(), (source, target)


def test_an_out_of_more_digits_is_computed_with_them():
    x = cg.full((3,), 0.1)
    assert cg.sum(x, 0, out=cg.tensor(0.0, dtype=cg.float64)).item() == sum([x[0].item()] * 3)


@pytest.mark.parametrize("name", ["any", "all"])
def test_truth_of_bytes_is_bytes(name):
    for dtype in DTYPES:
        x = cg.tensor([[2, 0], [3, 0]]).to(getattr(cg, dtype))
        expected = "uint8" if dtype == "uint8" else "bool"
        for result in (getattr(cg, name)(x, 0), getattr(x, name)(dim=0, keepdim=True), vmap(getattr(cg, name))(x.mT)):
            assert outcome(cg.clone, result) == expected
            assert result.reshape(-1).tolist() == [1, 0]
        assert outcome(getattr(cg, name), x) == expected
        for target in DTYPES:
            out = cg.zeros(2, dtype=getattr(cg, target))
            assert getattr(cg, name)(x, 0, out=out) is out
            assert out.tolist() == [1, 0]


# ----- Inside of vmap -----
@pytest.mark.cases("in_dims", [(0, None), (None, 0), (0, 0)])
@pytest.mark.cases("row", ["add", "div", "lt", "maximum", "where"])
def test_examples_have_the_dims_that_they_show(row, in_dims):
    """A 0-d example has no dims, though the tensor that holds all examples has one."""
    call = (lambda a, b: cg.where(a > 0, a, b)) if row == "where" else getattr(cg, row)
    for operands in itertools.product([*TENSORS, *SCALARS][::2], repeat=2):
        values = [VALUES[operand] for operand in operands]
        examples = [value if dim is None else cg.stack([value] * 3) for value, dim in zip(values, in_dims, strict=True)]
        assert name(vmap(call, in_dims)(*examples)) == name(call(*values)), operands


# ----- NumPy -----
@pytest.mark.parametrize("symbol", [*OPERATORS, "matmul", "divmod"])
def test_arrays_are_tensors_and_numpy_scalars_are_numbers(symbol):
    call = divmod if symbol == "divmod" else getattr(operator, symbol)
    for (rank, dtype), (of_tensor, other) in itertools.product(OPERANDS, [*TENSORS, *SCALARS]):
        tensor = VALUES[of_tensor, other]
        if symbol == "matmul" and (rank or of_tensor):
            continue
        foreign = np.dtype(dtype).type(1) if rank == 2 else VALUES[rank, dtype].numpy()
        row = ELEMENTWISE[OPERATORS.get(symbol, "floor_divide")]
        for operands, values in [(((rank, dtype), (of_tensor, other)), (foreign, tensor)),
                                 (((of_tensor, other), (rank, dtype)), (tensor, foreign))]:
            expected = common(*operands) if symbol == "matmul" else result_of(row, operands)
            assert outcome(lambda *pair: as_tuple(call(*pair))[0], *values) == expected, values


# ----- Values -----
def test_a_0d_tensor_takes_on_the_precision_of_the_array():
    x = cg.ones(3, requires_grad=True)
    scale = cg.tensor(0.1, dtype=cg.float64, requires_grad=True)
    y = x * scale
    assert y.dtype == cg.float32
    assert (x.detach() * 0.1 == scale).all()
    slope, = cg.autograd.grad((y * y).sum(), scale, create_graph=True)
    assert slope.dtype == cg.float64
    curvature, mixed = cg.autograd.grad(slope, (scale, x))
    assert (curvature.dtype, mixed.dtype) == (cg.float64, cg.float32)
    assert curvature.item() == pytest.approx(6)
    assert mixed.tolist() == pytest.approx([0.4] * 3)


def test_a_0d_tensor_does_not_stop_a_product():
    """A case of ODE solvers: a step in float64, a state in float32."""
    step = cg.tensor(0.5, dtype=cg.float64)
    assert ((cg.eye(2) * step) @ cg.ones(2, 2)).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_comparisons_of_integers_are_exact():
    """Torch compares in the dtype of the array, where 300 is 44."""
    small = cg.tensor([1, 44, 255], dtype=cg.uint8)
    for other in (300, cg.tensor(300), cg.tensor([300]), np.array(300)):
        assert (small < other).tolist() == [True, True, True]
        assert (small == other).tolist() == [False, False, False]
    assert (small > cg.tensor(-1, dtype=cg.int8)).all()


@pytest.mark.parametrize("product", ["addmm", "addmv", "addr", "baddbmm", "addbmm"])
@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_fractions_of_integers_are_refused(product, factor):
    shapes = {"addmv": (cg.clone, MATRIX, cg.clone), "addr": (MATRIX, cg.clone, cg.clone)}.get(product) or PRODUCTS[product]
    integers = [shape(cg.ones(2, dtype=cg.int64)) for shape in shapes]
    with pytest.raises(RuntimeError, match=f"For integral input tensors, argument {factor} must not be a floating point number"):
        getattr(cg, product)(*integers, **{factor: 0.5})
