"""`python -m tests.mutants`: test a sample of mutants, and print those that no test noticed.

The exit code is 0 where at least `--least` percent were noticed or make no difference, otherwise 1.
"""

from __future__ import annotations

import argparse
import sys

from tests.mutants.run import run, sample


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "rooms", nargs="*", metavar="ROOM", help="paths such as streaming/groups; all of the core for none"
    )
    parser.add_argument("--count", type=int, default=500, help="mutants in the sample (500)")
    parser.add_argument("--seed", default="1", help="another seed draws another sample (1)")
    parser.add_argument("--workers", type=int, default=2, help="mutants tested at the same time (2)")
    parser.add_argument("--least", type=float, default=95.0, help="percent that must be noticed (95)")
    asked = parser.parse_args()
    mutants = sample(asked.count, asked.seed, asked.rooms)
    survivors, equivalent = [], 0
    for number, result in enumerate(run(mutants, asked.workers), start=1):
        word = result.killed_by or (f"equivalent: {result.reason}" if result.reason else "SURVIVED")
        print(f"{number}/{len(mutants)} {result.mutant} -> {word}", flush=True)
        equivalent += result.reason is not None
        if result.killed_by is None and result.reason is None:
            survivors.append(result.mutant)
    share = 100.0 * (len(mutants) - len(survivors)) / max(1, len(mutants))
    print(f"\n{share:.1f} % of {len(mutants)} mutants noticed or without effect ({equivalent}); no test noticed:")
    for survivor in survivors:
        print(f"  {survivor}")
    return int(share < asked.least)


if __name__ == "__main__":
    sys.exit(main())
