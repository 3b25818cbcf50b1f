"""Limits on the work one group may cause, in units that are the same on every machine (`assignors.work`).

Members, subscriptions and claimed partitions come from anyone with the right to join a group. Work that grows faster
than the size of their record is limited per decision, and per round for all decisions that wait for it. Beyond the
limit, rows say that the answer is unknown. The result does not depend on how the stream is split into batches: a round
is always judged as a whole.

The times given here were measured on the machine on which the limits were chosen: a unit took 0.3 to 0.8 us.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from assignors import at_most

DECISION: Final = 8_000_000
"""Limit for the verdict on one decision, and again for its `what_if` rows: 2 to 6 s.

A group of 1,000 members and 10,000 partitions took 2 million for all candidates. One of 2,000 members and 1,000,000
partitions took 1.5 million for the first candidate, which is usually the one that fits. With a lower limit, drift in
large groups would be missed; with a higher one, a single group could delay a round, and rounds come every 10 s."""

ROUND: Final = 12_000_000
"""Limit for the verdicts on all decisions of one group that wait for a round, the newest first, and again for their
`what_if` rows. Up to 64 decisions can wait (`verdicts.WAITING_MAX`)."""

RECORD: Final = 3_000_000
"""Limit for the columns that are computed as soon as a membership record arrives, `partitions_moved_optimal` and
`imbalance_optimal`: 0.7 s. The limits of `assignors.measures.optimal_moves` are about the same."""

NEWEST: Final = 8
"""How many of a group's decisions between two rounds get `what_if` rows, the newest ones. A rolling restart makes a
few; dozens are a rebalance storm, in which they all look alike."""

# A static member's return makes no decision and adds nothing to the waiting ones, so `of_record` cannot shrink its
# share by their number: it always gets a small one.
_OF_RETURN = 16


@contextmanager
def of_decision() -> Iterator[None]:
    """Limit the work for one decision."""
    with at_most(DECISION, "one decision"):
        yield


@contextmanager
def of_round() -> Iterator[None]:
    """Limit the work for all decisions of a round together."""
    with at_most(ROUND, "all decisions of one round"):
        yield


@contextmanager
def of_record(waiting: int, *, decides: bool = True) -> Iterator[None]:
    """Limit the work for the row of one membership record.

    Args:
        waiting: Decisions already waiting for the next round. Each gets a smaller share than the one before, so all
            together need only a few times `RECORD`, without keeping count of the work done.
        decides: The record is a decision, not a static member's return.
    """
    share = RECORD // (1 + waiting) if decides else RECORD // _OF_RETURN
    with at_most(share, "one record"):
        yield
