"""`python -m tests.mutants`: test a sample of mutants, and print those that no test noticed.

The exit code is 0 where at least `--least` percent were noticed or make no difference, otherwise 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

from tests.mutants.run import ROOMS, Result, run, sample


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "rooms", nargs="*", metavar="ROOM", help="paths such as streaming/groups; all of the core for none"
    )
    parser.add_argument("--count", type=int, default=500, help="mutants in the sample (500)")
    parser.add_argument("--seed", default="1", help="another seed draws another sample (1)")
    parser.add_argument("--workers", type=int, default=2, help="processes at the same time (2)")
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        help="processor seconds of tests per mutant; others are left out (60)",
    )
    parser.add_argument("--least", type=float, default=95.0, help="percent that must be noticed (95)")
    asked = parser.parse_args()
    began = time.monotonic()
    mutants = sample(asked.count, asked.seed, asked.rooms)
    results: list[Result] = []
    for result in run(mutants, asked.workers, asked.patience):
        results.append(result)
        print(f"{len(results)}/{len(mutants)} {time.monotonic() - began:.0f} s {result.mutant} -> {result}", flush=True)
    print("\nroom: mutants, killed, without effect, not noticed")
    for room in ROOMS:
        words = Counter(result.word for result in results if result.mutant.path.startswith(room))
        print(f"  {room}: {words.total()}, {words['killed']}, {words['equivalent']}, {words['survived']}")
    survivors = [result for result in results if result.word == "survived"]
    share = 100.0 * (len(results) - len(survivors)) / max(1, len(results))
    print(f"\n{share:.1f} % of {len(results)} noticed or without effect; no test noticed:")
    for line in sorted(f"  {survivor.mutant} -> {survivor}" for survivor in survivors):
        print(line)
    return int(share < asked.least)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # some of the libraries that were imported for the forks complain at a regular end
