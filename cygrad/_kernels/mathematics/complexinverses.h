/* Complex roots, logarithms, powers and inverse functions; complexmath.h includes this. In float64, for complex64, too, which is exact
 * there but for the last rounding, and needs no care for large or small numbers.
 */
#define CG_COMPLEX_IN_DOUBLE(f)                                                    \
    CG_INLINE cg_complex64 f##_complex64(cg_complex64 z)                           \
    {                                                                              \
        const cg_complex128 y = f##_complex128((cg_complex128){z.re, z.im});       \
        return (cg_complex64){(float)y.re, (float)y.im};                           \
    }

#define CG_LARGE 0x1p900 /* squares of parts, scaled by SCALE from here on, and up from 1 / LARGE down, are in the range */
#define CG_SCALE 0x1p400

CG_INLINE double greater_float64(double a, double b) { return a > b ? a : b; }
CG_INLINE double smaller_float64(double a, double b) { return a > b ? b : a; }

/* The greater part of sqrt(z) by the half-angle theorem, the other one by the product of both, |y| / 2; 1.2 eps. */
CG_VECTOR_FUNCTION cg_complex128 sqrt_complex128(cg_complex128 z)
{
    const double x = __builtin_fabs(z.re), y = __builtin_fabs(z.im), inf = __builtin_inf();
    const double greater = greater_float64(x, y), smaller = smaller_float64(x, y);
    const double scale = greater > CG_LARGE ? 1 / CG_SCALE : greater < 1 / CG_LARGE ? CG_SCALE : 1;
    const double back = greater > CG_LARGE ? 0x1p200 : greater < 1 / CG_LARGE ? 0x1p-200 : 1;
    const double size = x == inf ? inf : hypot_of_ordered(greater * scale, smaller * scale);
    const double root = __builtin_sqrt(0.5 * (x * scale) + 0.5 * size) * back;
    const double real = y == inf ? inf : root, imag = y == inf ? inf : root == 0 ? y : 0.5 * y / root;
    return (cg_complex128){z.re < 0 ? imag : real, __builtin_copysign(z.re < 0 ? real : imag, z.im)};
}

/* The same, where squares of parts are in the range. */
CG_VECTOR_FUNCTION cg_complex64 sqrt_complex64(cg_complex64 z)
{
    const double x = __builtin_fabs(z.re), y = __builtin_fabs(z.im), inf = __builtin_inf();
    const double root = __builtin_sqrt(0.5 * (x + __builtin_sqrt(x * x + y * y)));
    const double real = ((x == inf) | (y == inf)) ? inf : root, imag = y == inf ? inf : root == 0 ? y : 0.5 * y / real;
    return (cg_complex64){(float)(z.re < 0 ? imag : real), __builtin_copysignf((float)(z.re < 0 ? real : imag), z.im)};
}

typedef struct {
    double exponent, rest; /* log|z| = exponent log(2) + rest */
} log_of_size;

/* By |z|^2 = 4^exponent (1 + u); the caller computes u where |z| is near 1. */
CG_INLINE log_of_size log_of_size_near(double x, double y, int near, double u_near_one)
{
    const double m = __builtin_fabs(x), n = __builtin_fabs(y), greater = greater_float64(m, n), smaller = smaller_float64(m, n);
    const int large = greater > CG_LARGE, small = greater < 1 / CG_LARGE;
    const double scale = large ? 1 / CG_SCALE : small ? CG_SCALE : 1, shift = large ? 400 : small ? -400 : 0;
    const log_parts_float64 p = log_split_float64(greater * scale, 0);
    const double other = smaller * scale * (0.5 * twice_inverse_power_float64(p)), u = CG_MULTIPLY_ADD(p.f, p.f + 2, other * other);
    const double half = 0.5 * log1p_float64(near ? u_near_one : u) + (x - x) + (y - y);
    const int infinite = (greater == __builtin_inf()) | (smaller == __builtin_inf());
    return (log_of_size){near ? 0 : p.k + shift, infinite ? __builtin_inf() : ((greater == 0) & (smaller == 0)) ? -__builtin_inf() : half};
}

