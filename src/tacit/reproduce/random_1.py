"""Hall, Rinaldo, Wasserman 2011, Figure 1: 25 bins, two of them occupied, 500 rows."""

from __future__ import annotations

from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.random_figures import made
from tacit.reproduce.random_losses import Setting

__all__ = ["HERE", "SETTING", "make"]

SETTING = Setting(counts=(0,) * 8 + (300,) + (0,) * 8 + (200,) + (0,) * 7, epsilon=0.2, gamma=0.1, trials=100)
NOTES = (
    "The source leaves epsilon, gamma and the two counts open; epsilon = 0.2, gamma = 0.1 (the least with 2k <= gamma "
    "n) and 300 + 200 rows are assumed. As there, plain noise often has a loss above 0.5.",
    "Random DP is the weaker promise: the only inhabitant of a cell is not protected.",
)


def make() -> Made:
    """100 simulations."""
    return made([("two occupied cells", SETTING)], grid=None, notes=NOTES)


HERE = Reproduction(
    name="random-1",
    title="Random differential privacy: a one-dimensional histogram",
    source="Hall, Rinaldo, Wasserman 2011, Figure 1",
    make=make,
)
