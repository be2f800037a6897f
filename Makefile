# Each target sets up what it needs: a virtual environment in .venv, filled from the lock file.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SPARK  := $(VENV)/.spark
JOBS   ?= 2
SECONDS ?= 600
SEED   ?= 1
ENGINE ?= duckdb
SEQUENCES ?= 1000
REPORT ?=
CHANGED ?=
WORDS  ?=

.PHONY: help browser demo test lint check docs mutants fuzz bench audit simulate forms lock clean

help:
	@echo "make demo     set up, then run the main job once and name what it wrote"
	@echo "make test     set up, then run every test"
	@echo "make browser  Debian's chromium for the tests of pages, where apt-get may install it"
	@echo "make lint     ruff, mypy --strict"
	@echo "make check    the same, and the contract tests"
	@echo "make docs     the documents as a site, into site/"
	@echo "make mutants  one-line breaches of the code, each of which a test must notice (CHANGED=main~5: since then)"
	@echo "make fuzz     neighbours that must behave alike, for SECONDS, then SEQUENCES of versions (SEED, ENGINE, REPORT)"
	@echo "make bench    side by side with peers, ratios into benchmarks/RESULTS.md"
	@echo "make simulate coverage and width of intervals for populations, 2,000 runs a line (WORDS=weighted: some lines)"
	@echo "make audit    every statistic replayed on 200 pairs of neighbours, our mechanisms under the black box"
	@echo "make forms    exported forms of the demo, read by validators of others in an environment of their own"
	@echo "make lock     resolve both lock files anew from pyproject.toml"

$(STAMP): requirements.lock pyproject.toml
	@echo "tacit: setting up $(VENV) from requirements.lock"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "tacit needs Python 3.11 or later; say: make PYTHON=/path/to/python3.11 ..."; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check -q install -r requirements.lock
	@$(BIN)/python -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation -e .
	@touch $@

# Spark is 400 MB and runs on Java: the demo does without it, and so do the tests where there is no Java.
$(SPARK): requirements-spark.lock | $(STAMP)
	@if "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version >/dev/null 2>&1; then \
	    echo "tacit: adding Spark from requirements-spark.lock" && \
	    $(BIN)/python -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation \
	        -r requirements-spark.lock && touch $@; \
	else echo "tacit: there is no Java here, so that what needs Spark is skipped"; fi

demo: $(STAMP)
	@$(BIN)/tacit demo

test: $(STAMP) $(SPARK)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { timeout 120 apt-get update -q >/dev/null || true; } && DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -q --no-install-recommends chromium >/dev/null; }

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint
	$(BIN)/python -m pytest tests/contracts

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "tacit: open site/index.html"

mutants: $(STAMP) $(SPARK)
	$(BIN)/python tests/mutants/run.py -j $(JOBS)
	$(BIN)/python tests/mutants/run.py -j $(JOBS) --changed $(CHANGED)

fuzz: $(STAMP) $(SPARK)
	$(BIN)/python tests/fuzz/run.py --seconds $(SECONDS) --seed $(SEED) --engine $(ENGINE) --report "$(REPORT)"
	$(BIN)/python tests/fuzz/run.py --sequences $(SEQUENCES) --seed $(SEED) --engine $(ENGINE) --report "$(REPORT)"

bench: $(STAMP) $(SPARK)
	$(BIN)/python benchmarks/run.py

simulate: $(STAMP)
	$(BIN)/python benchmarks/simulate.py $(WORDS)

audit: $(STAMP)
	$(BIN)/python benchmarks/audit_house.py

forms: $(STAMP)
	@test -d .venv-forms || $(PYTHON) -m venv .venv-forms
	@.venv-forms/bin/pip --disable-pip-version-check -q install -r tests/report/requirements-forms.txt
	$(BIN)/python tests/report/forms_by_others.py .venv-forms/bin/python

lock: $(STAMP)
	$(BIN)/python -m pip --disable-pip-version-check -q install uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --extra dev --no-header --no-annotate \
	    --no-emit-index-url --upgrade -o requirements.lock pyproject.toml build-requirements.in
	$(BIN)/uv pip compile --universal --python-version 3.11 --extra dev --extra spark --no-header --no-annotate \
	    --no-emit-index-url -c requirements.lock pyproject.toml build-requirements.in \
	    | grep -vxFf requirements.lock > requirements-spark.lock

clean:
	rm -rf $(VENV) out build dist site src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
