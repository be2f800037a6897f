"""What a certificate says, and what it is bound to: values, plan, ledger, itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.curator.certificate import content_digest, is_bound
from tacit.curator.request import query
from tacit.errors import InvalidParameter
from tacit.guarantees.guarantee import from_record
from tacit.noise.source import SeededSource

from .conftest import SCHEMA


def plan_of(curator: tacit.Curator) -> Any:
    asks = [query(tacit.count(by="state"), epsilon=0.125), query(tacit.mean("income"), epsilon=0.25)]
    return curator.preview(asks)


def test_it_has_the_digests_of_values_answer_and_entry(make: Any) -> None:
    """Each from its definition: of the CSV's bytes, of the recorded bytes, of the entry in the chain."""
    curator = make(budget=tacit.Pure(epsilon=1.0))
    releases = curator.release(plan_of(curator))
    reserve, commit = curator.ledger.entries()
    for release in releases:
        said = release.certificate
        assert said["values"]["sha256"] == hashlib.sha256(release.to_csv().encode("utf-8")).hexdigest()
        assert (
            said["ledger"]["digest"] == reserve.digest == hashlib.sha256(reserve.content.encode()).hexdigest()
        )
        assert said["ledger"]["answer"] == commit.body["answer"]["sha256"]
        assert said["ledger"]["id"] == curator.ledger.id
        assert said["plan"]["digest"] == reserve.body["plan"]
        inner = {k: v for k, v in said.items() if k not in ("digest", "signature")}
        text = json.dumps(inner, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        assert said["digest"] == hashlib.sha256(text.encode()).hexdigest() == content_digest(said)


def test_every_change_is_noticed(make: Any) -> None:
    """Any leaf of the certificate: another value there, and the digest is another one."""
    said = make().release(tacit.mean("income", by="state"), epsilon=0.1).certificate
    assert is_bound(said)
    places = list(leaves(said))
    assert len(places) > 60
    assert {("guarantee", "bound", "epsilon"), ("values", "sha256"), ("ledger", "answer")} <= set(places)
    for place in places:
        copy = json.loads(json.dumps(said))
        inner = copy
        for step in place[:-1]:
            inner = inner[step]
        old = inner[place[-1]]
        inner[place[-1]] = (not old) if isinstance(old, bool) else "x" if old is None else old * 2 or 1
        assert not is_bound(copy), place
    del said["price"]
    assert not is_bound(said)


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*at, key))
    elif value != "" and value != 0:
        yield at


def test_the_plans_charge_is_that_of_the_ledger_and_not_the_releases_bound(make: Any) -> None:
    curator = make(budget=tacit.Pure(epsilon=1.0))
    releases = curator.release(plan_of(curator))
    (charge,) = curator.ledger.charges()
    for release, own in zip(releases, (0.125, 0.25), strict=True):
        said = release.certificate
        assert from_record(said["guarantee"]).bound.epsilon == own
        assert from_record(said["plan"]["charge"]).bound.epsilon == 0.375
        assert from_record(said["plan"]["charge"]) == charge.guarantee


