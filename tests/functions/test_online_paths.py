"""Online paths: one path for ever, with the law of the batch; frozen, sealed, durable before it is told."""

import math
import multiprocessing
import os
import sqlite3
import struct
from contextlib import nullcontext
from fractions import Fraction

import flint
import numpy as np
import pytest

from support.ball_matrices import gram_balls
from tacit.errors import InvalidParameter, LedgerCorrupt, NotCertified
from tacit.exact.rounding import ball, precision
from tacit.functions import (
    Box,
    ExponentialKernel,
    GaussianKernel,
    GaussianProcessRelease,
    KernelCombination,
    MaternKernel,
    PathStore,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    SumKernel,
    TensorProductKernel,
    WrappedGaussianKernel,
)
from tacit.functions.paths import markov
from tacit.functions.paths.markov import ConditionedPath, MarkovNoise
from tacit.functions.paths.online import kernel_from, release_from, release_record
from tacit.guarantees import Approximate, GaussianDP, Guarantee, rows
from tacit.ledger import Ledger, Request
from tacit.ledger.encrypted_store import EncryptedStore
from tacit.noise import SeededSource

BUDGET = Guarantee(bound=GaussianDP(mu=1.0), unit=rows(neighbours="replace-one"))
ROWS = [0.123456789012345, 0.3, 0.77]
LINE = [
    ExponentialKernel(length=0.3),
    MaternKernel(length=0.3, smoothness=0.5),
    MaternKernel(length=0.3, smoothness=1.5),
    MaternKernel(length=0.3, smoothness=2.5),
]


def mean_of(kernel, points=ROWS):
    at = np.repeat(np.array(points)[:, None], kernel.dimension, axis=1)
    return KernelCombination(kernel=kernel, points=at, coefficients=[0.5, 0.25, 0.25], absolute_sum=1)


def release_of(kernel, **changes):
    given = {
        "kernel": kernel, "rkhs_sensitivity": 0.01, "noise_std": 0.05, "domain": Box.unit(kernel.dimension), **changes,
    }  # fmt: skip
    return GaussianProcessRelease(**given)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.db", budget=BUDGET)


# --- the law, exactly ----------------------------------------------------------------------------------
@pytest.mark.parametrize("kernel", LINE, ids=lambda k: f"{k.kind} {k.parameters.get('smoothness', '')}")
def test_the_matrix_of_a_markov_path_is_a_root_of_the_gram_matrix(kernel, monkeypatch):
    # Values are linear in the normals: the k-th unit vector gives the k-th column of L. Three calls, in a mixed order.
    calls = [[0.2, 0.7], [0.1, 0.65, 0.7000001, 0.95], [0.3, 0.31, 0.69]]
    points = [x for call in calls for x in call]
    order = MarkovNoise(kernel).order
    columns = []
    with precision(900):
        for k in range(len(points) * order):
            noise, made, values = MarkovNoise(kernel), 0, {}
            for call in calls:
                unit = [ball(int(made + i == k)) for i in range(len(call) * order)]
                monkeypatch.setattr(markov, "balls_of", lambda _, unit=unit: unit)
                states = noise.draw(call, SeededSource(seed=0))
                noise.join(call, states)
                made += len(unit)
                values |= {x: s[0] for x, s in zip(call, states, strict=True)}
            columns.append([values[x] for x in points])
        root = flint.arb_mat(columns).transpose()
        gap = root * root.transpose() - gram_balls(kernel, np.array(points)[:, None])
        for entry in gap.entries():
            assert entry.contains(0)
            assert float(entry.rad()) < 1e-60


