"""cygrad.func, one transformation at a time: grad, grad_and_value, value_and_grad, vjp, jvp and linearize against closed forms."""

import pytest

import cygrad as cg
from cygrad.func import grad, grad_and_value, jvp, linearize, value_and_grad, vjp
from trees import Model, same, tensor

X, Y, S = tensor(1, 2, 3), tensor(4, 5, 6), cg.tensor(2.0, dtype=cg.float64)
ONES = tensor(1, 1, 1)
PRODUCT_X, PRODUCT_Y = [16, 25, 36], [8, 20, 36]


def product(x, y):
    """sum(x y^2): the gradients are y^2 and 2 x y."""
    return (x * y**2).sum()


# ----- grad and its two relatives -----
ARGNUMS = [(0, PRODUCT_X), (1, PRODUCT_Y), (-1, PRODUCT_Y), (-2, PRODUCT_X), ((0,), (PRODUCT_X,)),
           ((0, 1), (PRODUCT_X, PRODUCT_Y)), ((1, 0), (PRODUCT_Y, PRODUCT_X)), ((-1, 0), (PRODUCT_Y, PRODUCT_X))]


@pytest.mark.parametrize(("argnums", "expected"), ARGNUMS, ids=repr)
def test_argnums(argnums, expected):
    same(grad(product, argnums=argnums)(X, Y), expected)
    same(grad(product, argnums)(X, Y), expected)
    same(grad_and_value(product, argnums)(X, Y), (expected, 174))
    same(value_and_grad(product, argnums)(X, Y), (174, expected))


BAD_ARGNUMS = [
    ((), r"argnums must be non-empty"),
    ((0, 0), r"argnums elements must be unique, got \(0, 0\)"),
    ((0, -2), r"argnums elements must be unique, got \(0, 0\)"),
    (2, r"Got argnum=2, but only 2 positional inputs"),
    (-3, r"Got argnum=-3, but only 2 positional inputs"),
    ((0, 5), r"Got argnum=5, but only 2 positional inputs"),
    ("a", r"argnums must be int or Tuple\[int, \.\.\.\], got: <class 'str'>"),
    ([0], r"argnums must be int or Tuple\[int, \.\.\.\], got: <class 'list'>"),
    (0.5, r"argnums must be int or Tuple\[int, \.\.\.\], got: <class 'float'>"),
]


@pytest.mark.cases(("argnums", "message"), BAD_ARGNUMS)
@pytest.mark.cases("transform", [grad, grad_and_value, value_and_grad])
def test_argnums_that_are_refused(transform, argnums, message):
    with pytest.raises(RuntimeError, match=message):
        transform(product, argnums=argnums)(X, Y)


def test_keywords_are_passed_and_not_differentiated():
    same(grad(product)(X, y=Y), PRODUCT_X)
    same(grad(lambda x, *, power: (x**power).sum())(X, power=3), [3, 12, 27])
    with pytest.raises(RuntimeError, match="Got argnum=0, but only 0 positional inputs"):
        grad(product)(x=X, y=Y)


def test_arguments_that_are_not_differentiated_may_be_anything():
    same(grad(lambda x, names, n: (x * n).sum() if "k" in names else x.sum())(X, ["k"], 3), [3, 3, 3])


def test_aux():
    def f(x, y):
        return product(x, y), {"double": x * 2, "pair": (y + 1, x)}

    aux = {"double": [2, 4, 6], "pair": ([5, 6, 7], [1, 2, 3])}
    same(grad(f, has_aux=True)(X, Y), (PRODUCT_X, aux))
    same(grad(f, (0, 1), True)(X, Y), ((PRODUCT_X, PRODUCT_Y), aux))
    same(grad_and_value(f, has_aux=True)(X, Y), (PRODUCT_X, (174, aux)))
    same(value_and_grad(f, has_aux=True)(X, Y), ((174, aux), PRODUCT_X))


@pytest.mark.cases("f", [lambda x: x.sum(), lambda x: (x.sum(),), lambda x: (x.sum(), 1, 2), lambda x: [x.sum(), x]])
@pytest.mark.cases("transform", [grad, grad_and_value, value_and_grad])
def test_functions_without_the_aux_they_should_have(transform, f):
    with pytest.raises(RuntimeError, match=r"output of function f should be a tuple: \(output, aux\) if has_aux is True"):
        transform(f, has_aux=True)(X)


