"""The state of a classic group: its newest decision with its cost, and the decisions that wait for a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from streaming.groups.rows import MOST_MS, ChurnRow, with_seconds
from streaming.groups.verdicts import StandingVerdict
from streaming.records import CommitWindow, MembershipRecord

Owned = dict[str, dict[str, tuple[int, ...]]]
"""Partitions by topic by member id."""


class ClassicDecision(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The group's newest decision, or one that waits for its verdict.

    Attributes:
        record: The decision's record.
        kind: Kind of its churn row.
        incarnation: The group's incarnation.
        after_unseen: Earlier records of the group may be missing (this is the first one read, or generations were
            skipped), so this may be the record of a static member's return, which no leader decided.
        before: Each member's previous partitions, while the decision waits or is the newest: the settings may name
            another strategy then, which needs them. None if unknown, or too many.
        partitions_moved_optimal: As in its churn row, while the decision waits or is the newest.
        first_half: The first half of a cooperative rebalance: it took partitions that the next decision gives out.
        after_round: Time of the newest round before the record, ms: it was not decided earlier, whatever the clock said
            that gave the record its time. -1 if the group had no round.
        decided_by: Record time of the newest decision, ms, or the time of the first round after it where that is
            earlier, because its coordinator's clock is ahead. -1 before a round whose time is certain.
    """

    record: MembershipRecord
    kind: str
    incarnation: int
    after_unseen: bool = False
    before: Owned | None = None
    partitions_moved_optimal: int | None = None
    first_half: bool = False
    after_round: int = -1
    decided_by: int = -1

    @property
    def earliest(self) -> int:
        """Earliest time of the decision, ms, also where its coordinator's clock is ahead of the rounds'."""
        if self.after_round >= 0:
            return min(self.record.earliest, self.after_round)
        return self.record.earliest


class Transfer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Partitions pending handover: taken from one member by a cooperative rebalance and not yet given to the next.

    Attributes:
        record: Log offset of the decision that took them.
        time: Its record time, ms.
        owners: Previous owner by topic and partition.
    """

    record: int
    time: int
    owners: dict[tuple[str, int], str]


class RoundSpan(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The times of one round, ms.

    Attributes:
        opened: It opened then.
        closed: It had closed then; -1 if unknown.
        elapsed: Elapsed time (`GroupObservation.elapsed_time`).
        committed: `ClassicState.committed` at the round.
    """

    opened: int
    closed: int
    elapsed: int
    committed: int = -1


