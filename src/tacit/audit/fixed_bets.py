"""Bets on events chosen without a look at the coins: ends of a few columns, and frequent outputs.

A learner needs many outputs before it knows an event, and bets little until then. This strategy learns nothing.
It divides its wealth among events and frequencies above the claim's limit, and bets each part on its own event
from the start. The parts together are a mixture, with the wealth of that mixture. Counts alone determine the
wealth. Its logarithm is at least that of the gain of any part plus that of the part's share.

An event, and its share, may depend on past outputs (a quantile, a frequent output). A part that begins late
gets the share that it would have if all parts had begun together. So idle or wrong parts lose nothing before
that. Events and shares are fixed before the outputs they are bet on, so that each part is a bet as in
theorem `audit-betting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.audit.outputs import SIGNS, Encoder, Output
from tacit.exact.arrays import Booleans, Floats, Integers
from tacit.exact.data_classes import dataclass

EXCESS = np.array([0.1, 0.3, 0.6, 1.2, 3.0])
"""The excess of a part's log odds over the claim."""
BELIEVED = np.array([0.32, 0.26, 0.22, 0.14, 0.06])
"""The shares of these parts."""
CUTS = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Events of signs along the difference of the inputs: at least this part of all that could agree."""
TAILS = ((64, (0.05, 0.12, 0.22, 0.33, 0.45)), (1_000, (0.003, 0.01, 0.03, 0.07, 0.33)))
"""Events of columns: after this many outputs, the ends of the past outputs with these shares."""
NUMBERS_FROM = 200
UNLEARNED = 0.2
"""The part of a share that is divided without the past, as a guard against its accidents."""
CELLS_FROM = 64
MOST_CELLS = 16
LEAST_SEEN = 3
COLUMNS = ("numbers along the difference of the inputs", "number 1", "sum", "number 2", "largest")
"""Columns whose ends are events."""
BOTH = 3.0
"""The weight of bets on both ends of a column at once, relative to bets on one end. Most noise shows at both."""
SHARES = {
    "signs": 0.45, "signs and numbers": 0.3, "columns 0": 0.12, "columns 1": 0.04, "lowest bits": 0.02, "outputs": 0.07,
}  # fmt: skip
"""The parts of the wealth. The wealth reserved for events that are not yet chosen is not bet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """A given output, or those with a column at one end, perhaps only those with low or high numbers."""

    column: str = ""
    edge: float = 0.0
    up: bool = True
    number: tuple[float, bool] | None = None
    output: Output | None = None

    def holds(self, encoder: Encoder, columns: Floats, outputs: Sequence[Output]) -> Booleans:
        """Is each output in the event?"""
        if self.output is not None:
            return np.array([o == self.output for o in outputs], dtype=bool)
        if self.column not in encoder.at:
            return np.zeros(len(columns), dtype=bool)
        scores = columns[:, encoder.at[self.column]]
        inside: Booleans = scores >= self.edge if self.up else scores <= self.edge
        if self.number is not None:
            edge, up = self.number
            at = encoder.at.get("sum")
            given = np.full(len(columns), np.nan) if at is None else columns[:, at]
            inside = inside & (given > edge if up else given <= edge)
        return inside