def test_the_rows_of_a_conditioned_path_are_a_root_of_the_gram_matrix():
    kernel = SumKernel(kernels=(GaussianKernel(bandwidth=0.3), MaternKernel(length=0.5, smoothness=1.5)))
    path = ConditionedPath(kernel=kernel, mean=mean_of(kernel), noise_std=Fraction(1, 20))
    points, source = np.array([0.5, 0.1, 0.9, 0.52, 0.50001, 0.3])[:, None], SeededSource(seed=2)
    for x in points:
        path.value(x, source)
    with precision(500):
        n = len(points)
        table = [[row[j] if j < len(row) else ball(0) for j in range(n)] for row in path._rows]
        root = flint.arb_mat(table)
        gap = root * root.transpose() - gram_balls(kernel, points)
        assert all(e.contains(0) and float(e.rad()) < 1e-60 for e in gap.entries())
        # Y = f_D + noise_std L z, to all digits.
        z = flint.arb_mat([[m.ball()] for m in path.normals(0)])
        f = flint.arb_mat([[path.mean.ball(x)] for x in points])
        white = flint.arb_mat([[w] for w in path._white])
        difference = root * white - f - (root * z) * ball(Fraction(1, 20))
        assert all(e.contains(0) and float(e.rad()) < 1e-50 for e in difference.entries())


@pytest.mark.slow
def test_the_law_of_online_answers(ledger):
    # 33334 groups of 3 points, 40 lengths apart: independent but for e^-40. The middle points are asked last. 10^5
    # values, 9 moments, each within 6.5 standard deviations: error probability below 10^-9.
    groups, kernel = 33_334, ExponentialKernel(length=1.0)
    offsets = np.array([0.0, 0.9, 0.4])
    at = np.arange(groups)[:, None] * 40.0 + offsets
    box = Box(low=0.0, high=40.0 * groups)
    mean = KernelCombination(kernel=kernel, points=[0.0], coefficients=[0.0], absolute_sum=1)
    path = PathStore(ledger).make("p", release=release_of(kernel, noise_std=0.5, domain=box), mean=mean,
                                  source=SeededSource(seed=12))  # fmt: skip
    ends = path.ask(at[:, :2].ravel()).to_floats().reshape(groups, 2)
    draws = np.column_stack([ends, path.ask(at[:, 2]).to_floats()])
    gram = 0.25 * np.exp(-np.abs(offsets[:, None] - offsets))
    error = np.sqrt((gram**2 + np.outer(gram.diagonal(), gram.diagonal())) / groups)
    assert (np.abs(draws.mean(axis=0)) < 6.5 * 0.5 / math.sqrt(groups)).all()
    assert (np.abs(np.cov(draws.T) - gram) < 6.5 * error + 1e-5).all()


def test_the_printed_online_display_is_refuted():
    # Far from earlier questions the printed mean is 0 and the printed variance K(x, x); ours are f_D and noise_std^2.
    kernel = ExponentialKernel(length=0.001)
    mean = KernelCombination(kernel=kernel, points=[0.9], coefficients=[5.0], absolute_sum=5)
    found = []
    for seed in range(40):
        path = ConditionedPath(kernel=kernel, mean=mean, noise_std=Fraction(1, 100))
        source = SeededSource(seed=seed)
        path.value(np.array([0.1]), source)
        found.append(float(path.value(np.array([0.9]), source).mid()))
    assert all(abs(v - 5) < 0.08 for v in found)
    assert 0.005 < np.std(found) < 0.02


# --- one path for ever ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "kernel",
    [LINE[0], LINE[3], GaussianKernel(bandwidth=0.2), GaussianKernel(bandwidth=0.5, dimension=2)],
    ids=["exponential", "matern", "gaussian", "plane"],
)
def test_a_path_is_the_same_whoever_asks_and_in_whatever_order(ledger, kernel):
    store, rng = PathStore(ledger), np.random.default_rng(1)
    first = store.make("curve", release=release_of(kernel), mean=mean_of(kernel))
    second = store.open("curve")
    a, b, c = (rng.uniform(size=(5, kernel.dimension)) for _ in range(3))
    said = {"a": first.ask(a).values, "b": second.ask(b).values, "c": first.ask(c).values}
    for path in (first, second, store.open("curve"), PathStore(Ledger.open(ledger.path)).open("curve")):
        for points, key in ((c, "c"), (a, "a"), (b, "b")):
            np.testing.assert_array_equal(path.ask(points).values, said[key])
        assert path.asked == 15
        np.testing.assert_array_equal(path.ask(np.concatenate([b, b[::-1]])).values[::-1][:5], said["b"])
    assert store.names() == ["curve"]
    assert first.ask(a).publishable


