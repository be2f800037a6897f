"""All neighbours of tiny tables: how far a question's integers really move."""

from __future__ import annotations

import itertools

import numpy as np

from support.naive import key, parts


def units_of(unit, question, domain):
    """All data that one unit may have: one row, or at most m rows in at most g groups where that is kept."""
    base = getattr(unit, "of", unit)
    if not hasattr(base, "at_most"):
        return [[r] for r in domain]
    found = []
    for size in range(base.at_most + 1):
        for chosen in itertools.combinations_with_replacement(domain, size):
            mine = [{**r, "id": "me"} for r in chosen]
            limited = question.requests[0].limited
            if base.groups is not None and limited:
                cells = {tuple(key(a, question.schema, r) for a in limited) for r in mine}
                if len({c for c in cells if None not in c}) > base.groups:
                    continue
            found.append(mine)
    return found


def moves(question, unit, domain, rest=((),)):
    """Largest moves of the stacked parts over all neighbours: L1, L2 squared, Linf; jointly and part by part."""
    base = getattr(unit, "of", unit)
    best: dict[str, list[int]] = {}
    for others in rest:
        found = [parts(question, [*others, *mine], "id") for mine in units_of(unit, question, domain)]
        ground = parts(question, list(others), "id")
        cells = {p.name: sorted({c for f in [*found, ground] for c in f[p.name]}) for p in question.parts}

        def vector(f, names, cells=cells):
            return np.array([f[n].get(c, 0) for n in names for c in cells[n]], dtype=np.int64)

        for label, names in [("", list(cells)), *((n, [n]) for n in cells)]:
            table = np.unique(np.array([vector(f, names) for f in found]), axis=0)
            if base.neighbours == "replace-one":
                differences = (table[:, None, :] - table[None, :, :]).reshape(-1, table.shape[1])
            else:
                differences = table - vector(ground, names)
            size = np.abs(differences)
            here = [int(x.max(initial=0)) for x in (size.sum(1), (size**2).sum(1), size)]
            best[label] = [max(a, b) for a, b in zip(best.get(label, [0, 0, 0]), here, strict=True)]
    return best
