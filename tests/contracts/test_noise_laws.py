"""Every noise has a law and a variance, and what is called a standard deviation is one of what is drawn.

All classes are found by walking the rooms: one that is in no table here fails. Variances are compared with sums over
the law and with seeded draws, within 6.8 standard errors (an error below 1e-10 each).
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from support.parameter_examples import MECHANISMS, NOISE
from tacit.errors import NoLaw, NotCertified
from tacit.exact.rounding import ball
from tacit.functions.densities import noises
from tacit.mechanisms import L1, L2, AdditiveMechanism, Gauge, KNorm, Laplace, Mechanism, SmoothBound
from tacit.mechanisms import smooth as smooth_noise
from tacit.mechanisms.base import ShapedMechanism
from tacit.mechanisms.fitted_tables import Agreement, FittedTables, HullTables, Image
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.polytope import _Cone, _Range
from tacit.mechanisms.ranges import RangeAnswers
from tacit.mechanisms.tables import CellSums, ShapedTables, TableMechanism
from tacit.noise import (
    ComputableDistribution,
    ContinuousDistribution,
    Difference,
    DiscreteDistribution,
    DiscreteGaussian,
    FormulaBody,
    KNormVector,
    LinfBall,
    SampledBody,
    SeededSource,
)
from tacit.parties.noise import JointPolya, JointSkellam

ROOMS = ("noise", "mechanisms", "functions", "parties", "risk")
CUBE = LinfBall(coordinates=2)
FORMULA = FormulaBody(coordinates=2, primitives=CUBE.needs(), sampler=CUBE.formula, is_symmetric=True)


@cache
def found(base: type) -> dict[str, type]:
    """Every class under `base` of the rooms that make noise, private ones too, but for those that are abstract."""
    out: dict[str, type] = {}
    for room in ROOMS:
        package = importlib.import_module(f"tacit.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"tacit.{room}."):
            for value in vars(importlib.import_module(module.name)).values():
                own = inspect.isclass(value) and value.__module__ == module.name
                if own and issubclass(value, base) and not inspect.isabstract(value):
                    out[value.__name__] = value
    return out


def near(values: Any, variance: float, mean: float = 0.0) -> bool:
    """Whether the mean of squares is within 6.8 of its standard errors from the variance."""
    squares = (np.asarray(values, dtype=np.float64) - mean) ** 2
    return bool(
        abs(squares.mean() - variance) <= 6.8 * squares.std() / math.sqrt(squares.size) + 1e-9 * variance
    )


def source() -> SeededSource:
    return SeededSource(seed=29)


# --- laws on the integers -----------------------------------------------------------------------------------
DISCRETE: dict[str, DiscreteDistribution] = {
    name: cls(**NOISE.get(name, cls.example))
    for name, cls in found(DiscreteDistribution).items()
    if name in NOISE or cls.example
}
COMPUTABLE = ComputableDistribution(cumulative_ball=lambda k: 1 - ball(2) ** -(k + 1))


def test_discrete_laws_are_all_here() -> None:
    assert set(found(DiscreteDistribution)) - set(DISCRETE) == {"ComputableDistribution"}
    assert len(DISCRETE) >= 11
    with pytest.raises(NotCertified, match="cumulative probabilities only"):
        _ = COMPUTABLE.variance
    assert COMPUTABLE.probability(1)[0] == 0.25


@pytest.mark.parametrize("name", sorted(DISCRETE))
def test_the_variance_of_a_discrete_law_is_a_sum_over_it(name: str) -> None:
    law = DISCRETE[name]
    low, high = law.quantile(1e-12), law.quantile(1 - 1e-12)
    k = np.arange(low, high + 1, dtype=np.float64)
    p = np.array([sum(law.probability(int(v))) / 2 for v in k])
    mean = float((k * p).sum())
    assert law.mean == pytest.approx(mean, abs=1e-8)
    assert law.variance == pytest.approx(float((k**2 * p).sum()) - mean**2, rel=1e-7)
    assert law.std == pytest.approx(math.sqrt(law.variance), rel=1e-12)
    assert near(law.sample(size=2000, source=source()), law.variance, mean)


# --- laws of real vectors -----------------------------------------------------------------------------------
CONTINUOUS: dict[str, ContinuousDistribution] = {
    **{name: cls(**NOISE[name]) for name, cls in found(ContinuousDistribution).items() if name in NOISE},
    **{name: found(ContinuousDistribution)[name](**MECHANISMS[name]) for name in ("Box", "Simplex")},
    "Difference": Difference(distribution=KNormVector(body=CUBE, noise_scale=2)),
    "_Cone": _Cone(corners=((1, 0), (1, 2)), noise_scale=Fraction(3)),
    "_Range": _Range(coordinates=3, noise_scale=Fraction(3)),
    "_Laplace": smooth_noise._Laplace(Fraction(2)),
    "_Student": smooth_noise._Student(Fraction(2), 9),
    "FormulaBody": FORMULA,
}
# The formula of somebody's own has the moments that they declare, and no law of a coordinate; of the Caratheodory body
# the first complex coordinate has a law, and its noise every one.
WITHOUT_LAW = {"FormulaBody": range(2), "CaratheodoryBody": range(2, 6)}


def test_continuous_laws_are_all_here() -> None:
    names = {n for n, cls in found(ContinuousDistribution).items() if not n.startswith("_Round")}
    assert names == set(CONTINUOUS)


@pytest.mark.parametrize("name", sorted(set(CONTINUOUS) - {"FormulaBody"}))
def test_continuous_laws_have_their_variance(name: str) -> None:
    law = CONTINUOUS[name]
    drawn = law.sample(spacing=2.0**-20, size=2000, source=source()).to_floats()
    for i in range(law.dimension):
        assert near(drawn[:, i], law.variances[i], float(law.exact_means[i]))
        assert law.covariance[i, i] == pytest.approx(law.variances[i], rel=1e-12)
        if i not in WITHOUT_LAW.get(name, ()):
            one = law.marginal(i)
            assert (one.variance, one.mean) == pytest.approx(
                (law.variances[i], float(law.exact_means[i])), abs=1e-12
            )


def test_what_has_no_law_says_why() -> None:
    for name, places in WITHOUT_LAW.items():
        for i in places:
            with pytest.raises(NoLaw):
                CONTINUOUS[name].marginal(i)
    with pytest.raises(NoLaw, match="a sampler's formula says nothing"):
        _ = FORMULA.variances
    with pytest.raises(NoLaw, match="infinite"):
        _ = smooth_noise._Student(Fraction(1), 2).variances
    sampled = SampledBody(
        coordinates=1,
        sampler=lambda n, s: np.zeros((n, 1)),
        absolute_error=1e-9,
        marginal_density_bound=1.0,
        reach=1.0,
    )
    black_box = KNorm(sensitivity=Gauge(1, sampled), noise_scale=1)
    for read in (lambda: black_box.law, lambda: black_box.noise_std, lambda: black_box.marginal(0)):
        with pytest.raises(NoLaw, match="black box"):
            read()


# --- mechanisms ---------------------------------------------------------------------------------------------
NO_NOISE = {
    "Exponential": "chooses; `probabilities` is its law",
    "PermuteAndFlip": "chooses; `probabilities` is its law",
    "Selection": "chooses by one of the two",
    "QuantileSelection": "chooses bins by ranks, three times",
    "RankSelection": "chooses bins by ranks; its law in tests/mechanisms/test_rank_selection.py",
    "SparseRankSelection": "chooses ranges by ranks; its law in tests/mechanisms/test_sparse_ranks.py",
    "ObjectivePerturbation": "the minimiser's law, integrated in tests/mechanisms/test_objective.py",
    "PureObjectivePerturbation": "the minimiser's law, integrated in tests/mechanisms/test_pure_objective.py",
    "OptimalCount": "a remap of a truncated geometric count; its matrix is its law",
    "OptimalFinite": "a matrix of probabilities is its law",
    "RingChance": "no noise, the chance that a ring of masks fails",
    "TruncatedGeometric": "clamps: the law depends on the count; `probability`, and `distribution` before clamping",
    "SparseHistogram": "that of `noise`, for cells that pass",
    "StableHistogram": "that of `noise`, for keys that pass",
    "_Side": "one of two noises, for errors only",
    "GaussianProcessRelease": "a function; `noise_std_at`, `noise_covariance` in tests/functions/test_path_values.py",
    "CumulativeTree": "`distribution` is of one node; `noise_stds` in tests/mechanisms/test_cumulative.py",
    "CumulativeGaussian": "`noise_stds` in tests/mechanisms/test_cumulative.py; noise of 2^16 steps",
    "RandomizedResponse": "`law(people=)` and `variance` by enumeration in tests/mechanisms/test_local.py",
    "SubsetSelection": "`law(people=)` and `variance` by enumeration in tests/mechanisms/test_local_sets.py",
    "HadamardResponse": "`law(people=)` and `variance` by enumeration in tests/mechanisms/test_local_sets.py",
    "TwoQuestions": "`variance` and `covariance` by enumeration in tests/mechanisms/test_two_questions.py",
}
CHECKED = {
    "GaussianSelection", "InterquartileRangeByTest", "IntervalExponential", "JointPolya", "JointSkellam",
    "MedianByTest", "OptimalSelection", "SmoothLaplace", "SmoothStudent", "StatisticByTest",
}  # fmt: skip
TABLES: dict[str, TableMechanism] = {
    "CellSums": CellSums(noise=Laplace(sensitivity=L1(1), noise_scale=2), sums=(np.array([0, 0, 1]),)),
    "FittedTables": FittedTables.for_target(
        epsilon=Fraction(1), l1=2,
        agreement=Agreement(places=(np.array([0, 0]), np.array([0, 1])), sizes=(1, 2)),
    ),
    "HullTables": HullTables(image=Image(patterns=((1, 0), (0, 1), (1, 1)), sizes=(2,)), noise_scale=Fraction(2)),
    "RangeAnswers": RangeAnswers(
        noise=RoundedGaussian(sensitivity=L2(1), noise_std=Fraction(3, 10), dimension=3),
        ranges=np.array([[0, 1], [2, 2]]), cells=3,
    ),
    "ShapedTables": ShapedTables(**MECHANISMS["ShapedTables"]),
}  # fmt: skip


def kinds() -> tuple[dict[str, type], dict[str, type]]:
    every = found(Mechanism)
    additive = {n: c for n, c in every.items() if issubclass(c, AdditiveMechanism)}
    shaped = {n: c for n, c in every.items() if issubclass(c, ShapedMechanism) and n not in NO_NOISE}
    return additive, shaped


def test_mechanisms_are_all_here() -> None:
    additive, shaped = kinds()
    assert set(found(Mechanism)) == set(additive) | set(shaped) | set(NO_NOISE) | CHECKED | set(TABLES)


@pytest.mark.parametrize("name", sorted(kinds()[0]))
def test_additive_noise_has_the_variance_of_its_law(name: str) -> None:
    mechanism = kinds()[0][name](**MECHANISMS[name])
    law = mechanism.distribution
    one = name in ("Geometric", "Staircase")
    drawn = [
        mechanism.release(0 if one else np.zeros(2, dtype=int), source=SeededSource(seed=i)).values
        for i in range(600)
    ]
    assert near(np.ravel(drawn), law.variance)
    if hasattr(mechanism, "variance"):
        assert mechanism.variance == pytest.approx(law.variance, rel=1e-12)
    if hasattr(mechanism, "noise_std"):
        assert float(mechanism.noise_std) == pytest.approx(law.std * float(mechanism.step), rel=1e-9)


@pytest.mark.parametrize("spacing", [1, Fraction(1, 16)])
@pytest.mark.parametrize("name", sorted(kinds()[1]))
def test_shaped_noise_has_the_law_it_states(name: str, spacing: Fraction) -> None:
    """What is released is the law's own draw; and `noise_std` is the largest standard deviation of it."""
    mechanism = kinds()[1][name](**{**MECHANISMS[name], "spacing": spacing})
    d = mechanism.coordinates
    drawn = np.array(
        [mechanism.release(np.zeros(d, dtype=int), source=SeededSource(seed=i)).values for i in range(300)]
    )
    spreads = [mechanism.marginal(i) for i in range(d)]
    for i, one in enumerate(spreads):
        assert near(drawn[:, i], one.variance, one.mean)
    if name != "PolytopeNorm":
        wide = mechanism.law.sample(spacing=spacing, size=3000, source=source()).values
        for i, one in enumerate(spreads):
            assert near(wide[:, i], one.variance, one.mean)
    if name != "RoundedGaussian":
        assert mechanism.noise_std == pytest.approx(max(s.std for s in spreads) * float(spacing), rel=1e-12)
    else:
        assert mechanism.law.stds.tolist() == [3.0, 3.0] == [float(mechanism.noise_std)] * 2
        assert mechanism.variance == pytest.approx(spreads[0].variance, rel=1e-12)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_have_the_variances_they_state(name: str) -> None:
    mechanism, runs = TABLES[name], 800
    if name == "CellSums" or name == "RangeAnswers":
        true: Any = np.zeros(3, dtype=int)
    else:
        sizes = (
            getattr(mechanism, "sizes", None)
            or getattr(mechanism, "agreement", None)
            or mechanism.image.sizes
        )  # type: ignore[attr-defined]
        true = [np.zeros(s, dtype=int) for s in getattr(sizes, "sizes", sizes)]
    drawn = [mechanism.release(true, source=SeededSource(seed=i)).values for i in range(runs)]
    for table, variance in enumerate(mechanism.variances()):
        squares = (np.array([d[table] for d in drawn], dtype=np.float64) ** 2).mean(axis=1)
        assert abs(squares.mean() - variance) < 6.8 * squares.std() / math.sqrt(runs)


