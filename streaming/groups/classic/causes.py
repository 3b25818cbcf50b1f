"""Why a classic group decided again, as far as its records prove it.

The record of a decision holds members, subscriptions, protocol and assignment, so whatever differs from the previous
record is certain. How a member went is not in the log; `before.py` infers it. Partition counts are those that the
leaders assigned (`leader_metadata.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streaming.groups.causes import (
    TopicChange,
    cause,
    causes_in_order,
    coordinator_moved,
    of_members,
    of_topics,
)
from streaming.groups.classic.before import Past
from streaming.groups.classic.membership import Owners, is_connect, leader_counts, owners_in
from streaming.groups.classic.state import Owned, Transfer
from streaming.groups.rows import Cause, ReplacedMember
from streaming.records import MembershipRecord
from streaming.terminal import counted

# Their leaders assign every partition that they know, so that an assignment shows the leader's partition counts.
_ASSIGN_ALL = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


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
    balance: tuple[float | None, float | None]


def classic_causes(
    record: MembershipRecord,
    past: Past,
    change: Change,
    joined: Sequence[str] | None,
    gone: Sequence[Cause],
) -> tuple[Cause, ...]:
    """The causes of a decision; () for a group that was created without members.

    Args:
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
        if past.known:
            return causes_in_order(found)
        return (cause("unknown", "the decision before it is not known"),)
    replaced = of_members(
        "static_replacement",
        [r.new_member_id for r in change.replaced],
        "a static member came back under another member id",
    )
    if past.kind == "static_replacement":
        return causes_in_order(replaced) or (cause("unknown", "the record of the same generation was written again"),)
    before, follows = past.before, change.follows.owners if change.follows is not None else {}
    found += [*gone, *replaced, *_topic_causes(record, before, change, follows), *_unit_causes(record, before, change)]
    if before.protocol is not None and record.protocol is not None and before.protocol != record.protocol:
        evidence = "the selected protocol is another one"
        found.append(cause("strategy_changed", evidence, before=before.protocol, after=record.protocol))
    if follows:
        were = "was" if len(follows) == 1 else "were"
        what = "unit" if is_connect(record) else "partition"
        evidence = f"{counted(len(follows), what)} that the previous decision freed {were} to be given on"
        found.append(cause("handover", evidence))
    if not found and not record.members:
        found.append(cause("unknown", "the group was empty before, too: members came and went in between"))
    elif not found:
        found.append(cause("rejoined", "the same members with the same subscriptions joined again"))
    return causes_in_order([*found, *coordinator_moved(before.leader_epoch, record.leader_epoch)])


def _topic_causes(
    record: MembershipRecord, before: MembershipRecord, change: Change, follows: Owners
) -> Iterator[Cause]:
    new_ids = {r.old_member_id: r.new_member_id for r in change.replaced}
    now = {m.member_id: frozenset(m.topics) for m in record.members if m.topics is not None}
    was = {new_ids.get(m.member_id, m.member_id): frozenset(m.topics) for m in before.members if m.topics is not None}
    if not (before.protocol_type == record.protocol_type == "consumer"):
        return
    changed = [member for member, topics in now.items() if was.get(member, topics) != topics]
    yield from of_members("subscription_changed", changed, "subscribe to other topics than before")
    both = (owners_in(before).topics or frozenset()) & (owners_in(record).topics or frozenset())
    if not {before.protocol, record.protocol} <= _ASSIGN_ALL:
        return
    # Where owners are not known, nobody knows which partitions a cooperative leader has held back.
    if change.was is not None and change.after is not None:
        first, second = _counts(before, follows), _counts(record, change.pending)
        grown = [TopicChange(of, str(first[of]), str(second[of])) for of in both if first[of] < second[of]]
        yield from of_topics("partitions_changed", grown, "the leader assigned more partitions than the one before")


def _unit_causes(record: MembershipRecord, before: MembershipRecord, change: Change) -> Iterator[Cause]:
    """Connectors of which other units are dealt than before, those that wait to be given on included."""
    if not (is_connect(record) and is_connect(before) and record.members) or change.was is None or change.after is None:
        return
    was, now = (Counter(name for name, _ in of) for of in (change.was, change.after.keys() | change.pending.keys()))
    changed = [TopicChange(name, str(was[name]), str(now[name])) for name in was | now if was[name] != now[name]]
    yield from of_topics("partitions_changed", changed, "units of the connector: itself and its tasks")


def _counts(record: MembershipRecord, pending: Owners) -> dict[str, int]:
    """The leader's partition counts, including partitions that it has held back."""
    counts = leader_counts(record)
    for topic, partition in pending:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts
