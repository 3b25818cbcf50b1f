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
    TopicChange,
    cause,
    causes_in_order,
    coordinator_moved,
    of_members,
    of_topics,
    subscription_changes,
)
from streaming.groups.classic.before import Past
from streaming.groups.classic.membership import Owners, leader_counts, owners_in
from streaming.groups.classic.state import NO_ROUND, Owned, TopicsShown, Transfer
from streaming.groups.rows import Cause, ReplacedMember
from streaming.groups.state import GroupState
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
    wanted = owners_in(record).topics or ()
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
class Change:
    """What a membership record changes, compared with the time before it.

    Attributes:
        replaced: Static members that have returned under other ids.
        was: Owners before; None if unknown.
        after: Owners after; None if unknown.
        owned: The owners before, by member.
        moves: Number of partitions moved; None if unknown.
        optimal: The fewest possible; None if unknown, or while partitions are pending handover.
        pending: Partitions pending handover, with their last owners.
        follows: The handover that this decision completes.
        shown: Partition counts and racks of its topics, as rounds show them.
        balance: Imbalance, and the least possible.
    """

    replaced: tuple[ReplacedMember, ...]
    was: Owners | None
    after: Owners | None
    owned: Owned | None
    moves: int | None
    optimal: int | None
    pending: Owners
    follows: Transfer | None
    shown: TopicsShown
    balance: tuple[float | None, float | None]


def classic_causes(
    state: GroupState,
    record: MembershipRecord,
    past: Past,
    change: Change,
    joined: Sequence[str] | None,
    gone: Sequence[Cause],
) -> tuple[Cause, ...]:
    """The causes of a decision; () for a group that was created without members.

    Args:
        state: The group's state before the decision.
        record: The decision.
        past: What came before it.
        change: What it changes.
        joined: Ids of the members that the previous decision did not have; None if unknown.
        gone: The causes for its members that are gone.
    """
    if past.kind == "created":
        return ()
    found = of_members("member_joined", joined or (), "not in the previous decision")
    if past.kind == "migration":
        return causes_in_order(
            [cause("migration", "the group was downgraded from the KIP-848 protocol"), *found, *gone]
        )
    if past.before is None:
        return causes_in_order(found) if past.known else (cause("unknown", "the decision before it is not known"),)
    replaced = of_members(
        "static_replacement",
        [r.new_member_id for r in change.replaced],
        "a static member came back under another member id",
    )
    if past.kind == "static_replacement":
        return causes_in_order(replaced) or (cause("unknown", "the record of the same generation was written again"),)
    before, follows = past.before, change.follows.owners if change.follows is not None else {}
    found += [*gone, *replaced, *_of_topics(state, record, before, change, follows)]
    if before.protocol is not None and record.protocol is not None and before.protocol != record.protocol:
        evidence = "the selected protocol is another one"
        found.append(cause("strategy_changed", evidence, before=before.protocol, after=record.protocol))
    if follows:
        were = "was" if len(follows) == 1 else "were"
        evidence = f"{counted(len(follows), 'partition')} that the previous decision freed {were} to be given on"
        found.append(cause("handover", evidence))
    if not found and not record.members:
        found.append(cause("unknown", "the group was empty before, too: members came and went in between"))
    elif not found:
        found.append(cause("rejoined", "the same members with the same subscriptions joined again"))
    if past.skipped:
        found.append(
            cause("unfinished_generations", f"{past.skipped} generations in between left no record in the log")
        )
    return causes_in_order([*found, *coordinator_moved(before.leader_epoch, record.leader_epoch)])


def _of_topics(
    state: GroupState, record: MembershipRecord, before: MembershipRecord, change: Change, follows: Owners
) -> Iterable[Cause]:
    new_ids = {r.old_member_id: r.new_member_id for r in change.replaced}
    now = {m.member_id: frozenset(m.topics) for m in record.members if m.topics is not None}
    was = {new_ids.get(m.member_id, m.member_id): frozenset(m.topics) for m in before.members if m.topics is not None}
    if not (before.protocol_type == record.protocol_type == "consumer"):
        return
    staying = now.keys() & was.keys()
    if any(was[member] != now[member] for member in staying):
        yield from of_topics(
            "subscription_changed",
            subscription_changes({m: was[m] for m in staying}, {m: of for m, of in now.items() if m in staying}),
            "members changed their subscriptions: how many of those that stayed subscribe to it",
        )
    both = (owners_in(before).topics or frozenset()) & (owners_in(record).topics or frozenset())
    if not both or before.protocol not in _ASSIGN_ALL or record.protocol not in _ASSIGN_ALL:
        return
    first, second = _counts(before, follows), _counts(record, change.pending)
    yield from _of_counts(state, {topic: (first.get(topic, 0), second.get(topic, 0)) for topic in both})
    earlier, racks = state.classic.shown.racks, change.shown.racks
    others = [
        TopicChange(topic, None, None)
        for topic in both & earlier.keys() & racks.keys()
        if earlier[topic] != racks[topic]
    ]
    yield from of_topics("racks_changed", others, "rounds showed other racks of its replicas, and members have racks")


def _of_counts(state: GroupState, counts: Mapping[str, tuple[int, int]]) -> Iterable[Cause]:
    """Topics of which the leader of this decision assigned more or fewer partitions than the one before."""
    changed, stale = [], []
    for topic, (first, second) in counts.items():
        if first == second:
            continue
        change, known = TopicChange(topic, str(first), str(second)), state.topics.get(topic)
        shown = state.classic.shown.counts.get(topic, first)
        is_confirmed = known is not None and known.counts[-1].count == second
        if shown == second:
            stale.append(change)
        # A leader may lack a topic for a moment, or know fewer partitions than the one before; then only rounds prove
        # that the topic itself was created or became smaller.
        elif 0 < first < second or shown == 0 == first or (second < first and is_confirmed):
            changed.append(change)
    yield from of_topics("partitions_changed", changed, "partitions that the leaders assigned")
    yield from of_topics(
        "metadata_stale", stale, "the previous leader did not know the partition count that a round had shown by then"
    )


def _counts(record: MembershipRecord, pending: Owners) -> dict[str, int]:
    """The leader's partition counts, including partitions that it has held back."""
    counts = leader_counts(record)
    for topic, partition in pending:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts
