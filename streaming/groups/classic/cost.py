"""The cost of a rebalance: how long its partitions had no owner, and what proves each bound.

The log does not show when one member stops and the next one starts. An owner has given a partition up when it can no
longer commit it, and the next one has it when it has read its assignment. A member that the coordinator has removed
owns nothing, whether it knows it or not. What lies before the decision before counts for that one; so does what lies
behind a decision whose member lost the partition, or the group, before it had read its assignment. So

the time begins **at the latest**

- at the end of the join phase (`currentStateTimestamp`): eager members give everything up before they join, and a
  cooperative member reports what it still owns (KIP-429);

and **at the earliest**

- at the decision before;
- at the last commit of the owner. The coordinator takes commits of members of the present generation only. An eager
  member owns all its partitions or none, so a commit of any of them will do;
- for an eager member that joined again under its id, at the last round that saw `Stable`, if a later round came before
  the decision: members stop when a heartbeat tells them of the rebalance, or join themselves at once. Not for a member
  that is gone, because the group is `Stable` until its session ends; nor for a static one, which may be gone and still
  be a member.

It ends **at the earliest** at the record of the decision, because the coordinator answers the members afterwards, and
**at the latest**

- at the first commit in the new generation of what the member got, for which it must have read its assignment;
- when the next join phase completed: by then the member had what it was to have, or never got it.

While members are awaited, one that has not joined again may go on, and no API tells which have. So that time is in the
upper bound only.

Times of records are compared with times of records, and rounds with rounds, never one with the other: they have
different clocks, but one order. A bound that rounds give is the time between two of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from streaming.groups.classic.membership import Owners, is_connect, owners_in
from streaming.groups.classic.state import NextOwner, OpenCost, RebalanceRounds, RoundSpan
from streaming.groups.rows import MOST_MS, ChurnRow, with_seconds
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, MembershipRecord

_OWNED_SINCE: Final = 1
"""The first version of a subscription that has the owned partitions (KIP-429)."""

EAGER: Final = frozenset({"range", "roundrobin", "sticky"})
"""Strategies whose members give up all partitions before they join. An unknown strategy may do either, so it is treated
as cooperative wherever that claims less."""

_COOPERATIVE = frozenset({"cooperative-sticky"})

CONNECT_EAGER: Final = "default"
"""The eager protocol of Kafka Connect's workers."""


def rebalance_protocol(record: MembershipRecord) -> str | None:
    """How the members of a rebalance joined: "eager" or "cooperative"; None where the record does not show it.

    Connect's workers join as their protocol says: eagerly with "default", cooperatively with the others (KIP-415).

    A strategy that only eager members can offer was selected, or a member reported partitions that it kept, which eager
    members never do (KIP-429). Members that offer `cooperative-sticky` beside an eager strategy join eagerly, so the
    selected strategy alone does not make a rebalance cooperative.
    """
    if is_connect(record):
        return "eager" if record.protocol == CONNECT_EAGER else "cooperative"
    if record.protocol in EAGER:
        return "eager"
    if record.protocol in _COOPERATIVE and any(member.owned for member in record.members):
        return "cooperative"
    return None


def stopped_unmoved(
    record: MembershipRecord, was: Owners | None, after: Owners | None, replaced: Collection[str]
) -> int | None:
    """Partitions that kept their owner and stopped all the same, because their members are eager.

    Args:
        record: The decision.
        was: Owners before; None when unknown.
        after: Owners after; None when unknown.
        replaced: Static members that came back under another id: they stopped because they restarted.

    Returns:
        None where owners or protocol are unknown, or where a cooperative member may have lost its partitions.
    """
    protocol = rebalance_protocol(record)
    if protocol is None or was is None or after is None:
        return None
    if protocol == "eager":
        return sum(after.get(partition) == owner and owner not in replaced for partition, owner in was.items())
    had = set(was.values())
    if all(m.owned for m in record.members if m.member_id in had and m.member_id not in replaced):
        return 0
    return None


def open_cost(
    state: GroupState,
    row: ChurnRow,
    was: Owners | None,
    after: Owners | None,
    before: MembershipRecord,
    record: MembershipRecord,
) -> tuple[ChurnRow, OpenCost | None]:
    """Set the lower bound of the time without an owner, and wait for what gives the upper bound.

    For an unknown strategy the lower bound counts only partitions with another owner, and there is no upper bound. Nor
    is there one where members gave up a partition before they joined and nobody got it, although somebody subscribes to
    its topic. In the first half of a cooperative rebalance members still own what they are to hand over. None of this
    is known for a decision that was only seen.
    """
    if record.seen or was is None or after is None:
        return row, None
    protocols = {record.protocol, before.protocol} if before.members else {record.protocol}
    eager = protocols <= EAGER
    is_known = eager or protocols <= _COOPERATIVE
    affected = _affected_partitions(was, after, record, eager=eager, known=is_known)
    is_bounded = is_known and not _leaves_out(state, was, after, record)
    if not affected:
        return row if was and not is_bounded else with_seconds(row, 0, 0), None
    if record.state_time >= 0:
        least = min(MOST_MS, max(0, record.record_time - record.state_time))
        row = with_seconds(row, least * len(set(affected) - _kept(record)), None)
    return row, _await_owners(state, row, affected, was, after, before, record, eager=eager) if is_bounded else None


