"""The shape of a tensor: parts and sums of a Size are Sizes, as in torch; other objects are refused."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg

SIZE = cg.ones(2, 3, 4).shape
# (call that gives a Size, its items)
SIZES = [
    (lambda: SIZE[:-1], (2, 3)),
    (lambda: SIZE[::-1], (4, 3, 2)),
    (lambda: SIZE[5:], ()),
    (lambda: SIZE.__getitem__(slice(1)), (2,)),
    (lambda: SIZE + (1,), (2, 3, 4, 1)),
    (lambda: (1,) + SIZE, (1, 2, 3, 4)),
    (lambda: SIZE + SIZE[:1], (2, 3, 4, 2)),
    (lambda: SIZE + (True, np.int64(5)), (2, 3, 4, 1, 5)),
    (lambda: sum([SIZE, SIZE], ()), (2, 3, 4, 2, 3, 4)),
    (lambda: SIZE[:2] * 2, (2, 3, 2, 3)),
    (lambda: np.int64(2) * SIZE[:1], (2, 2)),
    (lambda: cg.Size(np.array([1, 2])), (1, 2)),
    (lambda: cg.Size(cg.tensor([1, 2])), (1, 2)),
    (lambda: cg.Size(size for size in range(2)), (0, 1)),
    (lambda: cg.Size(), ()),
    (lambda: copy.deepcopy(SIZE), (2, 3, 4)),
    (lambda: cg.zeros(4).size(), (4,)),
    *((lambda protocol=protocol: pickle.loads(pickle.dumps(SIZE, protocol)), (2, 3, 4)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
]


@pytest.mark.cases("make, items", SIZES)
def test_parts_and_sums_are_sizes(make, items):
    size = make()
    assert type(size) is cg.Size and size == items and hash(size) == hash(items)
    assert all(type(item) is int for item in size)
    assert repr(size) == f"cygrad.Size({list(items)})" and size.numel() == np.prod(items, dtype=int)


def test_items_are_ints():
    assert type(SIZE[0]) is type(SIZE[np.int64(-1)]) is int
    assert (SIZE[0], SIZE[cg.tensor(1)], SIZE.index(4), SIZE.count(3), 4 in SIZE, SIZE < (3,)) == (2, 3, 2, 1, True, True)


def test_arrays_meet_a_size_as_they_meet_a_tuple():
    array = np.arange(3)
    assert (SIZE + array).tolist() == (array + SIZE).tolist() == [2, 4, 6]
    assert (SIZE * array).tolist() == (array * SIZE).tolist() == [0, 3, 8]


REFUSED = [
    (lambda: SIZE + [1], "can only concatenate tuple \\(not list\\) to cygrad.Size"),
    (lambda: [1] + SIZE, "can only concatenate list"),
    (lambda: SIZE + (1.5,), "torch.Size\\(\\) takes an iterable of 'int' \\(item 3 is 'float'\\)"),
    (lambda: ("a",) + SIZE, "torch.Size\\(\\) takes an iterable of 'int' \\(item 0 is 'str'\\)"),
    (lambda: cg.Size([2.0]), "torch.Size\\(\\) takes an iterable of 'int' \\(item 0 is 'float'\\)"),
    (lambda: cg.Size(3), "'int' object is not iterable"),
    (lambda: SIZE * 1.5, "can't multiply sequence by non-int of type 'float'"),
    (lambda: SIZE["a"], "tuple indices must be integers or slices, not str"),
    (lambda: type("Shape", (cg.Size,), {}), "type 'torch.Size' is not an acceptable base type"),
]


@pytest.mark.cases("call, message", REFUSED)
def test_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()
