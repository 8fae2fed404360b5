"""The text of tensors, character by character as torch prints them."""

import math
import re
import subprocess
import sys

import pytest

import cygrad as cg

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def restored_options():
    yield
    cg.set_printoptions(profile="default")


FLAT = [
    ([1.0, 2.5, -3.25], "tensor([ 1.0000,  2.5000, -3.2500])"),
    ([1.0, 2.0, -3.0], "tensor([ 1.,  2., -3.])"),
    ([1, 20, -300], "tensor([   1,   20, -300])"),
    ([True, False], "tensor([ True, False])"),
    (True, "tensor(True)"),
    (3, "tensor(3)"),
    (2.5, "tensor(2.5000)"),
    (1.0, "tensor(1.)"),
    (1e-5, "tensor(1.0000e-05)"),
    (NAN, "tensor(nan)"),
    ([NAN, INF, -INF], "tensor([nan, inf, -inf])"),
    ([1.0, NAN, -INF], "tensor([1., nan, -inf])"),
    ([1.5, NAN, -INF], "tensor([1.5000,    nan,   -inf])"),
    ([0.0, -0.0], "tensor([0., -0.])"),
    ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
    ([1000.0, 1.0], "tensor([1000.,    1.])"),
    ([1001.0, 1.0], "tensor([1.0010e+03, 1.0000e+00])"),
    ([1000.5, 1.0], "tensor([1.0005e+03, 1.0000e+00])"),
    ([1e8], "tensor([100000000.])"),
    ([1.5e8, 1e8], "tensor([1.5000e+08, 1.0000e+08])"),
    ([1e-4], "tensor([1.0000e-04])"),
    ([1.0, 0.0, 1e5], "tensor([1.0000e+00, 0.0000e+00, 1.0000e+05])"),
    ([], "tensor([])"),
    ([[1.5, 2.0], [3.0, -4.0]], "tensor([[ 1.5000,  2.0000],\n        [ 3.0000, -4.0000]])"),
    (
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        "tensor([[[1, 2],\n         [3, 4]],\n\n        [[5, 6],\n         [7, 8]]])",
    ),
    ([[[[1]]]], "tensor([[[[1]]]])"),
]


@pytest.mark.cases(("data", "text"), FLAT, ids=[text for _, text in FLAT])
def test_elements(data, text):
    assert repr(cg.tensor(data)) == text
    assert str(cg.tensor(data)) == text


DTYPES = [
    (lambda: cg.tensor([1.5], dtype=cg.float64), "tensor([1.5000], dtype=cygrad.float64)"),
    (lambda: cg.tensor([0.1, 1.5], dtype=cg.float16), "tensor([0.1000, 1.5000], dtype=cygrad.float16)"),
    (lambda: cg.tensor([0.1, float("inf")], dtype=cg.bfloat16), "tensor([0.1001,    inf], dtype=cygrad.bfloat16)"),
    (lambda: cg.tensor(60000.0, dtype=cg.half), "tensor(60000., dtype=cygrad.float16)"),
    (lambda: cg.tensor([1], dtype=cg.int32), "tensor([1], dtype=cygrad.int32)"),
    (lambda: cg.tensor([1, 200], dtype=cg.uint8), "tensor([  1, 200], dtype=cygrad.uint8)"),
    (lambda: cg.tensor([], dtype=cg.int64), "tensor([], dtype=cygrad.int64)"),
    (lambda: cg.zeros(0, 3), "tensor([], size=(0, 3))"),
    (lambda: cg.zeros(2, 0, dtype=cg.int64), "tensor([], size=(2, 0), dtype=cygrad.int64)"),
    (
        lambda: cg.tensor([1e300, -1e-300], dtype=cg.float64),
        "tensor([ 1.0000e+300, -1.0000e-300], dtype=cygrad.float64)",
    ),
]


@pytest.mark.parametrize(("make", "text"), DTYPES, ids=[text for _, text in DTYPES])
def test_dtype_and_size_where_they_are_not_evident(make, text):
    assert repr(make()) == text


def test_the_default_dtype_is_not_printed():
    try:
        cg.set_default_dtype(cg.float64)
        assert repr(cg.tensor([1.0], dtype=cg.float64)) == "tensor([1.])"
        assert repr(cg.tensor([1.0], dtype=cg.float32)) == "tensor([1.], dtype=cygrad.float32)"
    finally:
        cg.set_default_dtype(cg.float32)


