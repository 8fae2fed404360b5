"""The table of what is said of dtypes that an operator does not take: torch's type of exception, in torch's words.

A row has kinds of dtype, an exception, and operators. What has no row lacks a loop, which torch says by a name: that of the operator and
`_cpu`, or the one in `LOOPS`. In the words `{name}` is the operator, `{public}` the same as `linalg.xyz`, without `_ex`, `{dtype}` torch's
name of the dtype.
"""

from .dtypes import DTYPES, NUMBER

NO_LOOP = NotImplementedError("\"{loop}\" not implemented for '{dtype}'")
SENTENCES = (
    ("c", NotImplementedError("{name} is not supported for complex inputs"), "ceil floor trunc"),
    ("c", NotImplementedError("clamp is not supported for complex types"), "clamp hardtanh relu relu6"),
    ("c", NotImplementedError("{name} is not implemented for complex tensors."), "signbit"),
    ("c", NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."),
     "sign"),
    ("c", RuntimeError("{name} is not supported for complex tensors."), "deg2rad rad2deg"),
    ("c", RuntimeError("{name} not implemented for complex tensors."), "fmax fmin maximum minimum"),
    ("c", RuntimeError("{name} does not support complex inputs."), "isneginf isposinf"),
    ("c", RuntimeError("{name}(): does not support complex input"), "argmax argmin max min"),
    ("c", RuntimeError("nansum on CPU does not support complex inputs"), "nanmean nansum"),
    ("c", RuntimeError("Sort does not support complex dtypes on CPU"), "argsort sort"),
    ("c", RuntimeError("topk does not support complex dtypes on CPU"), "topk"),
    ("b", RuntimeError("topk does not support bool dtypes on CPU"), "topk"),
    ("b", RuntimeError("{name}(): does not support bool input"), "argmax argmin"),
    ("b", RuntimeError("Boolean inputs not supported for relu"), "relu"),
    ("b", RuntimeError("Bool inputs not supported for hardtanh"), "hardtanh relu6"),
    ("b", RuntimeError("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
                       "`logical_not()` operator instead."), "neg"),
    ("b", RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
                       "`~` or `logical_not()` operator instead."), "sub sub_scaled tanhshrink"),
    ("bc", RuntimeError("Unsupported input type encountered for {name}(): {dtype}"), "isin"),
    ("biu", RuntimeError("Integer division with addcdiv is no longer supported: convert the operands first, e.g. with .float()"),
     "addcdiv"),
    ("biu", RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
                         "{dtype}; convert it first, or give dtype="), "mean"),
    ("biu", RuntimeError("nanmean(): expected input to have floating point or complex dtype but got {dtype}; convert it first"), "nanmean"),
    ("biu", RuntimeError("{public}: Expected a floating point or complex tensor as input. Got {dtype}"),
     "linalg_cholesky linalg_cholesky_ex linalg_det linalg_inv linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve "
     "linalg_lu_solve linalg_matrix_exp linalg_matrix_norm linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_svd "
     "linalg_vecdot linalg_vector_norm logdet"),
    ("biu", RuntimeError("Unknown Complex ScalarType for {dtype}"), "linalg_eig"),
    ("biuf", RuntimeError("This function doesn't handle types other than float and double"), "linalg_lstsq linalg_matrix_rank"),
    ("biuf", RuntimeError("{public}({dtype}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"),
     "linalg_pinv"),
    ("f", RuntimeError("{public}: Low precision dtypes not supported. Got {dtype}"),
     "linalg_inv linalg_inv_ex linalg_matrix_norm linalg_slogdet logdet"),
    ("b", RuntimeError("{public} supports floating point, complex, and integer tensors, but got {dtype}"), "linalg_vander"),
    ("c", NO_LOOP, "aminmax cummax cummin kthvalue max_all median min_all nanmedian searchsorted unique unique_consecutive"),
    ("bic", NO_LOOP, "log_softmax softmax"),
    ("biu", NO_LOOP, "logcumsumexp"),
    ("c", NO_LOOP, "prelu scatter_amax scatter_amin"),
    ("b", NO_LOOP, "linalg_cross scatter_mean"),
)
LOOPS = {
    "add": "add_stub", "add_scaled": "add_stub", "sub": "add_stub", "sub_scaled": "add_stub", "pow": "pow", "square": "pow",
    "sgn": "sign_cpu", "fmax": "maximum_cpu", "fmin": "minimum_cpu", "relu": "clamp_min_scalar_cpu", "hardtanh": "clamp_scalar_cpu",
    "relu6": "clamp_scalar_cpu",
    "addcmul": "addcmul_cpu_out", "amax": "max_values_cpu", "amin": "min_values_cpu", "bitwise_left_shift": "lshift_cpu",
    "bitwise_right_shift": "rshift_cpu", "ceil": "ceil_vml_cpu", "celu": "elu_cpu", "clamp_max": "minimum_cpu",
    "clamp_min": "maximum_cpu", "erf": "erf_vml_cpu", "erfc": "erfc_vml_cpu", "floor": "floor_vml_cpu",
    "floor_divide": "div_floor_cpu",
    "gelu": "GeluKernelImpl", "gelu_tanh": "GeluKernelImpl", "log_softmax": "log_softmax_lastdim_kernel_impl",
    "linalg_cross": "cross", "linalg_eig": "linalg_eig_out_cpu", "linalg_qr": "geqrf_cpu", "linalg_householder_product": "orgqr_cpu",
    **dict.fromkeys("linalg_solve linalg_solve_ex linalg_det linalg_lu linalg_lu_factor linalg_lu_factor_ex lu".split(), "lu_cpu"),
    **dict.fromkeys(("linalg_cholesky", "linalg_cholesky_ex"), "cholesky_cpu"), "cholesky_inverse": "cholesky_inverse_out_cpu",
    "linalg_solve_triangular": "triangular_solve_cpu", "linalg_lu_solve": "linalg.lu_solve_cpu",
    **dict.fromkeys(("linalg_ldl_factor", "linalg_ldl_factor_ex"), "ldl_factor_kernel_cpu"), "linalg_ldl_solve": "ldl_solve_kernel_cpu",
    "logcumsumexp": "logcumsumexp_out_cpu",
    "logsigmoid": "log_sigmoid_cpu", "matmul": "addmm_impl_cpu_",
    "max_all": "max_all", "median": "median_out", "min_all": "min_all", "nanmedian": "median_out",
    "ndtr": "erf_vml_cpu", "round": "round_vml_cpu", "scatter_amax": "scatter_gather_tensor_cpu_reduce_amax",
    "scatter_amin": "scatter_gather_tensor_cpu_reduce_amin", "scatter_mean": "div_floor_cpu", "searchsorted": "searchsorted_out_cpu",
    "selu": "elu_cpu",
    "softmax": "softmax_lastdim_kernel_impl", "softshrink": "softshrink_check", "trunc": "trunc_vml_cpu", "trunc_divide": "div_trunc_cpu",
    "unique": "unique", "unique_consecutive": "unique",
}
KINDS = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "floating-point", "c": "complex"}

# Of two operands that are both bool, which the table says of one among others.
TWO_BOOLS = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."

# By operator and kind.
SAID = {(name, kind): said for kinds, said, names in SENTENCES for name in names.split() for kind in kinds}


FACTORS = {"c": "For non-complex input tensors, argument {} must not be a complex number.",
           "f": "For integral input tensors, argument {} must not be a floating point number."}


def refused_factor(argument: str, kind: str) -> Exception:
    """Return the exception for a number of a higher kind than the tensors, where it has no say in the dtype."""
    return RuntimeError(FACTORS[kind].format(argument))


def refusal(name: str, dtype: str, taken: str = "") -> Exception:
    """Return the exception for a dtype that an operator does not take; `taken` are the kinds that it does."""
    row = DTYPES[NUMBER[dtype]]
    said = SAID.get((name, row.kind), NO_LOOP)
    public = name.replace("_", ".", 1).removesuffix("_ex")
    words = said.args[0].format(name=name, public=public, dtype=row.title, loop=LOOPS.get(name, f"{name}_cpu"))
    more = f"; {name} takes {', '.join(KINDS[kind] for kind in taken)} tensors, not {dtype}" if said is NO_LOOP and taken else ""
    return type(said)(words + more)
