"""Tensors as Python objects: copy, deepcopy, pickle, weak references, subclasses, and Python's other protocols."""

import copy
import io
import math
import operator
import pickle
import threading
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad import copying

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


class Field(cg.Tensor):
    """A subclass with attributes."""


def roundtrip(obj, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(obj, protocol))


WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy} | {
    f"pickle {protocol}": lambda obj, protocol=protocol: roundtrip(obj, protocol) for protocol in PROTOCOLS}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
LAYOUTS = [lambda t: t, lambda t: t.T, lambda t: t[1:], lambda t: t[:, 1::2], lambda t: t[0, 0], lambda t: t[:0],
           lambda t: t[:, :1].expand(3, 5), lambda t: t[None, :, None], lambda t: t.reshape((1,) * 9 + (3, 4)).permute(9, 10, *range(9))]


# ----- Every kind of copy -----
@ways
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
def test_copies_are_equal(way, layout, dtype):
    t = layout(cg.arange(12).reshape(3, 4).to(getattr(cg, dtype)))
    copied = way(t)
    assert type(copied) is cg.Tensor and copied is not t
    assert (copied.dtype, copied.shape, copied.tolist()) == (t.dtype, t.shape, t.tolist())
    assert copied.is_leaf and not copied.requires_grad and not copied._is_view()
    assert (copied.data_ptr() == t.data_ptr()) is (way is copy.copy or t.numel() == 0)
    copied.sum()


@ways
def test_copies_of_a_leaf_are_leaves(x, way):
    assert way(x).requires_grad and way(x).is_leaf
    (way(x) * 2).sum().backward()
    assert x.grad is None


@ways
def test_a_history_is_never_lost(x, way):
    with pytest.raises(RuntimeError, match=r"Only Tensors created explicitly by the user \(graph leaves\) support .*MulBackward0"):
        way(x * 2)
    with cg.no_grad():
        assert way(x * 2).tolist() == [2, 4, 6]


OTHERS = [cg.float32, cg.bool, cg.Size([]), cg.Size([2, 3]), cg.device("cpu"), cg.device("cuda", 1)]


@ways
@pytest.mark.parametrize("obj", OTHERS, ids=repr)
def test_other_objects_are_copied(way, obj):
    assert way(obj) == obj and type(way(obj)) is type(obj)
    assert way([obj, {"key": obj}]) == [obj, {"key": obj}]
    if isinstance(obj, type(cg.float32)):
        assert way(obj) is obj


@ways
def test_a_copied_generator_draws_the_same(way):
    generator = cg.Generator().manual_seed(5)
    cg.rand(3, generator=generator)
    copied = way(generator)
    assert copied.initial_seed() == 5
    assert cg.equal(cg.rand(3, generator=copied), cg.rand(3, generator=generator))


# ----- copy and deepcopy -----
def test_a_shallow_copy_shares_memory_and_version(x):
    t = cg.ones(3)
    product = (x * t).sum()
    copy.copy(t).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_a_deep_copy_keeps_shared_memory_shared(x):
    base = cg.arange(6.0)
    row, data, detached, again, other, leaf, alias = copy.deepcopy([base[2:4], base.data, base.detach(), base, cg.ones(2), x, x.detach()])
    assert data.data_ptr() == detached.data_ptr() == again.data_ptr() == row.data_ptr() - 8
    assert alias.data_ptr() == leaf.data_ptr() != x.data_ptr()
    assert row._base is None
    row.fill_(9)
    assert again.tolist() == [0, 1, 9, 9, 4, 5]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    assert (row._version, again._version, data._version, other._version) == (1, 1, 0, 0)    # as before: `.data` counts for itself
    assert x._version == leaf._version == alias._version == 0


def test_a_deep_copy_of_an_array_s_memory():
    array = np.arange(20.0).reshape(4, 5)
    a, b = copy.deepcopy([cg.from_numpy(array[1:, ::2]), cg.from_numpy(array.T)])
    array[...] = 0
    assert a.tolist() == [[5, 7, 9], [10, 12, 14], [15, 17, 19]]
    assert b.stride() == (1, 5)
    array.flags.writeable = False
    assert copy.deepcopy(cg.from_numpy(array)).add_(1).sum().item() == 20


