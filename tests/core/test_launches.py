"""Kernels are launched with all that they read and write: each runs again on other memory, with the same bits."""
import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import program_checks, set_programs


def rows(*shape):
    return cg.arange(float(np.prod(shape))).reshape(shape) / 7 - 1


CALLS = {
    "map": lambda: (rows(3, 4) * rows(4) + 2).clamp(-1, 3),
    "map of a number": lambda: 1 / (rows(3, 4)[:, ::2] + 5),
    "map with parameters": lambda: cg.nn.functional.leaky_relu(rows(5), 0.25),
    "map into its operand": lambda: rows(3, 4).exp_().mul_(2),
    "map of 16 bits": lambda: rows(7).half() + 1.5,
    "copy": lambda: rows(3, 4).T.contiguous().long(),
    "reduction": lambda: rows(3, 4, 5).sum((0, 2)),
    "scan": lambda: rows(3, 4).cumsum(1),
    "extremum": lambda: rows(3, 4).max(0).indices,
    "product": lambda: rows(2, 3, 4) @ rows(4, 5),
    "matrices": lambda: cg.linalg.solve(cg.eye(3) * 2 + rows(3, 3), rows(3)),
    "elements": lambda: rows(3, 4).gather(1, cg.tensor([[0, 2], [3, 3], [1, 0]])),
    "added elements": lambda: rows(5).index_add(0, cg.tensor([1, 1, 4]), rows(3)),
    "slices": lambda: rows(5, 2).index_select(0, cg.tensor([4, 0, 4])),
    "columns": lambda: cg.nn.functional.conv2d(rows(1, 2, 5, 5), rows(3, 2, 2, 2)),
    "bands": lambda: cg.nn.functional.interpolate(rows(1, 1, 4), size=7, mode="linear"),
    "windows": lambda: cg.nn.functional.max_pool2d(rows(1, 1, 4, 4), 2),
    "distances": lambda: cg.cdist(rows(3, 2), rows(4, 2)),
    "distances of pairs": lambda: cg.pdist(rows(4, 3)),
    "points": lambda: cg.nn.functional.grid_sample(rows(1, 2, 3, 3), rows(1, 2, 2, 2), align_corners=False),
    "triangle": lambda: rows(3, 4).tril(),
    "range": lambda: cg.arange(2, 9, 3),
    "number": lambda: cg.zeros(3).fill_(2.5),
    "joined": lambda: cg.cat([rows(2, 3), rows(1, 3)]),
    "resized": lambda: rows(2).resize_(5)[:2],
}


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_that_runs_again_has_the_same_bits(name):
    """By the check mode: from a copy of its arguments, the first ones overwritten, on copies of its tensors; outputs are full of NaN."""
    expected = CALLS[name]().numpy()
    checks, faults = program_checks()
    before = set_programs("check")
    try:
        result = CALLS[name]().numpy()
    finally:
        set_programs(before)
    assert result.tobytes() == expected.tobytes()
    assert program_checks()[0] > checks and program_checks()[1] == faults


def test_gradients_are_launched_too():
    """Into parts of a whole, where short cuts add them, and through rules."""
    def gradient():
        x = rows(4, 3).requires_grad_()
        parts = x[0], x[1:3], x[:, 1]
        sum((part * part).sum() for part in parts).backward()
        return x.grad.numpy()

    expected, checks, before = gradient(), program_checks(), set_programs("check")
    try:
        assert gradient().tobytes() == expected.tobytes()
    finally:
        set_programs(before)
    assert program_checks()[0] > checks[0] + 10 and program_checks()[1] == checks[1]
