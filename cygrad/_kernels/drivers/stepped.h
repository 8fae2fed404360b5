/* The functions of single numbers by their names: of two numbers and a parameter, in double. */
#ifndef CG_STEPPED_H
#define CG_STEPPED_H
#include <math.h>
#include <stddef.h>
#include "mathematics/vecmath.h"
#include "mathematics/inversemath.h"
#include "mathematics/errormath.h"
#include "mathematics/gammamath.h"
#include "mathematics/sumsmath.h"
#include "mathematics/incompletegamma.h"
#include "mathematics/recurrences.h"

typedef double (*cg_number_function)(double a, double b, double parameter);
typedef struct {
    const char *name;
    cg_number_function compute;
} cg_stepped_function;

#define CG_STEPPED(name, value) \
    static double stepped_##name(double a, double b, double parameter) { return value; }
#define CG_STEPPED_FUNCTIONS(ROW)                                  \
    ROW(zeta, a == INFINITY && b > 0 ? pow(b, -a) : whole_zeta(a, b)) \
    ROW(lower_gamma, incomplete_gamma(a, b, 0))                    \
    ROW(upper_gamma, incomplete_gamma(a, b, 1))                    \
    ROW(lower_gamma_slope, gamma_slope(a, b))                      \
    ROW(chebyshev_t, chebyshev(a, b, 't'))                         \
    ROW(chebyshev_u, chebyshev(a, b, 'u'))                         \
    ROW(chebyshev_v, chebyshev(a, b, 'v'))                         \
    ROW(chebyshev_w, chebyshev(a, b, 'w'))                         \
    ROW(hermite_h, polynomial(a, b, 0, CG_HERMITE))                \
    ROW(hermite_he, polynomial(a, b, 0, CG_HERMITE_E))             \
    ROW(laguerre, polynomial(a, b, parameter, CG_LAGUERRE))        \
    ROW(gegenbauer, polynomial(a, b, parameter, CG_GEGENBAUER))    \
    ROW(spherical_bessel, spherical_bessel(a, parameter))
CG_STEPPED_FUNCTIONS(CG_STEPPED)

#define CG_STEPPED_ROW(name, value) {#name, stepped_##name},
static const cg_stepped_function cg_stepped_functions[] = {CG_STEPPED_FUNCTIONS(CG_STEPPED_ROW) {NULL, NULL}};

#endif