TREES = [
    ("dict", {"a": X, "b": Y}, lambda p: product(p["a"], p["b"]), {"a": PRODUCT_X, "b": PRODUCT_Y}),
    ("dict, unused", {"b": Y, "a": X}, lambda p: p["a"].sum(), {"b": [0, 0, 0], "a": [1, 1, 1]}),
    ("tuple", (X, Y), lambda p: product(*p), (PRODUCT_X, PRODUCT_Y)),
    ("nested", {"l": (X, (Y,)), "s": S}, lambda p: product(p["l"][0], p["l"][1][0]) * p["s"],
     {"l": ([32, 50, 72], ([16, 40, 72],)), "s": 174}),
    ("dataclass", Model(X, Y), lambda p: product(p.weight, p.bias), Model(PRODUCT_X, PRODUCT_Y)),
    ("dataclass in dict", {"m": Model(X, (Y,))}, lambda p: product(p["m"].weight, p["m"].bias[0]),
     {"m": Model(PRODUCT_X, (PRODUCT_Y,))}),
]


@pytest.mark.parametrize(("tree", "f", "expected"), [entry[1:] for entry in TREES], ids=[entry[0] for entry in TREES])
def test_trees(tree, f, expected):
    same(grad(f)(tree), expected)
    same(grad(lambda x, p: f(p) * x[0], argnums=(1,))(X, tree), (expected,))


def test_a_list_gives_a_list():
    same(grad(lambda p: product(*p))([X, Y]), [PRODUCT_X, PRODUCT_Y])


SIMPLE = [
    ("itself", lambda s: s, 1),
    ("constant", lambda s: cg.ones((), dtype=cg.float64), 0),
    ("closure", lambda s: S * s, 2),
    ("repeated", lambda s: s * s * s, 12),
    ("detached", lambda s: s.detach() * s, 2),
    ("numbers", lambda s: 3 * s + 1, 3),
    ("control flow", lambda s: s * 5 if s > 1 else s, 5),
    ("item", lambda s: s * s.item(), 2),
]


@pytest.mark.parametrize(("f", "slope"), [entry[1:] for entry in SIMPLE], ids=[entry[0] for entry in SIMPLE])
def test_functions_of_a_number(f, slope):
    same(grad(f)(S), slope)


def test_no_grad_inside_makes_constants_and_outside_nothing():
    def f(x):
        with cg.no_grad():
            square = x**2
        return (x * square).sum()

    same(grad(f)(X), [1, 4, 9])
    with cg.no_grad():
        same(grad(product)(X, Y), PRODUCT_X)
        assert not cg.is_grad_enabled()


def test_local_tensors_may_be_changed_in_place():
    def f(x):
        y = x.clone()
        y.mul_(2)
        y[0] = x[1] * x[2]
        return (y * y).sum()

    same(grad(f)(X), [0, 8 * 2 + 2 * 2 * 9, 8 * 3 + 2 * 3 * 4])


def test_the_argument_itself_is_left_alone():
    x = X.clone()
    result = grad(product)(x, Y)
    assert not x.requires_grad
    assert x.grad is None
    assert x._version == 0
    same(result, PRODUCT_X)


def test_leaves_outside_get_no_gradient_and_results_keep_their_history():
    x = X.clone().requires_grad_()
    slope = grad(product, argnums=1)(x, Y)
    assert slope.requires_grad
    assert x.grad is None
    same(cg.autograd.grad(slope.sum(), x)[0], [8, 10, 12])
    slope = grad(lambda y: product(x, y))(Y)            # from the closure, too
    same(cg.autograd.grad(slope.sum(), x)[0], [8, 10, 12])


def test_aux_keeps_the_history_from_outside_only():
    def f(x):
        return x.sum(), x * 2

    assert not grad(f, has_aux=True)(X)[1].requires_grad
    x = X.clone().requires_grad_()
    aux = grad(f, has_aux=True)(x)[1]
    same(cg.autograd.grad(aux.sum(), x)[0], [2, 2, 2])


def test_autograd_inside():
    same(grad(lambda x: cg.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum())(X), [6, 12, 18])