def test_nearly_equal_points_of_a_smooth_kernel_are_interpolated(ledger):
    kernel = GaussianKernel(bandwidth=0.5)
    path = PathStore(ledger).make("smooth", release=release_of(kernel), mean=mean_of(kernel))
    values = path.ask(np.linspace(0.4, 0.6, 60)).values
    assert np.abs(np.diff(values, 2)).max() <= 3
    assert path._sampler._path.rank < 25


def test_the_function_is_frozen_when_the_path_is_made(ledger):
    kernel, store = LINE[0], PathStore(ledger)
    path = store.make("curve", release=release_of(kernel, noise_std=1e-6), mean=mean_of(kernel))
    before = path.ask([0.5]).to_floats()[0]
    changed = store.make(
        "curve", release=release_of(kernel, noise_std=1e-6), mean=mean_of(kernel, [0.9, 0.9, 0.9])
    )
    assert changed.ask([0.5]).to_floats()[0] == before
    near = changed.ask([0.51]).to_floats()[0]
    assert abs(near - mean_of(kernel)([0.51])[0]) < 1e-4
    assert abs(near - mean_of(kernel, [0.9, 0.9, 0.9])([0.51])[0]) > 0.05
    with pytest.raises(InvalidParameter, match="one release"):
        store.make("curve", release=release_of(kernel, noise_std=0.1), mean=mean_of(kernel))


def test_what_is_kept_is_sealed(ledger):
    kernel = LINE[0]
    PathStore(ledger).make("curve", release=release_of(kernel), mean=mean_of(kernel)).ask([0.5, 0.6])
    kept = ledger.path.read_bytes()
    for row in ROWS:
        assert struct.pack("<d", row) not in kept
        assert repr(row).encode() not in kept
    with sqlite3.connect(ledger.path) as connection:
        parts = connection.execute("select part, body from tacit_sealed order by part").fetchall()
        assert [p for p, _ in parts] == [0, 1]
        # Parts that change places, and parts that were touched, are noticed.
        connection.execute("update tacit_sealed set body = ? where part = 1", (parts[0][1],))
    with pytest.raises(LedgerCorrupt):
        PathStore(ledger).open("curve")
    with sqlite3.connect(ledger.path) as connection:
        flipped = parts[1][1][:-1] + bytes([parts[1][1][-1] ^ 1])
        connection.execute("update tacit_sealed set body = ? where part = 1", (flipped,))
    with pytest.raises(LedgerCorrupt):
        PathStore(ledger).open("curve")
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("update tacit_sealed set body = ?, part = 2 where part = 1", (parts[1][1],))
    with pytest.raises(LedgerCorrupt):
        PathStore(ledger).open("curve")


