"""The input of a coordinator's assignor (KIP-848), from the log and the rounds.

Source of the rules: `GroupMetadataManager` and `TargetAssignmentBuilder` (Kafka 4.x).
"""

from __future__ import annotations

from typing import Final

from assignors import AssignorError
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, names_in_hash_order
from streaming.groups.config import GroupConfig
from streaming.groups.modern.consumer_group import ModernDecision
from streaming.groups.modern.members import names_at
from streaming.groups.state import GroupState
from streaming.groups.topics import counts_from

__all__ = ["ERAS", "PREFIX", "asked_of"]

ERAS: Final = ("3.8.1", "3.9.0", "4.0.0", "4.0.1")
"""First release of each era of the broker's assignors, oldest first (`assignors/brokers/registry.py`)."""

PREFIX: Final = "server-"
"""Prefix of the names of the broker's assignors in `assignors.brokers`."""


def asked_of(state: GroupState, decision: ModernDecision, config: GroupConfig) -> ServerGroup | str:
    """The assignor's input for the target of a decision, or the reason why it is unknown.

    Args:
        state: The group's state, including the topics of the round after the decision.
        decision: A decision of a consumer group with members.
        config: Settings.
    """
    unknown = _unknown(decision)
    if unknown is not None:
        return unknown
    ids = {name: topic_id for topic_id, name in names_at(state, decision).items()}
    shown_of: dict[str, int] = {}
    for target in decision.targets.values():
        for topic_id, numbers in target:
            shown_of[topic_id] = max(shown_of.get(topic_id, -1), max(numbers, default=-1))
    topics: dict[str, ServerTopic] = {}
    for name in sorted({name for of_member in decision.subscriptions.values() for name in of_member or ()}):
        known = state.topics.get(name)
        if name not in ids or known is None:
            if not config.watches_topic(name):
                return f"topic {name[:100]!r} is excluded by the filters: its partition count is not known"
            return f"no round has shown topic {name[:100]!r}: its id is not known"
        shown = shown_of.get(ids[name], -1)
        seen = counts_from(known, decision.record_time - config.metadata_grace_ms)
        if shown + 1 not in seen:
            counts = ", ".join(map(str, sorted(seen)))
            return f"its target shows {shown + 1} partitions of topic {name[:100]!r}, rounds have seen {counts}"
        if shown >= 0:
            topics[name] = ServerTopic(ids[name], shown + 1)
    old = {new: before for before, new in decision.replaced}
    before = decision.before or {}
    in_order: dict[tuple[str, ...], tuple[str, ...]] = {}
    try:
        for listed in dict.fromkeys(names or () for names in decision.subscriptions.values()):
            in_order[listed] = tuple(names_in_hash_order(listed))
        members = tuple(
            [
                ServerMember(
                    member.member_id,
                    in_order[decision.subscriptions[member.member_id] or ()],
                    target=before.get(old.get(member.member_id, member.member_id), ()),
                    group_instance_id=member.instance_id,
                    rack=member.rack,
                )
                for member in decision.members
            ]
        )
        return ServerGroup(members, topics)
    except AssignorError as error:
        return str(error)[:200]


def _unknown(decision: ModernDecision) -> str | None:
    """Why the target cannot be recomputed: which of the coordinator's inputs is unknown; None if all are known."""
    if decision.carried_over:
        return "the group was upgraded from the classic protocol: this is the assignment it had"
    if decision.before is None or not decision.exact:
        return "the previous target is not known: earlier records of the group may be missing"
    if decision.undescribed:
        return f"the log lacks records of member {decision.undescribed[0][:100]!r}"
    if decision.group_epoch != decision.epoch:
        return "members or subscriptions have changed since the epoch of the target"
    unresolved = [name for name, topics in decision.subscriptions.items() if topics is None]
    if unresolved:
        return f"the regular expression of member {unresolved[0][:100]!r} is not resolved in the log"
    return None
