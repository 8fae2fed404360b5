"""Programs at random: eager, deferred and checked, in one thread and in several, all observations have the same bits.

A program is a list of closures over tensors of several shapes and dtypes: operators that broadcast, compare, mask and convert, views,
changes in place, reductions, joins, backwards, and results that are dropped, looked at or handed to NumPy.
"""

import contextlib
import gc
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import defer_from, live_bytes, pending_results, program_checks, set_programs
from cygrad.config import set_contraction
from samples import array_of

ROWS, COLUMNS = 37, 61
SHAPES = [(ROWS, COLUMNS), (ROWS, COLUMNS), (COLUMNS,), (ROWS, 1), (1, COLUMNS), (), (3, ROWS, COLUMNS), (ROWS * COLUMNS,)]
DTYPES = [cg.float64, cg.float64, cg.float32, cg.int64, cg.bool, cg.float16, cg.complex128]
COUNT = 200


class Program:
    """The values of a program, and all that it has observed."""

    def __init__(self, seed):
        self.stream, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.values, self.log, self.arrays = [self.leaf() for _ in range(6)], [], []

    def leaf(self):
        shape, dtype = self.stream.choice(SHAPES), self.stream.choice(DTYPES)
        value = cg.tensor(self.numbers.uniform(0.3, 0.9, shape)).to(dtype)
        return value.requires_grad_() if dtype.is_differentiable and self.stream.random() < 0.7 else value

    def any(self):
        return self.stream.choice(self.values)

    def real(self):
        return self.stream.choice([value for value in self.values if value.is_floating_point()] or [cg.ones(COLUMNS)])

    def look(self, value):
        self.log.append((tuple(value.shape), value.dtype, array_of(value).tobytes()))

    def join(self, value, dim):
        """Join pending values, of which some live on, or have died or changed when the result is computed."""
        pieces = [value * 2, value.tanh() + 0.5, value - 0.25, value / 3]
        joined = cg.cat([*pieces, pieces[0]], dim)
        self.values.extend(pieces[1:3])
        if self.stream.random() < 0.5:
            pieces[3].detach().mul_(2)
        return joined

    def fill(self, value):
        """Write pending values into parts of one tensor."""
        whole = cg.zeros(2 * ROWS, 2 * COLUMNS, dtype=value.dtype)
        if value.dim() == 2:
            rows, columns = value.shape
            whole[3:3 + rows, 5:5 + columns] = value * 2
            whole[ROWS - 2:ROWS - 2 + rows, COLUMNS:COLUMNS + columns] = value + 0.5
            whole.T[:columns, :rows] = (value - 1).T
        return whole

    def backward(self):
        value = self.real()
        inputs = [leaf for leaf in self.values if leaf.is_leaf and leaf.requires_grad]
        if value.requires_grad and inputs:
            gradients = cg.autograd.grad(value.sum(), inputs, allow_unused=True, retain_graph=True,
                                         create_graph=self.stream.random() < 0.2)
            self.values.extend(gradient for gradient in gradients[:2] if gradient is not None)

    def drop(self):
        if len(self.values) > 4:
            del self.values[self.stream.randrange(len(self.values))]

    def give_away(self):
        self.arrays.append(self.any().detach().resolve_conj().numpy())

    def write_outside(self):
        if self.arrays:
            array = self.stream.choice(self.arrays)
            array[...] = array * 0.5

    def step(self):
        a, b, c, real = self.any(), self.any(), self.any(), self.real()
        pick, number = self.stream.choice, self.stream.choice([0.5, 2, -1.25, 3])
        new = pick([
            lambda: a + b, lambda: a * b, lambda: a - number, lambda: number * a, lambda: a / (b * b + 1.5), lambda: number - a,
            lambda: real.exp(), lambda: real.tanh() * real, lambda: (real * real + 0.1).sqrt() + (real - 0.2).abs(),
            lambda: cg.sigmoid(real) - real, lambda: cg.leaky_relu(real - 0.5, 0.1), lambda: real.clamp(0.4, 0.7),
            lambda: a > number, lambda: real < self.real(), lambda: (a == b) & (a > 0.4),
            lambda: cg.where(real > 0.5, real, number), lambda: cg.where(a > 0.5, real, self.real()),
            lambda: real.masked_fill(real > 0.6, 0.25), lambda: cg.maximum(real, self.real()), lambda: real.relu() + (real > 0.5),
            lambda: a.to(pick(DTYPES)), lambda: real.double() * real, lambda: real.float(), lambda: real.half() + 1,
            lambda: a[..., 1:] * a[..., :-1], lambda: a[..., ::2] + number, lambda: a.flip(-1) if a.dim() else a,
            lambda: real[..., 2:] - 2 * real[..., 1:-1] + real[..., :-2], lambda: a.mT if a.dim() > 1 else a, lambda: a.reshape(-1),
            lambda: a.expand(2, *a.shape), lambda: a.detach(), lambda: cg.cat([real.reshape(-1), real.reshape(-1) * 2]),
            lambda: cg.stack([real, real.sin()]), lambda: a.clone(), lambda: a.data,
            lambda: cg.cat([real * number, real[..., :3], real + real, a], -1), lambda: cg.stack([real * real, real.exp(), real - 1], -1),
            lambda: self.join(real, -1), lambda: self.join(real, 0), lambda: cg.nn.functional.pad(real * number, (1, 2)),
            lambda: self.fill(real),
            lambda: a.sum(), lambda: a.sum(-1) if a.dim() else a, lambda: a.sum(0, keepdim=True) if a.dim() else a,
            lambda: (real * self.real()).sum(-1), lambda: (real - real.mean()).square().mean(), lambda: real.amax(-1, True),
            lambda: real.softmax(-1), lambda: real.logsumexp(-1), lambda: real.var(), lambda: real.norm(dim=-1),
            lambda: (real - real.amax(-1, keepdim=True)).exp() / (real - real.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True),
        ] if self.stream.random() < 0.85 else [
            lambda: self.look(a), lambda: self.drop(), lambda: self.drop(), lambda: self.values.append(self.leaf()),
            lambda: self.backward(), lambda: self.backward(), lambda: self.give_away(), lambda: self.write_outside(),
            lambda: a.detach().mul_(number), lambda: a.detach().add_(b.detach()), lambda: real.clone().tanh_(),
            lambda: a.data.copy_(b.detach()), lambda: a.detach()[..., :5].zero_(), lambda: (a * 1).add_(c), lambda: a.is_nonzero(),
        ])()
        if isinstance(new, cg.Tensor) and new.numel() < 40_000:
            self.values.append(new)

    def run(self, steps=30):
        for _ in range(steps):
            try:
                self.step()
            except (RuntimeError, IndexError, ValueError, TypeError) as error:
                self.log.append((type(error), str(error)))
            if len(self.values) > 12:
                self.drop()
        for value in self.values:
            self.look(value)
        return self.log