HISTORIES = [
    (lambda x: x, "tensor([1., 2.], requires_grad=True)"),
    (lambda x: x * 2, "tensor([2., 4.], grad_fn=<MulBackward0>)"),
    (lambda x: x.sum(), "tensor(3., grad_fn=<SumBackward0>)"),
    (lambda x: (x * 2).detach(), "tensor([2., 4.])"),
    (lambda x: x.double().detach().requires_grad_(), "tensor([1., 2.], dtype=cygrad.float64, requires_grad=True)"),
    (
        lambda x: (x[0] * cg.ones(8)) * 1.12345678,
        "tensor([1.1235, 1.1235, 1.1235, 1.1235, 1.1235, 1.1235, 1.1235, 1.1235],\n       grad_fn=<MulBackward0>)",
    ),
    (
        lambda x: cg.ones(2, 6, dtype=cg.float64) * x[:1].double() * 1e-6,
        """\
tensor([[1.0000e-06, 1.0000e-06, 1.0000e-06, 1.0000e-06, 1.0000e-06, 1.0000e-06],
        [1.0000e-06, 1.0000e-06, 1.0000e-06, 1.0000e-06, 1.0000e-06, 1.0000e-06]],
       dtype=cygrad.float64, grad_fn=<MulBackward0>)""",
    ),
]


@pytest.mark.parametrize(("function", "text"), HISTORIES, ids=[text for _, text in HISTORIES])
def test_history(function, text):
    assert repr(function(cg.tensor([1.0, 2.0], requires_grad=True))) == text


LONG = [
    (
        lambda: cg.arange(30),
        """\
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])""",
    ),
    (
        lambda: cg.arange(25.0) / 7,
        """\
tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,
        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,
        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286])""",
    ),
    (
        lambda: cg.arange(50).reshape(2, 25) > 3,
        """\
tensor([[False, False, False, False,  True,  True,  True,  True,  True,  True,
          True,  True,  True,  True,  True,  True,  True,  True,  True,  True,
          True,  True,  True,  True,  True],
        [ True,  True,  True,  True,  True,  True,  True,  True,  True,  True,
          True,  True,  True,  True,  True,  True,  True,  True,  True,  True,
          True,  True,  True,  True,  True]])""",
    ),
    (lambda: cg.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        lambda: cg.zeros(7, 200),
        """\
tensor([[0., 0., 0.,  ..., 0., 0., 0.],
        [0., 0., 0.,  ..., 0., 0., 0.],
        [0., 0., 0.,  ..., 0., 0., 0.],
        ...,
        [0., 0., 0.,  ..., 0., 0., 0.],
        [0., 0., 0.,  ..., 0., 0., 0.],
        [0., 0., 0.,  ..., 0., 0., 0.]])""",
    ),
    (
        lambda: cg.arange(1200).reshape(300, 2, 2),
        """\
tensor([[[   0,    1],
         [   2,    3]],

        [[   4,    5],
         [   6,    7]],

        [[   8,    9],
         [  10,   11]],

        ...,

        [[1188, 1189],
         [1190, 1191]],

        [[1192, 1193],
         [1194, 1195]],

        [[1196, 1197],
         [1198, 1199]]])""",
    ),
]


@pytest.mark.parametrize(("make", "text"), LONG, ids=["ints", "floats", "bools", "summary", "rows", "blocks"])
def test_lines_and_summaries(make, text):
    assert repr(make()) == text


def test_a_transposed_tensor_prints_in_index_order():
    assert repr(cg.tensor([[1, 2], [3, 4]]).T) == "tensor([[1, 3],\n        [2, 4]])"


