"""The model: the distribution of largest entropy that fits noisy margins, on a junction tree.

    p(x) proportional to exp( sum over measured margins m of theta_m(x_m) )

Fitting minimises sum_m ||N p_m - y_m||^2 / (2 noise_std_m^2) by entropic mirror descent: theta_m falls by a step times
the gradient of its margin, and belief propagation gives the margins of the new p. Post-processing: noisy numbers in,
a distribution out; no code here sees a row. Source: McKenna, Sheldon, Miklau 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from tacit.exact.arrays import Floats, Integers
from tacit.exact.data_classes import dataclass
from tacit.synthesis.trees import JunctionTree, Margin, junction_tree

FLOOR = -1e30
"""The logarithm of an impossible cell: finite, so that differences are numbers."""
FASTER, SLOWER = 1.4, 0.5
SWEEPS = 50
"""The largest number of sweeps over the public margins after each step."""


@dataclass(slots=True, kw_only=True)
class Target:
    """The target of one margin: counts, each with noise of this variance; several measurements count as their mean."""

    counts: Floats
    variance: float

    def joined(self, counts: Floats, variance: float) -> Target:
        """The mean of the margin's measurements, with one more, by inverse variance: it serves the fit, which
        makes no claim.
        """
        share = variance / (self.variance + variance)
        return Target(
            counts=share * self.counts + (1 - share) * counts,
            variance=self.variance * variance / (self.variance + variance),
        )


@dataclass(slots=True, kw_only=True)
class Model:
    """Potentials by margin, their junction tree, and the beliefs of its cliques after the last propagation.

    The root contains the columns of all public margins, and every step ends with a potential on them that keeps
    the public margins (iterative proportional fitting).
    """

    sizes: tuple[int, ...]
    rows: float
    targets: dict[Margin, Target] = field(default_factory=dict)
    potentials: dict[Margin, Floats] = field(default_factory=dict)
    zeros: Mapping[Margin, Any] = field(default_factory=dict)
    public: Mapping[Margin, Integers] = field(default_factory=dict)
    tree: JunctionTree = field(init=False)
    beliefs: list[Floats] = field(init=False)
    _homes: dict[Margin, int] = field(init=False)
    _step: float = 1.0

    def __post_init__(self) -> None:
        self.arrange()

    def arrange(self) -> None:
        """The junction tree of all margins so far, and the beliefs for the present potentials."""
        self.tree = junction_tree(self.margins, self.sizes, root=self.held)
        self._homes = {m: self.tree.home(m) for m in self.margins}
        self.propagate()
        self._settle()

    @property
    def held(self) -> Margin:
        """The columns of all public margins."""
        return tuple(sorted({i for m in self.public for i in m}))

    @property
    def margins(self) -> list[Margin]:
        """All that the junction tree has to hold."""
        return [*self.targets, *self.zeros, *([self.held] if self.public else [])]

    def _settle(self) -> None:
        """Adds one more potential on the public columns, so that their margins hold; then updates the beliefs."""
        if not self.public:
            return
        held = self.held
        have = self.margin(held)
        want = proportional(have, self.public, held, self.rows)
        theta = self.potentials.get(held, np.zeros(have.shape))
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.where(want > 0, theta + np.log(want / have), FLOOR)
        self.potentials = {**self.potentials, held: np.where(have > 0, moved, theta)}
        self.propagate()

    def measure(self, margin: Margin, counts: Floats, variance: float) -> None:
        """Adds one more noisy margin; the caller fits afterwards."""
        known = self.targets.get(margin)
        self.targets[margin] = (
            Target(counts=counts, variance=variance) if known is None else known.joined(counts, variance)
        )
        self.potentials.setdefault(margin, np.zeros(counts.shape))

    def propagate(self) -> None:
        """Beliefs of all cliques: two passes of messages along the tree, in logarithms."""
        tree = self.tree
        logs = [np.zeros([self.sizes[i] for i in c]) for c in tree.cliques]
        for margin, theta in self.potentials.items():
            home = self._homes[margin]
            logs[home] += spread(theta, margin, tree.cliques[home])
        for margin, impossible in self.zeros.items():
            home = self._homes[margin]
            logs[home] += spread(np.where(impossible, FLOOR, 0.0), margin, tree.cliques[home])
        up: list[Floats | None] = [None] * len(logs)
        for k in range(len(logs) - 1, -1, -1):
            parent, common = tree.parents[k], tree.separators[k]
            logs[k] -= logs[k].max()
            if parent >= 0:
                message = _log_margin(logs[k], tree.cliques[k], common)
                up[k] = message
                logs[parent] += spread(message, common, tree.cliques[parent])
        beliefs: list[Floats] = []
        for k, log in enumerate(logs):
            parent, common = tree.parents[k], tree.separators[k]
            if parent >= 0:
                mass = margin_of(beliefs[parent], tree.cliques[parent], common)
                sent = up[k]
                assert sent is not None
                with np.errstate(divide="ignore"):
                    ratio = np.where(mass > 0, np.log(mass), FLOOR) - sent
                log = log + spread(ratio, common, tree.cliques[k])
                made = np.exp(np.minimum(log, 0.0))
            else:
                made = np.exp(log - log.max())
            beliefs.append(made / made.sum())
        self.beliefs = beliefs

    @property
    def impossible(self) -> bool:
        """Whether no row has a positive probability.
        Every belief is then made of cells that were declared impossible."""
        home = {m: margin_of(self.beliefs[k], self.tree.cliques[k], m) for m, k in self._homes.items()}
        return any(float(home[m][np.asarray(z)].sum()) > 0.5 for m, z in self.zeros.items())

    def margin(self, margin: Margin) -> Floats:
        """The probabilities of a margin that lies in a clique."""
        home = self._homes[margin] if margin in self._homes else self.tree.home(margin)
        return margin_of(self.beliefs[home], self.tree.cliques[home], margin)

    def loss(self) -> tuple[float, dict[Margin, Floats]]:
        """The misfit, and its gradient by the probabilities of each margin."""
        total, gradients = 0.0, {}
        for margin, target in self.targets.items():
            off = self.rows * self.margin(margin) - target.counts
            total += float((off * off).sum()) / (2 * target.variance)
            gradients[margin] = off * (self.rows / target.variance)
        return total, gradients

    def fit(self, steps: int) -> float:
        """This many steps of mirror descent; the misfit at the end. A step that misfits more is undone."""
        if not self.targets:
            return 0.0
        best, gradients = self.loss()
        scale = max(self.rows**2 / t.variance for t in self.targets.values())
        for _ in range(steps):
            kept, held = self.potentials, self.beliefs
            rate = self._step / scale
            self.potentials = {
                m: theta - rate * gradients[m] if m in gradients else theta for m, theta in kept.items()
            }
            self.propagate()
            self._settle()
            found, slopes = self.loss()
            if found <= best:
                best, gradients = found, slopes
                self._step *= FASTER
            else:
                self.potentials, self.beliefs = kept, held
                self._step *= SLOWER
        return best


def proportional(table: Floats, public: Mapping[Margin, Integers], held: Margin, total: float) -> Floats:
    """The table with the public margins, by iterative proportional fitting; shares of `total`."""
    out = table
    for _ in range(1 if len(public) == 1 else SWEEPS):
        worst = 0.0
        for margin, counts in public.items():
            gone = tuple(k for k, i in enumerate(held) if i not in margin)
            have = out.sum(axis=gone, keepdims=True)
            want = np.expand_dims(counts / total, gone) if gone else counts / total
            worst = max(worst, float(np.abs(have - want).max()))
            with np.errstate(divide="ignore", invalid="ignore"):
                out = out * np.where(have > 0, want / have, 0.0)
        if worst < 1e-9:
            break
    return out


def spread(values: Floats, margin: Margin, clique: Margin) -> Floats:
    """A table of some columns of a clique, shaped so that it broadcasts over the clique."""
    sizes = iter(values.shape)
    return values.reshape([next(sizes) if i in margin else 1 for i in clique])


def margin_of(values: Floats, clique: Margin, margin: Margin) -> Floats:
    """The sums of a clique's table over all other columns; columns rise in both."""
    gone = tuple(k for k, i in enumerate(clique) if i not in margin)
    return np.asarray(values.sum(axis=gone)) if gone else values


def _log_margin(logs: Floats, clique: Margin, margin: Margin) -> Floats:
    gone = tuple(k for k, i in enumerate(clique) if i not in margin)
    if not gone:
        return logs
    top = logs.max(axis=gone, keepdims=True)
    total = np.exp(logs - top).sum(axis=gone)
    return np.asarray(np.log(total) + np.squeeze(top, axis=gone))