def test_a_deep_copy_has_its_gradient(x):
    (x * x).sum().backward()
    both, gradient = copy.deepcopy([x, x.grad])
    assert both.grad is gradient
    assert both.grad.tolist() == [2, 4, 6]
    x.grad.zero_()
    assert both.grad.tolist() == [2, 4, 6]
    assert copy.copy(x).grad is None and roundtrip(x).grad is None      # as in torch


def test_a_deep_copy_is_made_once(x):
    t = cg.ones(2)
    first, (second,), values = copy.deepcopy((x, [x], {"t": t, "u": t}))
    assert first is second
    assert values["t"] is values["u"] is not t
    memo = {}
    assert x.__deepcopy__(memo) is x.__deepcopy__(memo)


def test_a_deep_copy_of_temporaries():
    """Memory freed during the copy is not taken for other memory at the same address."""
    class Maker:
        def __init__(self, value):
            self.value = value

        def __reduce__(self):
            return Maker.result_of, (cg.full((3,), self.value),)

        @staticmethod
        def result_of(tensor):
            return tensor.tolist()[0]

    assert copy.deepcopy([Maker(float(k)) for k in range(50)]) == list(range(50))


# ----- pickle -----
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_view_pickles_its_own_bytes(protocol):
    big = cg.zeros(1000, 100)
    for part, limit in ((big[3, :2], 400), (big[:, 0], 4400), (big[:1, :1].expand(1000, 100), 400), (big.T, 400400)):
        assert len(pickle.dumps(part, protocol)) < limit
        assert roundtrip(part, protocol).shape == part.shape
    assert roundtrip(big.T).stride() == (1, 100)
    assert roundtrip(big[:1, :1].expand(1000, 100)).stride() == (0, 0)


def test_out_of_band_buffers():
    t, u = cg.arange(1000.0), cg.arange(12.0).reshape(3, 4).T
    buffers = []
    data = pickle.dumps([t, u, t[::2]], 5, buffer_callback=buffers.append)
    assert len(data) < 600
    assert np.frombuffer(buffers[0]).ctypes.data == t.data_ptr()        # not copied
    assert np.frombuffer(buffers[1]).ctypes.data == u.data_ptr()
    back = pickle.loads(data, buffers=buffers)
    assert [part.tolist() for part in back] == [t.tolist(), u.tolist(), t[::2].tolist()]
    assert back[0].data_ptr() == t.data_ptr()
    back[0].add_(1)
    assert t[0].item() == 1


