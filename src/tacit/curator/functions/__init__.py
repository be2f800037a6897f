"""Functions that a curator releases: densities, classifiers and regression functions, with bands and certificates.

Read in this order: `statistics.py` (columns as coordinates, and what is asked), `fits.py` (how it is fitted),
`treatment.py` (its noise, its price, its band, and what comes out); `trees.py` has all of a decision tree.
"""

from tacit.curator.functions.fits import Density, density
from tacit.curator.functions.statistics import Classifier, RegressionFunction, classifier, regression_function
from tacit.curator.functions.treatment import PublishedFunction
from tacit.curator.functions.trees import DecisionTree, PublishedTree, decision_tree

__all__ = [
    "Classifier",
    "DecisionTree",
    "Density",
    "PublishedFunction",
    "PublishedTree",
    "RegressionFunction",
    "classifier",
    "decision_tree",
    "density",
    "regression_function",
]
