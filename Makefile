# The commands to begin with; for everything else see `evenkeel --help`.
PYTHON ?= python3
BIN := .venv/bin

# Tests wait more than they compute, so there are more workers than cores. Each may run a broker, a Spark session and a
# browser, with 3 GB at most.
WORKERS ?= 4
SOAK_WORKERS ?= 3

# Which tests `make test` runs, by their marks: those that a pull request needs. "not soak" is all but the long ones.
MARKS := not soak and not nightly

# Options of pytest-random-order; only from the command line, because an environment may have an ORDER of its own.
ORDER :=

# The tests start some three hundred Python processes: each would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-all lint bench soak mutants fuzz sbom audit clean

help:
	@echo "make demo     a real broker, real consumer groups, and what Evenkeel shows about them (Ctrl-C stops it)"
	@echo "              SECONDS=180 stops by itself and checks every story; LAKE=folder for the tables;"
	@echo "              CLUSTERS=3 watches the broker under three names, one with a poisoned checkpoint"
	@echo "              ROCKETMQ=1 SECONDS=260 a RocketMQ cluster in place of Kafka's groups"
	@echo "make test     lint, type checks and the tests that a pull request needs (as root on Debian, installs Chromium;"
	@echo "              builds an S3 server with Go, which it gets from PyPI if there is none);"
	@echo "              WORKERS=8 sets the number of processes (default 4); MARKS='not soak' adds the tests marked nightly"
	@echo "make test-all these, too, in random order, with ten times as much random input, then make soak and make mutants;"
	@echo "              takes some hours. It prints a seed: make test ORDER=--random-order-seed=N repeats that order"
	@echo "make bench    the measurements of docs/performance.md, on this machine"
	@echo "make soak     the long tests (some hours); GENERATIONS=500 of real groups per client and strategy"
	@echo "make fuzz     the codec with a million mutated records and a million random ones of eight releases, and"
	@echo "              every strategy against the real classes, CASES=1000000 each (hours)"
	@echo "make mutants  single changes in the core, and whether a test notices each; MUTANTS=500 (20 minutes)"
	@echo "make sbom     build/sbom.json (CycloneDX) and build/licences.md: packages, jars and the page's libraries"
	@echo "make audit    known vulnerabilities of all of them; exit code 3 where an advisory source cannot be reached"
	@echo "make setup    only .venv and jars; the other targets call it"

setup:
	@$(PYTHON) conf/setup.py

demo: setup
	@$(BIN)/$(if $(ROCKETMQ),python -m tests.rocketmq.demo,evenkeel demo) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(LAKE),--lake $(LAKE)) $(if $(CLUSTERS),--clusters $(CLUSTERS))

LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
lint: setup
	$(LINT)

# Lint and type checks run in parallel with the tests; their output is printed after the tests'. (No $$(MAKE) in here:
# make -n would run the tests.)
test: setup
	@$(BIN)/python -m tests.programs browser
	@$(BIN)/python -m tests.programs store
	@$(if $(findstring not nightly,$(MARKS)),,$(BIN)/python -m tests.programs helm)
	@said=$$(mktemp); { $(LINT); } >"$$said" 2>&1 & lint=$$!; \
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder $(ORDER) -m "$(MARKS)" --durations=25; tests=$$?; \
	wait $$lint; linted=$$?; cat "$$said"; rm -f "$$said"; \
	if [ $$linted -ne 0 ]; then echo "make lint failed, see above"; fi; \
	if [ $$tests -ne 0 ]; then echo "tests failed, see above"; fi; \
	exit $$((tests || linted))

# Each part runs whatever came out before it: a night that ends with the first failure says nothing about the rest.
test-all:
	@failed=; \
	CASES=20000 $(MAKE) --no-print-directory test MARKS="not soak" ORDER=--random-order || failed="$$failed test"; \
	$(MAKE) --no-print-directory soak ORDER=--random-order || failed="$$failed soak"; \
	$(MAKE) --no-print-directory mutants || failed="$$failed mutants"; \
	if [ -n "$$failed" ]; then echo "failed, see above:$$failed"; exit 1; fi

bench: setup
	@$(BIN)/python -m tests.benchmarks

# Most of these tests wait for timers of real servers. One worker fewer, because some of them keep a core busy.
soak: setup
	@$(BIN)/python -m tests.programs store
	@$(BIN)/python -m tests.programs prometheus
	@$(BIN)/python -m tests.programs alertmanager
	$(BIN)/pytest -n $(SOAK_WORKERS) --dist loadgroup --no-loadscope-reorder $(ORDER) -v -m soak --durations=25

MUTANTS ?= 500
mutants: setup
	$(BIN)/python -m tests.mutants --count $(MUTANTS)

CASES ?= 1000000
fuzz: setup
	$(BIN)/pytest -m soak tests/offsets_log
	CASES=$(CASES) $(BIN)/pytest --timeout=0 -m "not kafka" -k fuzz tests/assignors

sbom: setup
	@$(BIN)/python conf/supply.py sbom

audit: setup
	@$(BIN)/python conf/supply.py audit

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache
