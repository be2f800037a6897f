"""Work that is done in pieces gives what it gives at once: every size of a piece is made small here, and crossed.

A piece's size (rows read, cells held, blocks of a product) is a constant that ordinary tests never reach, so that
what happens at its edge is seen by nobody. The sources are searched for such constants; each is listed below with
something that crosses it, or with the test that does, or with the reason why it needs none.
"""

from __future__ import annotations

import ast
import importlib
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from support.code import FILES, named, text, tree
from tacit.noise import SeededSource

NAMES = re.compile(r"_?[A-Z][A-Z0-9_]+")
PIECES = re.compile("CHUNK|BLOCK|PIECE|BATCH|ONCE")
THIRD = Fraction(1, 3)
READ = ("read", "fetchmany", "to_batches", "to_arrow_reader", "iter_batches", "slice")


def pieces_of(module: ast.Module) -> set[str]:
    """Constants that cut work: the step of a range, C in max(1, C // n) and min(C, left), what is read at a time."""
    known = set()
    for node in module.body:
        if isinstance(node, ast.Assign):
            known |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            known |= {a.asname or a.name for a in node.names}
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("len("):
            ends = [c.id for c in node.comparators if isinstance(c, ast.Name)]
            found |= {name for name in ends if PIECES.search(name)}
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        parts: list[ast.AST] = []
        if name == "range" and len(node.args) == 3:
            parts = [node.args[2]]
        elif name == "stretches":
            parts = [node.args[1]]
        elif name == "max" and len(node.args) == 2 and ast.unparse(node.args[0]) == "1":
            cut = [
                b
                for b in ast.walk(node.args[1])
                if isinstance(b, ast.BinOp) and isinstance(b.op, ast.FloorDiv)
            ]
            parts = [b.left for b in cut]
        elif name == "min":
            parts = [a for a in node.args if PIECES.search(getattr(a, "id", ""))]
        elif name in READ and isinstance(node.func, ast.Attribute):
            parts = [a for a in node.args if isinstance(a, ast.Name | ast.BinOp)]
        found |= {x.id for part in parts for x in ast.walk(part) if isinstance(x, ast.Name)}
    return {name for name in found & known if NAMES.fullmatch(name)}


# --- what crosses a piece --------------------------------------------------------------------------------
def _drawn_counts() -> Any:
    from tacit.coupled.noiseless.decisions import drawn_counts

    weights = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    found = drawn_counts(weights, 30, 7, SeededSource(seed=1))
    assert (found.sum(axis=1) == 30).all()
    return drawn_counts([Fraction(1)], 30, 7, SeededSource(seed=1))


def _lattice_far() -> Any:
    from tacit.functions import Box
    from tacit.functions.bases import FourierBasis
    from tacit.functions.density_families import lattice_far

    lattice_far.cache_clear()
    return lattice_far(FourierBasis(domain=Box.unit(), order=2))


def _density(use: Callable[[Any], Any]) -> Callable[[], Any]:
    def made() -> Any:
        from tacit.functions import Box
        from tacit.functions.densities import DensityPlan, GaussianKDE

        plan = DensityPlan(family=GaussianKDE(domain=Box.unit(), bandwidth=0.2), size=30, mu=1.0)
        return use(plan.release(np.linspace(0.1, 0.9, 30), source=SeededSource(seed=1)))

    return made


def _band(released: Any) -> Any:
    """Errors of three draws at a time come from other seeds than all at once: none may come from one seed twice."""
    from tacit.functions.densities.released import _simulated, sampling_root

    at = released.family.box.inside(np.array([0.3, 0.6]))
    rows = released.family.synthesis(at) / released.size
    root = sampling_root(released, at, 16)
    found = _simulated(released, rows, root, np.ones(2), "both", 20, 3, False)
    assert found.shape == (20, 2)
    assert len({round(v, 12) for v in found[:, 0].tolist()}) == 20
    return found.shape


