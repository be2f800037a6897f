"""The custodian's desk, as its users meet it: each task in a few lines of plan, commands or Python."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli import main
from tacit.curator.certificate import SigningKey, make_key

PLAN = """
data = { path = "survey.csv", table = "survey", version = "2026-11" }
protect = { unit = "rows" }
schema.age = { kind = "number", low = 0, high = 120 }
budget = { epsilon = 1.0, analyst = "bob" }
spend = { epsilon = 0.4 }
shares.bob = { epsilon = 0.6 }
release = [{ kind = "count" }, { kind = "mean", column = "age" }]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "survey.csv").write_text("age\n" + "".join(f"{i % 90}\n" for i in range(500)))
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = main(line.split())
    found = capsys.readouterr()
    return code, found.out, found.err


def test_next_months_data(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new declared version: a new question, the same budget."""
    assert said(capsys, "release plan.toml --out november")[0] == 0
    Path("plan.toml").write_text(PLAN.replace("2026-11", "2026-12").replace("0.4", "0.2"))
    Path("survey.csv").write_text("age\n" + "41\n" * 600)
    assert said(capsys, "release plan.toml --out december")[0] == 0
    shown = json.loads(said(capsys, "ledger show survey.ledger --json")[1])
    assert [c["version"] for c in shown["charges"]] == ["2026-11", "2026-12"]
    assert shown["spent"]["epsilon"] == pytest.approx(0.6)


def test_an_analysts_share(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "release plan.toml --out first")[0] == 0
    code, out, err = said(capsys, "release plan.toml --out second --key again")
    assert (code, out) == (1, "")
    assert "the share of 'bob' does not cover it" in err
    assert said(capsys, "ledger share survey.ledger bob --epsilon 0.9")[0] == 0
    # The plan still states the old share: it cannot set it, and says so.
    assert said(capsys, "release plan.toml --out second --key again")[0] == 2
    Path("plan.toml").write_text(PLAN.replace("shares.bob = { epsilon = 0.6 }", ""))
    assert said(capsys, "release plan.toml --out second --key again")[0] == 0


@pytest.mark.parametrize("other", ["Bob", " bob", "ｂｏｂ"])
def test_another_spelling_is_no_way_around_a_share(
    place: Path, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    assert said(capsys, "release plan.toml --out first")[0] == 0
    Path("plan.toml").write_text(
        PLAN.replace('"bob"', json.dumps(other))
        .replace("shares.bob = { epsilon = 0.6 }", "")
        .replace("0.4", "0.3")
    )
    assert said(capsys, "plan plan.toml")[0] == 1
    code, out, err = said(capsys, "release plan.toml --out second --key again")
    assert (code, out) == (1, "")
    assert "the share is that of 'bob', a name that looks the same; nothing was charged" in err
    assert json.loads(said(capsys, "ledger show survey.ledger --json")[1])["spent"]["epsilon"] == 0.4


def test_an_approved_request(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (
        "key make ada.key",
        "ledger make plan.toml",
        "ledger person survey.ledger bob --role analyst",
        "ledger person survey.ledger ada --role approver --key ada.key.pub",
        "ledger rule survey.ledger --four-eyes",
    ):
        assert said(capsys, line)[0] == 0, line
    assert said(capsys, "release plan.toml --out out")[0] == 1
    assert json.loads(said(capsys, "ledger request plan.toml --json")[1])["request"] == 4
    for line, why in (
        ("ledger approve survey.ledger 4 --as ada", "not signed"),
        ("ledger approve survey.ledger 4 --as bob --sign ada.key", "asked for it themselves"),
    ):
        code, out, err = said(capsys, line)
        assert (code, out) == (1, "")
        assert why in err
    assert "waits for an approver" in said(capsys, "plan plan.toml")[1]
    assert said(capsys, "ledger approve survey.ledger 4 --as ada --sign ada.key --plan plan.toml")[0] == 0
    assert said(capsys, "release plan.toml --out out")[0] == 0
    certificate = json.loads(Path("out/certificates/count.json").read_text())
    assert (certificate["data"]["asked_by"], certificate["data"]["approved_by"]) == ("bob", ["ada"])
    assert said(capsys, "verify out --ledger survey.ledger")[0] == 0
    assert said(capsys, "release plan.toml --out again --key again")[0] == 1
    shown = said(capsys, "ledger show survey.ledger")[1]
    for word in (
        "table 'survey', version '2026-11'",
        "The mean of age.",
        "approved by ada",
        "40% of epsilon",
    ):
        assert word in shown


def test_a_withdrawn_release(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "release plan.toml --out out")[0] == 0
    assert main(["ledger", "withdraw", "survey.ledger", "1", "--note", "ages were in months"]) == 0
    capsys.readouterr()
    code, out, _ = said(capsys, "verify out --ledger survey.ledger")
    assert code == 1
    assert "withdrawn on" in out
    assert "is unchanged, but was withdrawn or replaced since" in out
    assert "DO NOT USE THESE NUMBERS" in said(capsys, "release plan.toml --out again")[1]
    page = Path("again/report.html").read_text()
    shown = page[: page.index("<details")]
    assert shown.index("Do not use these numbers") < shown.index('id="releases"'), "above all numbers"
    assert "Do not use this release: withdrawn on" in shown, "and not folded away"
    assert "ages were in months" in Path("again/values/count.csv-metadata.json").read_text()
    Path("plan.toml").write_text(PLAN.replace("0.4", "0.2"))
    assert said(capsys, "release plan.toml --out new")[0] == 0
    assert said(capsys, "ledger supersede survey.ledger 1 --with 4")[0] == 0
    shown = said(capsys, "ledger show survey.ledger")[1]
    assert "WITHDRAWN" in shown
    assert "REPLACED by charge 4" in shown
    assert "replaces charge 1" in shown
    assert "it replaces charge 1" in said(capsys, "release plan.toml --out twice")[1]
    assert "It replaces charge 1." in Path("twice/report.html").read_text()
    assert "Do not use" not in Path("twice/report.html").read_text()
    assert "spent   epsilon = 0.6" in shown
    assert said(capsys, "ledger verify survey.ledger")[0] == 0


def test_one_withdrawn_release_of_several(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page says that some numbers do not stand, which, and so does the workbook's cover."""
    openpyxl = pytest.importorskip("openpyxl")
    assert said(capsys, "release plan.toml --out out")[0] == 0
    assert said(capsys, "ledger withdraw survey.ledger 1 --note months --release mean-age")[0] == 0
    assert said(capsys, "release plan.toml --out again --export xlsx")[0] == 0
    page = Path("again/report.html").read_text()
    assert "Do not use some of these numbers" in page
    cards = page.split("<article")[1:]
    assert ["Do not use this release" in card.partition("</article>")[0] for card in cards] == [False, True]
    cover = openpyxl.load_workbook("again/tables.xlsx").worksheets[0]
    (told,) = [row[1] for row in cover.iter_rows(values_only=True) if row[0] == "DO NOT USE"]
    assert told.startswith("mean-age: release 'mean-age' was withdrawn on")
    assert said(capsys, "verify again --ledger survey.ledger")[0] == 1


def test_every_file_of_a_withdrawn_release_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SDMX-CSV on each observation, Parquet in its schema, and what Python prints and holds."""
    assert said(capsys, "release plan.toml --out out --export sdmx")[0] == 0
    assert "COMMENT_OBS" not in Path("out/sdmx/count.csv").read_text()
    assert main(["ledger", "withdraw", "survey.ledger", "1", "--note", "=months", "--release", "count"]) == 0
    capsys.readouterr()
    assert said(capsys, "release plan.toml --out again --export sdmx")[0] == 0
    (row,) = csv.DictReader(io.StringIO(Path("again/sdmx/count.csv").read_text()))
    assert row["COMMENT_OBS"].startswith("Do not use this release: release 'count' was withdrawn on")
    assert row["OBS_STATUS"] == "U", "no code of the list says withdrawn; never the one for a normal value"
    assert "COMMENT_OBS" not in Path("again/sdmx/mean-age.csv").read_text()
    told = pq.read_schema("again/values/count.parquet").metadata[b"corrections"].decode()
    assert "withdrawn on" in told
    assert "=months" in told
    assert b"corrections" not in (pq.read_schema("again/values/mean-age.parquet").metadata or {})
    assert pq.read_table("out/values/count.parquet").equals(pq.read_table("again/values/count.parquet"))
    findings = json.loads(said(capsys, "verify again --ledger survey.ledger --json")[1])["findings"]
    (no,) = [f for f in findings if f["holds"] is False]
    assert "withdrawn" in str(no)


def test_the_same_in_python(place: Path) -> None:
    make_key(place / "ada.key")
    ada = SigningKey.read(place / "ada.key")
    with tacit.Curator("survey.csv", protect=tacit.rows(), schema={"age": tacit.number(0, 120)}, analyst="bob",
                       budget=tacit.Pure(epsilon=1), ledger="survey.ledger") as survey:  # fmt: skip
        plan = survey.preview([tacit.count()], epsilon=0.5)
        survey.ledger.enrol("bob", "analyst")
        survey.ledger.enrol("ada", "approver", key=ada.public.text)
        survey.ledger.demand(True)
        with pytest.raises(tacit.errors.NotAllowed):
            survey.release(plan)
        survey.ledger.approve(survey.request(plan), by="ada", key=ada)
        assert survey.fit(plan).approved_by == ("ada",)
        assert survey.release(plan)[0].stands
        survey.ledger.withdraw(survey.ledger.charges()[0].sequence, note="ages were in months")
        again = survey.release(plan)[0]
        assert not again.stands
        for told in (str(again), again._repr_html_(), again.table.attrs["corrections"], again.correction):
            assert "withdrawn on" in told


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        ("ledger person survey.ledger zoe --role king", 2, "king"),
        ("ledger person survey.ledger zoe --role approver", 2, "given for an approver"),
        ("ledger approve survey.ledger 7 --as zoe", 1, "no request of this number"),
        ("ledger withdraw survey.ledger 7 --note x", 2, "that was answered"),
        ("ledger supersede survey.ledger 7 --with 8", 2, "that was answered"),
        ("ledger share survey.ledger bob --rho 1", 2, "budget's kind"),
        ("ledger note survey.ledger x --about 9", 2, "number of an entry"),
    ],
)
def test_bad_words(place: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, why: str) -> None:
    assert said(capsys, "ledger make plan.toml")[0] == 0
    for more in ("", " --json"):
        found, out, err = said(capsys, line + more)
        assert (found, out) == (code, "")
        assert why in err
        assert err.count("\n") == 1


def test_a_plan_that_does_not_fit_exits_1(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "plan plan.toml")
    assert code == 0
    assert "left for bob: epsilon = 0.6" in out
    assert "it fits, and takes 40% of epsilon" in out
    assert not list(place.glob("*.ledger*"))
    assert said(capsys, "release plan.toml --out out")[0] == 0
    assert "it was answered before" in said(capsys, "plan plan.toml")[1]
    Path("plan.toml").write_text(PLAN.replace("0.4", "0.3"))
    code, out, _ = said(capsys, "plan plan.toml --json")
    fit = json.loads(out)["fit"]
    assert (code, fit["fits"], fit["left"]["epsilon"]) == (1, False, pytest.approx(0.2))
    assert "the share of 'bob'" in fit["reason"]
    Path("plan.toml").write_text(PLAN.replace("0.4", "0.2"))
    assert said(capsys, "plan plan.toml")[0] == 0
    Path("plan.toml").write_text(PLAN.replace("spend = { epsilon = 0.4 }", "spend = { epsilon = 0.7 }"))
    Path("survey.ledger").unlink()
    assert said(capsys, "plan plan.toml")[0] == 1


def test_an_approver_who_names_a_plan_approves_no_other(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (
        "key make ada.key",
        "ledger make plan.toml",
        "ledger person survey.ledger bob --role analyst",
        "ledger person survey.ledger ada --role approver --key ada.key.pub",
        "ledger request plan.toml",
    ):
        assert said(capsys, line)[0] == 0, line
    Path("other.toml").write_text(PLAN.replace("0.4", "0.5"))
    number = next(iter(json.loads(said(capsys, "ledger show survey.ledger --json")[1])["requests"]))[
        "sequence"
    ]
    approve = f"ledger approve survey.ledger {number} --as ada --sign ada.key --plan"
    code, out, err = said(capsys, f"{approve} other.toml")
    assert (code, out) == (2, "")
    assert "be the requested plan" in err
    shown = json.loads(said(capsys, "ledger show survey.ledger --json")[1])["requests"]
    assert [r["approved_by"] for r in shown] == [[]]
    assert said(capsys, f"{approve} plan.toml")[0] == 0


def test_a_share_is_set_by_whoever_is_named_and_only_by_a_custodian(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (
        "ledger make plan.toml",
        "ledger person survey.ledger custodian --role custodian",
        "ledger person survey.ledger bob --role analyst",
    ):
        assert said(capsys, line)[0] == 0, line
    code, out, err = said(capsys, "ledger share survey.ledger bob --epsilon 0.9 --as bob")
    assert (code, out) == (1, "")
    assert "takes the role of custodian" in err
    assert said(capsys, "ledger share survey.ledger bob --epsilon 0.7 --as custodian")[0] == 0
    shown = json.loads(said(capsys, "ledger show survey.ledger --json")[1])
    assert shown["analysts"]["bob"]["share"]["epsilon"] == 0.7
