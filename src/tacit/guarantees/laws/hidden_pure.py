"""The pure epsilon that hides in a bound of another kind: its curve is 0 from some finite epsilon on.

P(S) - e^epsilon P'(S) <= 0 for every event S and both orders of neighbours is the definition of pure epsilon, whatever
the bound that shows it: (epsilon, 0), a Rényi bound at order infinity, the curve of Laplace noise. What follows from a
pure epsilon follows from each of them.
"""

from __future__ import annotations

import math

from tacit.errors import NoLaw
from tacit.exact.balls import ball, upper
from tacit.guarantees.bounds import Bound, Concentrated, GaussianDP, Profile, Pure
from tacit.guarantees.laws.registry import LAWS, law

__all__ = ["CONCENTRATED", "GAUSSIAN", "PURE", "curve_to_concentrated", "curve_to_gaussian", "curve_to_pure"]

PURE, CONCENTRATED, GAUSSIAN = "curve-to-pure", "curve-to-zcdp", "curve-to-gdp"


def _hidden(bound: Bound, target: str) -> Pure:
    level = bound._epsilon(0.0)
    if math.isinf(level):
        raise NoLaw(
            operation=f"{type(bound).__name__} to {target}",
            reason="its delta is above 0 at every epsilon, so that it gives no pure epsilon"
            + ("" if target == "Pure" else f", and no other theorem leads to {target}"),
            hint="a delta of 0, or a curve that reaches 0, gives one",
        )
    return Pure(epsilon=level)


@law(PURE, operation="convert", rests_on="pure-to-approximate")
def curve_to_pure(bound: Bound) -> Pure:
    """The least epsilon at which the curve is 0."""
    return _hidden(bound, "Pure")


@law(CONCENTRATED, operation="convert", rests_on="pure-to-zcdp")
def curve_to_concentrated(bound: Bound) -> Concentrated:
    """mu^2/2 for the curve of Gaussian noise, else by the pure epsilon of the curve."""
    mu = bound.gaussian_mu() if isinstance(bound, Profile) else None
    if mu is not None:
        return Concentrated(rho=upper(lambda: ball(mu) ** 2 / 2))
    made: Concentrated = LAWS["pure-to-zcdp"].apply(_hidden(bound, "Concentrated"))
    return made


@law(GAUSSIAN, operation="convert", rests_on="pure-to-gdp")
def curve_to_gaussian(bound: Bound) -> GaussianDP:
    """mu for the curve of Gaussian noise, else by the pure epsilon of the curve."""
    mu = bound.gaussian_mu() if isinstance(bound, Profile) else None
    if mu is not None:
        return GaussianDP(mu=mu)
    made: GaussianDP = LAWS["pure-to-gdp"].apply(_hidden(bound, "GaussianDP"))
    return made