def _choice() -> Any:
    from tacit.functions import Box
    from tacit.functions.densities import DensityChoice, DensityPlan, GaussianKDE

    family = GaussianKDE(domain=Box.unit(), bandwidth=0.2)
    plan = DensityPlan(family=family, size=30, mu=1.0)
    rows = np.linspace(0.1, 0.9, 30)
    return [float(s) for s in DensityChoice(plan=plan, candidates=[family], epsilon=1).scores(rows)]


def _grid_sums() -> Any:
    from tacit.functions import Box
    from tacit.functions.fourier import FourierKDE
    from tacit.functions.fourier.plan import grid_sums

    family = FourierKDE(domain=Box.unit(), order=3, bandwidth=0.1)
    cells = np.arange(0, family.cells[0], max(1, family.cells[0] // 11), dtype=np.int64)[:, None]
    return grid_sums(family, cells, np.arange(1, len(cells) + 1), Fraction(1, 1024)).tolist()


def _problem() -> Any:
    from tacit.functions.models import Hinge
    from tacit.functions.models.solvers import FitProblem

    rng = np.random.default_rng(1)
    phi = rng.normal(size=(11, 3))
    made = FitProblem(
        phi=phi, target=np.ones(11), loss=Hinge(), penalty=1.0, size=11, radius=9.0, rounding=0.0
    )
    return made.pull(np.arange(11.0))


def _perturbed_rows() -> Any:
    from tacit.functions.models.objective import BinnedDesign, DenseDesign

    rng = np.random.default_rng(1)
    table, codes = rng.integers(-8, 8, size=(11, 3)).astype(float), rng.integers(0, 3, size=(11, 2))
    codes[:, 1] += 3
    blocks = tuple(rng.integers(-4, 4, size=(3, 2)).astype(float) for _ in range(2))
    made = (DenseDesign(table=table, radius=20.0), BinnedDesign(codes=codes, blocks=blocks, radius=9.0))
    # Squares, whose roots single precision holds exactly.
    return [f(np.arange(11.0) ** 2).tolist() for m in made for f in (m.pull, m.gram)]


def _scaled_rows() -> Any:
    from tacit.functions.models.features import PublicBall

    rows = np.random.default_rng(5).normal(size=(11, 3)) * np.geomspace(1e-3, 1e300, 11)[:, None]
    return PublicBall(radius=2.0, center=0.5).scaled(rows).tolist()


def _gram() -> Any:
    from tacit.functions.models.solvers import _gram as gram

    rng = np.random.default_rng(2)
    return gram(rng.normal(size=(11, 3)), np.arange(11.0))


def _enclosed() -> Any:
    from tacit.functions.kernels import GaussianKernel
    from tacit.functions.means import KernelCombination

    rng = np.random.default_rng(3)
    mean = KernelCombination(
        kernel=GaussianKernel(dimension=1, bandwidth=0.3), points=rng.random((11, 1)), coefficients=np.arange(11.0),
        absolute_sum=55,
    )  # fmt: skip
    return mean.enclosed(rng.random((9, 1))).mid


def _range_spreads() -> Any:
    from tacit.mechanisms.ranges import RangeTree

    tree = RangeTree.plan(cells=16, epsilon=1, branching=4)
    return np.stack(tree.range_spreads(np.array([(a, a + 4) for a in range(11)])))


def _listed_free() -> Any:
    from tacit.mechanisms.sparse_keys import _listed_free as listed

    class Odd:
        def holds(self, keys: Any) -> Any:
            return keys % 3 == 0

    return listed(20, np.array([1, 7, 19], dtype=np.uint64), Odd()).tolist()  # type: ignore[arg-type]


def _subsets() -> Any:
    from tacit.mechanisms import SubsetSelection

    truth = [0, 1, 2, 3] * 5
    found = SubsetSelection(epsilon=50, categories=8).release(truth, source=SeededSource(seed=1))
    return np.ravel(np.asarray(found.values)).tolist()


def _two_questions() -> Any:
    from tacit.mechanisms import RandomizedResponse, TwoQuestions

    both = TwoQuestions(
        first=RandomizedResponse(epsilon=1, categories=3), second=RandomizedResponse(epsilon=2, categories=4)
    )
    return both.estimate([i % 3 for i in range(25)], [i % 4 for i in range(25)])


def _ordered() -> Any:
    from tacit.anonymity.search import Criteria

    groups, values = np.repeat(np.arange(7), 3), np.tile([0, 1, 2], 7)
    counts = np.arange(1, 22)
    shares = np.bincount(values, weights=counts) / counts.sum()
    criteria = Criteria(t=0.01, distance="ordered", shares=shares)
    return criteria._far(groups, values, counts.astype(float), np.bincount(groups, weights=counts))


def _laplace_pairs() -> Any:
    from tacit.accounting import events
    from tacit.guarantees import Neighbours

    each = [
        events.PoissonSampledEvent(event=events.LaplaceEvent(epsilon=e / 8), sampling_rate=0.1)
        for e in range(1, 8)
    ]
    return [(event.pairs(Neighbours.ADD_OR_REMOVE)[0], 1) for event in each]


def _chunks() -> Any:
    from tacit.pld.characteristic import CharacteristicComposition

    parts = _laplace_pairs()
    made = CharacteristicComposition(parts, False)
    assert len(made.atomic) == len(made.chunks)
    return sorted(str(pair) for chunk in made.chunks for pair, _ in chunk)


def _slices() -> Any:
    from tacit.pld import engine as grid_composition

    return sorted(str(pair) for some in grid_composition._slices(_laplace_pairs()) for pair, _ in some)


def _fine_hats() -> Any:
    return _hats(fine=True)


def _hats(*, fine: bool = False) -> Any:
    from types import SimpleNamespace

    from tacit.pld.transforms import Tilted

    rng = np.random.default_rng(6)
    part = SimpleNamespace(
        weights=rng.random((5, 4)), centres=rng.random((5, 4)), errors=(np.zeros(5), np.zeros(5))
    )
    return Tilted.hats(SimpleNamespace(budget=10**9, fine=fine), part, 3, 6, 0.1)[0]  # type: ignore[arg-type]


def _moments() -> Any:
    from tacit.noise.caratheodory import moment_characteristic

    return moment_characteristic(2, 1, np.linspace(0.1, 3, 11))


def _mask() -> Any:
    from tacit.parties.masks import add_mask

    total = np.arange(37, dtype=np.uint64)
    add_mask(total, bytes(range(32)), sign=1)
    return total


def _kernel() -> Any:
    from tacit.risk.certificate import GeometricKernel

    made = GeometricKernel(n=10, epsilon=0.7)
    prior = np.full(11, 1 / 11)
    joint = np.concatenate([weights for _, weights in made.joint(prior)])
    assert joint.shape == (11, 11)
    assert joint.sum() == pytest.approx(1, rel=1e-12)
    return joint


def _careful() -> Any:
    from tacit.sources.opening.frames import plain_column

    column = pa.chunked_array(
        [pa.array(["a", None, "b", "c"]), pa.array([], pa.string()), pa.array(["d"] * 5)]
    )
    return plain_column(column).to_pylist()


def _undecodable() -> Any:
    import tempfile

    from tacit.sources.proposing import _undecodable as undecodable

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(b"one\ntw\xff\n\nthree, long line\nf\xfe\xff\nlast")
        return undecodable(path, "utf-8")


def _sqlite() -> Any:
    import tempfile

    import tacit.statistics as ask
    from tacit.sources import Schema, integer, open_table
    from tacit.sources.opening.files import files

    schema = Schema({"x": integer(0, 1000)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sqlite"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (x INTEGER)")
            connection.executemany("INSERT INTO t VALUES (?)", [(2**i,) for i in range(9)])
        connection.close()
        with open_table(files(path, view="t"), schema=schema, unit=tacit.rows()) as table:
            asked = [ask.count().on(schema, table.unit), ask.sum("x").on(schema, table.unit)]
            found = ask.read(table, asked, key=bytes(32))
    return [np.ravel(v).tolist() for one in found for v in one.values()]


def _workbook() -> Any:
    import tempfile

    import openpyxl

    import tacit.statistics as ask
    from tacit.sources import Schema, integer, open_table

    schema = Schema({"x": integer(0, 1000)})
    with tempfile.TemporaryDirectory() as folder:
        book = openpyxl.Workbook()
        book.active.append(["x"])
        for i in range(9):
            book.active.append([2**i])
        book.save(Path(folder) / "t.xlsx")
        with open_table(Path(folder) / "t.xlsx", schema=schema, unit=tacit.rows()) as table:
            asked = [ask.count().on(schema, table.unit), ask.sum("x").on(schema, table.unit)]
            found = ask.read(table, asked, key=bytes(32))
    assert [np.ravel(v).tolist() for one in found for v in one.values()] == [[9], [511]]
    return len(found)


def _weighted_products() -> Any:
    import tacit.statistics as ask

    return _products(lambda: ask.regression("y", on=["x"]))


def _products(asked: Callable[[], Any] | None = None) -> Any:
    import tacit.statistics as ask
    from tacit.sources import Schema, number, open_table

    schema = Schema({"x": number(0, 1), "y": number(0, 1)})
    rng = np.random.default_rng(4)
    data = pa.table({"x": rng.random(11), "y": rng.random(11)})
    with open_table(data, schema=schema, unit=tacit.rows()) as table:
        statistic = ask.regression_moments(["x"], "y") if asked is None else asked()
        found = ask.read(table, [statistic.on(schema, table.unit)], key=bytes(32))
    return [np.ravel(v).tolist() for one in found for v in one.values()]


def _sampled(make: Callable[[], Any]) -> Callable[[], Any]:
    """So many draws in so many pieces: as many as asked for, not the same ones again, and about as wide as stated."""

    def drawn() -> Any:
        law = make()
        found = np.asarray(law.sample(size=300, source=SeededSource(seed=7)), dtype=np.float64)
        assert found.shape == (300,)
        width = float(law.variance) ** 0.5
        assert abs(found.mean() - float(getattr(law, "mean", 0.0))) < 6.5 * width / 300**0.5
        assert 0.5 * width < found.std() < 1.7 * width
        assert not (found[:150] == found[150:]).all()
        return found.shape

    return drawn


def _grid_vector() -> Any:
    from tacit.noise import EuclideanBall, KNormVector

    found = KNormVector(body=EuclideanBall(coordinates=2), noise_scale=1).sample(
        spacing=2.0**-10, size=11, source=SeededSource(seed=1)
    )
    assert len({tuple(row) for row in found.values.tolist()}) == 11
    return found.values.shape


def _noise(name: str, **given: Any) -> Callable[[], Any]:
    return _sampled(lambda: getattr(importlib.import_module("tacit.noise"), name)(**given))


def _both(*each: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: [one() for one in each]


def _replayed() -> Any:
    from tacit.attacks import replay

    rng = np.random.default_rng(3)
    made, asked, others = ({"x": rng.random(n), "y": rng.random(n)} for n in (7, 11, 23))
    return replay(made, asked, others, false_alarms=0.3).to_dict()


def _rows_of_a_ledger() -> list[dict[str, Any]]:
    """Rows of a table by a list of keys, some of which it lacks."""
    from tacit.ledger.store import FileConnection, Table

    table = Table(name="kept", columns={"number": "INTEGER", "word": "TEXT"}, key=("number",))
    with closing(sqlite3.connect(":memory:")) as driver:
        for statement in table.made("BLOB"):
            driver.execute(statement)
        driver.executemany(table.insertion, [{"number": n, "word": f"w{n}"} for n in range(12)])
        return table.where(FileConnection(driver), "number", [*range(1, 20, 2)])


CROSSED: dict[tuple[str, str], tuple[int, Callable[[], Any]]] = {
    ("anonymity/search.py", "MOST"): (6, _ordered),
    ("attacks/synthetic_rows.py", "CELLS"): (50, _replayed),
    ("coupled/noiseless/decisions.py", "_BLOCK"): (8, _drawn_counts),
    ("functions/density_families.py", "BLOCK"): (1, _lattice_far),
    ("functions/densities/released.py", "BLOCK"): (64, _density(_band)),
    ("functions/densities/plan.py", "BLOCK"): (1, _choice),
    ("functions/densities/released.py", "READ_BLOCK"): (1, _density(lambda r: r(np.linspace(0, 1, 9)))),
    ("functions/fourier/plan.py", "BLOCK"): (1, _grid_sums),
    ("functions/models/features.py", "BLOCK"): (4, _scaled_rows),
    ("functions/models/objective.py", "BLOCK"): (4, _perturbed_rows),
    ("functions/models/solvers.py", "BLOCK"): (4, _problem),
    ("functions/models/solvers.py", "ROWS_AT_ONCE"): (4, _gram),
    ("functions/means.py", "BLOCK"): (512, _enclosed),
    ("functions/means.py", "ROWS"): (4, _enclosed),
    ("mechanisms/ranges.py", "_TOGETHER"): (64, _range_spreads),
    ("mechanisms/sparse_keys.py", "TESTED"): (3, _listed_free),
    ("mechanisms/subset_selection.py", "_CELLS"): (24, _subsets),
    ("mechanisms/two_questions.py", "_CELLS"): (12, _two_questions),
    ("noise/distributions/binomial.py", "CHUNK"): (
        16,
        _both(_noise("Binomial", trials=50, probability_of_one=THIRD), _noise("Skellam", noise_variance=9)),
    ),
    ("noise/distributions/gaussian.py", "CHUNK"): (16, _noise("DiscreteGaussian", noise_std=3)),
    ("noise/distributions/geometric.py", "CHUNK"): (
        16,
        _both(
            _noise("DiscreteLaplace", noise_scale=3), _noise("DiscreteStaircase", epsilon=1, sensitivity=3)
        ),
    ),
    ("noise/distributions/polya.py", "CHUNK"): (
        16,
        _noise("PolyaDifference", shape=Fraction(1, 2), noise_scale=3),
    ),
    ("noise/distributions/finite.py", "CHUNK"): (16, _noise("Bernoulli", probability_of_one=THIRD)),
    ("ledger/store.py", "_MOST_VALUES"): (3, _rows_of_a_ledger),
    ("noise/grid.py", "ROWS"): (4, _grid_vector),
    ("noise/caratheodory.py", "CELLS"): (64, _moments),
    ("parties/masks.py", "BLOCK"): (8, _mask),
    ("pld/characteristic.py", "_ROWS"): (2, _chunks),
    ("pld/engine.py", "_ROWS"): (2, _slices),
    ("pld/transforms.py", "_BLOCK"): (2, _hats),
    ("pld/transforms.py", "_TERMS"): (3, _fine_hats),
    ("risk/certificate.py", "CHUNK_ENTRIES"): (33, _kernel),
    ("sources/opening/frames.py", "PIECE"): (2, _careful),
    ("sources/opening/databases.py", "PIECE"): (4, _sqlite),
    ("sources/opening/statfiles.py", "PIECE"): (4, _workbook),
    ("sources/proposing.py", "BLOCK"): (3, _undecodable),
    ("statistics/moments.py", "BLOCK"): (4, _products),
    ("statistics/regression_table.py", "BLOCK"): (4, _weighted_products),
}
"""The constant, how small it is made, and what is computed: the same with the real size and with the small one."""
ELSEWHERE = {
    ("sources/tables.py", "BLOCK"): "tests/sources/test_tables.py",
    ("sources/tables.py", "EDGE"): "tests/sources/test_tables.py",
    ("sources/engines.py", "BATCH"): "tests/sources/test_places.py",
    ("sources/opening/textfiles.py", "BLOCK"): "tests/sources/test_lines.py",
    ("coupled/noiseless/largest.py", "_PIECE"): "tests/coupled/noiseless/test_best_of_few.py",
    ("curator/functions/histogram_fit.py", "PIECE"): "tests/curator/test_histogram_densities.py",
}
"""Crossed by a test of its room, which makes it small."""
NO_PIECES = {
    ("curator/certificate.py", "MOST_BYTES"): "a file that is longer is refused as no key",
    ("curator/key_files.py", "MOST_BYTES"): "a list that is longer is refused",
    ("curator/verifying.py", "MOST_ROWS"): "the rows of a sheet, which Excel fixes",
    ("report/exports/verify_bundle.py", "MOST_BYTES"): "a file that is longer is refused",
    ("server/client.py", "MOST_BYTES"): "an answer that is longer is cut, and then no JSON: it is refused",
    ("functions/paths/markov.py", "RADIUS"): "a radius",
    ("functions/paths/online.py", "_PREFIX"): "a prefix of bytes",
    ("ledger/store.py", "HEADER"): "the first bytes of a file, by which SQLite is known",
    ("mechanisms/fitted_tables.py", "MOST_STEPS"): "steps of a grid, not a piece",
    (
        "mechanisms/sparse.py",
        "CHUNK",
    ): "tries until there are enough; tests draw more than the real size",
    ("mechanisms/strategies.py", "_ROWS"): "a sample of queries that steers a choice and nothing else",
    (
        "noise/distributions/base.py",
        "CHUNK",
    ): "tries until there are enough; tests draw more than the real size",
    ("noise/reals.py", "CHUNK"): "tries until there are enough; tests draw more than the real size",
    ("reproduce/hall_2.py", "BATCH"): "repetitions of a figure, which draws no private data",
    ("report/figures.py", "_KNOWN"): "a table of what is known, not a piece",
    ("sources/engines.py", "LIMB"): "the digits of a long sum, not a piece of rows",
}
"""Found by the search, and why nothing here crosses it."""


def test_every_piece_is_crossed_or_says_why_not() -> None:
    cuts = re.compile(rf"\b(len|range|max|min|stretches|{'|'.join(READ)})\(.*[A-Z][A-Z][A-Z]")
    found = {
        (named(path), name) for path in FILES if cuts.search(text(path)) for name in pieces_of(tree(path))
    }
    known = {*CROSSED, *ELSEWHERE, *NO_PIECES}
    assert sorted(found - known) == [], "list it above, with something that crosses it"
    assert sorted({*CROSSED, *ELSEWHERE} - found) == [], "it is gone, or does not cut work any more"
    for (_, name), where in ELSEWHERE.items():
        place = Path(__file__).parents[2] / where
        files = [place] if place.is_file() else list(place.rglob("test_*.py"))
        assert any(f'"{name}"' in file.read_text() for file in files), (name, where)


@pytest.mark.parametrize("piece", CROSSED, ids=lambda p: f"{p[0]} {p[1]}")
def test_pieces_give_what_the_whole_gives(piece: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    file, name = piece
    small, compute = CROSSED[piece]
    module = importlib.import_module(f"tacit.{file.removesuffix('.py').replace('/', '.')}")
    assert getattr(module, name) > small
    whole = compute()
    monkeypatch.setattr(module, name, small)
    parts = compute()
    if isinstance(whole, np.ndarray):
        assert parts.shape == whole.shape
        assert np.allclose(parts, whole, rtol=1e-9, atol=1e-12)
    elif isinstance(whole, float):
        assert parts == pytest.approx(whole, rel=1e-9, abs=0)
    else:
        assert parts == whole
