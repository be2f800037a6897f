"""Functions that a curator releases: densities, classifiers and regression functions, with bands and certificates.

Read in this order: `statistics.py` (columns as coordinates, and what is asked), `fits.py` (how it is fitted),
`treatment.py` (its noise, its price, its band, and what comes out).
"""

from tacit.curator.functions.fits import Density, density
from tacit.curator.functions.statistics import Classifier, RegressionFunction, classifier, regression_function
from tacit.curator.functions.treatment import PublishedFunction

__all__ = [
    "Classifier",
    "Density",
    "PublishedFunction",
    "RegressionFunction",
    "classifier",
    "density",
    "regression_function",
]