def test_a_replayed_certificate_says_what_the_first_one_said(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later, with other versions installed, by another curator: the same bytes."""
    with make(budget=tacit.Pure(epsilon=1.0)) as curator:
        first = curator.release(plan_of(curator))
    monkeypatch.setattr("tacit.curator.curator.versions", lambda: {"tacit": "99"})
    monkeypatch.setattr("tacit.curator.curator._now", lambda: "2099-01-01T00:00:00+00:00")
    with make(budget=tacit.Pure(epsilon=1.0)) as curator:
        again = curator.release(plan_of(curator))
    assert [r.replayed for r in (*first, *again)] == [False, False, True, True]
    for one, other in zip(first, again, strict=True):
        assert one.to_json() == other.to_json()
        assert one.to_csv() == other.to_csv()


def test_a_replay_of_test_noise_says_so(make: Any) -> None:
    """What made an answer is kept with it: an ordinary curator does not turn it into noise from a cipher."""
    question: dict[str, Any] = {"asked": tacit.count(), "epsilon": 0.1}
    with make(source=SeededSource(seed=7)) as curator:
        first = curator.release(**question)
    with make() as curator:
        again = curator.release(**question)
    assert again.replayed
    for one in (first, again):
        assert one.publishable is False
        assert one.certificate["publishable"] is False
        assert "AES" not in one.certificate["computational"]
        assert one.certificate["noise_source"] == first.certificate["noise_source"] != "AES-256-CTR"
    with make(source=SeededSource(seed=8)) as curator:
        assert curator.release(tacit.count(by="state"), epsilon=0.1).publishable is False
    with make() as curator:
        assert curator.release(tacit.count(by="insured"), epsilon=0.1).publishable is True


def test_columns_are_those_that_are_read_and_no_parts_of_words() -> None:
    """`a`, `age` and `e` stand inside of other words of the question; only what is asked for is named."""
    names = ["a", "age", "e", "income", "in", "count", "by", "x", "rows"]
    schema = {n: tacit.integer(0, 9) for n in names}
    curator = tacit.Curator(
        pa.table({n: [1, 2] for n in names}),
        protect=tacit.rows(),
        schema=schema,
        budget=tacit.Pure(epsilon=9.0),
    )
    wanted = {
        tacit.count(): set(),
        tacit.count(by="age"): {"age"},
        tacit.mean("income", by="age", where="x > 3 and e == 2"): {"income", "age", "x", "e"},
        tacit.ratio("income", "x"): {"income", "x"},
        tacit.proportion("a > 2"): {"a"},
        tacit.margins(["in", "by"]): {"in", "by"},
        tacit.quantile("income", 0.5): {"income"},
        tacit.histogram("age", 3, by="x"): {"age", "x"},
        tacit.variance("rows"): {"rows"},
    }
    with curator:
        for statistic, columns in wanted.items():
            assert set(curator.release(statistic, epsilon=0.5).certificate["schema"]) == columns, statistic


def test_what_was_declared_stands_in_it(make: Any) -> None:
    with make(budget=tacit.Pure(epsilon=1.0), protect=tacit.rows()) as curator:
        asked = query(
            tacit.count(by="state"), consistent=True, interval=0.9, public=tacit.public_totals(total=2000)
        )
        said = curator.release(asked, epsilon=0.1).certificate
    assert said["asked"]["consistent"] is True
    assert said["asked"]["confidence"] == "9/10"
    assert said["asked"]["public"]
    assert any("public" in sentence for sentence in said["guarantee"]["declared"])


def test_a_plan_for_another_schema_or_unit_is_refused_before_the_charge(make: Any, tmp_path: Path) -> None:
    """Bounds are part of the price: a plan for a narrower range would be noised too little."""
    with make(ledger=tmp_path / "a.ledger") as curator:
        plan = curator.preview(tacit.sum("income"), epsilon=0.1)
    narrow = {**SCHEMA, "income": tacit.number(0, 10)}
    for change in ({"schema": narrow}, {"protect": tacit.people("person_id", at_most=5)}):
        with make(ledger=tmp_path / f"{next(iter(change))}.ledger", another_ledger=True, **change) as curator:
            with pytest.raises(InvalidParameter, match="schema and unit"):
                curator.release(plan)
            assert float(curator.spent.epsilon) == 0


def test_a_table_and_its_version_are_named(make: Any) -> None:
    with make(table="visits", version="2026-11") as curator:
        said = curator.release(tacit.count(), epsilon=0.1).certificate
    assert said["data"]["table"] == "visits"
    assert said["data"]["version"] == "2026-11"
    assert said["data"]["conditions"] == []


def test_a_view_of_ones_own_is_believed_to_be_total(parquet: Path) -> None:
    """And the certificate says so: a row for which it fails would end every release."""
    import ibis

    view = ibis.duckdb.connect().read_parquet(str(parquet)).mutate(age=ibis._.age + 1)
    curator = tacit.Curator(view, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=1.0))
    with curator:
        said = curator.release(tacit.count(), epsilon=0.5).certificate
    assert len(said["data"]["conditions"]) == 1
    assert "view" in said["data"]["conditions"][0]


def test_a_certificate_tells_when_its_release_began_and_not_how_long_the_read_took(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a read depends on the rows: the time of its end is told by no certificate."""
    clock = ["2026-01-31T12:00:00+00:00"]
    monkeypatch.setattr("tacit.curator.curator._now", lambda: clock[0])
    from tacit.curator import curator as module

    reading = module.read_cells

    def slow(*given: Any, **words: Any) -> Any:
        clock[0] = "2026-01-31T12:47:11+00:00"
        return reading(*given, **words)

    monkeypatch.setattr(module, "read_cells", slow)
    with make(budget=tacit.Pure(epsilon=1.0)) as curator:
        releases = curator.release(plan_of(curator))
    assert clock[0].endswith("47:11+00:00")
    for release in releases:
        told = json.loads(release.to_json())
        assert told["made"] == told["ledger"]["time"] == "2026-01-31T12:00:00+00:00"
        assert "12:47" not in release.to_json()