class RebalanceRounds(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Which states of the coordinator rounds have seen since the newest membership record.

    A round asks for the state after it has asked for the log's end, so the state may be of a decision that only the
    next round has. A state counts once the next round has come and there is no record between the two.

    Attributes:
        newest: The newest round.
        state: The state that it saw.
        first: Elapsed time at the first of the rounds, ms.
        stable: The last one before it that saw `Stable`; None if none did.
    """

    newest: RoundSpan
    state: str | None
    first: int
    stable: RoundSpan | None = None


class NextOwner(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A member that a rebalance gave partitions which had an owner before.

    Attributes:
        stops: When the owners before were last known to own them, as (ms, number of partitions, whether a round that
            saw `Stable` proves it, too).
        committed: Time of the first commit that proves that it has its partitions, ms; -1 if there is none.
    """

    stops: list[tuple[int, int, bool]] = []
    committed: int = -1


class OpenCost(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The cost of the newest rebalance, while it is not known of some members when they began (`cost.py`).

    Attributes:
        row: The churn row as written.
        owners: Members that got partitions; those that have begun are empty.
        places: Index in `owners` by topic and partition: a commit of it proves that this member has its partitions.
        decided: Record time of the decision, ms.
        stable: The last round that saw the group `Stable` before the rebalance; None if its time is not certain.
        sum_ms: Sum of the upper bounds of partitions whose members have begun, ms.
    """

    row: ChurnRow
    owners: list[NextOwner]
    places: dict[str, dict[int, int]]
    decided: int
    stable: RoundSpan | None = None
    sum_ms: int = 0

    def note_commit(self, window: CommitWindow, topic_id: str | None, last_commit: int) -> None:  # noqa: ARG002
        """Note commits after the decision."""
        index = self.places.get(window.topic, {}).get(window.partition)
        if window.commits and index is not None and self.owners[index].stops:
            owner, time = self.owners[index], window.first_commit_time
            owner.committed = time if owner.committed < 0 else min(owner.committed, time)

    def end_by_commits(self, round_seen: RoundSpan | None) -> None:
        """End the wait for the members that have committed.

        Args:
            round_seen: The round in which the commits are, if its time is certain.
        """
        within = None if self.stable is None or round_seen is None else _between(self.stable, round_seen)
        for owner in self.owners:
            if owner.committed >= 0:
                self._end(owner, owner.committed, within)

    def end_by_decision(self, record: MembershipRecord) -> None:
        """End the wait for all members, because the next decision has come."""
        for owner in self.owners:
            self._end(owner, record.state_time if record.state_time >= 0 else record.record_time, None)

    def _end(self, owner: NextOwner, time: int, within: int | None) -> None:
        """Add the upper bounds of a member's partitions; whatever a clock says, it began after the decision."""
        end = max(time, self.decided)
        for stop, count, seen in owner.stops:
            most = end - stop
            if seen and within is not None:
                most = min(most, within)
            self.sum_ms = min(MOST_MS, self.sum_ms + count * max(0, most))
        owner.stops, owner.committed = [], -1


def _between(first: RoundSpan, last: RoundSpan) -> int | None:
    """Time from a round's opening to the closing of a later one, ms, at most."""
    if last.closed < 0:
        return None
    return max(last.closed - first.opened, last.elapsed - first.elapsed + last.closed - last.opened)


CLOCK_WENT_BACK: Final = 2**62
"""Later than any time."""


class ClassicState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The classic part of a group's state.

    Attributes:
        current: The newest decision; None before the first. It is kept when the group continues under another protocol.
        tombstoned: Log offset of the type-2 tombstone that ended the membership; None if it has not ended.
        waiting: Decisions that no round has judged yet, oldest first.
        verdict: Verdict on the newest judged decision; None before the first.
        balance: Imbalance of the newest decision, and the lowest that any assignment could have; both None if nothing
            is assigned or the record cannot be decoded.
        transfer: Partitions pending handover; None if there are none.
        cost: The newest rebalance's cost; None if it is complete or cannot be known.
        members_ended: The members' closing rows are written.
        handed_over: If the last record read ended a KIP-848 consumer group: its newest decision, in the form of a
            classic record, from which the classic group after a downgrade continues.
        unreadable: Log offset of the first membership record after the newest decision that cannot be decoded, so that
            the group has decided since; -1 if there is none.
        rounds: The rounds since the newest membership record; None before the first, and while they prove nothing.
        committed: Record time of the newest commit since the newest record, or of that record before the first, ms;
            `CLOCK_WENT_BACK` if a later one had an earlier time; -1 if not known.
    """

    current: ClassicDecision | None = None
    tombstoned: int | None = None
    waiting: list[ClassicDecision] = []
    verdict: StandingVerdict | None = None
    balance: tuple[float | None, float | None] = (None, None)
    transfer: Transfer | None = None
    cost: OpenCost | None = None
    members_ended: bool = True
    handed_over: ClassicDecision | None = None
    unreadable: int = -1
    rounds: RebalanceRounds | None = None
    committed: int = -1

    @property
    def is_void(self) -> bool:
        """Whether it holds nothing that a later row could need."""
        has_ended = self.current is None or self.tombstoned is not None
        return has_ended and not self.waiting and self.is_readable

    @property
    def is_readable(self) -> bool:
        """Whether the newest record of the membership could be decoded."""
        return self.unreadable < 0

    def next_revision(self, *, at_round: bool, following: MembershipRecord | None) -> ChurnRow | None:
        """The newest rebalance's row, once all members have begun or the next decision has come; None otherwise."""
        cost = self.cost
        if cost is None:
            return None
        cost.end_by_commits(self.rounds.newest if at_round and self.rounds is not None else None)
        # A static member that returns writes a record of the same generation.
        if following is not None and following.known_generation != cost.row.generation:
            cost.end_by_decision(following)
        if any(owner.stops for owner in cost.owners):
            return None
        self.cost = None
        return with_seconds(msgspec.structs.replace(cost.row, revision=cost.row.revision + 1), None, cost.sum_ms)

    def forget_before(self) -> None:
        """Note that records may be missing from here on."""
        self.cost = self.rounds = None
        self.committed = -1

    def move(self, moved: Callable[[int], int]) -> None:
        """Correct times of rounds."""
        self.waiting = [
            msgspec.structs.replace(decision, after_round=moved(decision.after_round)) for decision in self.waiting
        ]