CG_INLINE log_of_size log_of_size_float64(double x, double y) { return log_of_size_near(x, y, 0, 0); }

/* 1.5 eps. */
CG_VECTOR_FUNCTION cg_complex128 log_complex128(cg_complex128 z)
{
    const log_of_size size = log_of_size_float64(z.re, z.im);
    return (cg_complex128){CG_MULTIPLY_ADD(size.exponent, CG_LN2, size.rest), atan2_float64(z.im, z.re)};
}

CG_VECTOR_FUNCTION cg_complex64 log_complex64(cg_complex64 z)
{
    const double x = z.re, y = z.im, size = 0.5 * log_float64(x * x + y * y);
    const int infinite = isinf_float32(z.re) | isinf_float32(z.im);
    return (cg_complex64){(float)(infinite ? __builtin_inf() : size), (float)atan2_float64(y, x)};
}

/* Of a power of two without rounding. */
CG_VECTOR_FUNCTION cg_complex128 log2_complex128(cg_complex128 z)
{
    const log_of_size size = log_of_size_float64(z.re, z.im);
    return (cg_complex128){CG_MULTIPLY_ADD(size.rest, CG_LOG2_E, size.exponent), atan2_float64(z.im, z.re) * CG_LOG2_E};
}

CG_VECTOR_FUNCTION cg_complex128 log10_complex128(cg_complex128 z)
{
    const log_of_size size = log_of_size_float64(z.re, z.im);
    return (cg_complex128){CG_MULTIPLY_ADD(size.exponent, CG_LOG10_2, size.rest * CG_LOG10_E), atan2_float64(z.im, z.re) * CG_LOG10_E};
}

/* Near 0 by |1 + z|^2 - 1 = x (2 + x) + y^2; the cancelled part is small beside the imaginary part. */
CG_VECTOR_FUNCTION cg_complex128 log1p_complex128(cg_complex128 z)
{
    const double x = z.re, y = z.im;
    const int near = (__builtin_fabs(x) < 0.5) & (__builtin_fabs(y) < 0.5);
    const log_of_size size = log_of_size_near(1 + x, y, near, CG_MULTIPLY_ADD(x, 2 + x, y * y));
    const double real = CG_MULTIPLY_ADD(size.exponent, CG_LN2, size.rest);
    return (cg_complex128){((x == 0) & (y == 0)) ? x : isnan_complex128(z) ? __builtin_nan("") : real, atan2_float64(y, 1 + x)};
}

/* ---- inverse functions ---- */

/* Of sqrt(1 - z) and sqrt(1 + z), without the 1 where it is nothing and z is scaled. */
typedef struct {
    cg_complex128 minus, plus;
    double lift; /* to be added to the logarithm */
    int infinite;
} root_pair;

CG_INLINE root_pair roots_beside(cg_complex128 z)
{
    const double x = __builtin_fabs(z.re), y = __builtin_fabs(z.im), inf = __builtin_inf();
    const int large = (x > CG_SCALE) | (y > CG_SCALE);
    const double scale = large ? 0x1p-300 : 1, re = z.re * scale, im = z.im * scale;
    return (root_pair){sqrt_complex128((cg_complex128){1 - re, -im}), sqrt_complex128((cg_complex128){1 + re, im}),
                       large ? 300 * CG_LN2 : 0, (x == inf) | (y == inf)};
}

CG_INLINE double asinh_lifted(double x, root_pair roots, double y)
{
    const double size = roots.infinite ? __builtin_inf() : asinh_float64(__builtin_fabs(x)) + roots.lift;
    return __builtin_copysign(size, roots.infinite ? y : x);
}

CG_VECTOR_FUNCTION cg_complex128 asin_complex128(cg_complex128 z)
{
    const root_pair r = roots_beside(z);
    const double below = r.minus.re * r.plus.re - r.minus.im * r.plus.im, height = r.minus.re * r.plus.im - r.minus.im * r.plus.re;
    const double scaled = (z.re + 0.0) * (r.lift > 0 ? 0x1p-300 : 1); /* -0 counts as 0 */
    const double angle = atan2_float64(scaled, r.infinite ? __builtin_fabs(z.im) : below);
    return (cg_complex128){z.re == 0 ? z.re : angle, asinh_lifted(height, r, z.im)};
}