OPTIONS = [
    ({"precision": 2}, lambda: cg.tensor([1.12345]), "tensor([1.12])"),
    ({"precision": 0}, lambda: cg.tensor([1.5, 2.25]), "tensor([2, 2])"),
    ({"sci_mode": True}, lambda: cg.tensor([1.0, 2.5]), "tensor([1.0000e+00, 2.5000e+00])"),
    ({"sci_mode": False}, lambda: cg.tensor([1e-6, 2.5]), "tensor([0.0000, 2.5000])"),
    ({"threshold": 5}, lambda: cg.arange(10), "tensor([0, 1, 2,  ..., 7, 8, 9])"),
    ({"threshold": 5, "edgeitems": 1}, lambda: cg.arange(10), "tensor([0,  ..., 9])"),
    ({"threshold": 5, "edgeitems": 0}, lambda: cg.arange(10), "tensor([...], size=(10,))"),
    ({"linewidth": 20}, lambda: cg.arange(10), "tensor([0, 1, 2, 3,\n        4, 5, 6, 7,\n        8, 9])"),
    ({"profile": "short"}, lambda: cg.tensor([1.12345]), "tensor([1.12])"),
    ({"profile": "short"}, lambda: cg.arange(1001), "tensor([   0,    1,  ...,  999, 1000])"),
    ({"profile": "short", "precision": 3}, lambda: cg.tensor([1.12345]), "tensor([1.123])"),
]


@pytest.mark.parametrize(("options", "make", "text"), OPTIONS, ids=[str(options) for options, _, _ in OPTIONS])
def test_options(options, make, text):
    cg.set_printoptions(**options)
    assert repr(make()) == text


def test_profile_full_prints_every_element():
    cg.set_printoptions(profile="full")
    assert "..." not in repr(cg.arange(1001))


def test_sci_mode_lasts_until_the_next_call_only():
    cg.set_printoptions(sci_mode=True)
    cg.set_printoptions(precision=4)
    assert repr(cg.tensor([1.5])) == "tensor([1.5000])"


BAD_OPTIONS = [{"profile": "tall"}, {"precision": -1}, {"edgeitems": -2}]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_bad_options_are_refused_and_change_nothing(options):
    with pytest.raises(ValueError, match=str(*options.values())):
        cg.set_printoptions(**options)
    assert repr(cg.tensor([1.12345])) == "tensor([1.1235])"


FORMATS = [
    (1.5, "", "1.5"),
    (1.5, ".3f", "1.500"),
    (3, "05d", "00003"),
    (True, "", "True"),
    ([1.0], "", "tensor([1.])"),
]


@pytest.mark.parametrize(("data", "spec", "text"), FORMATS, ids=str)
def test_format(data, spec, text):
    assert format(cg.tensor(data), spec) == text


def test_a_0d_tensor_with_history_is_formatted_as_its_number():
    assert f"{cg.tensor(1.5, requires_grad=True):.2f}" == "1.50"


def test_only_a_0d_tensor_takes_a_format_spec():
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor\.__format__"):
        format(cg.zeros(2), ".2f")


def test_repr_records_nothing_and_changes_no_version():
    x = cg.ones(3, requires_grad=True)
    y = x * 2
    version = y._version
    repr(y)
    assert y._version == version
    assert y.requires_grad


def test_printing_is_loaded_by_the_first_repr():
    program = "import sys, cygrad; x = cygrad.ones(1); a = 'cygrad.printing' in sys.modules; repr(x); print(a)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


# ----- Notebooks -----
def cells(tensor):
    return re.findall(r"<td>(.*?)</td>", tensor._repr_html_())


def test_a_notebook_shows_a_table_with_shape_and_dtype():
    x = cg.tensor([[1.0, 2.5], [3.0, -4.0]], requires_grad=True)
    text = (x * 1)._repr_html_()
    assert "<caption>2 x 2, float32, grad_fn=&lt;MulBackward0&gt;</caption>" in text
    assert cells(x) == ["1.0000", "2.5000", "3.0000", "-4.0000"]


@pytest.mark.parametrize("tensor, caption, shown", [
    (cg.tensor(3), "0 dims, int64", ["3"]),
    (cg.arange(3), "3, int64", ["0", "1", "2"]),
    (cg.zeros(0, 3), "0 x 3, float32", []),
    (cg.arange(8).reshape(2, 2, 2), "2 x 2 x 2, int64, [0, :, :]", ["0", "1", "2", "3"]),
    (cg.tensor([1 + 2j]), "1, complex64", ["1.+2.j"]),
    (cg.arange(30), "30, int64", ["0", "1", "2", "3", "4", "&#8943;", "25", "26", "27", "28", "29"]),
])
def test_a_table_of_other_shapes(tensor, caption, shown):
    assert f"<caption>{caption}</caption>" in tensor._repr_html_() and cells(tensor) == shown


def test_a_notebook_shows_the_text_of_a_batch():
    texts = []
    cg.func.vmap(lambda x: texts.append(x._repr_html_()) or x)(cg.ones(2))
    assert texts == [None]
