"""Names that ported programs use and that are not here: the answer to `cygrad.nn.Linear`, `cygrad.jit` and their like.

Read when a name is missing. A name that exists is never looked up here, and the README's limits name each topic: a test holds both.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cygrad.operators import NAMESPACES, modules_of
from cygrad.operators._written import registry


class Topic(NamedTuple):
    """Something that torch has: the words for it in the README's limits, a pattern of its names, and a way to do without it."""

    words: str
    names: str
    instead: str


TOPICS = (
    Topic("optimisers", r"optim", "cygrad.optimize gives SciPy's solvers exact gradients; examples/digits.py writes Adam in a few lines"),
    Topic("layers", r"functional|[A-Z]\w*(?:\dd|Norm|Loss|LU)|Linear|Module|Parameter|Sequential|lstm\w*|gru\w*|rnn\w*|"
          r"(?:cudnn|miopen|mkldnn|quantized)_\w*(?:conv|pool|grid)\w*|native_dropout|\w+_loss|embedding_\w+|prelu_\w+|"
          r"(?!native_\w+_norm$|layer_norm$|group_norm$|rms_norm$)\w*(?:batch|group|instance|layer|rms)_norm\w*",
          "write it with operators, as examples/digits.py does"),
    Topic("layouts of sparse blocks", r"sparse_bs\w*|jagged|nested|h?smm|\w*spmm|dsmm|sspaddmm|\w*semi_structured\w*",
          "there are csr, csc and coo: cygrad.sparse.mm multiplies them"),
    Topic("masked tensors", r"masked|MaskedTensor|(?:as_)?masked_tensor",
          "where(mask, x, 0) and nansum, nanmean, nanmedian leave elements out"),
    Topic("probability distributions", r"distributions", "write the logarithm of the density with operators, "
          "as docs/densities.md does; cygrad.random draws samples"),
    Topic("compiler", r"compiled\w+|compiler|jit|fx|library|Script\w+|cond|while_loop",
          "operators run eagerly; large recorded results fuse by themselves"),
    Topic("distributed", r"distributed|futures?|multiprocessing",
          "cygrad.mpi has messages with gradients, by mpi4py; docs/clusters.md has threads and launchers"),
    Topic("mixed precision", r"amp|\w*autocast\w*|GradScaler", "convert with .to(dtype) where it pays"),
    Topic("GPU", r"mps|xpu|mtia|accelerator|backends|Stream|Event|\w*cudnn\w*|\w*miopen\w*|\w*mkldnn\w*|get_device_module",
          "there is one device, the CPU; cygrad.config.describe() shows it"),
    Topic("quantised", r"ao|quantization|\w*quantize\w*|q_\w+|\w+_affine|\w+_symmetric|int_repr|fbgemm\w*|qscheme",
          "store numbers in float16, bfloat16 or int8"),
    Topic("model hubs", r"hub|onnx|package|export|monitor",
          "cygrad.save and cygrad.load store tensors and plain data"),
)

# Names of JAX, of HIPS autograd and of functorch, and names that torch has moved or does not document: the names here, or a sentence.
ELSEWHERE = {
    "dropout_": "cygrad.nn.functional.dropout takes inplace=True",
    "alpha_dropout_": "cygrad.nn.functional.alpha_dropout takes inplace=True",
    "feature_alpha_dropout_": "cygrad.nn.functional.feature_alpha_dropout takes inplace=True",
    "feature_dropout": "cygrad.nn.functional.dropout2d", "feature_dropout_": "cygrad.nn.functional.dropout2d takes inplace=True",
    "grad": "cygrad.func.grad", "value_and_grad": "cygrad.func.grad_and_value", "grad_and_value": "cygrad.func.grad_and_value",
    "hessian": "cygrad.func.hessian", "jacobian": "cygrad.autograd.functional.jacobian", "jacrev": "cygrad.func.jacrev",
    "jacfwd": "cygrad.func.jacfwd", "jvp": "cygrad.func.jvp", "vjp": "cygrad.func.vjp", "linearize": "cygrad.func.linearize",
    "elementwise_grad": "write cygrad.func.vmap(cygrad.func.grad(f))", "make_vjp": "cygrad.func.vjp", "make_jvp": "cygrad.func.jvp",
    "hessian_vector_product": "cygrad.autograd.functional.hvp", "functional_call": "write a function of tensors",
    "tree_map": "cygrad.pytree.tree_map", "tree_util": "cygrad.pytree",
    "custom_vjp": "cygrad.autograd.Function", "custom_jvp": "cygrad.autograd.Function", "primitive": "cygrad.autograd.Function",
    "defvjp": "cygrad.autograd.Function", "stop_gradient": "x.detach()", "numpy": "import numpy: its functions take tensors",
    "scipy": "cygrad.optimize gives SciPy's solvers exact gradients",
    "lax": "write Python's loops, or cygrad.checkpoint.checkpoint_loop for long ones",
    "block_until_ready": "leave it out: results are ready when they are read", "device_put": "leave it out: there is one device",
    "symeig": "cygrad.linalg.eigh", "profiler": "cygrad.autograd.profiler", "to_dlpack": "x.__dlpack__()",
}


def why_absent(name: str, tensor: type) -> str:
    """Return the end of the message of an AttributeError: a way to do without a name, or nothing. `tensor` is the class of tensors."""
    if name.startswith("_"):
        return ""
    if name in ELSEWHERE:
        instead = ELSEWHERE[name]
        return f"; {instead}" if " " in instead else f"; did you mean {instead}?"
    for prefix, space in NAMESPACES.items():
        if prefix + name in modules_of(getattr(registry, prefix.strip("_").upper())):
            return f"; did you mean cygrad.{space}.{name}?"
    if hasattr(tensor, name):
        return f"; tensors have it: x.{name}{'(...)' if callable(getattr(tensor, name)) else ''}"
    for topic in TOPICS:
        if re.fullmatch(topic.names, name):
            return f": cygrad has no {topic.words}; {topic.instead}"
    return ""