CG_VECTOR_FUNCTION cg_complex128 acos_complex128(cg_complex128 z)
{
    const root_pair r = roots_beside(z);
    const double height = r.plus.re * r.minus.im - r.plus.im * r.minus.re;
    const double angle = atan2_float64(r.infinite ? __builtin_fabs(z.im) : r.minus.re, r.infinite ? z.re : r.plus.re);
    const double doubled = r.infinite ? angle : 2 * angle;
    return (cg_complex128){z.re == 0 ? CG_HALF_PI : doubled, asinh_lifted(height, r, -z.im) + 0.0}; /* no -0, as in torch */
}

/* The quotients are scaled, where squares are beyond the range, and in log(sqrt(2 / y)) beside the pole. */
CG_VECTOR_FUNCTION cg_complex128 atanh_complex128(cg_complex128 z)
{
    const double m = __builtin_fabs(z.re), n = __builtin_fabs(z.im), inf = __builtin_inf();
    const int large = (m > CG_SCALE) | (n > CG_SCALE), pole = (m == 1) & (n < 1 / CG_SCALE), infinite = (m == inf) | (n == inf);
    const double one = large ? 0x1p-600 : 1, x = m * one, y = n * one;
    const double below = (one - x) * (one - x) + y * y, rest = log1p_float64(pole ? __builtin_sqrt(2 / n) : 4 * x / below * one);
    const double real = pole ? rest : 0.25 * rest;
    const double angle = 0.5 * atan2_float64(2 * y * one, CG_MULTIPLY_ADD(one - x, one + x, -(y * y)));
    const double right = infinite ? (z.im == z.im ? CG_HALF_PI : z.im) : angle;
    return (cg_complex128){z.re == 0 ? z.re : __builtin_copysign(infinite ? 0 : real, z.re), __builtin_copysign(right, z.im)};
}

/* f(i z) / i for the odd ones. */
CG_VECTOR_FUNCTION cg_complex128 asinh_complex128(cg_complex128 z)
{
    const cg_complex128 y = asin_complex128((cg_complex128){-z.im, z.re});
    return (cg_complex128){y.im, -y.re};
}

CG_VECTOR_FUNCTION cg_complex128 atan_complex128(cg_complex128 z)
{
    const cg_complex128 y = atanh_complex128((cg_complex128){-z.im, z.re});
    return (cg_complex128){y.im, -y.re};
}

CG_VECTOR_FUNCTION cg_complex128 acosh_complex128(cg_complex128 z)
{
    const cg_complex128 y = acos_complex128(z);
    return (cg_complex128){__builtin_fabs(y.im), __builtin_copysign(y.re, z.im)};
}

/* exp(b log(a)), with the error of the exponent, as in NumPy and torch; to the power 1 the number itself. */
CG_VECTOR_FUNCTION cg_complex128 pow_complex128(cg_complex128 a, cg_complex128 b)
{
    const cg_complex128 power = exp_complex128(mul_cc_complex128(b, log_complex128(a)));
    return select_complex128((b.re == 1) & (b.im == 0), a, power);
}

CG_INLINE cg_complex64 pow_complex64(cg_complex64 a, cg_complex64 b)
{
    const cg_complex128 y = pow_complex128((cg_complex128){a.re, a.im}, (cg_complex128){b.re, b.im});
    return (cg_complex64){(float)y.re, (float)y.im};
}

CG_COMPLEX_IN_DOUBLE(log2)
CG_COMPLEX_IN_DOUBLE(log10)
CG_COMPLEX_IN_DOUBLE(log1p)
CG_COMPLEX_IN_DOUBLE(asin)
CG_COMPLEX_IN_DOUBLE(acos)
CG_COMPLEX_IN_DOUBLE(atan)
CG_COMPLEX_IN_DOUBLE(asinh)
CG_COMPLEX_IN_DOUBLE(acosh)
CG_COMPLEX_IN_DOUBLE(atanh)
