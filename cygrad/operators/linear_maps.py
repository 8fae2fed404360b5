"""Linear and bilinear maps with learnt weights, losses of their results, and attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cygrad.operators._language.arguments import checked_operand, delivered
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import in_loops, rounded_once
from cygrad.operators.class_losses import nn_functional_cross_entropy
from cygrad.operators.dropping import nn_functional_dropout
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator
def nn_functional_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, of the last dim of the input: `weight` is (out, in) and `bias` (out), or (in) with a 0-d `bias`.

    >>> import cygrad
    >>> cygrad.nn.functional.linear(cygrad.tensor([1., 2.]), cygrad.tensor([[1., 1.], [0., 3.]]), cygrad.tensor([1., 0.]))
    tensor([4., 6.])
    """
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D: the weight of a linear map")
    if not input.ndim or not weight.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D")
    if bias is None:
        return delivered(input @ (weight.mT if weight.ndim == 2 else weight), out)
    outside = (*input.shape[:-1], *weight.shape[:-1])
    if bias.ndim > len(outside) or any(n not in (1, m) for n, m in zip(bias.shape[::-1], outside[::-1], strict=False)):
        raise RuntimeError(f"The bias of a linear map must broadcast to the result: it has {list(bias.shape)}, the result "
                           f"{list(outside)}")
    return delivered(_affine(input, weight, bias), out)


