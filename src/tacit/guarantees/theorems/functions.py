"""The theorems of functions: Gaussian-process release, and how its paths are computed."""

from __future__ import annotations

from tacit.guarantees.theorems.register import Standing, register

register(
    "gaussian-process-release",
    "A function in the RKHS of K plus noise_std times a Gaussian process with covariance K is exactly "
    "(RKHS sensitivity / noise_std)-Gaussian private, for the whole path.",
    "Hall 2012, Prop. 3.2.2 and 3.2.3",
    "the sensitivity bounds the RKHS norm of the difference, for all neighbours",
    Standing.SHARPER,
)
register(
    "gaussian-process-batch",
    "Values at m points have covariance noise_std^2 times the Gram matrix; their Mahalanobis move is at most "
    "the RKHS norm of the difference.",
    "Hall 2012, 3.2.5",
    "the sensitivity bounds the RKHS norm of the difference, for all neighbours",
    Standing.CORRECTED,
)
register(
    "gaussian-process-online",
    "A path asked point by point, each value drawn given those before, has the law of the batch; a point at "
    "which the conditional variance is negligible is interpolated, which is post-processing.",
    "Hall 2012, 3.2.5",
    "questions may depend on the answers before, and on nothing else that is secret",
    Standing.CORRECTED,
)
register(
    "gaussian-process-dominated",
    "Noise whose covariance is at least noise_std^2 times the Gram matrix is at least as private; floats can certify "
    "such a covariance for any Gram matrix, singular ones included.",
    "proved on the page",
    "the kernel's floats err by at most gram_error",
    Standing.SHARPER,
)
register(
    "gaussian-process-grid",
    "On a regular grid, amplitudes whose squares are at least the eigenvalues of a circulant extension give noise that "
    "dominates the kernel's, negative eigenvalues included; rounding it is exact.",
    "circulant embedding: Dietrich, Newsam 1997; the domination is proved on the page",
    "a stationary kernel, even in each coordinate; the transform's error bound",
    Standing.SHARPER,
)
register(
    "gaussian-process-expansion",
    "Coefficients <f_D, phi_j> in functions whose Gram matrix in the RKHS has norm at most 1 move by at most the RKHS "
    "sensitivity; with Gaussian noise they are a function that carries no data.",
    "proved on the page; Hall 2012, 3.1.1 and 3.2",
    "the functions are public",
    Standing.SHARPER,
)
register(
    "gaussian-process-markov",
    "On a line, the path of an exponential or Matern kernel with its derivatives is a Markov process, so that a new "
    "point needs the states of its two neighbours only; kept states with radii lose nothing.",
    "proved on the page; Hartikainen, Sarkka 2010",
    "smoothness 1/2, 3/2 or 5/2, one dimension",
    Standing.SHARPER,
)
register(
    "fourier-series-density",
    "The periodic Gaussian kernel has the Fourier coefficients exp(-2 pi^2 j^2 h^2); what going round the circle and "
    "cutting at a frequency cost is bounded with explicit constants.",
    "Hall 2012, Lemma 4.3.1, Prop. 4.3.2 and 4.3.3",
    "none about the rows",
    Standing.CORRECTED,
)
register(
    "fourier-rates",
    "Noise energies of Fourier series densities in closed form: Laplace and Gamma noise fall as n^((d-8)/(d+4)), "
    "Gaussian noise as n^(-8/(d+4)), Caratheodory noise for d = 1 as n^(-8/5).",
    "Hall 2012, 4.4.1, 4.4.2 and 1.5",
    "m of order n^(1/(d+4)); replace-one neighbours",
    Standing.CORRECTED,
)
