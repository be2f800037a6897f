"""An office's own rules for printing: rounding, a minimum size, and thresholds of quality.

    [report.rules]
    round_to = 5          # counts as multiples of 5; ends of intervals outwards
    minimum = 10          # smaller counts are not printed
    care = 0.15           # "use with care" from this share of the value on, and "too noisy to use" from `noisy` on
    noisy = 0.3

They change the page and the workbook, after the noise. Files of values, certificates and machine formats keep the
released numbers. These rules neither add nor remove privacy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.curator.cells import QualityFlag, QualityRule, flags_of, rule_of
from tacit.curator.release import Release
from tacit.curator.text import OfficeRules
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass

SMALL = "small"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrintedCells:
    """The printed form of a release: value, low and high of every cell, NaN for a missing one; flags and their rule."""

    value: Floats
    low: Floats
    high: Floats
    flags: list[str]
    rule: QualityRule
    more: tuple[QualityFlag, ...] = ()


def printed(release: Release, ends: list[Floats], rules: OfficeRules) -> PrintedCells:
    """The released numbers as the office prints them, unchanged if it has no rule."""
    rule, flags = rule_of(release), flags_of(release)
    if rules.care is not None or rules.noisy is not None:
        rule = replace(
            rule, care=rules.care or min(rule.care, rules.noisy or 1.0), noisy=rules.noisy or rule.noisy
        )
        far = release.estimate.farthest if rule.before_cut else replace(release.estimate, reach=None).farthest
        flags = rule.judged(
            np.ravel(release.estimate.value).astype(np.float64), np.ravel(far).astype(np.float64)
        )
    value, low, high = (np.asarray(e, dtype=np.float64) for e in ends)
    made = PrintedCells(value=value, low=low, high=high, flags=flags, rule=rule)
    if not release.planned.question.statistic.whole:
        return made
    if rules.round_to is not None:
        step = float(rules.round_to)
        rounded = (np.rint(value / step), np.floor(low / step), np.ceil(high / step))
        value, low, high = (r * step + 0.0 for r in rounded)
        made = replace(made, value=value, low=low, high=high)
    if rules.minimum is None:
        return made
    # By the released number itself, whatever it is rounded to.
    small = np.asarray(ends[0], dtype=np.float64) < rules.minimum
    gone = [np.where(small, np.nan, e) for e in (made.value, made.low, made.high)]
    label = f"fewer than {rules.minimum:,}"
    flag = QualityFlag(
        id=SMALL, label=label, explanation="smaller counts are not printed here; the files have the released numbers"
    )  # fmt: skip
    return replace(
        made, value=gone[0], low=gone[1], high=gone[2], more=(flag,),
        flags=[SMALL if s else f for s, f in zip(small.tolist(), flags, strict=True)],
    )  # fmt: skip
