"""Coupled worlds: what a release reveals to somebody who does not know everything, and an exact checker for it.

Priors over (data, auxiliary knowledge), pairs (alt, priv), simulators; the definitions of the family as types; the
smallest delta of a finite mechanism, with both ends certified, against a given or the best simulator.
"""

from tacit.coupled.cells import cell_of
from tacit.coupled.composition import (
    Composed,
    compose_disjoint_rows,
    compose_known,
    independent_given_auxiliary,
)
from tacit.coupled.definitions import (
    CoupledWorlds,
    Definition,
    Distributional,
    InferenceCoupledWorlds,
    InferenceDistributional,
    Noiseless,
    SimulationDP,
)
from tacit.coupled.files import Question, read_question
from tacit.coupled.mechanisms import FiniteMechanism, Simulator, filling_in
from tacit.coupled.numbers import Level
from tacit.coupled.pairs import (
    Pair,
    Secret,
    blurred_firm,
    graph_edge,
    graph_node,
    one_row,
    participation_secret,
    person_rows,
    private_column,
    row_pairs,
    student_of_school,
    value_secret,
)
from tacit.coupled.priors import (
    Prior,
    iid_rows,
    independent_rows,
    known_rows,
    mixture,
    point_prior,
    point_priors,
    with_auxiliary,
)
from tacit.coupled.promise import promised
from tacit.coupled.pufferfish import InferencePufferfish, Pufferfish
from tacit.coupled.sampling import binomial_size, fixed_size, laplace_size, poisson_size, sampled_rows
from tacit.coupled.semantic import neighbour_priors, semantic_failure
from tacit.coupled.verdict import Found, Verdict, Witness
from tacit.guarantees.laws.coupled import (
    pair_of_values,
    posterior_coupled,
    posterior_coupled_printed,
    posterior_pufferfish,
    semantic_to_dp,
)

__all__ = [
    "Composed",
    "CoupledWorlds",
    "Definition",
    "Distributional",
    "FiniteMechanism",
    "Found",
    "InferenceCoupledWorlds",
    "InferenceDistributional",
    "InferencePufferfish",
    "Level",
    "Noiseless",
    "Pair",
    "Prior",
    "Pufferfish",
    "Question",
    "Secret",
    "SimulationDP",
    "Simulator",
    "Verdict",
    "Witness",
    "binomial_size",
    "blurred_firm",
    "cell_of",
    "compose_disjoint_rows",
    "compose_known",
    "filling_in",
    "fixed_size",
    "graph_edge",
    "graph_node",
    "iid_rows",
    "independent_given_auxiliary",
    "independent_rows",
    "known_rows",
    "laplace_size",
    "mixture",
    "neighbour_priors",
    "one_row",
    "pair_of_values",
    "participation_secret",
    "person_rows",
    "point_prior",
    "point_priors",
    "poisson_size",
    "posterior_coupled",
    "posterior_coupled_printed",
    "posterior_pufferfish",
    "private_column",
    "promised",
    "read_question",
    "row_pairs",
    "sampled_rows",
    "semantic_failure",
    "semantic_to_dp",
    "student_of_school",
    "value_secret",
    "with_auxiliary",
]
