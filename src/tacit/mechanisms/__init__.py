"""Mechanisms: numbers in, noisy numbers out, each with its bound, its error and its distribution of noise."""

from __future__ import annotations

from tacit.mechanisms import (
    base,
    bodies,
    bounded,
    cumulative,
    fourier,
    gaussian,
    knorm,
    laplace,
    linear,
    local,
    objective,
    own_statistics,
    partition,
    polytope,
    propose_test_release,
    pure_objective,
    quantiles,
    ranges,
    rank_selection,
    selection,
    smooth,
    sparse,
    sparse_keys,
    sparse_ranks,
    stability,
    strategies,
    subset_selection,
    tables,
    two_questions,
)
from tacit.mechanisms.base import *
from tacit.mechanisms.bodies import *
from tacit.mechanisms.bounded import *
from tacit.mechanisms.cumulative import *
from tacit.mechanisms.fourier import *
from tacit.mechanisms.gaussian import *
from tacit.mechanisms.knorm import *
from tacit.mechanisms.laplace import *
from tacit.mechanisms.linear import *
from tacit.mechanisms.local import *
from tacit.mechanisms.objective import *
from tacit.mechanisms.own_statistics import *
from tacit.mechanisms.partition import *
from tacit.mechanisms.polytope import *
from tacit.mechanisms.propose_test_release import *
from tacit.mechanisms.pure_objective import *
from tacit.mechanisms.quantiles import *
from tacit.mechanisms.ranges import *
from tacit.mechanisms.rank_selection import *
from tacit.mechanisms.selection import *
from tacit.mechanisms.smooth import *
from tacit.mechanisms.sparse import *
from tacit.mechanisms.sparse_keys import *
from tacit.mechanisms.sparse_ranks import *
from tacit.mechanisms.stability import *
from tacit.mechanisms.strategies import *
from tacit.mechanisms.subset_selection import *
from tacit.mechanisms.tables import *
from tacit.mechanisms.two_questions import *

__all__ = sorted(
    [
        *base.__all__,
        *bodies.__all__,
        *bounded.__all__,
        *cumulative.__all__,
        *fourier.__all__,
        *gaussian.__all__,
        *knorm.__all__,
        *laplace.__all__,
        *linear.__all__,
        *local.__all__,
        *own_statistics.__all__,
        *objective.__all__,
        *partition.__all__,
        *polytope.__all__,
        *propose_test_release.__all__,
        *pure_objective.__all__,
        *quantiles.__all__,
        *ranges.__all__,
        *rank_selection.__all__,
        *selection.__all__,
        *smooth.__all__,
        *sparse.__all__,
        *sparse_keys.__all__,
        *sparse_ranks.__all__,
        *stability.__all__,
        *strategies.__all__,
        *subset_selection.__all__,
        *tables.__all__,
        *two_questions.__all__,
    ]
)
