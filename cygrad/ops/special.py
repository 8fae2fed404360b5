"""The rows of special functions: a part of the table of elementwise operators, whose loops are units of their own.

Their functions are in `gammamath.h`, `normalmath.h` and `besselmath.h` of `_kernels/mathematics/`. Conventions are as in `elementwise`.
"""

from .elementwise import elementwise

# ----- Gamma functions -----
elementwise("lgamma", y="lgamma(x)", dx="digamma(x)", domain=(2.5, 6), aliases=("special_gammaln",),
            loop="lgamma_vml_cpu",
            doc="Logarithm of the absolute value of the gamma function; infinite at the poles 0, -1, -2, ... (DLMF 5.2.1).")
elementwise("digamma", y="digamma(x)", dx="trigamma(x)", domain=(1.6, 6), aliases=("special_digamma", "special_psi"),
            loop="digamma",
            doc="Derivative of lgamma (DLMF 5.2.2); at 0 infinite, NaN at other poles.")
elementwise("trigamma", y="trigamma(x)", dx="higher_polygamma(x, 2)", domain=(0.3, 4), method=False, node="Polygamma",
            loop="trigamma",
            doc="Derivative of digamma; infinite at the poles, which are 0 and the negative whole numbers.")
elementwise("higher_polygamma", y="higher_polygamma(x, order)", dx="higher_polygamma(x, order + 1)", params={"order": 2},
            domain=(0.5, 4), method=False, in_place=False, node="Polygamma",
            doc="Derivative of digamma of an order, which is at least 1.")

# ----- Error functions -----
elementwise("erfinv", y="erfinv(x)", dx="0.886226925452758 * exp(y * y)", domain=(-0.9, 0.9), aliases=("special_erfinv",),
            loop="erfinv_vml_cpu",
            doc="Inverse of the error function: infinite at -1 and 1, NaN beyond.")
elementwise("ndtri", y="ndtri(x)", dx="2.5066282746310002 * exp(0.5 * y * y)", domain=(0.1, 0.9), method=False, aliases=("special_ndtri",),
            doc="Inverse of the normal distribution: infinite at 0 and 1, NaN beyond.")
elementwise("erfcx", y="erfcx(x)", dx="2 * (x * y) - 1.1283791670955126", domain=(-2, 1.5), method=False, aliases=("special_erfcx",),
            doc="exp(x * x) * erfc(x), which does not underflow.")
elementwise("log_ndtr", y="log_ndtr(x)", domain=(-1.5, 2), method=False, aliases=("special_log_ndtr",),
            dx="0.7978845608028654 / erfcx(-0.7071067811865476 * x) if x < 1 else 0.3989422804014327 * gaussian(x) / ndtr(x)",
            doc="Logarithm of the normal distribution, accurate where that is tiny or near 1.")
elementwise("entr", y="x if isnan(x) else -x * log(x) if x > 0 else 0 if x == 0 else -inf", dx="-log(x) - 1", domain=(0.1, 3),
            method=False, aliases=("special_entr",),
            doc="-x * log(x); 0 at 0, minus infinity below.")
elementwise("xlog1py", y="b if isnan(b) else 0 if a == 0 else a * log1p(b)",
            da="0 if a == 0 and b <= -1 else log1p(0 if a == 0 and b <= -1 else b)", db="a / (b + 1)", domain=(0.3, 2), method=False,
            aliases=("special_xlog1py",),
            forms=True, doc="a * log(1 + b); 0 where a is 0.")

# ----- Bessel functions -----
elementwise("i0", y="i0(x)", dx="i1(x)", aliases=("special_i0", "special_modified_bessel_i0"),
            loop="i0_vml_cpu", doc="Modified Bessel function of the first kind of order 0 (DLMF 10.25.2).")
elementwise("i0e", y="i0e(x)", dx="0 if x == 0 else i1e(x) - copysign(y, x)", method=False, aliases=("special_i0e",),
            doc="i0 times exp(-|x|), which does not overflow.")
elementwise("i1", y="i1(x)", dx="0.5 if x == 0 else i0(x) if isinf(y) else i0(x) - y / (1 if x == 0 else x)", method=False,
            aliases=("special_i1", "special_modified_bessel_i1"),
            doc="Modified Bessel function of the first kind of order 1 (DLMF 10.25.2).")
elementwise("i1e", y="i1e(x)", dx="0.5 if x == 0 else i0e(x) - abs(y) - y / (1 if x == 0 else x)", method=False,
            aliases=("special_i1e",),
            doc="i1 times exp(-|x|), which does not overflow.")