@pytest.mark.parametrize("kernel", [LINE[0], GaussianKernel(bandwidth=0.2)], ids=["markov", "conditioned"])
def test_an_answer_that_could_not_be_kept_is_not_given(ledger, kernel, monkeypatch):
    store = PathStore(ledger)
    path = store.make("curve", release=release_of(kernel), mean=mean_of(kernel))
    known = path.ask([0.2, 0.8]).values
    append = EncryptedStore.sealed
    with monkeypatch.context() as patch:
        patch.setattr(EncryptedStore, "sealed", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            path.ask([0.5])
    assert EncryptedStore.sealed is append
    assert path.asked == 2
    # Somebody else asks meanwhile; the first one must follow them, and not what it drew and never told.
    other = store.open("curve")
    said = other.ask([0.5, 0.4]).values
    np.testing.assert_array_equal(path.ask([0.5, 0.4]).values, said)
    np.testing.assert_array_equal(path.ask([0.2, 0.8]).values, known)
    more = path.ask([0.3]).values
    np.testing.assert_array_equal(store.open("curve").ask([0.3]).values, more)


def _asking(place, name, points, out):
    values = PathStore(Ledger.open(place)).open(name).ask(points).values
    out.put((points, values.tolist()))
    out.close()
    out.join_thread()
    os._exit(9)


@pytest.mark.slow
def test_processes_that_ask_at_once_and_die_leave_one_path(ledger):
    kernel = LINE[0]
    PathStore(ledger).make("curve", release=release_of(kernel), mean=mean_of(kernel))
    context = multiprocessing.get_context("spawn")
    out, rng = context.Queue(), np.random.default_rng(4)
    asked = [[0.5, *rng.uniform(size=20).tolist()] for _ in range(3)]
    workers = [context.Process(target=_asking, args=(ledger.path, "curve", p, out)) for p in asked]
    for one in workers:
        one.start()
    said = [out.get(timeout=120) for _ in workers]
    for one in workers:
        one.join(timeout=60)
    path = PathStore(ledger).open("curve")
    assert path.asked == 61
    for points, values in said:
        assert path.ask(points).values.tolist() == values
    assert len({values[0] for _, values in said}) == 1


# --- charging ------------------------------------------------------------------------------------------
def test_a_path_is_charged_once_and_its_rows_are_read_after_the_charge(ledger):
    kernel, store = LINE[0], PathStore(ledger)
    release, calls = release_of(kernel), []
    price = Guarantee(bound=release.bound, unit=BUDGET.unit)
    request = Request(key="curve", plan_digest="d", analyst="a", event={"kind": "gaussian"}, charge=price)

    def rows_are_read():
        calls.append(ledger.spent().mu)
        return mean_of(kernel)

    path = store.charged("curve", release=release, mean=rows_are_read, request=request)
    value = path.ask([0.5]).values
    again = store.charged("curve", release=release, mean=rows_are_read, request=request)
    np.testing.assert_array_equal(again.ask([0.5]).values, value)
    assert calls == [pytest.approx(0.2)]
    assert ledger.spent().mu == pytest.approx(0.2)
    assert ledger.verify().ok
    assert "curve" in store


@pytest.mark.parametrize("mu", [0.199, 1e-6])
def test_a_charge_below_the_path_s_price_is_refused_before_rows_are_read(ledger, mu):
    release, store = release_of(LINE[0]), PathStore(ledger)
    few = Guarantee(bound=GaussianDP(mu=mu), unit=BUDGET.unit)
    request = Request(key="curve", plan_digest="d", analyst="a", event={"kind": "gaussian"}, charge=few)
    with pytest.raises(InvalidParameter, match="charge at least"):
        store.charged("curve", release=release, mean=lambda: pytest.fail("rows were read"), request=request)
    assert (store.names(), ledger.spent().mu) == ([], 0.0)


def test_a_charge_of_another_kind_is_the_release_s_own_curve(tmp_path):
    budget = Guarantee(bound=Approximate(epsilon=2.0, delta=1e-4), unit=BUDGET.unit)
    store = PathStore(Ledger.create(tmp_path / "other.db", budget=budget))
    release = GaussianProcessRelease.for_target(
        epsilon=1, delta=1e-5, kernel=LINE[0], rkhs_sensitivity=0.01, domain=Box.unit()
    )
    for epsilon, name in ((0.9, "short"), (1.0, "curve")):
        price = Guarantee(bound=Approximate(epsilon=epsilon, delta=1e-5), unit=BUDGET.unit)
        request = Request(key=name, plan_digest="d", analyst="a", event={"kind": "gaussian"}, charge=price)
        with nullcontext() if name == "curve" else pytest.raises(InvalidParameter, match="charge at least"):
            store.charged(name, release=release, mean=lambda: mean_of(LINE[0]), request=request)
    assert store.names() == ["curve"]


@pytest.mark.parametrize("kernel", [LINE[0], GaussianKernel(bandwidth=0.2)], ids=["markov", "conditioned"])
def test_no_value_is_refused_for_its_size_and_drawn_anew(ledger, kernel):
    # f_D is 2^62 grid steps at 1/2: half of all draws are above.
    store, high = PathStore(ledger), 2.0**22
    mean = KernelCombination(kernel=kernel, points=[0.5], coefficients=[high], absolute_sum=high)
    release = release_of(kernel, noise_std=1, spacing=2.0**-40)
    for seed in range(8):
        path = store.make(f"{seed}", release=release, mean=mean, source=SeededSource(seed=seed))
        value = path.ask([0.5]).values[0]
        assert abs(int(value) - 2**62) < 8 * 2**40
        assert store.open(f"{seed}").ask([0.1, 0.5]).values[1] == value
    with pytest.raises(InvalidParameter, match="spacing"):
        store.make("fine", release=release_of(kernel, noise_std=1, spacing=2.0**-49), mean=mean)


# --- bad questions -------------------------------------------------------------------------------------
@pytest.mark.parametrize("points", [[], [math.nan], [1.5], ["x"], [[0.1, 0.2]], None])
def test_bad_questions_are_refused_and_change_nothing(ledger, points):
    path = PathStore(ledger).make("curve", release=release_of(LINE[0]), mean=mean_of(LINE[0]))
    with pytest.raises(InvalidParameter):
        path.ask(points)
    assert path.asked == 0


def test_unknown_paths_and_unkeepable_means_are_refused(ledger):
    store = PathStore(ledger)
    with pytest.raises(InvalidParameter):
        store.open("nothing")
    assert store.names() == []
    with pytest.raises(InvalidParameter):
        store.make(
            "curve", release=release_of(LINE[0]), mean=mean_of(GaussianKernel(bandwidth=1, dimension=2))
        )
    path = store.make("curve", release=release_of(LINE[0]), mean=mean_of(LINE[0]))
    with pytest.raises(TypeError):
        path.__reduce__()


def test_close_points_of_a_smooth_markov_path_end_in_values_or_in_a_refusal(ledger):
    kernel = LINE[3]
    path = PathStore(ledger).make("curve", release=release_of(kernel), mean=mean_of(kernel))
    at = [0.5 + k * 2.0**-30 for k in (0, 8, 4, 2, 6, 5, 7)]
    values = np.concatenate([path.ask([x]).values for x in at])
    assert np.ptp(values) <= 1
    try:
        path.ask([5e-324, 1e-323, 0.0])
    except NotCertified:
        assert path.asked == 7
    assert np.ptp(np.concatenate([values, path.ask([0.5]).values])) <= 1


def test_records_of_kernels_and_releases_read_back():
    for kernel in (
        *LINE, GaussianKernel(bandwidth=0.1, dimension=3), PeriodicKernel(length=0.3, period=0.1),
        WrappedGaussianKernel(bandwidth=0.1, period=1.0), PolynomialKernel(degree=3, box=Box.unit(2), offset=0.1),
        SumKernel(kernels=LINE[:2]), ProductKernel(kernels=LINE[1:]), TensorProductKernel(kernels=LINE[2:]),
    ):  # fmt: skip
        assert kernel_from(kernel.to_dict()) == kernel
        release = release_of(kernel, rkhs_sensitivity=Fraction(1, 3))
        assert release_from(release_record(release)) == release
    with pytest.raises(InvalidParameter):
        kernel_from({"kernel": "os.system"})
