"""One example for each command, and its keys under --json. Help shows both; docs/cli.md shows the example.

tests/cli/test_examples.py runs the examples and compares the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tacit.exact.data_classes import dataclass

# The keys of every attack, of every exact answer and of every question about random data.
_FOUND = "not_for_publication, attack, people, exposed, share, guessing, alone, found"
_BEST = "delta_at_zero, delta_at_zero_without_the_row, epsilon_without_the_row, epsilon_floor"
_EXACT = (
    "statistic, epsilon, epsilon_pair, epsilon_pair_is, delta, threshold, assumptions, theorem, simulator, n, "
    "unknown_rows, sentence, guarantee"
)
_RANDOM = "exact, n, epsilon, gamma, expected_error, plain_expected_error, guarantee, condition, theorem"
_JOINT = "id, sizes, charge, variance_ratio, excess, numbers, holders"
_EXPORT = "kind, files, notes"
_LEDGER = "out/demo/survey.ledger"


@dataclass(frozen=True, slots=True)
class Example:
    """A command line without the leading `tacit`, and the keys of its JSON object."""

    line: str
    keys: str


EXAMPLES: dict[str, Example] = {
    "account": Example(
        'account --event "dp_sgd records=60000 batch_size=256 epochs=60 noise_multiplier=1.1" --delta 1e-5',
        "epsilon, delta, accountant, neighbours, notes",
    ),
    "attack averaging": Example(
        "attack averaging answers.csv", f"{_FOUND}, times, noise_std, standard_error"
    ),
    "attack background": Example(
        'attack background released.csv --quasi zip,age --sensitive condition --ruled-out "heart disease"',
        f"{_FOUND}, k, ruled_out",
    ),
    "attack counts": Example(
        "attack counts --people 200 --noise-std 1.4", f"{_FOUND}, method, questions, undecided, right"
    ),
    "attack differencing": Example("attack differencing totals.csv", f"{_FOUND}, low, high"),
    "attack floating-point": Example(
        "attack floating-point published.csv --noise-scale 10", f"{_FOUND}, noise_scale, possible"
    ),
    "attack histories": Example(
        "attack histories histories.csv known.csv --item film --value stars",
        f"{_FOUND}, histories, eccentricity, median_eccentricity, names",
    ),
    "attack homogeneity": Example(
        "attack homogeneity released.csv --quasi zip,age --sensitive condition",
        f"{_FOUND}, k, classes, homogeneous_classes",
    ),
    "attack intersection": Example(
        "attack intersection released.csv later.csv --quasi zip,age --sensitive condition --person zip=13012,age=28",
        f"{_FOUND}, by_one_release, left, not_in_all",
    ),
    "attack linkage": Example(
        "attack linkage released.csv voters.csv --quasi zip,age --sensitive condition",
        f"{_FOUND}, rows, unique_rows, quasi",
    ),
    "attack membership": Example(
        "attack membership study.csv --size 4", f"{_FOUND}, test, frequencies, size, threshold, scores"
    ),
    "attack replay": Example(
        "attack replay synthetic.csv suspects.csv others.csv --columns age,income",
        f"{_FOUND}, others, copies, copies_of_others, area_under_curve, scores",
    ),
    "attack skewness": Example(
        "attack skewness released.csv --quasi zip,age --sensitive condition --value flu",
        f"{_FOUND}, value, largest_share, factor",
    ),
    "attack system": Example(
        "attack system set-sizes",
        "system, idea, source, attack, questions, people, claims, right, guessing, alone",
    ),
    "attack tables": Example("attack tables", f"{_FOUND}, solutions, complete, unique, nodes"),
    "audit": Example(
        "audit mechanism.py::release --claim epsilon=1 --neighbours number --outputs 400",
        "mechanism, claim, parameter, claimed, neighbours, rejected, level, outputs, rejected_after, lower, wealth, "
        "event, could_not_see, notes, ended, seconds, replay, out",
    ),
    "calibrate": Example(
        'calibrate --epsilon 1 --delta 1e-6 --event "gaussian times=100"',
        "parameter, value, noise_multiplier, event, epsilon, delta, accountant, neighbours",
    ),
    "check": Example(
        "check out/demo/survey.parquet --quasi region,age,sex --sensitive diagnosis",
        "for_publication, source, rows, quasi, classes, blank_rows, properties, sensitive, risk, uniques, sizes, "
        "identifiers, problems, attacks, out",
    ),
    "coupled check": Example(
        "coupled check examples/coupled-parity.toml", "file, mechanism, epsilon, delta, verdicts"
    ),
    "demo": Example("demo", "out, report, files, releases, seconds"),
    "distance": Example(
        "distance examples/majority.py --values 0,1 --rows 7 --proposed 0",
        "file, tables, rows, neighbours, assumption, epsilon, delta, threshold, passing_distance, expected_error, "
        "theorem",
    ),
    "explain": Example(
        "explain out/demo/certificates/people-by-region.json --plot meaning.png",
        "guarantee, explanation, power_at_size_0.05, best_guess, name, theorems, doubts, plot",
    ),
    "export bundle": Example(
        f"export bundle out/demo --ledger {_LEDGER} --sign custodian.key --out demo-bundle.zip", _EXPORT
    ),
    "export croissant": Example("export croissant out/demo", _EXPORT),
    "export datapackage": Example("export datapackage out/demo", _EXPORT),
    "export dcat": Example("export dcat out/demo", _EXPORT),
    "export label": Example("export label out/demo", _EXPORT),
    "export nist": Example("export nist out/demo", _EXPORT),
    "export registry": Example(
        'export registry out/demo --curator "Office of Examples" --purpose "To show a release" --region Nowhere '
        '--justification "Twelve tables share epsilon 1.5" --author "A. Person"',
        _EXPORT,
    ),
    "export sdmx": Example("export sdmx out/demo", _EXPORT),
    "init": Example(
        "init out/demo/survey.parquet --out new.toml --person person_id --at-most 6 --integer age=0:110 --epsilon 1",
        "plan, columns, unanswered",
    ),
    "inspect": Example("inspect out/demo/plan.toml --out seen.txt", "not_for_publication, entry, notes"),
    "joint combine": Example(
        "joint combine session mail/keys-0.msg --state aggregator --out mail",
        "stage, closed, taken, missing, refused, files, remaining",
    ),
    "joint contribute": Example(
        "joint contribute session mail/to-0-keys.msg --plan plan.toml --key holder.key --state state --out mail",
        "holder, index, kind, message, charged, spent",
    ),
    "joint init": Example("joint init agreement.toml --out session", f"session, {_JOINT}"),
    "joint join": Example(
        "joint join session --plan plan.toml --key holder.key --trusted keys --state state --out mail",
        f"{_JOINT}, holder, index, message, charged, commitment",
    ),
    "joint verify": Example("joint verify session mail/release", "ok, findings"),
    "key make": Example("key make custodian.key", "private, public, fingerprint"),
    "key sign": Example(
        "key sign custodian.key e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "digest, signature",
    ),
    "ledger approve": Example(
        "ledger approve survey.ledger 3 --as ada --sign ada.key --plan survey.toml",
        "entry, digest, request, by",
    ),
    "ledger export": Example(f"ledger export {_LEDGER} --out survey.jsonl", "entries, out"),
    "ledger make": Example("ledger make survey.toml", "ledger, id, anchor"),
    "ledger note": Example(
        'ledger note survey.ledger "audited by the office" --about 5', "entry, digest, about"
    ),
    "ledger person": Example(
        "ledger person survey.ledger ada --role approver --key ada.key.pub", "entry, digest, name, roles"
    ),
    "ledger request": Example(
        'ledger request survey.toml --note "for the annual report"',
        "request, ledger, plan, charge, approved_by",
    ),
    "ledger rows": Example("ledger rows survey.ledger --keep", "rows"),
    "ledger rule": Example("ledger rule survey.ledger --four-eyes", "entry, digest, four_eyes"),
    "ledger share": Example("ledger share survey.ledger bob --epsilon 0.3", "entry, digest, analyst, share"),
    "ledger show": Example(
        f"ledger show {_LEDGER}",
        "ledger, id, created, table, rehearsal, budget, spent, remaining, declared, anchor, analysts, looks, "
        "four_eyes, people, charges, requests, notes",
    ),
    "ledger supersede": Example(
        "ledger supersede survey.ledger 5 --with 7", "entry, digest, charge, replaced_by, release"
    ),
    "ledger verify": Example(f"ledger verify {_LEDGER}", "ok, entries, anchor, problems"),
    "ledger withdraw": Example(
        'ledger withdraw survey.ledger 7 --note "ages were in months"', "entry, digest, charge, release"
    ),
    "noiseless argmax": Example(
        'noiseless argmax --column "bernoulli(0.5)" --column "bernoulli(0.4)" --n 1000 --delta 1e-6',
        f"{_EXACT}, stability, columns, {_BEST}",
    ),
    "noiseless count": Example(
        "noiseless count --n 10000 --probability 0.1,0.9 --delta 1e-6",
        f"{_EXACT}, probability, epsilon_floor, epsilon_pair_homogeneous",
    ),
    "noiseless crowd": Example(
        "noiseless crowd --crowd 30 --sampling poisson --delta 1e-6",
        f"{_EXACT}, sampling, rate, known_rows, delta_at_threshold, crowd_blending, population",
    ),
    "noiseless histogram": Example(
        "noiseless histogram --sampling poisson --epsilon 1 --delta 1e-6",
        f"{_EXACT}, sampling, rate, known_rows, delta_at_threshold, crowd_blending, population",
    ),
    "noiseless map": Example(
        'noiseless map --hypothesis "bernoulli(0.4)" --hypothesis "bernoulli(0.6)" --n 1000 --delta 1e-6',
        f"{_EXACT}, stability, thesis_delta, resolution",
    ),
    "noiseless mean": Example(
        'noiseless mean --n 1000 --rows "normal(0, 1, clamp=(-2.5, 2.5))" --assume rectangle --delta 1.24e-5',
        f"{_EXACT}, assume, grid, shapes",
    ),
    "noiseless mode": Example(
        'noiseless mode --category "bus: 1/2" --category "car: 3/10" --category "bicycle: 1/5" --n 1000 --delta 1e-6',
        f"{_EXACT}, stability, {_BEST}",
    ),
    "noiseless regression": Example(
        'noiseless regression --sizes 5000,70000 --regressor "uniform(-1, 1)" --error "uniform(-1, 1)" --delta 1.35e-8',
        f"{_EXACT}, assume, parts, points",
    ),
    "noiseless rounded": Example(
        'noiseless rounded --n 1000 --rows "uniform(0, 1)" --steps 1000 --delta 1e-6', f"{_EXACT}, width"
    ),
    "noiseless sum": Example(
        'noiseless sum --n 1000 --rows "uniform(0, 1)" --delta 1.31e-5 --unknown-rows 900',
        f"{_EXACT}, assume, grid, shapes",
    ),
    "noiseless test": Example(
        'noiseless test --null "bernoulli(0.5)" --alternative "bernoulli(0.6)" --n 1000 --level 0.05 --delta 1e-6',
        f"{_EXACT}, stability, level, power, score_threshold",
    ),
    "optimal body": Example(
        "optimal body --n 3 --epsilon 1 --delta 0.01",
        "n, epsilon, delta, counts, inner, outer, gap, settled, loss, theorem",
    ),
    "optimal count": Example(
        "optimal count --n 100 --epsilon 0.1",
        "n, epsilon, delta, loss, criterion, method, risk, lower_bound, gap, solved, truncated_geometric, theorem",
    ),
    "optimal histogram": Example(
        "optimal histogram --n 1000 --cells 10 --epsilon 1",
        "n, cells, epsilon, risk, lower_bound, ratio, constant, mechanism, theorem",
    ),
    "plan": Example(
        "plan out/demo/plan.toml --advise",
        "plan, digest, unit, budget, charge, charged_by, releases, in_budget_terms, fit, advice",
    ),
    "query": Example(
        'query out/demo/plan.toml "mean cost by region" --epsilon 0.05',
        "query, name, charged, released, replayed, columns, quality, confidence, guarantee, corrections, spent, "
        "remaining, out, files",
    ),
    "random density": Example(
        "random density --n 10000 --low 0 --high 100 --bins 500 --bandwidth 1 --epsilon 0.2 --gamma 0.1 --occupied 60",
        "n, epsilon, gamma, bandwidth, exact_below, bins, noisy_cells, kernel_std, noise_error, plain_noise_error, "
        "pairs_gain, differentially_private, guarantee, condition, theorem",
    ),
    "random histogram": Example(
        "random histogram --n 8000 --cells 400 --epsilon 0.2 --gamma 0.1 --occupied 16",
        f"{_RANDOM}, exact_below, cells, neighbours, noisy_cells, differentially_private",
    ),
    "random proportion": Example(
        "random proportion --n 1000 --count 3 --epsilon 1 --gamma 0.05",
        f"{_RANDOM}, count, neighbours, exact_up_to, differentially_private",
    ),
    "random sensitivity": Example(
        "random sensitivity --n 20000 --epsilon 1 --gamma 0.05 --change 128 --width 8000000",
        f"{_RANDOM}, draws, rank, draws_by_dkw, confidence, noise_scale_per_sensitivity, change, width, pairs",
    ),
    "release": Example(
        "release survey.toml --out out/survey --sign custodian.key",
        "out, charged, released, files, charge, replayed, corrections, replaces, spent, remaining",
    ),
    "reproduce": Example("reproduce hall-2.1", "name, title, source, columns, rows, notes, files"),
    "running": Example(
        "running cases.toml --step 1 --out out/cases",
        "name, step, steps, charged, released, replayed, columns, guarantee, made_up, corrections, spent, "
        "remaining, out, files",
    ),
    "serve": Example("serve --folder desk --check", "url, folder, first_link, notes"),
    "synthesise": Example(
        "synthesise people.toml --out out/people --rows people.parquet",
        "out, charged, released, files, charge, replayed, rows, stand_for, certificate, worst",
    ),
    "theorem": Example("theorem zcdp-to-approximate", "id, statement, assumptions, source, standing, page"),
    "treat": Example(
        "treat out/demo/survey.parquet --out treated.parquet --remove person_id --top age=85 --quasi age,sex",
        "for_publication, done, lost, left, problems, out, rows",
    ),
    "twin": Example(
        "twin out/demo/plan.toml --rows 1000 --out twin.parquet", "out, rows, people, columns, seed"
    ),
    "verify": Example(f"verify out/demo --ledger {_LEDGER}", "ok, made, fallen, findings"),
}


def commands(root: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command and group below a root, with its name without the leading `tacit`."""
    yield name, root
    for word, command in getattr(root, "commands", {}).items():
        yield from commands(command, f"{name} {word}".strip())


def with_examples(root: Any) -> Any:
    """The commands, whose help ends with their example. `\\b` keeps the line in one piece."""
    for name, command in commands(root):
        if name in EXAMPLES:
            command.epilog = (
                f"\b\nExample:\n  tacit {EXAMPLES[name].line}\n\nKeys of --json: {EXAMPLES[name].keys}."
            )
    return root
