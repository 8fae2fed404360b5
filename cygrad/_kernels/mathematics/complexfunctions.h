/* Complex arithmetic and the exponential family; complexmath.h includes this once per type. */
#define CG_COMPLEX CG_JOIN(cg_, CG_COMPLEX_TYPE)
#define CG_NAME(f) CG_JOIN(f##_, CG_TYPE)
#define CG_COMPLEX_NAME(f) CG_JOIN(f##_, CG_COMPLEX_TYPE)

/* ---- parts ---- */

CG_EXACT_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(complex)(CG_REAL re, CG_REAL im) { return (CG_COMPLEX){re, im}; }
CG_EXACT_FUNCTION CG_REAL CG_COMPLEX_NAME(real)(CG_COMPLEX z) { return z.re; }
CG_EXACT_FUNCTION CG_REAL CG_COMPLEX_NAME(imag)(CG_COMPLEX z) { return z.im; }
CG_EXACT_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(conj)(CG_COMPLEX z) { return (CG_COMPLEX){z.re, -z.im}; }
CG_EXACT_FUNCTION int CG_COMPLEX_NAME(isnan)(CG_COMPLEX z) { return (z.re != z.re) | (z.im != z.im); }
CG_EXACT_FUNCTION int CG_COMPLEX_NAME(isinf)(CG_COMPLEX z) { return CG_NAME(isinf)(z.re) | CG_NAME(isinf)(z.im); }
CG_EXACT_FUNCTION int CG_COMPLEX_NAME(isfinite)(CG_COMPLEX z) { return CG_NAME(isfinite)(z.re) & CG_NAME(isfinite)(z.im); }

/* ---- operators of formulas, c: complex, r: real ---- */

CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(neg)(CG_COMPLEX a) { return (CG_COMPLEX){-a.re, -a.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(add_cc)(CG_COMPLEX a, CG_COMPLEX b) { return (CG_COMPLEX){a.re + b.re, a.im + b.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(add_cr)(CG_COMPLEX a, CG_REAL b) { return (CG_COMPLEX){a.re + b, a.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(add_rc)(CG_REAL a, CG_COMPLEX b) { return (CG_COMPLEX){a + b.re, b.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(sub_cc)(CG_COMPLEX a, CG_COMPLEX b) { return (CG_COMPLEX){a.re - b.re, a.im - b.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(sub_cr)(CG_COMPLEX a, CG_REAL b) { return (CG_COMPLEX){a.re - b, a.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(sub_rc)(CG_REAL a, CG_COMPLEX b) { return (CG_COMPLEX){a - b.re, -b.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(mul_cr)(CG_COMPLEX a, CG_REAL b) { return (CG_COMPLEX){a.re * b, a.im * b}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(mul_rc)(CG_REAL a, CG_COMPLEX b) { return (CG_COMPLEX){a * b.re, a * b.im}; }
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(div_cr)(CG_COMPLEX a, CG_REAL b) { return (CG_COMPLEX){a.re / b, a.im / b}; }
CG_INLINE int CG_COMPLEX_NAME(equal)(CG_COMPLEX a, CG_COMPLEX b) { return (a.re == b.re) & (a.im == b.im); }

/* In arithmetic: GCC makes a branch of two selections that share one condition. */
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(select)(int condition, CG_COMPLEX a, CG_COMPLEX b)
{
    const int other = !condition;
    return (CG_COMPLEX){CG_NAME(real)(CG_NAME(bits_if)(!other, CG_NAME(bits)(a.re)) | CG_NAME(bits_if)(other, CG_NAME(bits)(b.re))),
                        CG_NAME(real)(CG_NAME(bits_if)(!other, CG_NAME(bits)(a.im)) | CG_NAME(bits_if)(other, CG_NAME(bits)(b.im)))};
}

/* 0.9 eps. */
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(mul_cc)(CG_COMPLEX a, CG_COMPLEX b)
{
    return (CG_COMPLEX){CG_ROUNDED(a.re * b.re) - CG_ROUNDED(a.im * b.im), CG_ROUNDED(a.re * b.im) + CG_ROUNDED(a.im * b.re)};
}

/* By the quotient of the parts of b (Smith 1962), the greater below, so that no square overflows; a zero below as in NumPy. 1.4 eps. */
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(div_cc)(CG_COMPLEX a, CG_COMPLEX b)
{
    const CG_REAL c = CG_LIBM(fabs)(b.re), d = CG_LIBM(fabs)(b.im);
    const int upright = c < d, zero = (c == 0) & (d == 0);
    const CG_REAL greater = upright ? b.im : b.re, smaller = upright ? b.re : b.im;
    const CG_REAL head = upright ? a.im : a.re, tail = upright ? a.re : a.im;
    const CG_REAL ratio = smaller / (zero ? 1 : greater), below = CG_MULTIPLY_ADD(smaller, ratio, greater);
    const CG_REAL re = CG_MULTIPLY_ADD(tail, ratio, head), im = CG_MULTIPLY_ADD(upright ? head : -head, ratio, upright ? -tail : tail);
    return (CG_COMPLEX){(zero ? a.re : re) / (zero ? c : below), (zero ? a.im : im) / (zero ? c : below)};
}

CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(div_rc)(CG_REAL a, CG_COMPLEX b) { return CG_COMPLEX_NAME(div_cc)((CG_COMPLEX){a, 0}, b); }

/* 1.1 eps. */
CG_VECTOR_FUNCTION CG_REAL CG_COMPLEX_NAME(abs)(CG_COMPLEX z) { return CG_NAME(hypot)(z.re, z.im); }
CG_VECTOR_FUNCTION CG_REAL CG_COMPLEX_NAME(angle)(CG_COMPLEX z) { return CG_NAME(atan2)(z.im, z.re); }

/* z of absolute value 1; 0 of 0. */
CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(sgn)(CG_COMPLEX z)
{
    const CG_REAL size = CG_NAME(hypot)(z.re, z.im), divisor = size == 0 ? 1 : size;
    return (CG_COMPLEX){size == 0 ? 0 : z.re / divisor, size == 0 ? 0 : z.im / divisor};
}

/* ---- the exponential family: of x + i y ---- */

/* cos(y) and sin(y); where x is infinite and y has none, the factors of the infinity in Annex G. */
CG_INLINE CG_COMPLEX CG_COMPLEX_NAME(circle)(CG_REAL x, CG_REAL y, CG_REAL sine_at_infinity)
{
    const int special = CG_NAME(isinf)(x) & !CG_NAME(isfinite)(y);
    const CG_REAL c = CG_NAME(cos)(y), s = CG_NAME(sin)(y);
    return (CG_COMPLEX){special ? 1 : c, special ? CG_LIBM(copysign)(sine_at_infinity, y) : s};
}

/* By a power of two that is applied to the sine and the cosine, since exp(x) alone may overflow. */
CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(exp)(CG_COMPLEX z)
{
    const CG_REAL low = z.re < -CG_EXP_LIMIT ? -CG_EXP_LIMIT : z.re, x = low > CG_EXP_LIMIT ? CG_EXP_LIMIT : low;
    const CG_COMPLEX on_circle = CG_COMPLEX_NAME(circle)(z.re, z.im, z.re < 0 ? 0 : CG_LIBM(nan)(""));
    const CG_NAME(exp_parts) p = CG_NAME(exp_split)(x);
    const CG_REAL rest = CG_NAME(expm1_of_r)(p.r), beyond = z.re > CG_EXP_LIMIT ? CG_LIBM(inf)() : 1;
    const CG_REAL re = CG_NAME(scale)(on_circle.re, rest, p.k_bits) * beyond;
    const CG_REAL im = CG_NAME(scale)(on_circle.im, rest, p.k_bits) * beyond;
    return (CG_COMPLEX){re, z.im == 0 ? z.im : im};
}

typedef struct {
    CG_REAL sinh, cosh, power; /* to be multiplied by the power */
} CG_NAME(hyperbolic);

/* As the real functions, but their results may be beyond the range as long as their products with a sine are not. */
CG_INLINE CG_NAME(hyperbolic) CG_NAME(hyperbolic_of)(CG_REAL x)
{
    const CG_REAL m = CG_LIBM(fabs)(x), limited = m > CG_SINH_LIMIT ? CG_SINH_LIMIT : m;
    const int lifted = m > CG_SINH_LIFT_FROM, near = m < CG_C(0.3);
    const CG_NAME(exp_parts) p = CG_NAME(exp_split)(limited);
    const CG_REAL z = p.r * p.r, inverse = 1 / (4 + CG_MULTIPLY_ADD(p.h, p.h, 4 * p.h - z));
    const CG_REAL growing = CG_NAME(power_of_two)(p.k_bits - (lifted ? CG_SINH_LIFT + 2 : 2));
    const CG_REAL decaying = m < CG_C(40.0) ? CG_NAME(power_of_two)(-2 - p.k_bits) : 0;
    const CG_REAL curve = CG_MULTIPLY_ADD(p.r * CG_MULTIPLY_ADD(-p.h, p.h, z - (p.h + p.h)), inverse, p.low);
    const CG_REAL sum = growing + decaying, difference = growing - decaying, cosh_r_minus_1 = (z + z) * inverse;
    const CG_REAL cosh = sum + CG_MULTIPLY_ADD(sum, cosh_r_minus_1, difference * (p.r + curve));
    const CG_REAL sinh = CG_MULTIPLY_ADD(sum, p.r, difference) + CG_MULTIPLY_ADD(difference, cosh_r_minus_1, sum * curve);
    const CG_REAL power = m > CG_SINH_LIMIT ? CG_LIBM(inf)() : near ? 1 : lifted ? CG_NAME(power_of_two)(CG_SINH_LIFT + 1) : 2;
    CG_NAME(hyperbolic) h = {CG_LIBM(copysign)(near ? p.r + curve : sinh, x), near ? cosh + cosh : cosh, power};
    return h;
}

CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(sinh)(CG_COMPLEX z)
{
    const CG_COMPLEX on_circle = CG_COMPLEX_NAME(circle)(z.re, z.im, CG_LIBM(nan)(""));
    const CG_NAME(hyperbolic) h = CG_NAME(hyperbolic_of)(z.re);
    const CG_REAL re = h.sinh * on_circle.re * h.power, im = h.cosh * on_circle.im * h.power;
    return (CG_COMPLEX){z.re == 0 ? (on_circle.re < 0 ? -z.re : z.re) : re, z.im == 0 ? z.im : im};
}

CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(cosh)(CG_COMPLEX z)
{
    const CG_COMPLEX on_circle = CG_COMPLEX_NAME(circle)(z.re, z.im, CG_LIBM(nan)(""));
    const CG_NAME(hyperbolic) h = CG_NAME(hyperbolic_of)(z.re);
    const CG_REAL re = h.cosh * on_circle.re * h.power, im = h.sinh * on_circle.im * h.power, sine = z.im == 0 ? z.im : on_circle.im;
    return (CG_COMPLEX){re, ((z.re == 0) | (z.im == 0)) ? CG_NAME(signed_by)(z.re, CG_LIBM(copysign)(0, sine)) : im};
}

/* (sinh cosh + i sin cos) / (sinh^2 + cos^2), all of it divided by sinh^2 far out. */
CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(tanh)(CG_COMPLEX z)
{
    const CG_REAL m = CG_LIBM(fabs)(z.re), limited = m > CG_TANH_LIMIT ? CG_TANH_LIMIT : m;
    const CG_COMPLEX on_circle = CG_COMPLEX_NAME(circle)(z.re, z.im, 0);
    const CG_NAME(hyperbolic) h = CG_NAME(hyperbolic_of)(limited);
    const CG_REAL sinh = h.sinh * h.power, cosh = h.cosh * h.power;
    const int far = m > CG_TANH_FAR;
    const CG_REAL inverse = 1 / (far ? sinh : 1), s = on_circle.im * inverse, c = on_circle.re * inverse;
    const CG_REAL below = CG_MULTIPLY_ADD(c, c, far ? 1 : sinh * sinh);
    const CG_REAL re = CG_LIBM(copysign)((far ? 1 : sinh * cosh) / below, z.re), im = s * c / below;
    return (CG_COMPLEX){z.re == 0 ? z.re : re, z.im == 0 ? z.im : im};
}

/* f(i z) / i for the odd ones. */
CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(sin)(CG_COMPLEX z)
{
    const CG_COMPLEX y = CG_COMPLEX_NAME(sinh)((CG_COMPLEX){-z.im, z.re});
    return (CG_COMPLEX){y.im, -y.re};
}

CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(cos)(CG_COMPLEX z) { return CG_COMPLEX_NAME(cosh)((CG_COMPLEX){-z.im, z.re}); }

CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(tan)(CG_COMPLEX z)
{
    const CG_COMPLEX y = CG_COMPLEX_NAME(tanh)((CG_COMPLEX){-z.im, z.re});
    return (CG_COMPLEX){y.im, -y.re};
}

/* Near the axis by expm1(x) and 1 - cos(y) = 2 sin(y/2)^2; the cancelled part is small beside the imaginary part. No limits at infinity, as in
 * torch and NumPy.
 */
CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(expm1)(CG_COMPLEX z)
{
    const CG_COMPLEX e = CG_COMPLEX_NAME(exp)(z);
    const CG_REAL half = CG_NAME(sin)(CG_C(0.5) * z.im), bend = 2 * half * half, real = CG_NAME(expm1)(z.re);
    const CG_REAL re = CG_LIBM(fabs)(z.re) < 1 ? real - CG_MULTIPLY_ADD(bend, real, bend) : e.re - 1;
    const int known = CG_NAME(isfinite)(z.im);
    return (CG_COMPLEX){known ? re : z.im - z.im, z.im == 0 ? (real + 1) * z.im : known ? e.im : z.im - z.im};
}

/* exp(z log(2)), with the rounding error of the product with log(2), as long as its square is nothing. */
CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(exp2)(CG_COMPLEX z)
{
    const CG_REAL ln2 = (CG_REAL)CG_LN2, rest = (CG_REAL)(sizeof(CG_REAL) == 8 ? 0x1.abc9e3b39803fp-56 : CG_LN2 - (double)(float)CG_LN2);
    const CG_REAL x = z.re * ln2, y = z.im * ln2, limit = (CG_REAL)(sizeof(CG_REAL) == 8 ? 0x1p-26 : 0x1p-12);
    const CG_REAL dx = CG_MULTIPLY_ADD(z.re, rest, CG_NAME(product_plus)(z.re, ln2, -x));
    const CG_REAL dy = CG_MULTIPLY_ADD(z.im, rest, CG_NAME(product_plus)(z.im, ln2, -y));
    const CG_COMPLEX e = CG_COMPLEX_NAME(exp)((CG_COMPLEX){x, y});
    const CG_REAL im = e.im + CG_MULTIPLY_ADD(e.im, dx, e.re * dy);
    const CG_COMPLEX turned = {e.re + CG_MULTIPLY_ADD(e.re, dx, -(e.im * dy)), z.im == 0 ? z.im : im};
    const int small = (CG_LIBM(fabs)(dx) < limit) & (CG_LIBM(fabs)(dy) < limit);
    return CG_COMPLEX_NAME(select)(CG_COMPLEX_NAME(isfinite)(turned) & small, turned, e);
}

/* 1 / (1 + exp(-z)) or exp(z) / (1 + exp(z)), by the exponential e that decays; 1 + e beside its zeros by (1 + cos) + (|e| - 1) cos. */
CG_VECTOR_FUNCTION CG_COMPLEX CG_COMPLEX_NAME(sigmoid)(CG_COMPLEX z)
{
    const CG_REAL x = -CG_LIBM(fabs)(z.re), m = CG_LIBM(fabs)(z.im), y = CG_NAME(isinf)(x) & !CG_NAME(isfinite)(m) ? 0 : m;
    const CG_REAL s = CG_NAME(sin)(CG_C(0.5) * y), c = CG_NAME(cos)(CG_C(0.5) * y), cosine = 1 - 2 * s * s;
    const CG_REAL size = CG_NAME(exp)(x), rest = CG_NAME(expm1)(x);
    const CG_REAL sine = CG_NAME(signed_by)(z.re < 0 ? z.im : -z.im, size * 2 * s * c);
    const CG_COMPLEX e = {size * cosine, sine};
    const CG_COMPLEX below = {cosine > CG_C(-0.5) ? CG_MULTIPLY_ADD(size, cosine, 1) : CG_MULTIPLY_ADD(rest, cosine, 2 * c * c), e.im};
    return CG_COMPLEX_NAME(div_cc)(CG_COMPLEX_NAME(select)(z.re < 0, e, (CG_COMPLEX){1, 0}), below);
}

#undef CG_COMPLEX
#undef CG_NAME
#undef CG_COMPLEX_NAME
#undef CG_TYPE
#undef CG_COMPLEX_TYPE
#undef CG_REAL
#undef CG_LIBM
#undef CG_C
#undef CG_EXP_LIMIT
#undef CG_SINH_LIFT_FROM
#undef CG_SINH_LIFT
#undef CG_SINH_LIMIT
#undef CG_TANH_FAR
#undef CG_TANH_LIMIT
