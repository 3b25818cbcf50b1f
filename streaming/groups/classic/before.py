"""What came before a membership record: the decision that it follows, and how members went since.

The log may be compacted, the group deleted and created again under its name, moved from one protocol to the other, or
only seen by rounds. `churn.py` compares the record with what is known here.

Source of the rules: `GroupMetadataManager` (Scala 3.9 and Java 4.2).

No record says why a member is gone: whether it left by a request, or fell silent. But the coordinator's timers have
rules, and their times are in the log:

- A session begins again when a join phase completes, and with each commit. So a member that joined or committed less
  than its session timeout ago has not expired.
- A member that does not rejoin is dropped when a join phase has lasted for the rebalance timeout. So where the group
  was still stable less than a rebalance timeout ago, nobody was dropped.
- Where both are excluded, a request took the member out: its own, or an administrator's.

Only members of the current generation can commit, and clients commit for partitions of their own. Two things can break
the second half: an application in which one member commits for the others, and transactions of clients before 2.5,
which commit without a member id.

Source: `OffsetMetadataManager.commitOffset`, `GroupMetadataManager.completeClassicGroupJoin`, `propagateAssignment`,
`expireClassicGroupMemberHeartbeat`, `expirePendingSync`, `classicGroupLeaveToClassicGroup` (Kafka 4.x); the same in
`GroupCoordinator.scala` (1.1 to 3.9). A member that has not synced does not commit yet (all clients send the sync right
after the join), so a sync that is missing is no third timeout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from streaming.groups.causes import of_members
from streaming.groups.classic.state import CLOCK_WENT_BACK, ClassicDecision
from streaming.groups.context import Context
from streaming.groups.lag.state import PartitionState
from streaming.groups.rows import Cause, ReplacedMember
from streaming.groups.state import GroupState
from streaming.groups.verdicts import generations_between
from streaming.records import Member, MembershipRecord, each_of


@dataclass(frozen=True, slots=True)
class Past:
    """What the log says about the time before a membership record.

    Attributes:
        kind: Kind of the record's churn row.
        incarnation: The group's incarnation.
        decision: The previous decision of the same incarnation; None if there is none, or it is unknown.
        before: The previous decision's record; None also if records between the two may be missing.
        known: Whether the previous owners are known; a group that began with this record had none.
        previous_generation: Generation of the previous decision; None if there is none.
        skipped: Number of generations between the two; None if there is no previous decision.
        compacted: The record lies in a compacted stretch of the log.
    """

    kind: str
    incarnation: int
    decision: ClassicDecision | None
    before: MembershipRecord | None
    known: bool
    previous_generation: int | None
    skipped: int | None
    compacted: bool

    @property
    def decides(self) -> bool:
        """Whether the record is a decision; a static member's return is not, and leaves the previous one to judge."""
        return self.kind != "static_replacement"


def past_of(state: GroupState, record: MembershipRecord, context: Context) -> Past:
    """The time before a record, as far as the log or the rounds tell of it.

    Where the membership was only seen in rounds, generations between two rounds leave no trace.
    """
    classic, modern = state.classic, state.modern
    # A downgrade appends the modern group's tombstones, that of its metadata last, and the type-2 record at once. A new
    # group of the same name that happens to start at that offset has no members yet.
    migrated = bool(record.members) and (modern.lives or modern.ended == record.record - 1)
    # After a downgrade the previous decision is the newest one under KIP-848, not the last classic one.
    handed_over = classic.handed_over if migrated else None
    previous = handed_over or classic.current
    continues = previous is not None and (
        migrated or (classic.tombstoned is None and _continues(previous.record, record))
    )
    told = handed_over if migrated else previous if continues else None
    before = told.record if told is not None else None
    previous_generation = before.generation if before is not None and not before.seen else None
    kind = _kind(before, record, migrated=migrated)
    compacted = state.is_compacted(record.record)
    if compacted and before is not None and before.generation != record.generation:
        before = None  # records between the two may be missing, so who joined or left is unknown
    had_none = record.generation <= 1 and not migrated and not compacted
    if record.seen:
        had_none = state.seen is not None and state.seen.empty
    skipped = None
    if previous_generation is not None and not record.seen:
        skipped = generations_between(previous_generation, record.generation)
    return Past(
        kind=kind,
        incarnation=previous.incarnation
        if previous is not None and continues
        else context.config.incarnations.of(context.group, record.record),
        decision=told,
        before=before,
        # When compaction left this as the first record of an older group, the previous owners are unknown.
        known=before is not None or had_none,
        previous_generation=previous_generation,
        skipped=skipped,
        compacted=compacted,
    )


