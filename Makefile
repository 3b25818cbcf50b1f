# The few commands of a newcomer; everything else is `evenkeel --help`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo test lint bench soak fuzz clean

help:
	@echo "make demo     a real broker, real consumer groups, and what Evenkeel says of them (Ctrl-C ends it)"
	@echo "              SECONDS=180 ends by itself and checks every story; LAKE=folder chooses where the tables lie"
	@echo "make test     lint, types and all tests (as root on Debian it installs Chromium for those of the page)"
	@echo "make bench    the figures of the README, on this machine"
	@echo "make soak     the long tests (an hour or two); GENERATIONS=500 of real groups per client and strategy"
	@echo "make fuzz     of these the codec's: a million mutated records, a million random ones of eight releases; and"
	@echo "              every strategy against the real classes, CASES=1000000 each (hours)"
	@echo "make setup    .venv and jars only; the others call it"

setup:
	@$(PYTHON) conf/setup.py

demo: setup
	@$(BIN)/evenkeel demo $(if $(SECONDS),--seconds $(SECONDS)) $(if $(LAKE),--lake $(LAKE))

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	@$(PYTHON) conf/setup.py browser
	$(BIN)/pytest -m "not soak" --durations=25

bench: setup
	@$(BIN)/python -m tests.benchmarks

soak: setup
	$(BIN)/pytest -m soak

CASES ?= 1000000
fuzz: setup
	$(BIN)/pytest -m soak tests/offsets_log
	CASES=$(CASES) $(BIN)/pytest --timeout=0 -m "not kafka" -k fuzz tests/assignors

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache
