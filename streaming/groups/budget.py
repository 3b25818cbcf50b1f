"""How much work one group may cause, in units that are the same on every machine (`assignors.work`).

Members, subscriptions and claims come from whoever may join a group. What grows faster than the record that tells them
is limited, per decision, and per round for all that wait for it; beyond that rows say that an answer is not known.
None of it depends on how the stream is cut into batches: a round is judged whole, whichever batch it is in.

Figures here are of the machine on which the limits were chosen: a unit took 0.3 to 0.8 us.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from assignors import at_most

__all__ = ["DECISION", "NEWEST", "RECORD", "ROUND", "of_decision", "of_record", "of_round"]

DECISION: Final = 8_000_000
"""For the verdict on one decision, and again for its rows of `what_if`: 2 to 6 s.

All candidates of a group of 1,000 members and 10,000 partitions took 2 million; the first candidate of one of 2,000
members and 1,000,000 partitions, and mostly the first fits, 1.5 million. Less, and drift of large groups would not be
told; more, and one group could hold up a round, which come every 10 s."""

ROUND: Final = 12_000_000
"""For the verdicts on all decisions of one group that a round makes possible, the newest first, and again for their
rows of `what_if`: 64 may wait (`churn.WAITING_MAX`)."""

RECORD: Final = 3_000_000
"""For what is written with a membership record at once, `partitions_moved_optimal` and `imbalance_optimal`: 0.7 s.
The limits of `assignors.measures.optimal_moves` come to about as much."""

NEWEST: Final = 8
"""Decisions of a group that other strategies are tried on when it has made more between two rounds: a rolling restart
makes a few; one that makes dozens is a storm, in which each looks like the next."""

# A static member's return decides nothing, and nothing waits for a round because of it: a small share at all times.
_OF_RETURN = 16


@contextmanager
def of_decision() -> Iterator[None]:
    """Limit what one decision may take."""
    with at_most(DECISION, "one decision"):
        yield


@contextmanager
def of_round() -> Iterator[None]:
    """Limit what all decisions of a round may take together."""
    with at_most(ROUND, "all decisions of one round"):
        yield


@contextmanager
def of_record(waiting: int, *, decides: bool = True) -> Iterator[None]:
    """Limit what a record's own row may take.

    Args:
        waiting: Decisions that wait for the next round already. Each has a smaller share than the one before: together
            they have but a few times one, however many come, and nothing need be remembered.
        decides: It is no static member's return.
    """
    share = RECORD // (1 + waiting) if decides else RECORD // _OF_RETURN
    with at_most(share, "one record"):
        yield