def test_noise_of_selections_tests_and_holders() -> None:
    for name in ("MedianByTest", "InterquartileRangeByTest"):
        law = found(Mechanism)[name](**MECHANISMS[name]).distribution
        assert near(law.sample(size=2000, source=source()), law.variance)
    for cls, fields in (
        (JointPolya, {"noise_scale": Fraction(4), "steps": 1}),
        (
            JointSkellam,
            {
                "noise_variance": Fraction(9),
                "steps": 1,
                "moved": 1,
                "epsilon": Fraction(1),
                "delta": Fraction(1, 10**6),
            },
        ),
    ):
        joint = cls(honest=2, remaining=3, **fields)
        assert joint.variance == pytest.approx(joint.distribution.variance, rel=1e-12)
        shares = sum(joint.share.sample(size=3000, source=SeededSource(seed=i)) for i in range(3))
        assert near(shares, joint.variance)
    selection = found(Mechanism)["OptimalSelection"](**MECHANISMS["OptimalSelection"])
    j = selection.distribution.draw((3000,), source())
    assert near(
        selection.distribution.center - j, selection.distribution.variance, selection.distribution.mean
    )
    normal = found(Mechanism)["GaussianSelection"](**MECHANISMS["GaussianSelection"])
    noise = normal._offsets(np.zeros(3000, dtype=np.int64), source())[1]
    assert near(noise, normal.law.marginal().rounded(1).variance)
    assert normal.law.stds[0] == float(normal.noise_std)
    smooth = SmoothBound(value=1, beta=0)
    for name in ("SmoothLaplace", "SmoothStudent"):
        mechanism = found(Mechanism)[name](
            **{**MECHANISMS[name], **({"degrees": 9} if name == "SmoothStudent" else {})}
        )
        drawn = [int(mechanism.release(0, smooth, source=SeededSource(seed=i)).values) for i in range(800)]
        assert near(drawn, mechanism.law(smooth).marginal().rounded(1).variance)
    interval = found(Mechanism)["IntervalExponential"](**MECHANISMS["IntervalExponential"])
    law = interval.distribution(2)
    p = np.array([sum(law.probability(k)) / 2 for k in range(9)])
    k = np.arange(9)
    assert p.sum() == pytest.approx(1)
    assert near(law.sample(size=1000, source=source()), (p * k**2).sum() - (p * k).sum() ** 2, (p * k).sum())


def test_the_parameter_of_a_discrete_gaussian_is_its_standard_deviation_from_one_step_on() -> None:
    for std in (1, 2, 5.5):
        assert DiscreteGaussian(noise_std=std).std == pytest.approx(std, rel=1e-6)
    assert DiscreteGaussian(noise_std=0.5).std < 0.5


COEFFICIENTS = {
    "GaussianNoise": noises.GaussianNoise(noise_std=2.0),
    "LaplaceNoise": noises.LaplaceNoise(noise_scale=2.0),
    "EuclideanLaplaceNoise": noises.EuclideanLaplaceNoise(noise_scale=2.0),
    "FourierSeriesNoise": noises.FourierSeriesNoise(mechanism="caratheodory", noise_scale=2.0, order=3),
    "SharedLaplaceNoise": noises.SharedLaplaceNoise(noise_scale=2.0, shape=1.5),
}


def test_noise_of_coefficients_has_the_deviations_it_states() -> None:
    assert set(found(noises.CoefficientNoise)) == set(COEFFICIENTS)
    for noise in COEFFICIENTS.values():
        drawn = noise.draws(4000, 7, 3)
        for i, std in enumerate(noise.stds(7)):
            assert near(drawn[:, i], std**2)