@rounded_once
def _affine(input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return input @ (weight.mT if weight.ndim == 2 else weight) + bias


@operator(method=False, aliases=("nn_functional_bilinear",))
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Sum of input1[i] weight[k, i, j] input2[j] over i and j, plus bias[k], of the last dims; other dims of both inputs are the same.

    >>> import cygrad
    >>> x = cygrad.tensor([1., 2.])
    >>> cygrad.bilinear(x, x, cygrad.ones(1, 2, 2))
    tensor([9.])
    """
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"{bilinear.__name__}(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    if not input1.ndim or weight.ndim != 3:
        raise RuntimeError(f"{bilinear.__name__}(): expected inputs with a dim and a weight of 3 dims: got {input1.ndim} and "
                           f"{weight.ndim} dims")
    for dim, (first, second) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if first != second:
            raise RuntimeError(f"{bilinear.__name__}(): input batch dimensions do not match at dim {dim}: got {first} and {second}")
    for name, x, size in (("input1", input1, weight.shape[1]), ("input2", input2, weight.shape[2])):
        if x.shape[-1] != size:
            raise RuntimeError(f"{bilinear.__name__}(): {name} size does not match weight size: got {x.shape[-1]} but expected {size}")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise RuntimeError(f"{bilinear.__name__}(): bias size does not match weight size: got {bias.numel()} but expected "
                           f"{weight.shape[0]}")
    return _bilinear(input1, input2, weight, bias)


@rounded_once
def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    count, size1, size2 = weight.shape
    outside = tuple(input1.shape[:-1])
    maps = input1 @ weight.permute(1, 0, 2).reshape(size1, count * size2)
    result = (maps.reshape(*outside, count, size2) @ input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


@operator
def nn_functional_linear_cross_entropy(
        input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
        reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """`cross_entropy` of the scores that `linear` gives: `input` is (in) or (samples, in), `linear_weight` (classes, in).

    Scores of several places of a sample have the weight (classes, d1, ..., in). Other arguments are as in both functions. `options`
    are torch's, for chunks of scores; they change nothing: all scores are computed at once.

    >>> import cygrad
    >>> x = cygrad.tensor([[1., 0.]])
    >>> cygrad.nn.functional.linear_cross_entropy(x, cygrad.zeros(2, 2), cygrad.tensor([1]))
    tensor(0.6931)
    """
    if options is not None and not hasattr(options, "batch_chunk_size"):
        raise TypeError(f"options must be an object with torch's fields, such as batch_chunk_size, not {type(options).__name__}")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    size = linear_weight.shape[-1]
    if input.shape[-1] != size:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), got "
                           f"{input.shape[-1]} and {size}, respectively")
    scores = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != scores:
        raise RuntimeError(f"expected linear_bias shape {scores}, got {tuple(linear_bias.shape)}")
    if len(scores) > 1 and input.ndim == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
                           f"(N, {size}), got unbatched input with shape {tuple(input.shape)}")
    if ignore_index is not None and tuple(target.shape) == (*input.shape[:-1], *scores):
        raise RuntimeError(f"ignore_index cannot be specified when target contains probabilities. It is {ignore_index}")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = nn_functional_linear(input, linear_weight.reshape(math.prod(scores), size), bias).reshape(*input.shape[:-1], *scores)
    ignored = -100 if ignore_index is None else ignore_index
    return nn_functional_cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)


# ----- Attention -----
def _check_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    tensors = {"query": query, "key": key, "value": value}
    if min(x.ndim for x in tensors.values()) < 2:
        dims = " ".join(f"{name}.dim: {x.ndim}" for name, x in tensors.items())
        raise RuntimeError(f"Expected query, key, and value to all be  at least 2 dimensional, but got {dims} instead.")
    if not query.dtype == key.dtype == value.dtype:
        dtypes = " ".join(f"{name}.dtype: {x.dtype}" for name, x in tensors.items())
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got {dtypes} instead.")
    checked_operand(nn_functional_scaled_dot_product_attention, query)
    if attn_mask is None:
        return
    if is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask.dtype.kind != "b" and attn_mask.dtype not in (query.dtype, query.dtype.loops):
        raise RuntimeError(f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                           f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead.")


def _attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, scale: float) -> Tensor:
    scores = (query * scale) @ key.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype.kind == "b" else scores + mask
    if mask is None:
        weights = scores.softmax(-1)
    else:       # a row without any key has the weights 0, and a finite gradient
        alone = (scores == -math.inf).all(-1, keepdim=True)
        weights = scores.masked_fill(alone, 0).softmax(-1).masked_fill(alone, 0)
    if dropout_p > 0:
        weights = nn_functional_dropout(weights, dropout_p)
    return weights @ value


@operator(refuses={"biuc": NO_LOOP}, loop="softmax_lastdim_kernel_impl")
def nn_functional_scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
        scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """softmax(query key.T scale + mask) value, with weights of `dropout` (Vaswani et al. 2017).

    `query` is (..., L, E), `key` (..., S, E), `value` (..., S, F), the result (..., L, F); other dims broadcast. `scale` None is
    1 / sqrt(E). A bool mask says which keys each query attends to, another mask is added; `is_causal` is the mask of keys up to the
    query's own place. A query without keys has the result 0. `enable_gqa`: a head of keys and
    values, dim -3, serves several heads of queries.

    >>> import cygrad
    >>> x = cygrad.eye(2)
    >>> cygrad.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    _check_attention(query, key, value, attn_mask, is_causal)
    if not dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if enable_gqa:
        key, value = _with_heads_of(query, key), _with_heads_of(query, value)
    if is_causal:
        attn_mask = query.new_ones((query.shape[-2], key.shape[-2])).tril() > 0
    factor = scale if scale is not None else 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    wide_query, wide_key, wide_value = in_loops(query, key, value)
    return _attention(wide_query, wide_key, wide_value, attn_mask, dropout_p, factor).to(query.dtype)


def _with_heads_of(query: Tensor, x: Tensor) -> Tensor:
    """Return keys or values repeated, so that there are as many heads as in the query."""
    heads, own = (t.shape[-3] if t.ndim > 2 else 1 for t in (query, x))
    if own == heads:
        return x
    if not own or heads % own:
        raise RuntimeError(f"Number of heads in key and value must divide the number of heads in query: {own} and {heads}")
    return x.repeat_interleave(heads // own, -3)