def test_exceptions_come_out_and_leave_nothing_behind():
    def f(x):
        raise ZeroDivisionError("mine")

    for transform in (grad, grad_and_value, value_and_grad):
        with pytest.raises(ZeroDivisionError, match="mine"):
            transform(f)(X)
    with pytest.raises(ZeroDivisionError, match="mine"):
        grad(lambda x: jvp(f, (x,), (x,))[1].sum())(X)
    same(grad(product)(X, Y), PRODUCT_X)
    assert not (X * 2).requires_grad


def test_results_have_the_precision_of_the_argument():
    gradient = grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(X.float(), Y)
    assert [part.dtype for part in gradient] == [cg.float32, cg.float64]
    value = grad_and_value(lambda x: (x * x).sum())(X.float())[1]
    assert value.dtype == cg.float32


BAD_RESULTS = [
    (lambda x: x * 2, r"Expected f\(\*args\) to return a scalar Tensor, got tensor with 1 dims"),
    (lambda x: x[:1], r"Expected f\(\*args\) to return a scalar Tensor, got tensor with 1 dims"),
    (lambda x: x[:0], r"Expected f\(\*args\) to return a scalar Tensor, got tensor with 1 dims"),
    (lambda x: 3.0, r"Expected f\(\*args\) to return a Tensor, got <class 'float'>"),
    (lambda x: None, r"Expected f\(\*args\) to return a Tensor, got <class 'NoneType'>"),
    (lambda x: (x.sum(),), r"Expected f\(\*args\) to return a Tensor, got <class 'tuple'>"),
]


@pytest.mark.cases(("f", "message"), BAD_RESULTS)
@pytest.mark.cases("transform", [grad, grad_and_value, value_and_grad])
def test_results_that_are_no_scalar_tensor(transform, f, message):
    with pytest.raises(RuntimeError, match=message):
        transform(f)(X)


BAD_INPUTS = [
    ("2.0", ValueError, "Thing passed to transform API must be Tensor, got <class 'str'>"),
    ([X, "3"], ValueError, "Thing passed to transform API must be Tensor, got <class 'str'>"),
    ((X, None), ValueError, "Thing passed to transform API must be Tensor, got <class 'NoneType'>"),
    (cg.arange(3), RuntimeError, "only Tensors of floating point dtype can require gradients"),
    ({"a": cg.ones(2) > 0}, RuntimeError, "only Tensors of floating point dtype can require gradients"),
]


@pytest.mark.parametrize(("argument", "error", "message"), BAD_INPUTS)
def test_arguments_that_have_no_gradient(argument, error, message):
    with pytest.raises(error, match=message):
        grad(lambda x: X.sum())(argument)
    with pytest.raises(error, match=message):
        vjp(lambda x: X.sum(), argument)


# ----- vjp -----
def test_vjp_of_one_and_of_several():
    value, pull = vjp(lambda x: x**2, X)
    same(value, [1, 4, 9])
    same(pull(ONES), ([2, 4, 6],))
    same(pull(Y), ([8, 20, 36],))                       # any number of calls
    value, pull = vjp(lambda x, y, s: x * y, X, Y, S)
    same(value, [4, 10, 18])
    same(pull(ONES), ([4, 5, 6], [1, 2, 3], 0))


def test_vjp_of_trees():
    value, pull = vjp(lambda p: {"p": p["a"] * p["b"].weight, "q": (p["a"].sum(),)}, {"a": X, "b": Model(Y, S)})
    same(value, {"p": [4, 10, 18], "q": (6,)})
    same(pull({"p": ONES, "q": (S,)}), ({"a": [6, 7, 8], "b": Model([1, 2, 3], 0)},))


def test_vjp_with_aux():
    value, pull, aux = vjp(lambda x: (x**2, {"z": x + 1}), X, has_aux=True)
    same((value, pull(ONES), aux), ([1, 4, 9], ([2, 4, 6],), {"z": [2, 3, 4]}))
    with pytest.raises(RuntimeError, match=r"output of function f should be a tuple: \(output, aux\) if has_aux is True"):
        vjp(lambda x: x**2, X, has_aux=True)


def test_vjp_of_a_constant_and_of_the_input():
    same(vjp(lambda x: tensor(1, 1), X)[1](tensor(1, 2)), ([0, 0, 0],))
    value, pull = vjp(lambda x: x, X)
    same((value, pull(Y)), ([1, 2, 3], ([4, 5, 6],)))


