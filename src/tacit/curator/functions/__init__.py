"""Functions that a curator releases: densities, classifiers, regression functions, models; bands and certificates.

Read in this order: `statistics.py` (columns as coordinates, and the queries), `fits.py` (the fits), `assignment.py`
(noise, price, band and output). `models.py` has all of a model, `trees.py` all of a decision tree, `by_test.py` all
of a regression by propose-test-release.
"""

from tacit.curator.functions.assignment import PublishedFunction
from tacit.curator.functions.by_test import RegressionByTest, regression_by_test
from tacit.curator.functions.fits import Density, density
from tacit.curator.functions.models import additive_model, linear_regression, logistic_regression
from tacit.curator.functions.statistics import Classifier, RegressionFunction, classifier, regression_function
from tacit.curator.functions.trees import DecisionTree, PublishedTree, decision_tree

__all__ = [
    "Classifier",
    "DecisionTree",
    "Density",
    "PublishedFunction",
    "PublishedTree",
    "RegressionByTest",
    "RegressionFunction",
    "additive_model",
    "classifier",
    "decision_tree",
    "density",
    "linear_regression",
    "logistic_regression",
    "regression_by_test",
    "regression_function",
]