def _leaves_out(state: GroupState, was: Owners, after: Owners, record: MembershipRecord) -> bool:
    """Whether a partition that had an owner has none now, although it may exist and a member may subscribe to it.

    Members that reported it had it when they joined; what they are to hand over counts for the next decision.
    """
    subscribed = owners_in(record).topics
    counts = {topic: known.counts[-1].count for topic, known in state.topics.items()}
    return any(
        partition < counts.get(topic, partition + 1) and (subscribed is None or topic in subscribed)
        for topic, partition in was.keys() - after.keys() - _kept(record)
    )


def _kept(record: MembershipRecord) -> frozenset[tuple[str, int]]:
    """Partitions that members reported to own when they joined."""
    return frozenset((topic, p) for member in record.members for topic, owned in member.owned for p in owned)


def _affected_partitions(
    was: Owners, after: Owners, record: MembershipRecord, *, eager: bool, known: bool
) -> list[tuple[str, int]]:
    """The partitions that had an owner, have one again, and had none in between.

    Args:
        was: Owners before.
        after: Owners after.
        record: The decision.
        eager: Whether all members gave up everything before they joined.
        known: Whether it is known that they did, or did not. If not, only partitions with another owner count.
    """
    reported = _kept(record)
    reports = {m.member_id for m in record.members if (m.subscription_version or 0) >= _OWNED_SINCE}
    return [
        partition
        for partition, owner in after.items()
        if partition in was
        and (eager or was[partition] != owner or (known and owner in reports and partition not in reported))
    ]


def _await_owners(
    state: GroupState,
    row: ChurnRow,
    affected: Collection[tuple[str, int]],
    was: Owners,
    after: Owners,
    before: MembershipRecord,
    record: MembershipRecord,
    *,
    eager: bool,
) -> OpenCost:
    """Begin to wait for the proof that the next owners of these partitions have them; `eager` if all gave up all."""
    # Members that have joined again for certain: dynamic ones would be gone if they had not.
    dynamic = [{m.member_id for m in of.members if m.group_instance_id is None} for of in (before, record)]
    alive = dynamic[0] & dynamic[1] if eager else frozenset[str]()
    commits: dict[str, int] = {}
    for partition, owner in was.items() if eager else ():
        commits[owner] = max(commits.get(owner, -1), _committed_at(state, partition))
    owners: dict[str, Counter[tuple[int, bool]]] = {}
    for partition in affected:
        first = was[partition]
        committed = commits.get(first, -1) if eager else _committed_at(state, partition)
        stop = min(record.record_time, max(before.record_time, committed))
        owners.setdefault(after[partition], Counter())[stop, first in alive] += 1
    index = {name: number for number, name in enumerate(owners)}
    proofs: dict[str, dict[int, int]] = {}
    for topic, number in after if eager else affected:
        if (name := after[topic, number]) in index:
            proofs.setdefault(topic, {})[number] = index[name]
    waiting = [NextOwner([(at, count, seen) for (at, seen), count in stops.items()]) for stops in owners.values()]
    stable = state.classic.rounds.stable if state.classic.rounds is not None else None
    return OpenCost(row, waiting, proofs, record.record_time, stable)


def note_state(state: GroupState, observation: GroupObservation) -> None:
    """Note the coordinator's state in a round; call this after the round's time was taken in.

    While an open transaction hides the log's end, or the clock has jumped, rounds prove nothing.
    """
    classic = state.classic
    if state.clock.other is not None or observation.held_since is not None or observation.seen is not None:
        classic.rounds = None
        if classic.cost is not None:
            classic.cost.stable = None
        return
    now = RoundSpan(state.clock.now, observation.closed, observation.elapsed_time, classic.committed)
    rounds = classic.rounds
    if rounds is None:
        classic.rounds = RebalanceRounds(now, observation.state, now.elapsed)
        return
    if rounds.state == "Stable":
        rounds.stable = rounds.newest
    rounds.newest, rounds.state = now, observation.state


def _committed_at(state: GroupState, partition: tuple[str, int]) -> int:
    """Time of a partition's last commit, ms; -1 without one."""
    topic, number = partition
    known = state.partitions.get(topic, {}).get(number)
    if known is not None:
        return known.commit_time
    return -1
