"""Tasks at the desk, as `docs/desk.md` has them: the same lines, at most ten of plan and ten commands.

Each runs on data made up in the shape of the real table. The fixture compares what is written here with the page,
and counts.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.tables_like import colon, institutions, lung, males, medexp, slid, vocab, write_csv
from tacit.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "desk.md").read_text(encoding="utf-8")
PAGE += Path(__file__).with_name("tasks.md").read_text(encoding="utf-8")  # statistics that need one line more
MOST = 10


class Desk:
    """A folder, in which the lines of one task of the page are carried out in their order."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys, self.title = capsys, ""

    def task(self, title: str, plan: str) -> None:
        """Write the plan that the page shows under this title."""
        (section,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
        (text,) = re.findall(r"^```toml\n(.*?)^```$", section, re.M | re.S)
        (commands,) = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
        self.title, self.commands = title, commands.splitlines()
        assert len(text.splitlines()) <= MOST, "lines of plan"
        assert len(self.commands) <= MOST, "commands"
        assert max(map(len, text.splitlines())) <= 160
        Path(plan).write_text(text, encoding="utf-8")

    def __call__(self, line: str) -> tuple[int, str]:
        """Carry out the next command of the page, which is this one."""
        assert self.commands.pop(0) == line
        words = shlex.split(line)
        if words[0] == "sed":
            return self.edited(words[2], Path(words[3]))
        code = main(words[1:])
        told = self.capsys.readouterr()
        return code, told.out + told.err

    @staticmethod
    def edited(change: str, file: Path) -> tuple[int, str]:
        text = file.read_text(encoding="utf-8")
        if change.startswith("s/"):
            _, old, new, _ = change.split("/")
            made = text.replace(old, new)
        else:
            made = re.sub(rf"{change[1:-2]}.*\n", "", text, flags=re.M)
        assert made != text
        file.write_text(made, encoding="utf-8")
        return 0, ""


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    made = Desk(capsys)
    yield made
    assert made.title
    assert made.commands == [], "every command of the page was carried out"


def values(file: str) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def test_rs_csv_with_a_semicolon(desk: Desk) -> None:
    write_csv("slid.csv", slid(), semicolon=True)
    assert '"1";' in Path("slid.csv").read_text()
    desk.task("R's CSV with a semicolon", "slid.toml")
    code, told = desk("tacit plan slid.toml")
    assert (code, "nothing was read" in told) == (0, True)
    code, told = desk("tacit release slid.toml --out wages")
    assert code == 0
    found = {row["sex"]: float(row["value"]) for row in values("wages/values/mean-wages-by-sex.csv")}
    assert found == {"Female": pytest.approx(15, abs=3), "Male": pytest.approx(15, abs=3)}


def test_a_stata_file(desk: Desk) -> None:
    males("males.dta")
    desk.task("A Stata file", "males.toml")
    assert desk("tacit release males.toml --out males")[0] == 0
    assert [row["union"] for row in values("males/values/mean-wage-by-union.csv")] == ["no", "yes"]
    counts = {row["ethn"]: int(row["value"]) for row in values("males/values/count-people-by-ethn.csv")}
    assert set(counts) == {"other", "black", "hisp"}
    assert sum(counts.values()) == pytest.approx(545, abs=400)


def test_a_joined_table_with_a_derived_column(desk: Desk) -> None:
    write_csv("lung.csv", lung())
    write_csv("institutions.csv", institutions())
    desk.task("A joined table with a derived column", "lung.toml")
    assert desk("tacit release lung.toml --out lung")[0] == 0
    dead = {row["region"]: float(row["value"]) for row in values("lung/values/proportion-dead-by-region.csv")}
    assert dead == {place: pytest.approx(2 / 3, abs=0.3) for place in ("north", "south", "west")}
    (years,) = values("lung/values/mean-years.csv")
    assert float(years["value"]) == pytest.approx(1.4, abs=0.2)


def test_a_misspelt_key_that_inspect_shows(desk: Desk) -> None:
    write_csv("medexp.csv", medexp())
    desk.task("A misspelt key", "medexp.toml")
    code, told = desk("tacit inspect medexp.toml")
    assert code == 0
    (line,) = [line for line in told.splitlines() if "outside of the declared keys" in line]
    assert line in PAGE


def test_next_months_data(desk: Desk) -> None:
    """A new declared version: a new question, the same budget."""
    write_csv("vocab.csv", vocab(year=2014))
    desk.task("Next month's data", "vocab.toml")
    assert desk("tacit release vocab.toml --out 2014")[0] == 0
    write_csv("vocab.csv", vocab(year=2016))
    desk("""sed -i 's/version = "2014"/version = "2016"/' vocab.toml""")
    code, told = desk("tacit plan vocab.toml")
    assert (code, "it fits, and takes 30% of epsilon" in told) == (0, True)
    assert desk("tacit release vocab.toml --out 2016")[0] == 0
    code, told = desk("tacit ledger show vocab.ledger")
    assert "table 'vocab', version '2014'" in told
    assert "table 'vocab', version '2016'" in told
    assert "spent   epsilon = 0.6" in told


def test_an_analysts_share(desk: Desk) -> None:
    write_csv("slid.csv", slid(), semicolon=True)
    desk.task("An analyst's share", "bob.toml")
    assert desk("tacit release bob.toml --out first")[0] == 0
    code, told = desk("tacit release bob.toml --out second --key again")
    assert code == 1
    assert "the share of 'bob' does not cover it" in told
    assert not Path("second").exists()
    assert desk("tacit ledger share slid.ledger bob --epsilon 0.7")[0] == 0
    desk("sed -i '/^shares/d' bob.toml")
    assert desk("tacit release bob.toml --out second --key again")[0] == 0


def test_an_approved_request(desk: Desk) -> None:
    write_csv("colon.csv", colon())
    desk.task("An approved request", "colon.toml")
    for line in (
        "tacit key make ada.key",
        "tacit ledger make colon.toml",
        "tacit ledger person colon.ledger bob --role analyst",
        "tacit ledger person colon.ledger ada --role approver --key ada.key.pub",
        "tacit ledger rule colon.ledger --four-eyes",
    ):
        assert desk(line)[0] == 0, line
    code, told = desk('tacit ledger request colon.toml --note "for the annual report"')
    assert code == 0
    assert "4" in told
    approve = "tacit ledger approve colon.ledger 4 --as ada --sign ada.key --plan colon.toml"
    assert desk(approve)[0] == 0
    assert desk("tacit release colon.toml --out colon")[0] == 0
    assert desk("tacit verify colon --ledger colon.ledger")[0] == 0
    certificate = json.loads(Path("colon/certificates/count-people-by-rx.json").read_text())
    assert (certificate["data"]["asked_by"], certificate["data"]["approved_by"]) == ("bob", ["ada"])


def test_a_withdrawn_release(desk: Desk) -> None:
    write_csv("lung.csv", lung())
    desk.task("A withdrawn release", "time.toml")
    assert desk("tacit release time.toml --out wrong")[0] == 0
    withdraw = 'tacit ledger withdraw lung.ledger 1 --note "times are in days, not in weeks"'
    assert desk(withdraw)[0] == 0
    desk("sed -i 's/high = 150/high = 1095/' time.toml")
    assert desk("tacit release time.toml --out right")[0] == 0
    assert desk("tacit ledger supersede lung.ledger 1 --with 4")[0] == 0
    code, told = desk("tacit verify wrong --ledger lung.ledger")
    assert code == 1
    assert "times are in days, not in weeks" in told
    assert "replaced" in told
    (time,) = values("right/values/mean-time.csv")
    assert float(time["value"]) == pytest.approx(514, abs=60)


def test_an_excel_workbook_for_publication(desk: Desk) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    write_csv("vocab.csv", vocab(year=2014))
    desk.task("An Excel workbook for publication", "words.toml")
    assert desk("tacit release words.toml --out words")[0] == 0
    book = openpyxl.load_workbook("words/tables.xlsx")
    cover, means, years = book.worksheets
    assert cover["A1"].value == "Words known of ten"
    assert [row[0] for row in means.iter_rows(values_only=True)] == ["sex", "Female", "Male"]
    assert next(years.iter_rows(values_only=True))[0] == "Years of education"
    assert means["B2"].number_format == "#,##0.000"
    assert years["B2"].number_format == "#,##0"
    assert years["A2"].number_format == "General", "keys stay as they are"
    assert Path("words/sdmx/mean-vocabulary-by-sex.csv").is_file()
    assert Path("words/values/count-by-education.csv-metadata.json").is_file()


def test_a_survival_curve(desk: Desk) -> None:
    write_csv("lung.csv", lung())
    desk.task("A survival curve", "lung.toml")
    code, told = desk("tacit release lung.toml --out survival")
    assert code == 0
    assert "for sampling and noise" in told
    found = values("survival/values/survival-by-sex.csv")
    curve = [
        float(row["value"])
        for row in found
        if row["sex"] == "1" and row["measure"] == "survival" and row["value"]
    ]
    assert curve == sorted(curve, reverse=True)
    assert 0 < curve[0] <= 1
    page = Path("survival/report.html").read_text(encoding="utf-8")
    assert "At risk, with noise" in page
    assert "95% interval for sampling and noise" in page


def test_a_regression_table(desk: Desk) -> None:
    write_csv("slid.csv", slid())
    desk.task("A regression table", "wages.toml")
    code, told = desk("tacit plan wages.toml")
    assert code == 0
    assert "the coefficient of age" in told
    code, told = desk("tacit release wages.toml --out wages")
    assert code == 0
    assert "for sampling and noise" in told
    found = values("wages/values/regression-age-education-sex.csv")
    lines = [row for row in found if row["measure"] == "coefficient"]
    assert [row["term"] for row in lines] == ["(constant)", "age", "education", "sex = Male"]
    assert all(float(row["low"]) < float(row["value"]) < float(row["high"]) for row in lines)
    page = Path("wages/report.html").read_text(encoding="utf-8")
    assert "hold 0" in page
    assert "heat map" not in page
    assert page.index(">coefficient<") < page.index(">standard error<") < page.index(">R squared<")
    assert desk("tacit verify wages")[0] == 0


def test_counts_that_are_never_off_by_more_than_a_bound(desk: Desk) -> None:
    rows = slid(people=500)
    write_csv("slid.csv", rows)
    desk.task("Counts that are never off by more than 14", "slid.toml")
    code, told = desk("tacit plan slid.toml")
    assert code == 0
    assert "no count is off by more than 14" in told
    assert desk("tacit release slid.toml --out counts")[0] == 0
    for row in values("counts/values/count-by-sex-language.csv"):
        true = sum(r["sex"] == row["sex"] and r["language"] == row["language"] for r in rows)
        assert int(row["low"]) <= true <= int(row["high"])
        assert int(row["high"]) - int(row["low"]) == 28


def test_a_weighted_survey(desk: Desk) -> None:
    random = np.random.default_rng(3)
    n = 1200
    table = pd.DataFrame(
        {
            "household": [i // 3 for i in range(n)], "village": ["abcdef"[i // 3 % 6] for i in range(n)],
            "weight": (1 + 9 * random.random(n)).tolist(), "region": random.choice(["coast", "inland"], n).tolist(),
            "income": (100_000 * random.beta(2, 5, n)).tolist(),
        }
    )  # fmt: skip
    table.to_csv("households.csv", index=False)
    desk.task("A weighted survey", "households.toml")
    assert desk("tacit release households.toml --out income")[0] == 0
    found = values("income/values/weighted_mean-income-by-region.csv")
    for row in found:
        assert float(row["low"]) < 100_000 * 2 / 7 < float(row["high"])
    (people,) = values("income/values/weighted_count.csv")
    assert float(people["low"]) < float(people["value"]) < float(people["high"])


def test_turnover_calibrated_to_a_register(desk: Desk) -> None:
    random = np.random.default_rng(41)
    staff = random.integers(0, 21, 9000)
    turnover = np.clip(120.0 * staff + random.normal(0, 150, 9000), 0, 3000)
    register = pd.DataFrame({"weight": 4.5, "employees": staff, "turnover": turnover})
    register["turnover"] *= 0.98
    register.sample(2000, random_state=1).to_csv("firms.csv", index=False)
    text = desk.task("Turnover, calibrated to a register", "firms.toml")
    exact = f"totals.employees = {int(staff.sum())}"
    Path("firms.toml").write_text(Path("firms.toml").read_text().replace("totals.employees = 60000", exact))
    assert text is None
    assert desk("tacit release firms.toml --out turnover")[0] == 0
    mean, total, weights = values("turnover/values/calibrated-turnover.csv")
    assert [mean["measure"], total["measure"], weights["measure"]] == ["mean", "total", "sum of weights"]
    assert float(mean["low"]) < register["turnover"].mean() < float(mean["high"])
    assert float(total["high"]) - float(total["low"]) < 0.08 * float(total["value"])
    assert float(weights["low"]) < 9000 < float(weights["high"])


def test_standardised_death_rates(desk: Desk) -> None:
    random = np.random.default_rng(4)
    n = 20_000
    death, end = random.exponential(25.0, n), 10 * random.random(n)
    table = pd.DataFrame(
        {
            "died": (death <= end).tolist(), "years": np.minimum(death, end).tolist(),
            "age": random.choice(["young", "middle", "old"], n).tolist(), "sex": random.choice(["f", "m"], n).tolist(),
        }
    )  # fmt: skip
    table.to_csv("cohort.csv", index=False)
    desk.task("Standardised death rates", "cohort.toml")
    assert desk("tacit release cohort.toml --out deaths")[0] == 0
    for row in values("deaths/values/rate-by-sex.csv"):
        assert float(row["value"]) == pytest.approx(40, abs=6)


def test_how_unequal_incomes_are(desk: Desk) -> None:
    random = np.random.default_rng(5)
    n = 6000
    table = pd.DataFrame(
        {"income": random.lognormal(10.4, 0.9, n), "region": random.choice(["north", "south"], n)}
    )
    table.to_csv("incomes.csv", index=False)
    desk.task("How unequal incomes are", "incomes.toml")
    assert desk("tacit release incomes.toml --out unequal")[0] == 0
    found = [
        row for row in values("unequal/values/inequality-income-by-region.csv") if row["measure"] == "gini"
    ]
    assert [row["region"] for row in found] == ["north", "south"]
    for row in found:
        assert float(row["low"]) < 0.47 < float(row["high"])


def test_incomes_above_the_declared_bound(desk: Desk) -> None:
    pd.DataFrame({"income": np.random.default_rng(6).lognormal(10.4, 0.9, 4000)}).to_csv(
        "incomes.csv", index=False
    )
    desk.task("Incomes above the declared bound", "incomes.toml")
    assert desk("tacit release incomes.toml --out means")[0] == 0
    (row,) = values("means/values/unclipped_mean-income.csv")
    assert float(row["low"]) < np.exp(10.4 + 0.405) < float(row["high"])
    assert "before they were clamped" in Path("means/report.html").read_text(encoding="utf-8")


def test_weekly_totals(desk: Desk) -> None:
    write_csv("cases.csv", [{"week": i % 5 + 1, "sex": "fm"[i % 2]} for i in range(900)])
    desk.task("Weekly totals", "cases.toml")
    assert "52 steps" in desk("tacit running cases.toml --preview")[1]
    assert desk("tacit running cases.toml --out figures")[0] == 0
    assert "from the record" in desk("tacit running cases.toml --step 1")[1]
    assert [int(row["value"]) for row in values("figures/figures.csv")] == pytest.approx([90, 90], abs=60)


def test_every_block_of_a_country(desk: Desk) -> None:
    blocks = [f"{county}{n}" for county in ("A1", "A2", "B1") for n in range(4)]
    write_csv("blocks.csv", [{"state": b[0], "county": b[:2], "block": b} for b in blocks])
    write_csv("people.csv", [{"block": blocks[i % 7], "sex": "fm"[i % 2]} for i in range(900)])
    desk.task("Every block of a country", "country.toml")
    assert "larger areas" in desk("tacit plan country.toml")[1]
    assert desk("tacit release country.toml --out country")[0] == 0
    found = values("country/values/geography-by-sex.csv")
    assert len(found) == (1 + 2 + 3 + 12) * 3
    assert all(int(row["low"]) <= int(row["value"]) <= int(row["high"]) for row in found)
    assert int(found[2]["value"]) == pytest.approx(900, abs=30)


def test_a_table_with_all_its_totals(desk: Desk) -> None:
    rows = slid(people=1500)
    write_csv("slid.csv", rows)
    desk.task("A table with all its totals", "slid.toml")
    code, told = desk("tacit plan slid.toml")
    assert code == 0
    assert "totals: " in told
    assert desk("tacit release slid.toml --out table")[0] == 0
    found = values("table/values/table-age-sex-language.csv")
    assert len(found) == 5 * 3 * 4
    cells = {(row["age"], row["sex"], row["language"]): int(row["value"]) for row in found}
    assert min(cells.values()) >= 0
    ages = {age for age, _, _ in cells} - {"all"}
    assert sum(cells[age, "Male", "all"] for age in ages) == cells["all", "Male", "all"]
    assert cells["all", "all", "all"] == pytest.approx(sum(r["language"] is not None for r in rows), abs=60)
    page = Path("table/report.html").read_text(encoding="utf-8")
    assert "Cells and totals add up" in page
    assert ">Total<" in page
