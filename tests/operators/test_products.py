"""Products, contractions and norms: against NumPy, with gradients where they are composed, and scales at which squares overflow."""

import itertools
import math

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad, gradcheck, gradgradcheck
from samples import LAYOUTS, array_of

INF = math.inf

# (name, function of tensors, function of arrays, shapes)
PRODUCTS = [
    ("outer", cg.outer, np.outer, (3,), (4,)),
    ("ger", cg.ger, np.outer, (3,), (0,)),
    ("inner", cg.inner, np.inner, (2, 3), (4, 3)),
    ("inner of vectors", cg.inner, np.inner, (3,), (3,)),
    ("inner with a scalar", cg.inner, np.inner, (2, 3), ()),
    ("vdot", cg.vdot, np.vdot, (3,), (3,)),
    ("tensordot", cg.tensordot, np.tensordot, (2, 3, 4), (3, 4, 5)),
    ("tensordot 1", lambda a, b: cg.tensordot(a, b, 1), lambda a, b: np.tensordot(a, b, 1), (2, 3), (3, 2)),
    ("tensordot 0", lambda a, b: cg.tensordot(a, b, 0), lambda a, b: np.tensordot(a, b, 0), (2,), (3, 1)),
    ("tensordot lists", lambda a, b: cg.tensordot(a, b, ([0, -1], [1, 0])),
     lambda a, b: np.tensordot(a, b, ([0, -1], [1, 0])), (2, 3, 4), (4, 2)),
    ("kron", cg.kron, np.kron, (2, 3), (3, 2)),
    ("kron of more dims", cg.kron, np.kron, (2,), (2, 1, 3)),
    ("kron of a scalar", cg.kron, np.kron, (), (2, 3)),
    ("cross", cg.cross, np.cross, (2, 3), (2, 3)),
    ("cross dim", lambda a, b: a.cross(b, dim=0), lambda a, b: np.cross(a, b, axis=0), (3, 2), (3, 2)),
    ("cross broadcast", lambda a, b: a.cross(b, dim=-1), np.cross, (1, 3), (4, 3)),
    ("trace", lambda a: a.trace(), np.trace, (3, 4)),
    ("addmm", lambda x, a, b: x.addmm(a, b, beta=2, alpha=3), lambda x, a, b: 2 * x + 3 * (a @ b), (5,), (2, 3), (3, 5)),
    ("addmv", lambda x, a, b: x.addmv(a, b, beta=2, alpha=3), lambda x, a, b: 2 * x + 3 * (a @ b), (2,), (2, 3), (3,)),
    ("addr", lambda x, a, b: cg.addr(x, a, b, alpha=3), lambda x, a, b: x + 3 * np.outer(a, b), (2, 3), (2,), (3,)),
    ("baddbmm", lambda x, a, b: x.baddbmm(a, b, beta=0.5), lambda x, a, b: 0.5 * x + a @ b, (1, 2, 2), (4, 2, 3), (4, 3, 2)),
    ("addbmm", lambda x, a, b: cg.addbmm(x, a, b), lambda x, a, b: x + (a @ b).sum(0), (2, 2), (4, 2, 3), (4, 3, 2)),
]  # fmt: skip

# Of (batches of) matrices that have a loop of their own: at most 128 multiplications, 32 by one column.
MATRICES = [((4, 4), (4, 4)), ((2, 3, 3), (3, 3)), ((5, 3, 3), (5, 3, 1)), ((3, 7), (7, 2)), ((5, 6), (6, 1)),
            ((3, 5), (5, 6)), ((1, 9), (9, 14)), ((2, 0), (0, 3)), ((5, 1), (1, 5)), ((3, 2, 4), (4, 5)), ((6, 4), (2, 1, 4, 5))]

EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)), ("ij->ji", (2, 3)), ("ba", (2, 3)),
    ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->j", (2, 2, 3)), ("i,i->", (3,), (3,)),
    ("i,j->ij", (2,), (3,)), ("i,->i", (3,), ()), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("bij,bij->b", (5, 2, 3), (5, 2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("...j,j->...", (2, 4, 3), (3,)), ("i...,i...->...", (2, 3), (2, 3)),
    ("ij,ij,jk->ik", (2, 3), (2, 3), (3, 4)), ("ab,bc,cd,de->ae", (2, 3), (3, 4), (4, 2), (2, 5)), ("abc,b,c->a", (2, 3, 4), (3,), (4,)),
    ("ij,jk->k", (2, 3), (3, 4)), ("ab,cd->abcd", (2, 1), (1, 3)), ("iji,j->i", (2, 3, 2), (3,)), (" i j , j k -> i k ", (2, 0), (0, 3)),
    ("aB,Bc->ac", (2, 3), (3, 2)),
]  # fmt: skip


def close(result, expected):
    expected = np.asarray(expected)
    assert tuple(result.shape) == expected.shape
    assert np.allclose(array_of(result), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.parametrize(("call", "expected", "shapes"), [pytest.param(p[1], p[2], p[3:], id=p[0]) for p in PRODUCTS])
def test_products(call, expected, shapes, layout):
    tensors = [LAYOUTS[layout](np.asarray(array)) for array in samples.rule_operands(shapes)]
    close(call(*tensors), expected(*map(array_of, tensors)))


@pytest.mark.parametrize(("call", "shapes"), [pytest.param(p[1], p[3:], id=p[0]) for p in PRODUCTS])
def test_derivatives_of_products(call, shapes):
    leaves = [samples.leaf(array) for array in samples.rule_operands(shapes)]
    assert gradcheck(call, leaves)
    assert gradgradcheck(call, leaves)


@pytest.mark.cases("case", EINSUMS, ids=lambda case: case[0])
def test_einsum(case):
    equation, *shapes = case
    arrays = [np.asarray(array) for array in samples.rule_operands(shapes)]
    expected = np.einsum(equation.replace(" ", ""), *arrays)
    for layout in LAYOUTS:
        tensors = [LAYOUTS[layout](array) for array in arrays]
        close(cg.einsum(equation, *tensors), np.einsum(equation.replace(" ", ""), *map(array_of, tensors)))
    close(cg.einsum(equation, [cg.tensor(array) for array in arrays]), expected)
    leaves = [samples.leaf(array) for array in arrays]
    assert gradcheck(lambda *tensors: cg.einsum(equation, *tensors), leaves)
    assert gradgradcheck(lambda *tensors: cg.einsum(equation, *tensors), leaves)


def test_einsum_of_numbers_for_letters_and_sizes_of_1():
    a, b = (cg.tensor(array) for array in samples.rule_operands(((2, 3), (3, 4))))
    close(cg.einsum(a, [0, 1], b, [1, 2], [2, 0]), (array_of(a) @ array_of(b)).T)
    close(cg.einsum(a, [0, 1], b, [1, 2]), array_of(a) @ array_of(b))
    close(cg.einsum(a, [..., 1], b, [1, 2], [..., 2]), array_of(a) @ array_of(b))
    close(cg.einsum("ij,ij->ij", a, a[:1]), array_of(a) * array_of(a)[:1])
    close(cg.einsum("ij,jk->ik", a, cg.ones(1, 4, dtype=cg.float64)), array_of(a).sum(1, keepdims=True) @ np.ones((1, 4)))
    many = [cg.tensor(array) for array in samples.rule_operands(((2, 3),) * 4)]
    close(cg.einsum("ab,ab,ab,ab->b", *many), np.einsum("ab,ab,ab,ab->b", *map(array_of, many)))


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", MATRICES, ids=str)
def test_products_of_small_matrices_are_sums_in_order(shapes, dtype, layout):
    """To the bit, hence the same wherever a matrix lies and however many are multiplied."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    left, right = array_of(LAYOUTS[layout](a)), array_of(LAYOUTS[layout](b))     # an expanded one repeats its first elements
    expected = np.zeros((*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]), dtype)
    for k in range(left.shape[-1]):
        expected = expected + left[..., :, k, None] * right[..., None, k, :]
    assert samples.same_bits(array_of(LAYOUTS[layout](a) @ LAYOUTS[layout](b)), expected)


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64, cg.complex128])
@pytest.mark.parametrize("shapes", [((7, 7), (7, 1)), ((5, 7), (7,)), ((3, 5, 7), (7, 1)), ((1, 70), (70, 9)), ((40, 50), (50, 60))])
def test_repeated_factors_have_the_bits_of_others(shapes, dtype):
    numbers = np.random.default_rng(0)
    for _ in range(30):
        factor = cg.tensor(numbers.uniform(0.3, 0.9, shapes[1])).to(dtype)
        number, row = cg.tensor(0.7, dtype=dtype), cg.tensor(numbers.uniform(0.3, 0.9, shapes[0][-1])).to(dtype)
        for repeated in (number.expand(shapes[0]), row.expand(shapes[0])):
            assert samples.same_bits(array_of(repeated @ factor), array_of(repeated.contiguous() @ factor))


def test_integers():
    a, b = cg.tensor([[1, 2], [3, 4]]), cg.tensor([[5, 6], [7, 8]])
    assert cg.einsum("ij,jk->ik", a, b).tolist() == (a @ b).tolist()
    assert cg.kron(a[0], b[0]).tolist() == [5, 6, 10, 12]
    assert cg.outer(a[0], b[0]).tolist() == [[5, 6], [10, 12]]
    assert a.trace().item() == 5
    assert a.addmm(a, b).tolist() == (a + a @ b).tolist()


def test_with_beta_0_the_input_is_not_read():
    missing = cg.full((2, 2), math.nan, requires_grad=True)
    one = cg.ones(2, 2)
    for result in (missing.addmm(one, one, beta=0), missing.addr(one[0], one[0], beta=0), missing[0].addmv(one, one[0], beta=0)):
        assert result.isfinite().all()
        assert grad(result.sum(), missing)[0].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("name", ["addmm", "addr", "addmv", "baddbmm", "addbmm"])
def test_in_place_forms(name):
    shapes = {"addmm": ((2, 2), (2, 3), (3, 2)), "addr": ((2, 3), (2,), (3,)), "addmv": ((2,), (2, 3), (3,)),
              "baddbmm": ((4, 2, 2), (4, 2, 3), (4, 3, 2)), "addbmm": ((2, 2), (4, 2, 3), (4, 3, 2))}[name]  # fmt: skip
    target, a, b = (samples.leaf(array) for array in samples.rule_operands(shapes))
    expected = getattr(target, name)(a, b, alpha=2)
    changed = target * 1
    assert getattr(changed, name + "_")(a, b, alpha=2) is changed
    assert changed.tolist() == expected.tolist()
    for ours, theirs in zip(grad(changed.sum(), (target, a, b)), grad(expected.sum(), (target, a, b)), strict=True):
        assert ours.tolist() == theirs.tolist()


# ----- Norms -----
POWERS = (0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1, -2.5)


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.parametrize("p", POWERS)
def test_norms(p, layout):
    tensor = LAYOUTS[layout](samples.draw("float64", (2, 3, 4)))
    array = np.abs(array_of(tensor))

    def expected(axis, keepdims=False):
        if abs(p) == INF or p == 0:
            return {0: np.count_nonzero, INF: np.max, -INF: np.min}[p](array, axis=axis, keepdims=keepdims)
        return (array**p).sum(axis=axis, keepdims=keepdims) ** (1 / p)

    close(tensor.norm(p), expected(None))
    for dim in (0, -1, (0, 2), (0, 1, 2)):
        close(cg.norm(tensor, p, dim), expected(dim))
        close(tensor.norm(p, dim=dim, keepdim=True), expected(dim, True))


def test_norms_by_name_and_dtype():
    x = cg.tensor([[3.0, -4.0], [0.0, 0.0]])
    assert x.norm().item() == x.norm("fro").item() == x.norm(None).item() == cg.norm(x, axis=(0, 1)).item() == 5
    assert x.norm(dim=1, keepdims=True).tolist() == [[5], [0]]
    assert x.norm(dtype=cg.float64).dtype == cg.float64
    assert cg.norm(cg.zeros(0)).item() == cg.norm(cg.zeros(0), 1).item() == 0
    assert cg.norm(cg.zeros(0, 2), dim=0).tolist() == [0, 0]
    assert x.dist(x + 1, 1).item() == 4
    assert math.isnan(cg.tensor([math.nan, 1.0]).norm().item())
    assert cg.tensor([INF, 1.0]).norm().item() == INF


@pytest.mark.cases("scale", [1e200, 1e-200, 1e-310, 1e300])
@pytest.mark.cases("p", [2, 3, 1.5, 0.5, -1])
def test_norms_of_any_scale(p, scale):
    array = np.array([3.0, -4.0, 1.0]) * scale
    x, unit = cg.tensor(array, requires_grad=True), cg.tensor(array / scale, requires_grad=True)

    assert x.norm(p).item() == pytest.approx(unit.norm(p).item() * scale, rel=1e-12 if scale > 1e-300 else 1e-3)
    expected = grad(unit.norm(p), unit)[0].tolist()
    assert grad(x.norm(p), x)[0].tolist() == pytest.approx(expected, rel=1e-12 if scale > 1e-300 else 1e-3)


@pytest.mark.parametrize(
    ("p", "values", "expected"),
    [
        (2, [0, 0], [0, 0]), (1, [0, -2], [0, -1]), (1.5, [0, 0], [0, 0]), (3, [0, 0], [0, 0]), (3, [0, 2], [0, 1]), (0, [0, 2], [0, 0]),
        (INF, [2, -2, 1], [0.5, -0.5, 0]), (-INF, [2, -1, 1], [0, -0.5, 0.5]), (INF, [0, 0], [0, 0]), (0.5, [0, 4], [0, 1]),
        (1.5, [0, 4], [0, 1]),
    ],
)  # fmt: skip
def test_subgradients_of_norms_are_torchs(p, values, expected):
    x = cg.tensor(values, dtype=cg.float64, requires_grad=True)
    for create_graph in (False, True):
        assert grad(x.norm(p), x, create_graph=create_graph)[0].tolist() == pytest.approx(expected)


# ----- Refusals -----
X = cg.ones(2, 3)
REFUSED = [
    (lambda: cg.outer(X, X[0]), "outer: Expected 1-D argument self, but got 2-D"),
    (lambda: cg.inner(X, cg.ones(2)), r"inner\(\) the last dimension must match on both input tensors but got shapes"),
    (lambda: cg.tensordot(X, X, ([0], [1])), "contracted dimensions need to match, but first has size 2 in dim 0 and second has size 3"),
    (lambda: cg.tensordot(X, X, 3), "tensordot expects dims < ndim_a or ndim_b, but got dims=3"),
    (lambda: cg.tensordot(X, X, ([0, 1], [0])), "both dimension lists should have same length"),
    (lambda: cg.trace(X[0]), "trace: expected a matrix, but got tensor with dim 1"),
    (lambda: cg.cross(X, X, dim=0), r"linalg.cross: inputs dimension 0 must have length 3. Got 2 and 2"),
    (lambda: cg.cross(X, X[0]), "linalg.cross: inputs must have the same number of dimensions"),
    (lambda: cg.cross(X[:, :2], X[:, :2]), "no dimension of size 3 in input"),
    (lambda: cg.addmm(X, X, X), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
    (lambda: cg.addmm(X, X[0], X), "mat1 must be a matrix, got 1-D tensor"),
    (lambda: cg.addmm(cg.ones(4), cg.ones(2, 2), X), r"The expanded size of the tensor \(3\) must match the existing size \(4\)"),
    (lambda: cg.baddbmm(X, cg.ones(2, 2, 3), cg.ones(2, 2, 2)), "Expected size for first two dimensions of batch2 tensor to be"),
    (lambda: cg.addr(X, X, X[0]), "addr: Expected 1-D argument vec1, but got 2-D"),
    (lambda: X.norm("foo"), "linalg.matrix_norm: Order foo not supported"),
    (lambda: X.long().norm(), "linalg.vector_norm: Expected a floating point or complex tensor as input"),
    (lambda: cg.zeros(0).norm(INF), "linalg.vector_norm cannot compute the inf norm on an empty tensor"),
    (lambda: cg.zeros(0, 2).norm(-1, 0), "linalg.vector_norm cannot compute the -1.0 norm on the dimension 0"),
    (lambda: cg.einsum("ij,jk", X, X), r"einsum\(\): subscript j has size 2 for operand 1 which does not broadcast with previously seen"),
    (lambda: cg.einsum("ij,kl", X), r"einsum\(\): fewer operands were provided than specified in the equation"),
    (lambda: cg.einsum("ij", X, X), r"einsum\(\): more operands were provided than specified in the equation"),
    (lambda: cg.einsum("ijk", X), r"einsum\(\): the number of subscripts in the equation \(3\) does not match the number of dimensions"),
    (lambda: cg.einsum("ij->ii", X), r"einsum\(\): output subscript i appears more than once in the output"),
    (lambda: cg.einsum("ij->k", X), r"einsum\(\): output subscript k does not appear in the equation for any input operand"),
    (lambda: cg.einsum("i1->i", X), r"einsum\(\): invalid subscript given at index 1 in the equation string"),
    (lambda: cg.einsum("ii", X), r"einsum\(\): subscript i is repeated for operand 0 but the sizes don't match"),
    (lambda: cg.prelu(cg.tensor(1.0), cg.ones(2)), "Not allow zero-dim input tensor"),
    (lambda: cg.prelu(cg.ones(2, 8), cg.ones(2, 4)), "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2"),
    (lambda: cg.prelu(cg.ones(1, 2), cg.ones(3)), "Mismatch of parameter numbers and input channel size"),
]


@pytest.mark.cases(("call", "message"), REFUSED)
def test_refused(call, message):
    with pytest.raises((RuntimeError, NotImplementedError), match=message):
        call()


@pytest.mark.cases("shape", [(), (3,), (2, 1), (2, 3, 4), (0, 2), (2, 0, 3)])
@pytest.mark.cases("slopes", [(), (1,), "channels"])
def test_prelu_has_the_shape_of_its_input(shape, slopes):
    channels = shape[1] if len(shape) > 1 else 1
    x, weight = -cg.ones(shape), cg.full((channels,) if slopes == "channels" else slopes, 0.5)
    y = cg.prelu(x, weight)
    assert y.shape == shape and y.equal(x / 2)



def test_functions_with_a_wrapper_around_their_row():
    x = cg.tensor([1.234, -1.5, 125.0])
    assert cg.round(x, decimals=1).tolist() == pytest.approx([1.2, -1.5, 125])
    assert x.round(decimals=-1).tolist() == [0, 0, 120]
    assert x.clone().round_().tolist() == [1, -2, 125]
    odd = cg.tensor([math.nan, INF, -INF, 1.0])
    limits = np.finfo(np.float32)
    assert odd.nan_to_num().tolist() == [0, float(limits.max), float(limits.min), 1]
    assert odd.clone().nan_to_num_(nan=5, posinf=6, neginf=7).tolist() == [5, 6, 7, 1]
    assert cg.nan_to_num(cg.tensor([1, 2])).tolist() == [1, 2]
    assert cg.logit(cg.tensor([0.0, 1.0], dtype=cg.float64), eps=0.25).tolist() == pytest.approx([-math.log(3), math.log(3)])
    weight = cg.tensor([0.5, 0.25], requires_grad=True)
    y = cg.prelu(cg.tensor([[-1.0, -2.0], [3.0, 4.0]]), weight)
    assert y.tolist() == [[-0.5, -0.5], [3, 4]]
    assert grad(y.sum(), weight)[0].tolist() == [-1, -2]
    assert [(cg.tensor(a) << b).tolist() for a, b in itertools.product((1, -3), (1, 70))] == [2, 0, -6, 0]
    assert (cg.tensor([8, -8]) >> cg.tensor([1, 80])).tolist() == [4, -1]
    assert (2 << cg.tensor([1, 2])).tolist() == [4, 8]
    y = cg.tensor([1, 2])
    y <<= 2
    y >>= 1
    assert y.tolist() == [2, 4]
