/* LAPACK's iterations for eigenvalues and singular values with their vectors, of matrices that plain.h has made tridiagonal or bidiagonal.
 * Their decisions are followed, so that vectors have the signs that LAPACK gives them.
 *
 * Included by plain.h, once for each real type.
 */
#define CG_DOUBLE (sizeof(CG_REAL) == sizeof(double))
#define CG_PRECISION ((CG_REAL)(CG_DOUBLE ? DBL_EPSILON / 2 : FLT_EPSILON / 2))
#define CG_SMALLEST ((CG_REAL)(CG_DOUBLE ? DBL_MIN : FLT_MIN))
#define CG_FAR ((CG_REAL)(CG_DOUBLE ? 0x1p510 : 0x1p62)) /* its square is in range, and so is its inverse's */
#define CG_SIZE(x) ((CG_REAL)fabs(x))
#define CG_SIGNED(x, sign) ((CG_REAL)copysign(x, sign))

typedef struct { CG_REAL c, s, r; } CG_NAME(rotation);

static inline CG_REAL CG_NAME(lesser)(CG_REAL x, CG_REAL y) { return x < y ? x : y; }
static inline CG_REAL CG_NAME(larger)(CG_REAL x, CG_REAL y) { return x > y ? x : y; }

/* The rotation with (c f + s g, c g - s f) = (r, 0): lartg. */
static inline CG_NAME(rotation) CG_NAME(rotation_of)(CG_REAL f, CG_REAL g)
{
    if (g == 0) return (CG_NAME(rotation)){1, 0, f};
    if (f == 0) return (CG_NAME(rotation)){0, CG_SIGNED(1, g), CG_SIZE(g)};
    const CG_REAL largest = CG_NAME(larger)(CG_SIZE(f), CG_SIZE(g)), least = CG_NAME(lesser)(CG_SIZE(f), CG_SIZE(g));
    const CG_REAL scale = largest < CG_FAR && least > 1 / CG_FAR ? 1 : largest;
    if (scale != 1) f /= scale, g /= scale; /* a division by 1 takes as long as others */
    const CG_REAL norm = CG_SQRT(f * f + g * g), r = CG_SIGNED(norm, f);
    return (CG_NAME(rotation)){CG_SIZE(f) / norm, g / r, r * scale};
}

static inline void CG_NAME(rotate)(intptr_t n, CG_REAL c, CG_REAL s, CG_REAL *restrict x, CG_REAL *restrict y)
{
    for (intptr_t i = 0; i < n; i++) {
        const CG_REAL first = x[i], second = y[i];
        x[i] = c * first + s * second, y[i] = c * second - s * first;
    }
}

static void CG_NAME(set_identity)(intptr_t n, CG_REAL *x)
{
    for (intptr_t i = 0; i < n * n; i++) x[i] = 0;
    for (intptr_t i = 0; i < n; i++) x[i * (n + 1)] = 1;
}

/* ----- Tridiagonal matrices ----- */
/* The eigenvalues of (a, b; b, c), the larger one in size first, and the vector (c, s) of that: laev2. */
static CG_NAME(rotation) CG_NAME(eigenvalues_of_two)(CG_REAL a, CG_REAL b, CG_REAL c, CG_REAL *first)
{
    const CG_REAL sum = a + c, difference = a - c, twice = CG_SIZE(2 * b), size = CG_SIZE(difference);
    const CG_REAL large = CG_NAME(larger)(size, twice), ratio = CG_NAME(lesser)(size, twice) / large;
    const CG_REAL root = size == twice ? twice * M_SQRT2 : large * CG_SQRT(1 + ratio * ratio);
    const CG_REAL outer = CG_SIZE(a) > CG_SIZE(c) ? a : c, inner = CG_SIZE(a) > CG_SIZE(c) ? c : a;
    *first = sum == 0 ? root / 2 : (sum + CG_SIGNED(root, sum)) / 2;
    const CG_REAL second = sum == 0 ? -root / 2 : outer / *first * inner - b / *first * b;
    const int signs_agree = (sum < 0) == (difference < 0);
    const CG_REAL along = difference < 0 ? difference - root : difference + root;
    CG_REAL x = 1, y = 0;
    if (CG_SIZE(along) > twice) {
        const CG_REAL tangent = -2 * b / along;
        y = 1 / CG_SQRT(1 + tangent * tangent), x = tangent * y;
    } else if (twice != 0) {
        const CG_REAL tangent = -along / (2 * b);
        x = 1 / CG_SQRT(1 + tangent * tangent), y = tangent * x;
    }
    return signs_agree ? (CG_NAME(rotation)){-y, x, second} : (CG_NAME(rotation)){x, y, second};
}