class FixedBets:
    """The mixture of one pair of neighbours, for each claim of a ladder."""

    def __init__(self, q: Floats, toward: Sequence[float]) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(q / (1 - q))[:, None] + EXCESS
            p = np.maximum(1 / (1 + np.exp(-odds)), q[:, None])
            self.right = np.log(p / q[:, None])
            self.wrong = np.maximum(np.log1p(-p) - np.log1p(-q)[:, None], -1e6)
        # A claim so large that its q rounds to 1 is not bet against.
        self.right[q >= 1] = self.wrong[q >= 1] = 0.0
        self.scale = float(np.abs(np.asarray(toward)).sum())
        wanted = [g for g in SHARES if self.scale > 0 or not g.startswith("signs")]
        whole = sum(SHARES[g] for g in wanted)
        self.waiting = {g: SHARES[g] / whole for g in wanted}
        self.events: list[_Event] = []
        self.first: list[int] = []
        """By part: the event of its bet, or -1; the other event, for a bet in the other direction, or -1."""
        self.second: list[int] = []
        self.coin: list[int] = []
        self.prior = np.zeros((len(q), 0, len(EXCESS)))
        """ln of the share, by claim, part and excess."""
        self.counts = np.zeros((0, 2))
        self.now = np.zeros(len(q))

    def begin(self, encoder: Encoder, columns: Floats, outputs: Sequence[Output], coins: Integers) -> None:
        """Chooses events from past outputs; the division of their share also uses the coins."""
        n = len(outputs)
        past = _Past(encoder=encoder, columns=columns, outputs=outputs, coins=coins)
        if "signs" in self.waiting:
            self._enter("signs", self._signs(), past)
        if "signs and numbers" in self.waiting and n >= NUMBERS_FROM:
            # Without numbers there are signs alone: its share is bet on them once more.
            self._enter(
                "signs and numbers",
                self._with_numbers(encoder, columns) if encoder.partly else self._signs(),
                past,
            )
        for k, (least, tails) in enumerate(TAILS):
            if f"columns {k}" in self.waiting and n >= least:
                self._enter(f"columns {k}", _of_columns(encoder, columns, COLUMNS, tails), past, both=BOTH)
        if "lowest bits" in self.waiting and n >= CELLS_FROM:
            self._enter("lowest bits", _of_columns(encoder, columns, ("lowest bit",), TAILS[0][1]), past)
        if "outputs" in self.waiting and n >= CELLS_FROM:
            often = [o for o, k in Counter(outputs).most_common(MOST_CELLS) if k >= LEAST_SEEN]
            self._enter("outputs", [((_Event(output=o), None), (1, 0)) for o in often], past)

    def _signs(self) -> list[_Part]:
        return [(_ends(SIGNS, -c * self.scale, c * self.scale), (1,)) for c in CUTS]

    def _with_numbers(self, encoder: Encoder, columns: Floats) -> list[_Part]:
        """Events of signs, of which only the outputs with a number below or above their median."""
        at = encoder.at.get("sum")
        if at is None:
            return []
        found: list[_Part] = []
        for cut in CUTS:
            for event in _ends(SIGNS, -cut * self.scale, cut * self.scale):
                given = columns[event.holds(encoder, columns, ()), at]
                given = given[np.isfinite(given)]
                if given.size < LEAST_SEEN:
                    continue
                middle = float(np.quantile(given, 0.5, method="lower"))
                for above in (False, True):
                    part = replace(event, number=(middle, above))
                    found.append(((part, None) if event.up else (None, part), (1,)))
        return found

    def _enter(self, group: str, given: Sequence[_Part], past: _Past, *, both: float = 1.0) -> None:
        """Parts with an event or with two; the latter have `both` times the share of the former.

        Divides most of the share by the past gain of each part.
        """
        if not given:
            return
        share = self.waiting.pop(group)
        made: list[tuple[int, int, int]] = []
        for (low, high), coins in given:
            at = [self._numbered(e) for e in (low, high)]
            for coin in coins:
                made += [(at[0], -1, coin), (-1, at[1], coin), (at[0], at[1], coin)]
        made = [m for m in dict.fromkeys(made) if m[:2] != (-1, -1)]
        weights = np.array([both if -1 not in m[:2] else 1.0 for m in made])
        before = np.log(weights / weights.sum())[:, None] + np.log(BELIEVED)
        hits, misses = self._tally(made, past)
        after = before + _gained(hits[None], misses[None], self.right, self.wrong)
        after -= np.logaddexp.reduce(after, axis=(1, 2), keepdims=True)
        mixed = np.logaddexp(np.log(1 - UNLEARNED) + after, np.log(UNLEARNED) + before)
        self.prior = np.concatenate([self.prior, np.log(share) + mixed], axis=1)
        for first, second, coin in made:
            self.first.append(first)
            self.second.append(second)
            self.coin.append(coin)
        # A part's own counts begin at its own time.
        fresh = np.zeros((len(self.first), 2))
        fresh[: len(self.counts)] = self.counts
        self.counts = fresh

    def _tally(self, made: Sequence[tuple[int, int, int]], past: _Past) -> tuple[Integers, Integers]:
        """How often it would have been right and wrong on the past, part by part."""
        held = [e.holds(past.encoder, past.columns, past.outputs) for e in self.events]
        inside = np.column_stack([*held, np.zeros(len(past.outputs), dtype=bool)])
        ones, zeros = (np.count_nonzero(inside[past.coins == side], axis=0) for side in (1, 0))
        first, second, coin = np.array(made).T
        up, down = ones[first] + zeros[second], zeros[first] + ones[second]
        return np.where(coin == 1, up, down), np.where(coin == 1, down, up)

    def _numbered(self, event: _Event | None) -> int:
        if event is None:
            return -1
        self.events.append(event)
        return len(self.events) - 1

    def take(
        self,
        encoder: Encoder,
        columns: Floats,
        outputs: Sequence[Output],
        coins: Integers,
        *,
        claim: int,
        at: Integers,
    ) -> Floats:
        """Bet on a batch. The ln of the wealth against one claim after the outputs with the numbers in `at`."""
        if not self.first:
            return np.zeros(len(at))
        inside = np.column_stack([e.holds(encoder, columns, outputs) for e in self.events])
        inside = np.column_stack([inside, np.zeros(len(outputs), dtype=bool)])
        signs = inside * np.where(coins == 1, 1, -1)[:, None]
        ones, zeros = (
            np.concatenate([np.zeros((1, signs.shape[1])), np.cumsum(signs == s, axis=0)]) for s in (1, -1)
        )
        at = np.r_[at + 1, len(outputs)]
        ones, zeros = ones[at], zeros[at]
        first, second, coin = np.array(self.first), np.array(self.second), np.array(self.coin)
        up, down = ones[:, first] + zeros[:, second], zeros[:, first] + ones[:, second]
        hits = self.counts[:, 0] + np.where(coin == 1, up, down)
        misses = self.counts[:, 1] + np.where(coin == 1, down, up)
        self.counts = np.column_stack([hits[-1], misses[-1]])
        self.now = self._wealth(_gained(hits[-1:], misses[-1:], self.right, self.wrong) + self.prior)
        return self._wealth(
            _gained(hits[:-1], misses[:-1], self.right[[claim]], self.wrong[[claim]]) + self.prior[claim]
        )

    def _wealth(self, logs: Floats) -> Floats:
        """ln of the mixture, one number a row of the parts' shares times their factors."""
        logs = logs.reshape(len(logs), -1)
        kept = sum(self.waiting.values())
        if kept > 0:
            logs = np.column_stack([logs, np.full(len(logs), np.log(kept))])
        top = logs.max(axis=1)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """What is known before the next outputs."""

    encoder: Encoder
    columns: Floats
    outputs: Sequence[Output]
    coins: Integers


