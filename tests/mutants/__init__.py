"""Do the tests notice a wrong line? Single changes in the core, and the tests that should fail with each.

    python -m tests.mutants --count 500

A sample, drawn by a seed: each mutant is one change in one place (`mutations.py`), and the fast tests that execute this
place (`executions.py`) run against it, the fastest first, until one fails (`run.py`). A mutant that no test notices is
a survivor: a rule that no test holds, or a change that makes no difference. Those of the second kind are listed with
the reason in `equivalent.toml`.
"""