def test_vjp_keeps_the_history_of_the_cotangent():
    y = Y.clone().requires_grad_()
    (result,) = vjp(lambda x: x**2, X)[1](y)
    same(cg.autograd.grad(result.sum(), y)[0], [2, 4, 6])


BAD_COTANGENTS = [
    (lambda x: (x, x), (X,), RuntimeError, "Expected pytree structure of cotangents to be the same as pytree structure of outputs"),
    (lambda x: (x, x), X, RuntimeError, "Expected pytree structure of cotangents to be the same"),
    (lambda x: {"a": x}, {"b": X}, RuntimeError, "Expected pytree structure of cotangents to be the same"),
    (lambda x: x * 2, S, RuntimeError, r"Mismatch in shape: grad_output\[0\] has a shape of .* and output\[0\] has a shape of"),
    (lambda x: (x * 3, x * 2), (X, tensor(1, 2)), RuntimeError, r"Mismatch in shape: grad_output\[1\]"),
    (lambda x: x.sum(), "1", TypeError, "gradients can be either Tensors or None, but got str"),
]


@pytest.mark.parametrize(("f", "cotangents", "error", "message"), BAD_COTANGENTS)
def test_cotangents_that_do_not_fit(f, cotangents, error, message):
    _, pull = vjp(f, X)
    with pytest.raises(error, match=message):
        pull(cotangents)


@pytest.mark.parametrize(("f", "message"), [
    (lambda x: 3.0, r"expected f\(\*primals\) to return only tensors, got unsupported type <class 'float'>"),
    (lambda x: (x, None), r"expected f\(\*primals\) to return only tensors, got unsupported type <class 'NoneType'>"),
    (lambda x: (), r"Expected f to be a function that has non-empty output \(got output = \[\]\)"),
    (lambda x: (x, x.long()), "All outputs of f must be floating-point or complex Tensors, got Tensor with dtype"),
])
def test_vjp_refuses_results_that_cannot_be_differentiated(f, message):
    with pytest.raises(RuntimeError, match=message):
        vjp(f, X)


# ----- jvp -----
def test_jvp_of_one_and_of_several():
    same(jvp(lambda x: x**2, (X,), (ONES,)), ([1, 4, 9], [2, 4, 6]))
    same(jvp(lambda x, y: x * y, (X, Y), (ONES, X)), ([4, 10, 18], [4 + 1, 5 + 4, 6 + 9]))
    same(jvp(lambda x: x, (X,), (Y,)), ([1, 2, 3], [4, 5, 6]))
    same(jvp(lambda x: tensor(7, 8), (X,), (Y,)), ([7, 8], [0, 0]))


def test_jvp_of_trees():
    primals = ({"a": X, "b": Model(Y, S)},)
    tangents = ({"a": ONES, "b": Model(X, S)},)
    value, slope = jvp(lambda p: {"p": p["a"] * p["b"].weight, "q": (p["a"].sum() * p["b"].bias,)}, primals, tangents)
    same(value, {"p": [4, 10, 18], "q": (12,)})
    same(slope, {"p": [5, 9, 15], "q": (3 * 2 + 6 * 2,)})


def test_jvp_with_aux():
    same(jvp(lambda x: (x**2, {"z": x + 1}), (X,), (Y,), has_aux=True), ([1, 4, 9], [8, 20, 36], {"z": [2, 3, 4]}))
    with pytest.raises(RuntimeError, match=r"output of function f should be a tuple: \(output, aux\) if has_aux is True"):
        jvp(lambda x: x**2, (X,), (Y,), has_aux=True)


def test_jvp_in_place_and_without_grad():
    def f(x):
        y = x.clone()
        y.mul_(x)
        y[0] = 1.0
        return y

    same(jvp(f, (X,), (ONES,)), ([1, 4, 9], [0, 4, 6]))

    def g(x):
        with cg.no_grad():
            square = x**2
        return x * square

    with cg.no_grad():
        same(jvp(product, (X, Y), (ONES, ONES)), (174, 77 + 64))
    assert jvp(g, (X,), (ONES,))[0].tolist() == [1, 8, 27]


def test_jvp_of_integers_is_zero():
    value, slope = jvp(lambda x: (x * 2, x.argmax()), (X,), (Y,))
    same((value[0], slope[0]), ([2, 4, 6], [8, 10, 12]))
    assert (value[1].item(), slope[1].item()) == (2, 0)
    assert value[1].dtype == cg.int64


def test_jvp_keeps_the_history_from_outside():
    x, t = X.clone().requires_grad_(), Y.clone().requires_grad_()
    _, slope = jvp(lambda x: x**2, (x,), (t,))
    gradients = cg.autograd.grad(slope.sum(), [x, t])
    same(tuple(gradients), ([8, 10, 12], [2, 4, 6]))


def test_jvp_strictly():
    with pytest.raises(RuntimeError, match="The output of f is independent of the inputs. This is not allowed with strict=True"):
        jvp(lambda x: tensor(1), (X,), (Y,), strict=True)
    same(jvp(lambda x: x * 2, (X,), (Y,), strict=True), ([2, 4, 6], [8, 10, 12]))


BAD_TANGENTS = [
    (X, X, RuntimeError, r"jvp\(f, primals, tangents\): Expected primals to be a tuple"),
    ([X], [X], RuntimeError, r"jvp\(f, primals, tangents\): Expected primals to be a tuple"),
    ((X,), X, RuntimeError, "Expected primals and tangents to have the same python structure"),
    ((X,), (X, X), RuntimeError, "Expected primals and tangents to have the same python structure"),
    (({"a": X},), ({"b": X},), RuntimeError, "Expected primals and tangents to have the same python structure"),
    ((X,), (tensor(1, 2),), RuntimeError, "Trying to set a forward gradient that has a different size than that of the original Tensor"),
    (("2",), (1.0,), RuntimeError, "Expected primals to only contain Tensors, got <class 'str'>"),
    ((X,), ("1",), RuntimeError, "Expected tangents to only contain Tensors, got <class 'str'>"),
    ((X, X), (X, None), RuntimeError, "Expected tangents to only contain Tensors, got <class 'NoneType'>"),
    ((), (), RuntimeError, "Expected primals to contain at least one Tensor"),
    ((cg.arange(3),), (X,), ValueError, "Expected primal to be floating point or complex, but got"),
]


@pytest.mark.parametrize(("primals", "tangents", "error", "message"), BAD_TANGENTS)
def test_tangents_that_do_not_fit(primals, tangents, error, message):
    with pytest.raises(error, match=message):
        jvp(lambda *arguments: X, primals, tangents)


def test_jvp_refuses_results_that_are_no_tensors():
    with pytest.raises(RuntimeError, match=r"expected f\(\*primals\) to return only tensors, got unsupported type <class 'float'>"):
        jvp(lambda x: 3.0, (X,), (Y,))


# ----- linearize -----
def test_linearize():
    calls = []

    def f(x, y):
        calls.append(1)
        return {"p": x * y, "q": (x.sum(),)}

    value, push = linearize(f, X, Y)
    same(value, {"p": [4, 10, 18], "q": (6,)})
    before = len(calls)
    same(push(ONES, X), {"p": [5, 9, 15], "q": (3,)})
    same(push(Y, Y), {"p": [16 + 4, 25 + 10, 36 + 18], "q": (15,)})
    assert len(calls) == before


def test_linearize_trees_and_constants():
    value, push = linearize(lambda p: p["a"].weight ** 2, {"a": Model(X, S)})
    same((value, push({"a": Model(Y, S)})), ([1, 4, 9], [8, 20, 36]))
    value, push = linearize(lambda x: tensor(1, 2), X)
    same((value, push(Y).detach()), ([1, 2], [0, 0]))
    same(linearize(lambda x: x, X)[1](Y), [4, 5, 6])


@pytest.mark.parametrize(("tangents", "message"), [
    ((X, X), "(?s)Expected the tangents .* to have the same argspec as the primals"),
    (((X,),), "(?s)Expected the tangents .* to have the same argspec as the primals"),
    ((S,), r"tangent:0 with shape .* in flattened pytree doesn't match the shape .* of the corresponding primal"),
    ((X.float(),), r"tangent:0 with dtype .*float32 in flattened pytree doesn't match the dtype .*float64 of the corresponding primal"),
])
def test_tangents_that_do_not_fit_linearize(tangents, message):
    _, push = linearize(lambda x: x**2, X)
    with pytest.raises(RuntimeError, match=message):
        push(*tangents)