def _gained(hits: Floats | Integers, misses: Floats | Integers, right: Floats, wrong: Floats) -> Floats:
    """ln of the parts' factors, by part and excess: at several moments for one claim, or at one moment for all."""
    return np.asarray(hits[:, :, None] * right[:, None, :] + misses[:, :, None] * wrong[:, None, :])


_Part = tuple[tuple[_Event | None, _Event | None], tuple[int, ...]]


def _ends(column: str, low: float, high: float) -> tuple[_Event, _Event]:
    """The two ends of a column: the upper one first."""
    return _Event(column=column, edge=high, up=True), _Event(column=column, edge=low, up=False)


def _of_columns(
    encoder: Encoder, columns: Floats, names: Sequence[str], tails: Sequence[float]
) -> list[_Part]:
    """The ends of the columns that have some."""
    found: list[_Part] = []
    for name in names:
        if name not in encoder.at:
            continue
        one = columns[:, encoder.at[name]]
        one = one[np.isfinite(one)]
        if one.size < 2 or np.all(one == one[0]):
            continue
        pairs = {
            (
                float(np.quantile(one, t, method="lower")),
                float(np.quantile(one, 1 - t, method="higher")),
            )
            for t in tails
        }
        found += [(_ends(name, low, high), (1, 0)) for low, high in sorted(pairs) if low < high]
    return found
