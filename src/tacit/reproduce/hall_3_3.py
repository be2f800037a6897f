"""Hall 2012, Figure 3.3: the same kernel density estimate, with noise from the Sobolev space."""

from __future__ import annotations

from tacit.functions.boxes import Box
from tacit.functions.densities import DensityPlan, GaussianKDE, SobolevKDE
from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.densities import BANDWIDTH, SIZE, figure_of

__all__ = ["HERE", "make"]

POINTS = 1000


def make() -> Made:
    """100 rows, 1000 points, epsilon = 1, delta = .1, kernel exp(-|x - y| / length)."""
    family = SobolevKDE(domain=Box.unit(), bandwidth=BANDWIDTH, points=POINTS)
    smooth = GaussianKDE(domain=Box.unit(), bandwidth=BANDWIDTH)
    rough, even = (DensityPlan(family=f, size=SIZE, mu=1).density_sensitivity for f in (family, smooth))
    return figure_of(
        family,
        notes=(
            f"The source does not state its length; {family.lengths[0]:.4g} is the one with the least noise for this "
            f"bandwidth. The noise at a point is {rough / even:.3f} times that of Figure 3.2, and rough, as the source "
            f"says.",
            "The source leaves the bound on the norm (3.7) of a difference to the reader; ours is in closed form.",
        ),
    )


HERE = Reproduction(
    name="hall-3.3",
    title="The same, with noise from a Sobolev space",
    source="Hall 2012, Figure 3.3",
    make=make,
)
