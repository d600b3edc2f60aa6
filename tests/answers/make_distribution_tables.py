#!/usr/bin/env python3
"""Writes distribution_tables.txt: values of SciPy's distribution functions, one distribution a line:

    NAME PARAMETERS... : X P(value <= X) X P(value <= X) ...

at points that lie evenly over the probabilities."""
import pathlib

import numpy as np
import scipy.stats as st

CASES = [
    ("uniform", [-2, 5], st.uniform(-2, 7)),
    ("normal", [1, 2.5], st.norm(1, 2.5)),
    ("lognormal", [0.5, 0.75], st.lognorm(0.75, scale=np.exp(0.5))),
    ("exponential", [3], st.expon(scale=3)),
    ("gumbel", [1, 2], st.gumbel_r(1, 2)),
    ("laplace", [-1, 0.5], st.laplace(-1, 0.5)),
    ("logistic", [2, 3], st.logistic(2, 3)),
    ("standard_cauchy", [], st.cauchy()),
    ("standard_gamma", [0.3], st.gamma(0.3)),
    ("standard_gamma", [1], st.gamma(1)),
    ("gamma", [4.5, 2], st.gamma(4.5, scale=2)),
    ("beta", [0.4, 0.7], st.beta(0.4, 0.7)),
    ("beta", [3, 2], st.beta(3, 2)),
    ("chisquare", [5], st.chi2(5)),
    ("noncentral_chisquare", [3, 4], st.ncx2(3, 4)),
    ("noncentral_chisquare", [0.7, 2], st.ncx2(0.7, 2)),
    ("f", [4, 7], st.f(4, 7)),
    ("noncentral_f", [4, 7, 2], st.ncf(4, 7, 2)),
    ("standard_t", [4], st.t(4)),
    ("pareto", [3], st.lomax(3)),
    ("power", [2.5], st.powerlaw(2.5)),
    ("rayleigh", [2], st.rayleigh(scale=2)),
    ("weibull", [1.5], st.weibull_min(1.5)),
    ("triangular", [-1, 0.5, 3], st.triang(0.375, -1, 4)),
    ("wald", [2, 3], st.invgauss(2 / 3, scale=3)),
    ("vonmises", [0.5, 2], None),
    ("vonmises", [-1, 1e-3], None),
    ("poisson", [0.7], st.poisson(0.7)),
    ("poisson", [9.9], st.poisson(9.9)),
    ("poisson", [10.5], st.poisson(10.5)),
    ("poisson", [4321.5], st.poisson(4321.5)),
    ("binomial", [20, 0.3], st.binom(20, 0.3)),
    ("binomial", [60, 0.8], st.binom(60, 0.8)),
    ("binomial", [100, 0.4], st.binom(100, 0.4)),
    ("binomial", [1000000, 0.01], st.binom(1000000, 0.01)),
    ("binomial", [5000000000, 0.75], st.binom(5000000000, 0.75)),
    ("negative_binomial", [4.5, 0.3], st.nbinom(4.5, 0.3)),
    ("geometric", [0.05], st.geom(0.05)),
    ("geometric", [0.7], st.geom(0.7)),
    ("hypergeometric", [15, 25, 10], st.hypergeom(40, 15, 10)),
    ("hypergeometric", [15, 25, 33], st.hypergeom(40, 15, 33)),
    ("hypergeometric", [20, 300, 40], st.hypergeom(320, 20, 40)),
    ("hypergeometric", [700, 300, 500], st.hypergeom(1000, 700, 500)),
    ("hypergeometric", [40000, 25000, 60000], st.hypergeom(65000, 40000, 60000)),
    ("hypergeometric", [300000, 2000000, 1000], st.hypergeom(2300000, 300000, 1000)),
    ("zipf", [2.5], st.zipf(2.5)),
    ("logseries", [0.8], st.logser(0.8)),
]


def von_mises(mu, kappa):
    """Of angles in [-pi, pi)."""
    grid = np.linspace(-np.pi, np.pi, 200001)
    density = np.exp(kappa * np.cos(grid - mu))
    cdf = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    cdf /= cdf[-1]
    x = np.linspace(-3, 3, 25)
    return x, np.interp(x, grid, cdf)


def main():
    lines = []
    for name, parameters, law in CASES:
        if law is None:
            x, p = von_mises(*parameters)
        else:
            x = np.unique(law.ppf(np.linspace(0.02, 0.98, 25)))
            p = law.cdf(x)
        pairs = " ".join(f"{a:.17g} {b:.12g}" for a, b in zip(x, p))
        lines.append(f"{name} {' '.join(str(q) for q in parameters)} : {pairs}\n")
    (pathlib.Path(__file__).parent / "distribution_tables.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