/* Find eigenvalues, in ascending order, in place of the diagonal d beside e, and eigenvectors z, of n rows or none, by implicit QL and QR
 * (steqr): from the end with the larger number. Return whether they were found.
 */
static int CG_NAME(eigenvalues)(intptr_t n, intptr_t rows, void *diagonal, void *beside_it, void *vectors)
{
    CG_REAL *d = diagonal, *e = beside_it, *z = vectors;
    const CG_REAL precision = CG_PRECISION * CG_PRECISION;
    intptr_t left = 30 * n, next;
    CG_NAME(set_identity)(rows, z);
    for (intptr_t first = 0; first < n; first = next) {
        intptr_t last = first;
        while (last < n - 1 && CG_SIZE(e[last]) > CG_SQRT(CG_SIZE(d[last])) * CG_SQRT(CG_SIZE(d[last + 1])) * CG_PRECISION) last++;
        next = last + 1, e[last] = 0;
        CG_REAL norm = 0;
        for (intptr_t i = first; i <= last; i++) norm = CG_NAME(larger)(norm, CG_NAME(larger)(CG_SIZE(d[i]), CG_SIZE(e[i])));
        if (norm == 0 || last == first) continue;
        const CG_REAL scale = norm > CG_FAR || norm * precision < 1 / CG_FAR ? norm : 1;
        for (intptr_t i = first; i <= last; i++) d[i] /= scale, e[i] /= scale;
        const intptr_t step = CG_SIZE(d[last]) < CG_SIZE(d[first]) ? -1 : 1, end = step > 0 ? last : first;
        CG_REAL *const beside = step > 0 ? e : e - 1;    /* beside[i] lies between i and the next one */
        for (intptr_t l = step > 0 ? first : last; (end - l) * step >= 0;) {
            intptr_t m = l;
            while (m != end && beside[m] * beside[m] > precision * CG_SIZE(d[m]) * CG_SIZE(d[m + step]) + CG_SMALLEST) m += step;
            if (m != end) beside[m] = 0;
            if (m == l) {
                l += step;
                continue;
            }
            if (m == l + step) {
                const intptr_t low = l < m ? l : m;
                CG_REAL value;
                const CG_NAME(rotation) pair = CG_NAME(eigenvalues_of_two)(d[low], e[low], d[low + 1], &value);
                d[low] = value, d[low + 1] = pair.r, e[low] = 0, l += 2 * step;
                CG_NAME(rotate)(rows, pair.c, pair.s, z + low * rows, z + (low + 1) * rows);
                continue;
            }
            if (!left--) return 0;
            CG_REAL g = (d[l + step] - d[l]) / (2 * beside[l]), c = 1, s = 1, p = 0;
            g = d[m] - d[l] + beside[l] / (g + CG_SIGNED(CG_SQRT(g * g + 1), g));
            for (intptr_t a = m; a != l; a -= step) {
                const intptr_t b = a - step;
                const CG_REAL f = s * beside[b], turned = c * beside[b];
                const CG_NAME(rotation) turn = CG_NAME(rotation_of)(g, f);
                c = turn.c, s = turn.s;
                if (a != m) beside[a] = turn.r;
                g = d[a] - p;
                const CG_REAL r = (d[b] - g) * s + 2 * c * turned;
                p = s * r, d[a] = g + p, g = c * r - turned;
                CG_NAME(rotate)(rows, c, s, z + a * rows, z + b * rows);
            }
            d[l] -= p, beside[l] = g;
        }
        for (intptr_t i = first; i <= last; i++) d[i] *= scale;
    }
    for (intptr_t i = 0; i < n - 1; i++) {
        intptr_t least = i;
        for (intptr_t j = i + 1; j < n; j++)
            if (d[j] < d[least]) least = j;
        if (least == i) continue;
        CG_NAME(exchange)(d + i, 1, d + least, 1, 1);
        CG_NAME(exchange)(z + i * rows, 1, z + least * rows, 1, rows);
    }
    return 1;
}

