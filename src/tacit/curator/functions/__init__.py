"""Functions that a curator releases: densities, classifiers and regression functions, with bands and certificates.

Read in this order: `inputs.py` (columns as coordinates), `statistics.py` (what is asked), `fits.py` and `density.py`
(how it is fitted), `treatment.py` (its noise, its price and its band), `published.py` (what comes out).
"""

from tacit.curator.functions.density import Density, density
from tacit.curator.functions.published import PublishedFunction
from tacit.curator.functions.statistics import Classifier, RegressionFunction, classifier, regression_function

__all__ = [
    "Classifier",
    "Density",
    "PublishedFunction",
    "RegressionFunction",
    "classifier",
    "density",
    "regression_function",
]
