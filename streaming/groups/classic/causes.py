"""Why a classic group decided again, as far as its records and the rounds before them prove it.

The record of a decision holds members, subscriptions, protocol and assignment, so whatever differs from the previous
record is certain. How a member went is not in the log; `before.py` infers it. Partition counts are those that the
leader assigned (`leader_metadata.py`), and the newest round before the record shows whether the cluster had the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from streaming.groups.causes import (
    HANDOVER,
    MEMBER_JOINED,
    METADATA_STALE,
    MIGRATION,
    PARTITIONS_CHANGED,
    RACKS_CHANGED,
    REJOINED,
    STATIC_REPLACEMENT,
    STRATEGY_CHANGED,
    SUBSCRIPTION_CHANGED,
    UNFINISHED_GENERATIONS,
    UNKNOWN,
    TopicChange,
    cause,
    causes_in_order,
    coordinator_moved,
    of_members,
    of_topics,
    subscription_changes,
)
from streaming.groups.classic.membership import Owners, leader_counts, subscribed_topics
from streaming.groups.classic.state import NO_ROUND, TopicsShown
from streaming.groups.rows import Cause, ReplacedMember
from streaming.groups.state import GroupState, TopicState
from streaming.records import MembershipRecord
from streaming.terminal import counted

# Their leaders assign every partition that they know, so that an assignment shows the leader's partition counts.
_ASSIGN_ALL = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


def topics_shown(state: GroupState, record: MembershipRecord, pending: Owners) -> TopicsShown:
    """What to keep of the rounds for the causes of the next decision.

    Args:
        state: The group's state, as of the newest round before the record.
        record: The decision.
        pending: Partitions pending handover, which the leader has held back.
    """
    wanted = subscribed_topics(record) or ()
    leader = _counts(record, pending)
    counts = {}
    racks = {}
    in_racks = any(member.rack for member in record.members)
    for topic in wanted:
        known = state.topics.get(topic)
        assigned = leader[topic]
        if known is not None and known.counts[-1].count != assigned:
            counts[topic] = known.counts[-1].count
        elif known is None and not assigned:
            counts[topic] = NO_ROUND
        if in_racks and known is not None and known.racks:
            newest = known.racks[-1]
            racks[topic] = zlib.crc32(newest.places, zlib.crc32(repr(newest.sets).encode()))
    return TopicsShown(counts, racks)


@dataclass(frozen=True, slots=True)
class RecordWithPast:
    """A record and what came before it.

    Attributes:
        kind: Kind of its churn row.
        record: The record.
        before: The previous decision's record; None if there is none, or it is not known.
        known: The group before it is known: `before`, or that there was none.
        joined: Ids of the members that the previous decision did not have; None if unknown.
        gone: The causes for its members that are gone.
        replaced: Static members under another id.
        skipped: Generations between the two; None if unknown.
        follows: Partitions pending handover from the previous decision; empty if there are none.
        pending: Those that this decision leaves.
        shown: What rounds had shown at the previous decision; None if that is not known.
        now: What they have shown at this one.
        topics: The group's topics as of the newest round.
    """

    kind: str
    record: MembershipRecord
    before: MembershipRecord | None
    known: bool
    joined: tuple[str, ...] | None
    gone: Sequence[Cause]
    replaced: tuple[ReplacedMember, ...]
    skipped: int | None
    follows: Owners
    pending: Owners
    shown: TopicsShown
    now: TopicsShown
    topics: Mapping[str, TopicState]


def classic_causes(decided: RecordWithPast) -> tuple[Cause, ...]:
    """The causes of a decision; () for a group that was created without members."""
    if decided.kind == "created":
        return ()
    joined = of_members(MEMBER_JOINED, decided.joined or (), "not in the previous decision")
    if decided.kind == "migration":
        found = [cause(MIGRATION, "the group was downgraded from the KIP-848 protocol")]
        return causes_in_order([*found, *joined, *decided.gone])
    if decided.before is None:
        if decided.known:
            return causes_in_order(joined)
        return (cause(UNKNOWN, "the decision before it is not known"),)
    replaced = of_members(
        STATIC_REPLACEMENT,
        [r.new_member_id for r in decided.replaced],
        "a static member came back under another member id",
    )
    if decided.kind == "static_replacement":
        return causes_in_order(replaced) or (cause(UNKNOWN, "the record of the same generation was written again"),)
    found = [*joined, *decided.gone, *replaced, *_of_topics(decided), *_of_strategy(decided)]
    if decided.follows:
        partitions = sum(map(len, decided.follows.values()))
        were = "was" if partitions == 1 else "were"
        evidence = f"{counted(partitions, 'partition')} that the previous decision freed {were} to be given on"
        found.append(cause(HANDOVER, evidence))
    if not found and not decided.record.members:
        found.append(cause(UNKNOWN, "the group was empty before, too: members came and went in between"))
    elif not found:
        found.append(cause(REJOINED, "the same members with the same subscriptions joined again"))
    if decided.skipped:
        found.append(
            cause(UNFINISHED_GENERATIONS, f"{decided.skipped} generations in between left no record in the log")
        )
    found += coordinator_moved(decided.before.leader_epoch, decided.record.leader_epoch)
    return causes_in_order(found)


def _of_topics(decided: RecordWithPast) -> Iterable[Cause]:
    before, record = decided.before, decided.record
    assert before is not None  # noqa: S101  # the caller has handled it
    new_ids = {r.old_member_id: r.new_member_id for r in decided.replaced}
    now = {m.member_id: frozenset(m.topics) for m in record.members if m.topics is not None}
    was = {new_ids.get(m.member_id, m.member_id): frozenset(m.topics) for m in before.members if m.topics is not None}
    if not (before.protocol_type == record.protocol_type == "consumer"):
        return
    staying = now.keys() & was.keys()
    if any(was[member] != now[member] for member in staying):
        yield from of_topics(
            SUBSCRIPTION_CHANGED,
            subscription_changes({m: was[m] for m in staying}, {m: of for m, of in now.items() if m in staying}),
            "members changed their subscriptions: how many of those that stayed subscribe to it",
        )
    both = (subscribed_topics(before) or frozenset()) & (subscribed_topics(record) or frozenset())
    if not both or before.protocol not in _ASSIGN_ALL or record.protocol not in _ASSIGN_ALL:
        return
    yield from _of_counts(both, _counts(before, decided.follows), _counts(record, decided.pending), decided)
    earlier = decided.shown.racks
    racks = [
        TopicChange(topic, None, None)
        for topic in both & earlier.keys() & decided.now.racks.keys()
        if earlier[topic] != decided.now.racks[topic]
    ]
    yield from of_topics(RACKS_CHANGED, racks, "rounds showed other racks of its replicas, and members have racks")


def _of_counts(
    topics: Iterable[str], was: Mapping[str, int], now: Mapping[str, int], decided: RecordWithPast
) -> Iterable[Cause]:
    changed, stale = [], []
    for topic in topics:
        first, second = was.get(topic, 0), now.get(topic, 0)
        if first == second:
            continue
        change = TopicChange(topic, str(first), str(second))
        shown = decided.shown.counts.get(topic, first)
        if shown == second:
            stale.append(change)
        # A leader may lack a topic for a moment, or know fewer partitions than the one before; then only rounds prove
        # that the topic itself was created or became smaller.
        elif 0 < first < second or shown == 0 == first or (second < first and _newest(decided, topic) == second):
            changed.append(change)
    yield from of_topics(PARTITIONS_CHANGED, changed, "partitions that the leaders assigned")
    yield from of_topics(
        METADATA_STALE, stale, "the previous leader did not know the partition count that a round had shown by then"
    )


def _newest(decided: RecordWithPast, topic: str) -> int | None:
    known = decided.topics.get(topic)
    return None if known is None else known.counts[-1].count


def _of_strategy(decided: RecordWithPast) -> Iterable[Cause]:
    before, record = decided.before, decided.record
    assert before is not None  # noqa: S101  # the caller has handled it
    if before.protocol is not None and record.protocol is not None and before.protocol != record.protocol:
        yield cause(
            STRATEGY_CHANGED, "the selected protocol is another one", before=before.protocol, after=record.protocol
        )


def _counts(record: MembershipRecord, pending: Owners) -> dict[str, int]:
    """The leader's partition counts, including partitions that it has held back."""
    counts = leader_counts(record)
    for topic, partitions in pending.items():
        counts[topic] = max(counts.get(topic, 0), max(partitions, default=-1) + 1)
    return counts
