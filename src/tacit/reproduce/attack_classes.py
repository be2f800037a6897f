"""Attacks on tables of people, before and after: linkage, the three attacks on classes, intersection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.attacks import Draws, background, homogeneity, intersection, link, skewness
from tacit.reproduce.attack_releases import EPSILONS, Bar, bar, counts_from, release_from, shrunk
from tacit.sources import bins, integer
from tacit.sources.synthetic.towns import DIAGNOSES, town
from tacit.statistics import count

if TYPE_CHECKING:
    from tacit.exact.arrays import Floats, Integers


__all__ = ["on_classes", "on_linkage", "on_two_releases"]

K = 5
CLASSES = 20_000
RARE = "HIV"


def _shares() -> Floats:
    import numpy as np

    return np.array(list(DIAGNOSES.values()))


def _coded(values: Any) -> Integers:
    import numpy as np

    at = {name: i for i, name in enumerate(DIAGNOSES)}
    return np.array([at[v] for v in values], dtype=np.int64)


def on_linkage() -> list[Bar]:
    """105,000 people: guess a neighbour's diagnosis from her birth date, sex and postal code."""
    import numpy as np
    import pyarrow as pa

    people = town()
    quasi = ["birth", "sex", "code"]
    ill = _coded(people["diagnosis"].to_pylist())
    n, guess = people.num_rows, max(DIAGNOSES.values())
    raw = link(people.select([*quasi, "diagnosis"]), people, quasi=quasi, sensitive="diagnosis")
    claimed = np.zeros(
        n, dtype=np.int64
    )  # whoever is not found is guessed to have the commonest, which is coded 0
    claimed[list(raw.exposed)] = _coded(raw.learned)
    found = [bar("linkage", "birth date, sex, code", float((claimed == ill).mean()), n, guess)]
    year = people["birth"].to_numpy().astype("datetime64[Y]").astype(np.int64) + 1970
    decade = np.minimum((2025 - year) // 10, 9)
    sex = (np.array(people["sex"].to_pylist()) == "male").astype(np.int64)
    code = np.array(people["code"].to_pylist()).astype(np.int64) - 13000
    codes = int(code.max()) + 1
    shape = (codes, 10, 2, len(DIAGNOSES))
    exact = np.zeros(shape)
    np.add.at(exact, (code, decade, sex, ill), 1)
    best = exact.argmax(axis=3)[code, decade, sex]
    found.append(bar("linkage", "decade, sex, code", float((best == ill).mean()), n, guess))
    table = pa.table({"code": code, "decade": decade, "sex": sex, "ill": ill})
    schema = {
        "code": integer(0, codes - 1),
        "decade": integer(0, 9),
        "sex": integer(0, 1),
        "ill": integer(0, len(DIAGNOSES) - 1),
    }
    keys = ["code", "decade", "sex", "ill"]
    for epsilon in EPSILONS:
        noisy = counts_from(release_from(table, schema, count(by=keys), epsilon, seed=41)[0], keys, shape)
        size = np.maximum(noisy.sum(axis=3, keepdims=True), 1.0)
        guessed = shrunk(noisy, size, _shares(), 8 / epsilon**2).argmax(axis=3)[code, decade, sex]
        found.append(bar("linkage", "", float((guessed == ill).mean()), n, guess, epsilon))
    return found


def on_classes() -> list[Bar]:
    """100,000 people in classes of five: homogeneity, background knowledge, and skewness of one published table."""
    import numpy as np
    import pyarrow as pa

    shares, names = _shares(), list(DIAGNOSES)
    ill = np.searchsorted(np.cumsum(shares)[:-1], Draws(42, "ill").uniforms(CLASSES * K), side="right")
    place = np.repeat(np.arange(CLASSES), K)
    table = pa.table({"place": place, "ill": ill})
    columns = {"place": place, "ill": np.array(names)[ill]}
    roles = {"quasi": ["place"], "sensitive": "ill"}
    exact = np.zeros((CLASSES, len(names)))
    np.add.at(exact, (place, ill), 1)
    one = homogeneity(columns, quasi=["place"], sensitive="ill")
    assert one.details["k"] == K
    # What the attacks claim is part of what the best guess from the classes gets right.
    assert one.score(columns["ill"].tolist()).precision == 1
    assert background(columns, **roles, ruled_out=["none"]).score(columns["ill"].tolist()).precision == 1  # type: ignore[arg-type]
    assert len(skewness(columns, **roles, value=RARE).exposed)  # type: ignore[arg-type]
    found = [b for part in _three(f"exact, k = {K}", exact, place, ill, None) for b in part]
    for epsilon in EPSILONS:
        schema = {"place": integer(0, CLASSES - 1), "ill": integer(0, len(names) - 1)}
        released = release_from(table, schema, count(by=["place", "ill"]), epsilon, seed=43)[0]
        noisy = counts_from(released, ["place", "ill"], (CLASSES, len(names)))
        estimate = shrunk(noisy, float(K), shares, 8 / epsilon**2)
        found += [b for part in _three("", estimate, place, ill, epsilon) for b in part]
    return found


def _three(
    release: str, estimate: Floats, place: Integers, ill: Integers, epsilon: float | None
) -> list[list[Bar]]:
    """The three attacks on one table of estimated counts."""
    import numpy as np

    shares, names = _shares(), list(DIAGNOSES)
    plain = estimate.argmax(axis=1)[place]
    rest = estimate.copy()
    rest[:, 0] = -np.inf
    sick = ill != 0  # the neighbour knows that she is ill
    other = rest.argmax(axis=1)[place]
    rare = names.index(RARE)
    # The hundredth of the people of whom the table says most that they have the rare value.
    suspected = np.argsort(-estimate[:, rare], kind="stable")[: CLASSES // 100]
    inside = np.isin(place, suspected)
    return [
        [bar("homogeneity", release, float((plain == ill).mean()), ill.size, float(shares[0]), epsilon)],
        [
            bar(
                "background knowledge",
                release,
                float((other == ill)[sick].mean()),
                int(sick.sum()),
                float(shares[1:].max() / shares[1:].sum()),
                epsilon,
            )
        ],
        [
            bar(
                "skewness",
                release,
                float((ill == rare)[inside].mean()),
                int(inside.sum()),
                float(shares[rare]),
                epsilon,
            )
        ],
    ]


def on_two_releases() -> list[Bar]:
    """20,000 people in two releases with different age bands; 20 equally likely conditions."""
    import numpy as np
    import pyarrow as pa

    n, codes, values = 20_000, 200, 20
    draws = Draws(44, "two releases")
    age, code, ill = draws.integers(100, n), draws.integers(codes, n), draws.integers(values, n)
    cuts = (np.arange(0, 101, 10), np.array([0, *range(5, 100, 10), 100]))
    bands = [np.searchsorted(c, age, side="right") - 1 for c in cuts]
    releases = [
        {
            "age": np.array([f"{c[i]}-{c[i + 1] - 1}" for i in range(len(c) - 1)])[band],
            "code": code,
            "ill": ill,
        }
        for c, band in zip(cuts, bands, strict=True)
    ]
    people = {"age": age, "code": code}
    guess = 1 / values
    found = []
    exact = []
    for c, band in zip(cuts, bands, strict=True):
        cells = np.zeros((len(c) - 1, codes, values))
        np.add.at(cells, (band, code, ill), 1)
        exact.append(np.log(np.maximum(cells, 1e-9))[band, code])
    for name, some in (("one release", 1), ("two releases", 2)):
        seen = intersection(releases[:some], people, quasi=["age", "code"], sensitive="ill")
        assert seen.score(ill.tolist()).precision == 1
        # Whoever is not pinned down is guessed to have the commonest of what is left in the classes.
        guessed = sum(exact[:some]).argmax(axis=1)  # type: ignore[union-attr]
        assert (guessed[list(seen.exposed)] == np.array(seen.learned)).all()
        found.append(bar("intersection", name, float((guessed == ill).mean()), n, guess))
    schema = {"age": integer(0, 99), "code": integer(0, codes - 1), "ill": integer(0, values - 1)}
    table = pa.table({"age": age, "code": code, "ill": ill})
    for epsilon in EPSILONS:
        score = np.zeros((n, values))
        for number, (c, band) in enumerate(zip(cuts, bands, strict=True)):
            asked = count(by=[bins("age", [float(x) for x in c]), "code", "ill"])
            frame = release_from(table, schema, asked, epsilon, seed=45 + number)[0]
            noisy = frame["value"].to_numpy().reshape(len(c) - 1, codes, values)
            size = np.maximum(noisy.sum(axis=2, keepdims=True), 1.0)
            score += shrunk(noisy, size, np.full(values, guess), 8 / epsilon**2)[band, code]
        right = float((score.argmax(axis=1) == ill).mean())
        found.append(bar("intersection", "", right, n, guess, epsilon, times=2))
    return found