/* ----- Bidiagonal matrices ----- */
/* The singular values of (f, g; 0, h) and the rotations that give them: lasv2. */
static void CG_NAME(singular_values_of_two)(CG_REAL f, CG_REAL g, CG_REAL h, CG_REAL *values, CG_NAME(rotation) *left,
                                            CG_NAME(rotation) *right)
{
    const int swapped = CG_SIZE(h) > CG_SIZE(f);
    const CG_REAL first = swapped ? h : f, last = swapped ? f : h, fa = CG_SIZE(first), ga = CG_SIZE(g), ha = CG_SIZE(last);
    CG_REAL least = ha, most = fa, cl = 1, sl = 0, cr = 1, sr = 0;
    int largest = swapped ? 3 : 1;
    if (ga > fa) largest = 2;
    if (ga > fa && fa / ga < CG_PRECISION) {
        most = ga, least = ha > 1 ? fa / (ga / ha) : fa / ga * ha;
        sl = last / g, sr = 1, cr = first / g;
    } else if (ga != 0) {
        const CG_REAL d = fa - ha, m = g / first, mm = m * m;
        CG_REAL l = d == fa ? 1 : d / fa, t = 2 - l;
        const CG_REAL s = CG_SQRT(t * t + mm), r = l == 0 ? CG_SIZE(m) : CG_SQRT(l * l + mm), a = (s + r) / 2;
        least = ha / a, most = fa * a;
        if (mm != 0) t = (m / (s + t) + m / (r + l)) * (1 + a);
        else if (l == 0) t = CG_SIGNED(2, first) * CG_SIGNED(1, g);
        else t = g / CG_SIGNED(d, first) + m / t;
        l = CG_SQRT(t * t + 4);
        cr = 2 / l, sr = t / l;
        cl = (cr + sr * m) / a, sl = last / first * sr / a;
    }
    *left = swapped ? (CG_NAME(rotation)){sr, cr, 0} : (CG_NAME(rotation)){cl, sl, 0};
    *right = swapped ? (CG_NAME(rotation)){sl, cl, 0} : (CG_NAME(rotation)){cr, sr, 0};
    const CG_REAL sign = largest == 1 ? CG_SIGNED(1, right->c) * CG_SIGNED(1, left->c) * CG_SIGNED(1, f)
                        : largest == 2 ? CG_SIGNED(1, right->s) * CG_SIGNED(1, left->c) * CG_SIGNED(1, g)
                                       : CG_SIGNED(1, right->s) * CG_SIGNED(1, left->s) * CG_SIGNED(1, h);
    values[0] = CG_SIGNED(most, sign), values[1] = CG_SIGNED(least, sign * CG_SIGNED(1, f) * CG_SIGNED(1, h));
}

