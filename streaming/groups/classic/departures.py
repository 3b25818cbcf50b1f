"""How members of a classic group went, as far as log and rounds prove it: by a request, or after they fell silent.

No record says why a member is gone, but the coordinator's timers have rules, and their times are in the log:

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
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from streaming.groups.causes import MEMBER_GONE, MEMBER_LEFT, MEMBER_SILENT, of_members
from streaming.groups.classic.past import Past
from streaming.groups.classic.state import CLOCK_WENT_BACK
from streaming.groups.lag.state import PartitionState
from streaming.groups.rows import Cause
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, Member, MembershipRecord

_OF_TIMEOUT = 2
"""A time counts as less than a timeout if it is less than half of it. The coordinator may have moved to a broker with
another clock, or its clock been set: steps of up to 22 s change nothing with Kafka's default of 45 s."""

_STABLE = "Stable"

_LOGGED = "a leave and an expired session look the same in the log, and the coordinator's own log tells them apart"
_SEEN = "gone since the last look, by a leave or an expired session: the coordinator's own log tells them apart"


def note_commits(state: GroupState) -> None:
    """Note the time of the newest commit; call this before the commits since the last boundary are processed."""
    known = state.classic.in_force
    if known is None:
        return
    newest = max((w.last_commit_time for windows in state.windows.values() for w in windows.values()), default=-1)
    if newest >= 0:
        known.committed = newest if newest >= known.committed else CLOCK_WENT_BACK


def note_round(state: GroupState, observation: GroupObservation) -> None:
    """Note that the newest decision is in force, if this round shows the group stable."""
    known = state.classic.in_force
    if known is not None:
        known.until = known.shown or known.until
        known.shown = (known.committed, state.elapsed) if observation.state == _STABLE else None


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
    owners = Counter(place for member in before.members for place in _places(member))
    signs = []
    for member in before.members:
        if member.member_id in gone:
            owned = [
                state.partitions.get(topic, {}).get(number)
                for topic, number in _places(member)
                if owners[topic, number] == 1
            ]
            signs.append(_signs(state, past, record, before, member, [known for known in owned if known is not None]))
    by_request = [one for one in signs if one.excludes_timeouts]
    silent = [one for one in signs if one.is_silent and not one.excludes_timeouts]
    others = [one for one in signs if not (one.is_silent or one.excludes_timeouts)]
    found = []
    if by_request:
        found += of_members(
            MEMBER_LEFT,
            [one.member for one in by_request],
            f"joined or committed within {_s(max(one.quiet for one in by_request))} before the join phase completed, "
            f"and no rebalance had begun {_s(max(one.rebalancing for one in by_request))} before; the session timeout "
            f"is {_s(min(one.session for one in by_request))}, the rebalance timeout "
            f"{_s(min(one.rebalance for one in by_request))}",
        )
    if silent:
        found += of_members(
            MEMBER_SILENT,
            [one.member for one in silent],
            f"committed nothing for {_s(min(one.quiet for one in silent))}, and was a member while records waited in "
            f"its partitions for {_s(min(one.waited for one in silent))}; the session timeout is "
            f"{_s(max(one.session for one in silent))}",
        )
    return [*found, *of_members(MEMBER_GONE, [one.member for one in others], _SEEN if record.seen else _LOGGED)]


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
    known, ended = state.classic.in_force, record.state_time
    # Times of commits are compared only on one broker, and not across a step back of its clock.
    if known is not None and known.committed <= ended and before.leader_epoch == record.leader_epoch:
        # (A commit that is older than the decision may have been another member's.)
        joined = max([joined, *(p.commit_time for p in owned if p.commit_time > before.record_time)])
        if known.until is not None:
            committed, elapsed = known.until
            stable = max(stable, committed)
            waited = max([0, *(p.trend.waited - (state.elapsed - elapsed) for p in owned)])
    return _Signs(
        member.member_id,
        member.session_timeout,
        member.rebalance_timeout if member.rebalance_timeout >= 0 else member.session_timeout,
        ended - joined if ended >= 0 <= joined else -1,
        ended - stable if ended >= 0 else -1,
        waited,
    )


def _places(member: Member) -> Iterator[tuple[str, int]]:
    return ((topic, number) for topic, numbers in member.assigned or () for number in numbers)


def _s(ms: int) -> str:
    return f"{ms / 1000:.1f} s"
