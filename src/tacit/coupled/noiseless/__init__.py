"""When may an exact answer be published? Groce 2014, ch. 6: sums, means and counts hidden by the other rows.

"Noiseless" is meant as in the thesis: privacy for a class of priors over the data, with a simulator that sees the
other rows. Another definition of that name does not use probabilities.
"""

from tacit.coupled.noiseless.answer import ExactAnswer, row_law
from tacit.coupled.noiseless.row_laws import RowLaw, bernoulli, laplace, normal, table, uniform
from tacit.coupled.noiseless.sums import exact_count, exact_mean, exact_sum, exact_vector_sum

__all__ = [
    "ExactAnswer",
    "RowLaw",
    "bernoulli",
    "exact_count",
    "exact_mean",
    "exact_sum",
    "exact_vector_sum",
    "laplace",
    "normal",
    "row_law",
    "table",
    "uniform",
]
