"""Hall 2012, Figure 3.2: a kernel density estimate and its release by a Gaussian process with the same kernel."""

from __future__ import annotations

from tacit.functions.boxes import Box
from tacit.functions.densities import GaussianKDE
from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.densities import BANDWIDTH, figure_of

__all__ = ["HERE", "make"]


def make() -> Made:
    """100 rows, 1000 points, epsilon = 1, delta = .1."""
    return figure_of(
        GaussianKDE(domain=Box.unit(), bandwidth=BANDWIDTH),
        notes=(
            "The source prints no numbers, and neither the spread of its two normals (0.1 is assumed) nor the weights "
            "(one half each). As there, both peaks remain.",
            "Noise falls like 1/n, the sampling error like its root: at n = 10,000 the noise is a hundredth of what is "
            "drawn here.",
        ),
    )


HERE = Reproduction(
    name="hall-3.2", title="A released kernel density estimate", source="Hall 2012, Figure 3.2", make=make
)
