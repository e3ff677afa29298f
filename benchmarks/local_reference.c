/* The house learner in C: what benchmarks/local.py holds untold's loop against. No noise: see there.
 *
 * The formulas are those of src/untold/learners/bettor.py; the order of the sums is the compiler's. Two passes
 * over a row: θ is kept, w = f·θ is never formed, and the average is folded while θ is updated.
 * Compiled with -O3 -march=native -ffast-math -fno-finite-math-only. */

#include <math.h>
#include <stdint.h>

static const double BOLDNESS = 0.8, PURSE = 0.35, STEEPEST = 50.0;

/* What is told beforehand: dimension, bound on a report, rounds planned, decay of the average. */
typedef struct {
    int64_t d;
    double G, T, decay;
} Plan;

static inline double logistic_slope(double z, double y) {
    double e = exp(-fabs(z));
    return -y * (y * z < 0.0 ? 1.0 : e) / (1.0 + e);
}

/* What is kept of a report with that square; its square becomes that of what is kept. */
static inline double kept(double *square, double S, double before, double G) {
    double limit = before > 0.0 ? fmax(G * G, 4.0 * (S / before)) : G * G, share = 1.0;
    if (!(*square <= limit)) {
        share = sqrt(limit / *square);
        *square = limit;
    }
    return share;
}

/* f with w = f·θ. */
static inline double stretch(double of_theta, double nu, double t, Plan p) {
    if (!(nu > 0.0 && nu < 1e300 && of_theta < INFINITY))
        return 0.0;
    double rest = nu * p.T * (sqrt((double)p.d) / BOLDNESS - 1.0);
    double taken = nu * t + 2.0 * p.G * p.G;
    double B = rest + taken;
    double purse = PURSE * sqrt(p.G * p.T * sqrt(nu * p.T));
    double exponent = of_theta / (2.0 * B) - 0.5 * p.d * log1p(taken / rest);
    return purse / B * exp(fmin(exponent, STEEPEST));
}

/* ⟨a, x⟩ and ‖x‖². */
static inline double look(const double *restrict x, const double *restrict a, int64_t d, double *of_x) {
    double z = 0.0, s = 0.0;
    for (int64_t j = 0; j < d; j++) {
        z += x[j] * a[j];
        s += x[j] * x[j];
    }
    *of_x = s;
    return z;
}

/* Folds w = f·θ into the average, takes the report a·x from θ, and gives ‖θ‖². */
static inline double take(double *restrict mean, double rho, double f, double *restrict theta, double a,
                          const double *restrict x, int64_t d) {
    double s = 0.0;
    for (int64_t j = 0; j < d; j++) {
        mean[j] += rho * (f * theta[j] - mean[j]);
        theta[j] -= a * x[j];
        s += theta[j] * theta[j];
    }
    return s;
}

/* One pass over n rows: margin, logistic slope, clip, update, average. mean and theta start at 0. */
void learn_rows(const double *X, const double *y, int64_t n, Plan p, double *mean, double *theta) {
    double f = 0.0, S = 0.0, of_x;
    for (int64_t i = 0; i < n; i++) {
        const double *x = X + i * p.d;
        double t = i + 1;
        double a = logistic_slope(f * look(x, theta, p.d, &of_x), y[i]);
        double length = fabs(a) * sqrt(of_x);
        if (length > p.G)
            a *= p.G / length;
        double square = a * a * of_x;
        a *= kept(&square, S, t - 1.0, p.G);
        double nu = i ? S / ((t - 1.0) * p.d) : 0.0;
        S += square;
        double of_theta = take(mean, (1.0 + p.decay) / (t + p.decay), f, theta, a, x, p.d);
        if (t > p.T)
            p.T *= 2.0;
        f = stretch(of_theta, nu, t, p);
    }
}

/* One pass over n reports that were made elsewhere. */
void take_reports(const double *reports, int64_t n, Plan p, double *mean, double *theta) {
    double f = 0.0, S = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double *g = reports + i * p.d;
        double t = i + 1, of_g = 0.0;
        for (int64_t j = 0; j < p.d; j++)
            of_g += g[j] * g[j];
        double a = kept(&of_g, S, t - 1.0, p.G);
        double nu = i ? S / ((t - 1.0) * p.d) : 0.0;
        S += of_g;
        double of_theta = take(mean, (1.0 + p.decay) / (t + p.decay), f, theta, a, g, p.d);
        if (t > p.T)
            p.T *= 2.0;
        f = stretch(of_theta, nu, t, p);
    }
}
