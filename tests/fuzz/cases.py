"""A case: a world, a pair of neighbours, a form and a road; run, compared, and made smaller where it finds anything."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fuzz import forms, pairs
from fuzz.oracles import Finding, compared, equal
from fuzz.pairs import Pair
from fuzz.quick import sped_up
from fuzz.trials import Asked, Seen, asked, long_road, short_road
from fuzz.worlds import World, base_of, draw_world
from tacit.errors import TacitError
from tacit.guarantees import People


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that is needed to run it again."""

    seed: int
    world: World
    asked: tuple[Asked, ...]
    pair: Pair
    form: str
    how: dict[str, Any]
    road: str
    engine: str | None = None
    alone: int = 0

    @property
    def words(self) -> list[str]:
        """What is strange about it, in words."""
        names = [c.name for c in self.world.columns if not c.name.startswith("c")]
        told = [f"form {self.form}", *map(str, self.pair.odd), f"place {self.pair.place}", self.road]
        return told + [f"column {n}" for n in names] + ([str(self.how)] if self.how else [])


LONG = 4
"""Questions of a plan on the long road, whose composition costs more than the reading."""


@dataclass(slots=True)
class Setting:
    """A world with its questions and their noise, which are made once."""

    world: World
    asked: tuple[Asked, ...]

    @classmethod
    def draw(
        cls, rng: random.Random, *, as_text: bool, most: int = 12, without: tuple[str, ...] = ()
    ) -> Setting | None:
        """A world of which something can be asked; no column is stored as one of `without`."""
        try:
            world = draw_world(rng, as_text=as_text, most=most, without=without)
        except TacitError:  # a name that is not to be had
            return None
        delta = rng.random() < 0.35
        epsilon, spent = rng.choice([0.5, 2.0, 2.0, 20.0]), rng.choice([1e-6, 1e-3, 0.05, 0.05])
        found = []
        for statistic in world.asked:
            pure: tuple[tuple[str, float], ...] = (("epsilon", epsilon),)
            both = (*pure, ("delta", spent))
            # With a delta a sparse histogram has another mechanism, which is chosen for large domains only.
            often = 0.6 if statistic.kind == "sparse_histogram" else 0.1
            first, second = (both, pure) if delta or rng.random() < often else (pure, both)
            made = asked(world, statistic, first) or asked(world, statistic, second)
            found += [made] if made else []
        return cls(world=world, asked=tuple(found)) if found else None


def draw_case(
    rng: random.Random, setting: Setting, *, seed: int, form: str, road: str, engine: str | None
) -> Case:
    """A pair for this setting, in this form."""
    world = setting.world
    how = forms.draw_how(rng, form, world)
    pair = pairs.draw_pair(
        rng, world, form=form, objects=tuple(how["on"]) if form == "pandas objects" else ()
    )
    alone = rng.choice([0, 0, 0, 2, 4])
    wanted = setting.asked
    if road == "long":
        wanted = tuple(rng.sample(wanted, min(len(wanted), LONG)))
    return Case(
        seed=seed, world=world, asked=wanted, pair=pair, form=form, how=how, road=road, engine=engine, alone=alone
    )  # fmt: skip


def run_case(case: Case) -> tuple[list[Finding], tuple[Seen, Seen] | None]:
    """What the case finds. A form that cannot even be made of these rows finds nothing."""
    seen: list[Seen] = []
    left, right = case.pair.tables()
    with folder() as where:
        for side, rows in (("left", left), ("right", right)):
            try:
                data, drop = forms.make(case.form, case.how, case.world, rows, where / side)
            except Exception:
                return [], None
            try:
                if case.road == "long":
                    ledger = where / f"ledger {side}"
                    seen.append(
                        long_road(case.world, case.asked, data, ledger, seed=case.seed, engine=case.engine)
                    )
                else:
                    alone = case.alone if side == "left" else 0
                    seen.append(_short(case, data, alone))
            finally:
                with contextlib.suppress(Exception):
                    drop()
        _hide(seen, where)
        found = compared(case.asked, seen[0], seen[1], view=case.form.endswith("view"))
        found += _form(case, seen[1], right)
    return found, (seen[0], seen[1])


def _short(case: Case, data: Any, alone: int) -> Seen:
    # Two tables in one connection would take each other's name.
    local = case.engine is None and not case.form.startswith("spark") and case.form != "joined"
    speed = sped_up() if local else contextlib.nullcontext()
    with speed:
        return short_road(case.world, case.asked, data, seed=case.seed, alone=alone, engine=case.engine)


def _hide(seen: list[Seen], where: Path) -> None:
    """Errors name the file that they are about: here the two tables lie in two folders."""
    for one, side in zip(seen, ("left", "right"), strict=True):

        def plainly(text: str, side: str = side) -> str:
            return text.replace(str(where / side), "FOLDER").replace(str(where / f"ledger {side}"), "LEDGER")

        if one.error is not None:
            one.error = (one.error[0], plainly(one.error[1]))
        one.told = [plainly(t) for t in one.told]


def _form(case: Case, seen: Seen, rows: list[pairs.Row]) -> list[Finding]:
    """The same rows, given as an Arrow table: the same integers, where no row is odd and nobody has too many."""
    if (
        case.form not in ("parquet", "parquet name", "parquet path", "parquet pattern", "polars")
        or seen.truth is None
    ):
        return []
    if case.how.get("other") or case.pair.odd:
        return []
    base = base_of(case.world.unit)
    if isinstance(base, People):
        whose = [r[base.column] for r in rows]
        if base.groups is not None or any(whose.count(w) > base.at_most for w in whose):
            return []
    other = _short(case, forms.arrow_table(case.world, rows), 0)
    if other.truth is None:
        return []
    for i, (a, b) in enumerate(zip(seen.truth, other.truth, strict=True)):
        if not equal(a, b):
            return [Finding("form", f"{case.asked[i].name} in {case.form} {case.how}", i)]
    return []


@contextlib.contextmanager
def folder() -> Any:
    """A private folder, in memory where that is possible."""
    shm = Path("/dev/shm")
    where = Path(tempfile.mkdtemp(prefix="tacit-fuzz-", dir=shm if shm.is_dir() else None))
    try:
        yield where
    finally:
        shutil.rmtree(where, ignore_errors=True)


def smaller(case: Case, finding: Finding, *, tries: int = 60) -> Case:
    """A smaller case with the same finding: fewer questions, fewer rows."""

    def still(one: Case) -> bool:
        return any(f.oracle == finding.oracle for f in run_case(one)[0])

    progress = True
    while progress and tries > 0:
        progress = False
        candidates = [replace(case, asked=some) for some in _fewer(case.asked)]
        candidates += [replace(case, pair=p) for p in pairs.shrunk(case.pair)]
        for one in candidates[:tries]:
            tries -= 1
            if still(one):
                case, progress = one, True
                break
    return case


def _fewer(asked: tuple[Asked, ...]) -> list[tuple[Asked, ...]]:
    if len(asked) < 2:
        return []
    half = len(asked) // 2
    found = [asked[:half], asked[half:]] if len(asked) > 3 else []
    return found + [asked[:i] + asked[i + 1 :] for i in range(len(asked))]