def test_out_of_band_buffers_that_are_read_only_or_askew():
    buffers = []
    data = pickle.dumps(cg.arange(4.0), 5, buffer_callback=buffers.append)
    memory = np.frombuffer(b"x" + bytes(buffers[0].raw()), np.uint8)
    askew = pickle.loads(data, buffers=[memory[1:]])
    assert askew.add_(1).tolist() == [1, 2, 3, 4]
    frozen = np.arange(4, dtype=np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(data, buffers=[frozen]).zero_()
    memory = bytearray(16)
    shared = pickle.loads(data, buffers=[memory])
    shared.fill_(1)
    assert memory == np.ones(4, np.float32).tobytes()
    with pytest.raises(BufferError):
        memory.clear()
    for length in (0, 15, 17):
        with pytest.raises(ValueError, match=f"needs 16 bytes, got {length}"):
            pickle.loads(data, buffers=[bytearray(length)])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unpickled_tensors_can_be_written(protocol):
    assert roundtrip(cg.zeros(3), protocol).add_(1).tolist() == [1, 1, 1]
    assert roundtrip(cg.zeros(0, 3), protocol).shape == (0, 3)


class Listed(pickle.Unpickler):
    """Record the names in a pickle."""

    named: set

    def find_class(self, module, name):
        self.named.add(f"{module}.{name}")
        return super().find_class(module, name)


def test_the_names_in_a_pickle():
    unpickler = Listed(io.BytesIO(pickle.dumps([cg.ones(2, requires_grad=True), cg.Size([1])])))
    unpickler.named = set()
    unpickler.load()
    assert unpickler.named == {"cygrad.copying.rebuild", "cygrad.tensor.Tensor", "cygrad._core.storage.dtype_named",
                               "cygrad._core.tensor.Size"}


SOUND = (cg.Tensor, bytes(24), cg.float32, (2, 3), (3, 1), False)
WRONG = [
    (0, int, TypeError), (0, "Tensor", TypeError), (0, None, TypeError),
    (1, bytes(23), ValueError), (1, bytes(25), ValueError), (1, b"", ValueError), (1, None, TypeError), (1, "text", TypeError),
    (1, [0] * 24, TypeError), (1, np.zeros((2, 12), np.uint8).T, TypeError),
    (2, "float32", ValueError), (2, cg.float64, ValueError), (2, None, ValueError),
    (3, (2, 4), ValueError), (3, (6,), ValueError), (3, (-2, -3), ValueError), (3, (2**40, 2**40), ValueError), (3, (2.0, 3), ValueError),
    (3, [2, 3], ValueError), (3, 6, ValueError), (3, (1,) * 65, ValueError),
    (4, (4, 1), ValueError), (4, (3, -1), ValueError), (4, (2**63, 1), ValueError), (4, (3,), ValueError), (4, None, ValueError),
]


@pytest.mark.cases(("place", "value", "error"), WRONG, ids=str)
def test_forged_pickles_are_refused(place, value, error):
    assert copying.rebuild(*SOUND).shape == (2, 3)
    forged = [*SOUND[:place], value, *SOUND[place + 1:]]
    with pytest.raises(error):
        copying.rebuild(*forged)


def test_other_forged_pickles():
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        copying.rebuild(cg.Tensor, bytes(4), cg.int32, (1,), (1,), True)
    with pytest.raises(ValueError, match="there is no dtype 'float31'"):
        cg.float32.__reduce__()[0]("float31")
    with pytest.raises(RuntimeError, match="generator state of size"):
        cg.Generator().__setstate__(cg.zeros(3, dtype=cg.uint8))


# ----- Identity, weak references -----
def test_hash_is_by_identity(x):
    same = x.detach()
    assert hash(x) == hash(x) and len({x, same, x}) == 2
    assert {x: 1, same: 2}[x] == 1
    assert x in [same, x][1:]
    assert (x == None) is False  # noqa: E711 - no tensor


def test_weak_references():
    t = cg.ones(3)
    died = []
    reference = weakref.ref(t, died.append)
    weakref.finalize(t, died.append, "final")
    assert reference() is t and weakref.ref(t) is weakref.ref(t)
    del t
    assert reference() is None and len(died) == 2


def test_weak_collections():
    values = weakref.WeakValueDictionary()
    t = values["t"] = cg.ones(3)
    keys = weakref.WeakKeyDictionary()
    key = cg.zeros(1)
    keys[key] = "kept"
    assert keys[key] == "kept" and key in keys
    del t, key
    assert len(values) == len(keys) == 0


def test_weak_keys_of_several_elements_compare_elementwise():
    """As in torch: Python compares two references by `==` of their objects."""
    keys, t = weakref.WeakKeyDictionary(), cg.ones(2)
    keys[t] = 1
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        keys[t]


@pytest.mark.parametrize("kind", [cg.Tensor, Field])
def test_objects_die_on_any_thread(kind):
    tensors = [kind(cg.ones(100)) for _ in range(50)]
    threads = [threading.Thread(target=tensors.clear)]
    for thread in threads:
        thread.start()
        thread.join()
    assert tensors == []


# ----- Comparison, truth, membership -----
def test_equality_is_elementwise(x):
    assert (x == x.detach()).tolist() == [True] * 3
    assert (x != 2).tolist() == [True, False, True]
    for other in (None, "text", object(), [1.0, 2.0, 3.0], {}):
        assert (x == other) is False and (x != other) is True
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError, match="not supported between instances of 'Tensor' and 'str'"):
            compare(x, "text")


@pytest.mark.parametrize(("values", "truth"), [([3.0], True), ([0.0], False), ([math.nan], True), ([[True]], True), (0, False)], ids=str)
def test_truth(values, truth):
    assert bool(cg.tensor(values)) is truth


@pytest.mark.parametrize(("shape", "message"), [((2,), "Boolean value of Tensor with more than one value is ambiguous"),
                                                ((0,), "Boolean value of Tensor with no values is ambiguous")])
def test_no_truth(shape, message):
    with pytest.raises(RuntimeError, match=message):
        bool(cg.zeros(shape))


MEMBERS = [(1.0, True), (2, True), (True, True), (5, False), (math.nan, False), (1j, False), (1 + 0j, True), (np.float64(3), True),
           (np.int8(4), False), (cg.tensor(2.0), True), (cg.tensor([9.0, 9.0, 3.0]), True)]


@pytest.mark.parametrize(("element", "expected"), MEMBERS, ids=str)
def test_in(x, element, expected):
    assert (element in x) is expected


