"""The table of reductions: a row holds the start, the step and the finish of a reduction over one or more dims.

Partial results of fixed blocks are combined in a fixed order, so the bits do not depend on the number of threads.
"""

from collections.abc import Callable, Mapping

from .gradients import keep_dims, product_beside_overflow, product_of_others, shared_among, spread, times
from .refusals import refuse
from .tuning import TUNING, Tuning


class Reduction(Tuning):
    """One reduction.

    ``step`` adds element ``x`` to the accumulator ``acc``; ``combine`` (default: the step) adds a partial result;
    ``y`` finishes, knowing the count ``n``. A row with result "truth" reads ``x`` as `x != 0` and gives bool,
    or uint8 of uint8, which had that part before there was bool. ``empty`` False: an empty reduction is an error.
    ``products``: rows of products of real floats are reduced as they are made, too.
    ``wide`` accumulates in the widest type of the kind; with ``block_step`` the lanes of a whole block of 4096 elements are reduced in the
    elements' own type before that, and numbers of 16 bits are converted in registers. ``nan`` decides about results that are NaN:
    (x, y, dim, keepdim) -> y. ``scan`` names the cumulative operator made of the same step; ``numpy`` NumPy's function, and ``ufunc`` the
    ufunc whose `reduce` it is.

    ``gradient`` gives the input's gradient from the values that it names: `g`, `input`, its `shape`, the result `y`, the dims `dim`, the
    `count` of elements reduced. ``tangent``: "linear" where the reduction is; or the term that an element adds to the tangent of the
    result, from (its tangent, input, dim); by default it follows from the gradient.
    ``bad_out`` are torch's words for an `out` that cannot take the result, where they are its own.
    """

    name: str
    doc: str
    step: str
    start: str
    combine: str | None = None
    block_step: str | None = None
    empty: bool = True
    y: str = "acc"
    kinds: str = "bif"
    result: str = "same"
    wide: bool = False
    products: bool = False
    numpy: str | None = None
    ufunc: str | None = None
    nan: Callable | None = None
    scan: str | None = None
    domain: tuple[float, float] = (-3.0, 3.0)
    aliases: tuple[str, ...] = ()
    gradient: Callable | None = None
    tangent: Callable | str = "transposed"
    refuses: Mapping[str, Exception] = {}       # see `refusals`
    loop: str = ""
    bad_out: str = ""


REDUCTIONS: dict[str, Reduction] = {}
OTHER_DTYPE = "Expected the dtype for input and out to match, but got {input} for input's dtype and {out} for out's dtype"


def reduction(name: str, **fields) -> None:
    """Add a row."""
    unknown = set(fields) - set(Reduction.__annotations__)
    if unknown:
        raise TypeError(f"reduction({name!r}): no such fields: {', '.join(unknown)}")
    REDUCTIONS[name] = Reduction(name=name, **fields, **TUNING.get(name, {}))
    refuse(name, REDUCTIONS[name].refuses, REDUCTIONS[name].loop)


reduction("sum", start="0", step="acc + x", block_step="acc + x", wide=True, products=True, result="widest", numpy="sum", ufunc="add",
          scan="cumsum", tangent="linear", kinds="biufc",
          gradient=spread,
          doc="Sum of the elements.")
reduction("nansum", start="0", step="acc + (0 if isnan(x) else x)", combine="acc + x", kinds="biuf", wide=True, result="widest",
          numpy="nansum", gradient=lambda g, input, dim: keep_dims(g, input.shape, dim).where(input == input, 0.0),
          refuses={"c": RuntimeError("nansum on CPU does not support complex inputs")},
          doc="Sum of the elements that are not NaN.")
reduction("mean", start="0", step="acc + x", block_step="acc + x", y="acc / n", wide=True, kinds="fc", numpy="mean", tangent="linear",
          gradient=lambda g, shape, dim, count: spread(g / count, shape, dim),
          refuses={"biu": RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
                                       "dtype. Got: {dtype}; convert it first, or give dtype=")},
          doc="Arithmetic mean of the elements.")
reduction("prod", start="1", step="acc * x", kinds="biufc", wide=True, result="widest", numpy="prod", ufunc="multiply",
          nan=product_beside_overflow,
          gradient=lambda g, input, dim: times(keep_dims(g, input.shape, dim), product_of_others(input, dim)).to(input.dtype),
          tangent=lambda t, input, dim: times(t, product_of_others(input, dim)).to(input.dtype),
          doc="Product of the elements.")
reduction("amax", start="lowest", step="maximum(acc, x)", empty=False, numpy="amax", ufunc="maximum", gradient=shared_among,
          loop="max_values_cpu", bad_out=OTHER_DTYPE,
          doc="Largest element; NaN if there is one.")
reduction("amin", start="highest", step="minimum(acc, x)", empty=False, numpy="amin", ufunc="minimum", gradient=shared_among,
          loop="min_values_cpu", bad_out=OTHER_DTYPE,
          doc="Smallest element; NaN if there is one.")
reduction("any", start="0", step="acc | x", kinds="biufc", result="truth", numpy="any", ufunc="logical_or",
          doc="Whether one element is non-zero.")
reduction("all", start="1", step="acc & x", kinds="biufc", result="truth", numpy="all", ufunc="logical_and",
          doc="Whether every element is non-zero.")
