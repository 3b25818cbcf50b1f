"""Why the coordinator made a new target for a modern group, as far as its records prove it.

A new target follows when the group epoch rises, and it rises only for what the coordinator writes: a member came or is
gone, subscribed to other topics, or the subscribed topics' metadata changed. So nearly everything is certain. What is
not:

- A member that leaves, one whose session or rebalance timeout ended, and one that an administrator removed are written
  with the same three tombstones (`GroupMetadataManager.consumerGroupFenceMember`), and the timeouts of the brokers are
  not in the log.
- Since Kafka 4.1 the topics' metadata is a hash of ids, names, partition counts and racks (KIP-1101). Where it has
  changed, the targets show which topic has other partitions. A share group records which partitions it has initialized,
  and so may assign.
- A streams group's topology, and the settings that its assignor goes by, are written with each epoch (Kafka 4.2 on).
- A static member that returns under another id makes no new target, so it is never a cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streaming.groups.causes import TopicChange, cause, causes_in_order, coordinator_moved, of_members, of_topics
from streaming.groups.modern.group import Before, ModernDecision
from streaming.groups.rows import Cause
from streaming.records import ShareTopics, counts_in

_METADATA: Final = "the metadata of the topics changed, and its partitions did"

_INITIALIZED: Final = "the group has initialized other partitions than before"

_GONE: Final = "gone; a leave and a timeout look the same in the log, and the coordinator's own log tells them apart"


def modern_causes(
    decision: ModernDecision,
    before: Before | None,
    leader_epoch: int,
    names: Mapping[str, str],
    *,
    migrated: bool,
) -> tuple[Cause, ...]:
    """The causes of a decision.

    Args:
        decision: The decision.
        before: The group at the decision before it; None for its first record.
        leader_epoch: Leader epoch of the decision; -1 when not known.
        names: Topic names by id.
        migrated: The group was a classic one until now.
    """
    joined = of_members("member_joined", decision.joined or (), "not in the previous decision")
    gone = of_members("member_gone", decision.left or (), _GONE)
    if migrated:
        return causes_in_order([cause("migration", "the group was upgraded to the KIP-848 protocol"), *joined, *gone])
    if decision.joined is None or before is None:
        return (cause("unknown", "the decision before it is not known"),)
    found = [*joined, *gone]
    evidence = "the log does not show why"
    if decision.tasks is None and not decision.became_empty:
        others = before.resubscribed.keys() - set(decision.joined)
        changed = [member.member_id for member in decision.members if member.member_id in others]
        found += of_members("subscription_changed", changed, "subscribe to other topics than before")
        if before.new_metadata:
            evidence = "the metadata of the topics changed, and the targets do not show how"
            counts = _changed_counts(decision, names, unchanged=not found)
            shows = _INITIALIZED if isinstance(decision.topics, ShareTopics) else _METADATA
            found += of_topics("partitions_changed", counts, shows)
        if len(before.asked) == len(decision.assignors) == 1 and before.asked != decision.assignors:
            (first,), (second,) = before.asked, decision.assignors
            found.append(cause("strategy_changed", "most members ask for another assignor", before=first, after=second))
    if decision.tasks is not None and not decision.became_empty:
        found += _of_topology(decision, before)
        if before.new_metadata:
            evidence = "the topics of the topology changed, and the targets do not show how"
    if not found:
        found.append(cause("unknown", evidence))
    found += coordinator_moved(before.leader_epoch, leader_epoch)
    return causes_in_order(found)


def _of_topology(decision: ModernDecision, before: Before) -> Iterator[Cause]:
    """What changed for a streams group: the assignor's settings, and how many tasks its subtopologies have."""
    settings = decision.tasks.settings if decision.tasks is not None else {}
    for name in sorted(before.settings.keys() & settings.keys()):
        one, other = before.settings[name], settings[name]
        if one != other:
            yield cause("settings_changed", f"{name[:100]} was {one[:20]} and is {other[:20]}", before=one, after=other)
    first, second = counts_in((decision.before or {}).values()), counts_in(decision.targets.values())
    for name in sorted(first.keys() & second.keys()):
        if before.new_metadata and first[name] != second[name]:
            evidence = f"the topics of the topology changed, and the tasks of subtopology {name[:100]} did"
            yield cause("partitions_changed", evidence, before=str(first[name]), after=str(second[name]))


def _changed_counts(decision: ModernDecision, names: Mapping[str, str], *, unchanged: bool) -> Iterator[TopicChange]:
    """Topics of which the target has another number of partitions than the one before.

    Where members or subscriptions have changed (`unchanged` is False), only topics that both have and that have grown:
    any other may have come or gone with a subscription.
    """
    first, second = counts_in((decision.before or {}).values()), counts_in(decision.targets.values())
    for topic_id in first.keys() | second.keys():
        one, other = first.get(topic_id, 0), second.get(topic_id, 0)
        if 0 < one < other or (unchanged and one != other):
            yield TopicChange(names.get(topic_id, topic_id), str(one), str(other))