@pytest.mark.parametrize("element", ["text", None, [1.0], np.ones(1)], ids=str)
def test_in_refuses(x, element):
    with pytest.raises(RuntimeError, match="Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class"):
        element in x  # noqa: B015 - it raises


# ----- Numbers -----
CONVERTED = [(int, 3.7, 3), (int, [[3]], 3), (int, True, 1), (float, [2], 2.0), (float, True, 1.0), (complex, [1.5], 1.5 + 0j),
             (operator.index, [3], 3), (operator.index, True, 1), (math.floor, 2.5, 2), (math.sqrt, 4.0, 2.0)]


@pytest.mark.parametrize(("convert", "value", "number"), CONVERTED, ids=str)
def test_numbers(convert, value, number):
    assert convert(cg.tensor(value)) == number
    assert type(convert(cg.tensor(value))) is type(number)


def test_numbers_of_tensors_that_require_grad(x):
    assert (float(x[0]), int(x[1]), complex(x[2])) == (1, 2, 3)
    assert [10, 20, 30][cg.tensor(1)] == 20
    assert list(range(cg.tensor(2))) == [0, 1]


ONLY_ONE = "only one element tensors can be converted to Python scalars"
INDEX = "only integer tensors of a single element can be converted to an index"
UNCONVERTED = [(int, [1.0, 2.0], ValueError, ONLY_ONE), (float, [], ValueError, ONLY_ONE), (complex, [1, 2], ValueError, ONLY_ONE),
               (int, math.nan, ValueError, "cannot convert float NaN to integer"),
               (int, math.inf, OverflowError, "cannot convert float infinity to integer"),
               (operator.index, 1.0, TypeError, INDEX), (operator.index, [1, 2], TypeError, INDEX), (operator.index, [], TypeError, INDEX),
               (cg.Tensor.item, [1.0, 2.0], RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
               (round, 1.5, TypeError, "__round__"), (math.trunc, 1.5, TypeError, "__trunc__")]


@pytest.mark.parametrize(("convert", "value", "error", "message"), UNCONVERTED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_no_numbers(convert, value, error, message):
    with pytest.raises(error, match=message):
        convert(cg.tensor(value))


# ----- Text -----
TEXTS = [(1.5, ".3f", "1.500"), (1.5, "", "1.5"), (5, "d", "5"), (5, ">4", "   5"), (True, "", "True"), ([1.5], "", "tensor([1.5000])")]


@pytest.mark.parametrize(("value", "spec", "text"), TEXTS, ids=str)
def test_format(value, spec, text):
    assert format(cg.tensor(value), spec) == text


def test_format_of_more(x):
    assert f"{x[0]:.1f} {x[0]} {x.detach()}" == "1.0 1.0 tensor([1., 2., 3.])"
    assert "%d %.1f %s" % (x[0], cg.tensor([2.5]), x[0].detach()) == "1 2.5 tensor(1.)"  # noqa: UP031 - the operator itself is tested
    with pytest.raises(TypeError, match="unsupported format string passed to Tensor.__format__"):
        format(x, ".2f")
    with pytest.raises(ValueError, match="Unknown format code 'd'"):
        format(x[0], "d")


# ----- Sequences -----
def test_iteration(x):
    assert [part.item() for part in x] == [1, 2, 3] and all(part.requires_grad for part in x)
    assert list(cg.zeros(0, 2)) == []
    assert [row.tolist() for row in reversed(cg.arange(4).reshape(2, 2))] == [[2, 3], [0, 1]]
    reversed(x).backward(cg.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [3, 2, 1]
    scalar = cg.tensor(1.0)
    assert reversed(scalar) is scalar
    first, *_ = cg.ones(3)
    assert first.item() == 1


@pytest.mark.parametrize(("call", "message"), [(iter, "iteration over a 0-d tensor"), (len, "len.. of a 0-d tensor"), (list, "0-d tensor")])
def test_a_scalar_is_no_sequence(call, message):
    with pytest.raises(TypeError, match=message):
        call(cg.tensor(1.0))


def test_elements_cannot_be_deleted(x):
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]


def test_names(x):
    assert {"grad", "add_", "shape", "__add__", "as_subclass"} <= set(dir(x))
    field = Field([1.0])
    field.unit = "m"
    assert "unit" in dir(field)
    assert cg.Tensor.__array_priority__ == 1000
    with pytest.raises(AttributeError):
        x.anything = 1                  # plain tensors have no attributes of their own: a subclass has
