"""Hall, Rinaldo, Wasserman 2011, Figure 2: 400 bins in two dimensions, 16 of them occupied."""

from __future__ import annotations

from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.random_figures import made
from tacit.reproduce.random_losses import Setting

__all__ = ["HERE", "make", "table"]

SIDE = 20


def table(*, small: int = 0, size: int = 0) -> tuple[int, ...]:
    """8000 rows: 16 cells in a square, and `small` cells of `size` rows each; what is left is divided evenly."""
    counts = [0] * SIDE**2
    places = [SIDE * (8 + i) + 8 + j for i in range(4) for j in range(4)]
    others = [p for p in range(SIDE**2) if p not in places][: 3 * small : 3]
    for place in others:
        counts[place] = size
    rest = 8000 - small * size
    for i, place in enumerate(places):
        counts[place] = rest // 16 + (i < rest % 16)
    return tuple(counts)


def make() -> Made:
    """100 simulations of the figure's table, and of tables with small cells beside the 16."""
    named = [("16 cells", Setting(counts=table(), epsilon=0.2, gamma=0.1, trials=100))]
    for size in (5, 20, 40, 60, 80):
        counts = table(small=64, size=size)
        named.append((f"and 64 cells of {size}", Setting(counts=counts, epsilon=0.2, gamma=0.1, trials=40)))
    notes = (
        "The source leaves epsilon, gamma and n open; epsilon = 0.2, gamma = 0.1, n = 8000 fit its description (2k = "
        "gamma n).",
        "Projections to the known total take away most of what plain noise loses in empty cells: the nearest point in "
        "L2 narrows the gap from 25 times to less than 4 times, clipping and renormalising leaves 20 times. The "
        "paper's rule (2), least L1 distance, has many solutions, as what is too much may be taken from any cells: the "
        "one that is nearest in L2 too leaves less than 4 times, the one that takes from the smallest cells first "
        "nearly closes the gap. Here, plain noise and that projection do as well as random DP.",
        "Hall's verdict (5.5), that plain-DP methods for sparse histograms do as well, is right where the "
        "occupied cells are large: the threshold, (2/epsilon) ln k = 60 rows, loses none of the 16 cells. With 64 "
        "further cells of 5 rows it is better than random DP, which spends noise on each of them. It is wrong where "
        "many cells hold fewer rows than the threshold and more than the noise: of 64 further cells of 20 to 60 rows "
        "it loses most.",
    )
    return made(named, grid=(SIDE, SIDE), notes=notes)


HERE = Reproduction(
    name="random-2",
    title="Random differential privacy: a two-dimensional histogram",
    source="Hall, Rinaldo, Wasserman 2011, Figure 2",
    make=make,
)