/* The smaller singular value of (f, g; 0, h): las2. */
static CG_REAL CG_NAME(smaller_singular_value)(CG_REAL f, CG_REAL g, CG_REAL h)
{
    const CG_REAL least = CG_NAME(lesser)(CG_SIZE(f), CG_SIZE(h)), most = CG_NAME(larger)(CG_SIZE(f), CG_SIZE(h));
    if (least == 0) return 0;
    const CG_REAL sum = 1 + least / most, difference = (most - least) / most;
    if (CG_SIZE(g) < most) {
        const CG_REAL ratio = g / most * (g / most);
        return least * (2 / (CG_SQRT(sum * sum + ratio) + CG_SQRT(difference * difference + ratio)));
    }
    const CG_REAL ratio = most / CG_SIZE(g), x = sum * ratio, y = difference * ratio;
    return ratio == 0 ? least * most / CG_SIZE(g) : 2 * (least * (1 / (CG_SQRT(1 + x * x) + CG_SQRT(1 + y * y))) * ratio);
}

/* Find singular values, in descending order, in place of the diagonal d beside e, and singular vectors, by implicit QR with shifts or
 * without (bdsqr; Demmel and Kahan 1990), from the end with the larger number. Return whether they were found.
 */
static int CG_NAME(of_upper)(intptr_t n, CG_REAL *d, CG_REAL *e, CG_REAL *left, CG_REAL *right)
{
    const CG_REAL tolerance = CG_NAME(larger)(10, CG_NAME(lesser)(100, pow(CG_PRECISION, -0.125))) * CG_PRECISION;
    CG_REAL bound = CG_SIZE(d[0]), size = bound;
    intptr_t budget = 6 * n * n, m = n - 1, top = -1, bottom = -1, step = 1;
    CG_NAME(set_identity)(n, left);
    CG_NAME(set_identity)(n, right);
    for (intptr_t i = 1; i < n && bound != 0; i++)
        size = CG_SIZE(d[i]) * (size / (size + CG_SIZE(e[i - 1]))), bound = CG_NAME(lesser)(bound, size);
    const CG_REAL threshold = CG_NAME(larger)(tolerance * (bound / CG_SQRT((CG_REAL)n)), 6 * (CG_REAL)(n * n) * CG_SMALLEST);
    while (m > 0) {
        CG_REAL largest = CG_SIZE(d[m]);
        intptr_t low = m;
        while (low > 0 && !(CG_SIZE(e[low - 1]) <= threshold)) {
            low--;
            largest = CG_NAME(larger)(largest, CG_NAME(larger)(CG_SIZE(d[low]), CG_SIZE(e[low])));
        }
        if (low > 0) e[low - 1] = 0;
        if (low == m) {
            m--;
            continue;
        }
        if (low == m - 1) {
            CG_NAME(rotation) of_left, of_right;
            CG_NAME(singular_values_of_two)(d[low], e[low], d[m], d + low, &of_left, &of_right);
            e[low] = 0;
            CG_NAME(rotate)(n, of_right.c, of_right.s, right + low * n, right + m * n);
            CG_NAME(rotate)(n, of_left.c, of_left.s, left + low * n, left + m * n);
            m -= 2;
            continue;
        }
        if (low > bottom || m < top) step = CG_SIZE(d[low]) >= CG_SIZE(d[m]) ? 1 : -1;
        const intptr_t start = step > 0 ? low : m, end = step > 0 ? m : low;
        CG_REAL *const beside = step > 0 ? e : e - 1, *const here = step > 0 ? right : left, *const there = step > 0 ? left : right;
        if (CG_SIZE(beside[end - step]) <= tolerance * CG_SIZE(d[end])) {
            beside[end - step] = 0;
            continue;
        }
        CG_REAL least = size = CG_SIZE(d[start]);
        intptr_t a = start;
        for (; a != end && !(CG_SIZE(beside[a]) <= tolerance * size); a += step)
            size = CG_SIZE(d[a + step]) * (size / (size + CG_SIZE(beside[a]))), least = CG_NAME(lesser)(least, size);
        if (a != end) {
            beside[a] = 0;
            continue;
        }
        top = low, bottom = m;
        CG_REAL shift = 0;
        if (n * tolerance * (least / largest) > CG_NAME(larger)(CG_PRECISION, tolerance / 100)) {
            shift = CG_NAME(smaller_singular_value)(d[end - step], beside[end - step], d[end]);
            const CG_REAL ratio = shift / CG_SIZE(d[start]);
            if (CG_SIZE(d[start]) > 0 && ratio * ratio < CG_PRECISION) shift = 0;
        }
        budget -= m - low;
        if (budget < 0) return 0;
        CG_REAL f = (CG_SIZE(d[start]) - shift) * (CG_SIGNED(1, d[start]) + shift / d[start]), g = beside[start];
        CG_NAME(rotation) x = {1, 0, 0}, y = {1, 0, 0};
        for (a = start; a != end; a += step) {
            const intptr_t b = a + step;
            if (shift == 0) {
                x = CG_NAME(rotation_of)(d[a] * x.c, beside[a]);
                if (a != start) beside[a - step] = y.s * x.r;
                y = CG_NAME(rotation_of)(y.c * x.r, d[b] * x.s);
                d[a] = y.r;
            } else {
                x = CG_NAME(rotation_of)(f, g);
                if (a != start) beside[a - step] = x.r;
                f = x.c * d[a] + x.s * beside[a], beside[a] = x.c * beside[a] - x.s * d[a];
                g = x.s * d[b], d[b] = x.c * d[b];
                y = CG_NAME(rotation_of)(f, g);
                d[a] = y.r, f = y.c * beside[a] + y.s * d[b], d[b] = y.c * d[b] - y.s * beside[a];
                if (b != end) g = y.s * beside[b], beside[b] = y.c * beside[b];
            }
            CG_NAME(rotate)(n, x.c, x.s, here + a * n, here + b * n);
            CG_NAME(rotate)(n, y.c, y.s, there + a * n, there + b * n);
        }
        if (shift == 0) f = d[end] * x.c * y.s, d[end] = d[end] * x.c * y.c;
        beside[end - step] = CG_SIZE(f) <= threshold ? 0 : f;
    }
    for (intptr_t i = 0; i < n; i++)
        if (d[i] < 0 || (d[i] == 0 && signbit(d[i]))) {
            for (intptr_t k = 0; k < n && d[i] < 0; k++) right[i * n + k] = -right[i * n + k];
            d[i] = -d[i];
        }
    for (intptr_t last = n - 1; last > 0; last--) {
        intptr_t least = 0;
        for (intptr_t j = 1; j <= last; j++)
            if (d[j] <= d[least]) least = j;
        if (least == last) continue;
        CG_NAME(exchange)(d + least, 1, d + last, 1, 1);
        CG_NAME(exchange)(left + least * n, 1, left + last * n, 1, n);
        CG_NAME(exchange)(right + least * n, 1, right + last * n, 1, n);
    }
    return 1;
}

