"""Why the coordinator made a new target for a modern group, as far as its records prove it.

A new target follows when the group epoch rises, and it rises only for what the coordinator writes: a member came or is
gone, subscribed to other topics, or the subscribed topics' metadata changed. So nearly everything is certain. What is
not:

- A member that leaves, one whose session or rebalance timeout ended, and one that an administrator removed are written
  with the same three tombstones (`GroupMetadataManager.consumerGroupFenceMember`), and the timeouts of the brokers are
  not in the log. A static member that goes away for a while writes epoch -2 first; whether it is then dropped by its
  timeout or by an administrator is again the same.
- Since Kafka 4.1 the topics' metadata is a hash of ids, names, partition counts and racks (KIP-1101). Where the hash
  has changed, the targets show which topic has other partitions.
- A static member that returns under another id makes no new target, so it is never a cause.
"""

from __future__ import annotations

from collections.abc import Mapping

from streaming.groups.causes import (
    TopicChange,
    cause,
    causes_in_order,
    coordinator_moved,
    of_members,
    of_topics,
    subscription_changes,
)
from streaming.groups.modern.group import Before, ModernDecision, ModernGroup, counts_in
from streaming.groups.rows import Cause
from streaming.records import CONSUMER, STREAMS


def modern_causes(
    decision: ModernDecision,
    before: Before | None,
    group: ModernGroup,
    names: Mapping[str, str],
    *,
    migrated: bool,
    skipped: int | None,
) -> tuple[Cause, ...]:
    """The causes of a decision.

    Args:
        decision: The decision.
        before: The group at the decision before it; None for its first record.
        group: The group after it.
        names: Topic names by id.
        migrated: The group was a classic one until now.
        skipped: Epochs without a target; None if unknown.
    """
    joined = of_members("member_joined", decision.joined or (), "not in the previous decision")
    gone = _gone(decision, before.away if before is not None else {})
    if migrated:
        return causes_in_order([cause("migration", "the group was upgraded to the KIP-848 protocol"), *joined, *gone])
    if decision.joined is None or before is None:
        return (cause("unknown", "the decision before it is not known"),)
    found = [*joined, *gone]
    evidence = "the log shows no change of members, subscriptions or topics"
    if decision.group_type == STREAMS:
        evidence = "the members are the same; topologies are not compared"
    elif not decision.became_empty:
        was, now = _subscriptions(decision, before, group)
        found += of_topics(
            "subscription_changed",
            subscription_changes(was, now),
            "members changed their subscriptions: how many of those that stayed subscribe to it",
        )
        # The hash of no topics is 0, like one that is not recorded: where nothing was assigned, a hash means topics.
        hashed = group.metadata_hash not in (0, before.metadata_hash) and (
            before.metadata_hash != 0 or not counts_in((decision.before or {}).values())
        )
        changed = _changed_counts(decision, before, names, was, now, hashed=hashed)
        found += of_topics("partitions_changed", changed, "the metadata of the topics changed, and its partitions did")
        if hashed:
            evidence = "the brokers' hash of the topics' metadata changed, and the targets do not show how"
        if len(before.asked) == len(decision.assignors) == 1 and before.asked != decision.assignors:
            (first,), (second,) = before.asked, decision.assignors
            found.append(cause("strategy_changed", "most members ask for another assignor", before=first, after=second))
    if not found:
        found.append(cause("unknown", evidence))
    if skipped:
        found.append(cause("unfinished_generations", f"{skipped} epochs in between had no target of their own"))
    found += coordinator_moved(before.leader_epoch, group.before.leader_epoch)
    return causes_in_order(found)


def _gone(decision: ModernDecision, away: Mapping[str, int]) -> list[Cause]:
    left = decision.left or ()
    return [
        *of_members(
            "member_gone",
            [member for member in left if member in away],
            "static and gone for a while (epoch -2), then dropped: by its session timeout or by an administrator",
        ),
        *of_members(
            "member_gone",
            [member for member in left if member not in away],
            "gone; a leave and a timeout look the same in the log, and the coordinator's own log tells them apart",
        ),
    ]


_Topics = dict[str, frozenset[str]]


def _subscriptions(decision: ModernDecision, before: Before, group: ModernGroup) -> tuple[_Topics, _Topics]:
    """Topics of each member that stayed, before and now; members with an unresolved regular expression are left out."""
    joined = set(decision.joined or ())
    old_ids = {new: old for old, new in decision.replaced}
    was: _Topics = {}
    now: _Topics = {}
    for member in decision.members:
        name = member.member_id
        topics = decision.topics_of(name)
        if name in joined or topics is None:
            continue
        old = before.subscribers.get(old_ids.get(name, name), member)
        earlier = frozenset(old.topics)
        if old.regex is not None:
            now_matched = group.regexes.get(old.regex)
            matched = before.regexes.get(old.regex, now_matched.topics if now_matched is not None else None)
            if matched is None:
                continue
            earlier |= frozenset(matched)
        was[name], now[name] = earlier, frozenset(topics)
    return was, now


def _changed_counts(
    decision: ModernDecision, before: Before, names: Mapping[str, str], was: _Topics, now: _Topics, *, hashed: bool
) -> list[TopicChange]:
    """Topics with other partition counts: as recorded up to Kafka 4.0, then as the targets assign them."""
    if decision.group_type != CONSUMER:
        return []
    if before.topics is not None and decision.topics is not None:
        names = {topic_id: name for topic_id, name, _ in before.topics.topics} | dict(names)
        first = {topic_id: count or 0 for topic_id, _, count in before.topics.topics}
        second = {topic_id: count or 0 for topic_id, _, count in decision.topics.topics}
    elif hashed:
        first, second = counts_in((decision.before or {}).values()), counts_in(decision.targets.values())
    else:
        return []
    subscribed = {topic for topics in was.values() for topic in topics}
    still = {topic for topics in now.values() for topic in topics}
    # What is new to members who are the same and subscribe to the same has been subscribed to, whatever its name.
    unchanged = not decision.joined and not decision.left and was == now and len(was) == len(decision.members)
    changes = []
    for topic_id in first.keys() | second.keys():
        one, other = first.get(topic_id, 0), second.get(topic_id, 0)
        name = names.get(topic_id)
        # A topic that nobody subscribed to before, or does any more, came or went with the subscription.
        grew = 0 < one < other
        appeared = one == 0 < other and (unchanged if name is None else name in subscribed)
        went = other == 0 < one and name in still
        if grew or appeared or went:
            changes.append(TopicChange(name or topic_id, str(one), str(other)))
    return changes