def _only_returned(before: MembershipRecord, record: MembershipRecord) -> bool:
    """Whether all that has changed is that static members came back under other ids, with their partitions."""
    was, now = (
        {m.group_instance_id or m.member_id: (m.group_instance_id is None, m.topics, m.assigned) for m in of.members}
        for of in (before, record)
    )
    return before.protocol == record.protocol and was == now and bool(replaced_members(before, record))


def _kind(before: MembershipRecord | None, record: MembershipRecord, *, migrated: bool) -> str:
    if migrated:
        return "migration"
    if not record.members:
        if before is None and record.generation == 0:
            return "created"
        return "became_empty"
    if before is None or record.generation != before.generation:
        return "rebalance"
    # A static member that returns keeps what it has, and no coordinator writes anything else under the same generation.
    # What was written all the same (the log lost its end, or somebody else wrote to it) is judged like any decision.
    was, now = ({m.group_instance_id or m.member_id: m.assigned for m in of.members} for of in (before, record))
    returned = _only_returned(before, record) if record.seen else was == now
    return "static_replacement" if returned else "rebalance"


def _continues(before: MembershipRecord, record: MembershipRecord) -> bool:
    """Whether a record continues the previous one's group; False if the group was created again in between."""
    if record.seen or record.generation > before.generation:
        return True
    if record.generation < before.generation:
        return False
    # The same generation is written again when a static member is replaced. With other members it is another group of
    # that name, deleted and created again in between.
    ours = {m.group_instance_id or m.member_id for m in before.members}
    theirs = {m.group_instance_id or m.member_id for m in record.members}
    return ours == theirs


def replaced_members(before: MembershipRecord | None, record: MembershipRecord) -> tuple[ReplacedMember, ...]:
    """Static members that have returned under other ids since the record before."""
    if before is None:
        return ()
    ids = {m.group_instance_id: m.member_id for m in before.members if m.group_instance_id is not None}
    return tuple(
        ReplacedMember(m.group_instance_id, ids[m.group_instance_id], m.member_id)
        for m in record.members
        if m.group_instance_id is not None and ids.get(m.group_instance_id, m.member_id) != m.member_id
    )


_OF_TIMEOUT = 2
"""A time counts as less than a timeout if it is less than half of it. The coordinator may have moved to a broker with
another clock, or its clock been set: steps of up to 22 s change nothing with Kafka's default of 45 s."""

_LOGGED = "a leave and an expired session look the same in the log, and the coordinator's own log tells them apart"
_SEEN = "gone since the last look, by a leave or an expired session: the coordinator's own log tells them apart"


def note_commits(state: GroupState) -> None:
    """Note the time of the newest commit; call this before the commits since the last boundary are processed."""
    classic = state.classic
    newest = max((w.last_commit_time for windows in state.windows.values() for w in windows.values()), default=-1)
    if newest >= 0 and classic.committed >= 0:
        classic.committed = newest if newest >= classic.committed else CLOCK_WENT_BACK