@contextlib.contextmanager
def programs(setting):
    """Run programs by a setting, arrays of 32 elements being large."""
    before, contracts = set_programs(setting), set_contraction(False)
    defer_from(32)
    yield
    set_programs(before)
    set_contraction(contracts)
    gc.collect()


def observed(seed):
    with np.errstate(all="ignore"):
        return Program(seed).run()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.cases("first", range(0, COUNT, 20))
def test_deferred_and_checked_programs_have_the_bits_of_eager_ones(first):
    seeds, (checks, faults) = range(first, first + 20), program_checks()
    with programs("eager"):
        expected = [observed(seed) for seed in seeds]
    for setting in ("", "check"):
        with programs(setting):
            for seed, log in zip(seeds, expected, strict=True):
                assert observed(seed) == log, seed
    assert pending_results() == 0
    assert program_checks()[0] > checks + 40 and program_checks()[1] == faults


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_threads_have_the_bits_of_one():
    with programs("eager"):
        expected = [observed(seed) for seed in range(24)]
    with programs(""), ThreadPoolExecutor(8) as pool:
        assert list(pool.map(observed, range(24))) == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_programs_leave_no_memory():
    observed(3)
    gc.collect()
    start = live_bytes()
    with programs(""):
        for seed in range(3):
            observed(seed)
    assert live_bytes() == start