/* The same of a matrix that may be lower bidiagonal: rotations, for which there is room, make that upper bidiagonal first (bdsdc). */
static int CG_NAME(singular_values)(int lower, intptr_t n, void *diagonal, void *beside_it, void *left, void *right, void *room)
{
    CG_REAL *d = diagonal, *e = beside_it, *u = left;
    CG_NAME(rotation) *turns = room;
    for (intptr_t i = 0; lower && i < n - 1; i++) {
        turns[i] = CG_NAME(rotation_of)(d[i], e[i]);
        d[i] = turns[i].r, e[i] = turns[i].s * d[i + 1], d[i + 1] *= turns[i].c;
    }
    if (!CG_NAME(of_upper)(n, d, e, u, right)) return 0;
    for (intptr_t i = n - 2; lower && i >= 0; i--)
        for (intptr_t j = 0; j < n; j++) CG_NAME(rotate)(1, turns[i].c, -turns[i].s, u + i + j * n, u + i + 1 + j * n);
    return 1;
}

static const cg_iterations CG_NAME(iterations) = {CG_NAME(eigenvalues), CG_NAME(singular_values)};

#undef CG_DOUBLE
#undef CG_PRECISION
#undef CG_SMALLEST
#undef CG_FAR
#undef CG_SIZE
#undef CG_SIGNED