def departures(state: GroupState, past: Past, record: MembershipRecord, left: Collection[str]) -> list[Cause]:
    """The causes that tell how members went.

    Args:
        state: The group's state before the decision.
        past: What came before it.
        record: The decision.
        left: Members of the previous decision that are gone.

    Returns:
        `member_left`, `member_silent` and `member_gone`, each with its members.
    """
    before = past.before
    if before is None or not left:
        return []
    gone = set(left)
    owners = Counter(place for member in before.members for place in each_of(member.assigned))
    signs = []
    for member in before.members:
        if member.member_id in gone:
            owned = [
                state.partitions.get(topic, {}).get(number)
                for topic, number in each_of(member.assigned)
                if owners[topic, number] == 1
            ]
            signs.append(_signs(state, past, record, before, member, [known for known in owned if known is not None]))
    by_request = [one for one in signs if one.excludes_timeouts]
    silent = [one for one in signs if one.is_silent and not one.excludes_timeouts]
    others = [one for one in signs if not (one.is_silent or one.excludes_timeouts)]
    found = []
    if by_request:
        found += of_members(
            "member_left",
            [one.member for one in by_request],
            f"joined or committed within {_s(max(one.quiet for one in by_request))} before the join phase completed, "
            f"and no rebalance had begun {_s(max(one.rebalancing for one in by_request))} before; the session timeout "
            f"is {_s(min(one.session for one in by_request))}, the rebalance timeout "
            f"{_s(min(one.rebalance for one in by_request))}",
        )
    if silent:
        found += of_members(
            "member_silent",
            [one.member for one in silent],
            f"committed nothing for {_s(min(one.quiet for one in silent))}, and was a member while records waited in "
            f"its partitions for {_s(min(one.waited for one in silent))}; the session timeout is "
            f"{_s(max(one.session for one in silent))}",
        )
    return [*found, *of_members("member_gone", [one.member for one in others], _SEEN if record.seen else _LOGGED)]


@dataclass(frozen=True, slots=True)
class _Signs:
    """What is known of a member that is gone; times in ms.

    Attributes:
        member: Its id.
        session: Session timeout.
        rebalance: Rebalance timeout; the session timeout in records of version 0, as for the coordinator.
        quiet: Time from its last join or commit to the end of the join phase; negative if a clock went back.
        rebalancing: Time within which the rebalance began; negative if a clock went back.
        waited: For how long records waited in one of its partitions without a commit while it was a member.
    """

    member: str
    session: int
    rebalance: int
    quiet: int
    rebalancing: int
    waited: int

    @property
    def excludes_timeouts(self) -> bool:
        return 0 <= self.quiet * _OF_TIMEOUT < self.session and 0 <= self.rebalancing * _OF_TIMEOUT < self.rebalance

    @property
    def is_silent(self) -> bool:
        return self.quiet >= self.session > 0 and self.waited * _OF_TIMEOUT >= self.session


def _signs(
    state: GroupState,
    past: Past,
    record: MembershipRecord,
    before: MembershipRecord,
    member: Member,
    owned: Collection[PartitionState],
) -> _Signs:
    """The signs of a member of `before`; `owned` are the partitions that only it owned."""
    joined, stable, waited = before.state_time, before.record_time, 0
    if past.decision is not None and past.decision.kind == "static_replacement":
        joined = -1  # its time is that of the return
    committed, rounds, ended = state.classic.committed, state.classic.rounds, record.state_time
    # Times of commits are compared only on one broker, and not across a step back of its clock.
    if 0 <= committed <= ended and before.leader_epoch == record.leader_epoch:
        # A commit that is older than the decision may have been another member's.
        joined = max([joined, *(p.commit_time for p in owned if p.commit_time > before.record_time)])
        if rounds is not None and rounds.stable is not None:
            stable = max(stable, rounds.stable.committed)
            # Records may have waited before the member had the partition.
            longest = rounds.stable.elapsed - rounds.first
            since = state.elapsed - rounds.stable.elapsed
            waited = max([0, *(min(longest, p.trend.waited - since) for p in owned)])
    return _Signs(
        member.member_id,
        member.session_timeout,
        member.rebalance_timeout if member.rebalance_timeout >= 0 else member.session_timeout,
        ended - joined if ended >= 0 <= joined else -1,
        ended - stable if ended >= 0 else -1,
        waited,
    )


def _s(ms: int) -> str:
    return f"{ms / 1000:.1f} s"
