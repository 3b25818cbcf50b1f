"""Verdicts: is what the group decided what its strategy gives?

A verdict is about the decision made then. The leader's library, its release and its metadata are not recorded,
so every candidate that the bytes and the rounds allow is tried; drift is said only when none fits and all could
be computed. Partition counts need no enumeration: strategies hand out every partition the leader knows, so the
leader's count of a topic can be read off its own assignment (highest partition plus one; what sticky strategies hold
back or leave with a member: `possible_counts`), and the only question left is whether a round around the decision
saw that count. What sticky strategies go by, owned partitions and their generations, is in the record as the leader
saw it, in the members' subscriptions. A leader may know of new partitions
before the probe's broker does: a count above all that was seen waits for the rounds to come. Racks of replicas, which
count where members have some, cannot be read off an assignment, and come and go with brokers (`seen_racks`).

Source of the rules: DESIGN.md 3; kafka.md 3.1, 3.14, 3.15.
"""

from __future__ import annotations

from assignors import (
    Assignment,
    from_topics,
    known_strategies,
    owners,
    strategy_named,
    violations,
)
from streaming.groups.classic.membership import is_consumer, undecodable
from streaming.groups.classic.partition_counts import SeenCounts, seen_counts
from streaming.groups.classic.recompute import recompute
from streaming.groups.classic.seen_racks import NO_RACKS, seen_racks
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.config import GroupConfig
from streaming.groups.rows import DriftedPartition
from streaming.groups.state import GroupState
from streaming.groups.verdict import DRIFTED, MISPLACED, NOT_APPLICABLE, UNVERIFIED, Verdict, too_many
from streaming.records import MembershipRecord

__all__ = ["judge"]

# The first decision of a new group is seen by a round within an interval or two. Where the first round that shows a
# topic comes later than this, nobody was looking at the time of the decision.
_FIRST_SEEN_MS = 60_000

# Kinds in the words of DESIGN.md 3.
_KINDS = {"doubly_assigned": "doubly_assigned", "not_subscribed": "not_subscribed", "beyond_count": MISPLACED}


def judge(
    state: GroupState, decision: ClassicDecision, now: int, latest: int, config: GroupConfig, *, last: bool = False
) -> Verdict | None:
    """Judge one decision with what the round after it knows.

    Args:
        state: The group's state, with the topics of that round taken in.
        decision: A decision whose record lies below the round's log position.
        now: The round's time as far as it can be believed (`clock.py`), ms.
        latest: The latest that it may be, ms.
        config: Settings.
        last: No round will come any more.

    Returns:
        None while something is missing that a coming round may show (the decision stays pending); never when
        this is the last.
    """
    record = decision.record
    if decision.kind == "dropped":
        return Verdict(UNVERIFIED, too_many(decision.more))
    if not record.members:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if not is_consumer(record):
        return Verdict(NOT_APPLICABLE, f"protocol type {record.protocol_type[:100]!r} assigns no topic partitions")
    member = undecodable(record)
    if member is not None:
        return Verdict(UNVERIFIED, f"member {member.member_id[:100]!r}: {member.undecodable}")
    counts = seen_counts(state, record, config)
    settled = now - record.record_time >= config.metadata_grace_ms
    actual = from_topics({m.member_id: m.assigned or () for m in record.members})
    broken = _broken(decision, actual, counts if settled else {})
    if broken:
        return Verdict(DRIFTED, "invariants are violated, whoever led", drifted=broken)
    if record.record_time - latest > config.metadata_grace_ms:
        return Verdict(UNVERIFIED, "its record time lies in the future: the partition counts then are not known")
    missing = _missing(record, counts, config)
    waits = (missing is not None and missing[1]) or any(c.ahead for c in counts.values())
    if waits and not settled and not last:
        return None
    if decision.kind == "migration":
        return Verdict(
            UNVERIFIED, "the group came from the consumer protocol of KIP-848: a server made this assignment"
        )
    if missing is not None:
        return Verdict(UNVERIFIED, missing[0])
    strategy = record.protocol or ""
    custom = config.custom.named(strategy)
    if custom is None and strategy not in known_strategies():
        return Verdict(UNVERIFIED, f"strategy {strategy[:100]!r} is not known")
    in_racks = custom is not None or any(member.rack for member in record.members)
    racks = seen_racks(state, record, config, counts) if in_racks else NO_RACKS
    verdict = recompute(record, custom or strategy_named(strategy), actual, counts, racks, settled=settled)
    if verdict.verdict == DRIFTED and _may_be_a_return(decision):
        return Verdict(
            UNVERIFIED,
            "it fits no candidate, but may be the record of a static member's return, which no leader decided",
            candidates=verdict.candidates,
            inputs=verdict.inputs,
        )
    old = _changed_before_it_was_seen(state, decision, counts)
    if verdict.verdict == DRIFTED and old is not None:
        return Verdict(
            UNVERIFIED,
            f"it fits no candidate, but the partition count of topic {old[:100]!r} then is not known: no round has "
            "seen the topic before it grew",
            candidates=verdict.candidates,
            inputs=verdict.inputs,
        )
    return verdict


def _may_be_a_return(decision: ClassicDecision) -> bool:
    """Whether the decision may be a record that was written when a static member came back.

    Such a record has the member's new subscription beside the old assignment (kafka.md 2.8). It is known by its
    generation, the same as the one before; where the one before was not read, it cannot be told.
    """
    return decision.after_unseen and any(m.group_instance_id is not None for m in decision.record.members)


def _changed_before_it_was_seen(
    state: GroupState, decision: ClassicDecision, counts: dict[str, SeenCounts]
) -> str | None:
    """A topic that the first round to show it, long after the decision, showed with another count than the leader's.

    What the leader handed out then tells its count at least, not whether it held some back, or left some to nobody.
    """
    for topic, known in counts.items():
        late = state.topics[topic].since - decision.record.record_time > _FIRST_SEEN_MS
        if late and not known.complete and known.leader not in known.seen:
            return topic
    return None


def _missing(record: MembershipRecord, counts: dict[str, SeenCounts], config: GroupConfig) -> tuple[str, bool] | None:
    """A subscribed topic that no round has shown: the reason, and whether a coming round may show it."""
    for member in record.members:
        for topic in member.topics or ():
            if topic not in counts:
                if not config.watches_topic(topic):
                    return f"topic {topic[:100]!r} is excluded by the filters: its partition count is not known", False
                return f"no round has shown topic {topic[:100]!r}: its partition count is not known", True
    return None


def _broken(
    decision: ClassicDecision, actual: Assignment, counts: dict[str, SeenCounts]
) -> tuple[DriftedPartition, ...]:
    """Partitions that violate an invariant, whoever led; a count is judged only where the rounds are sure."""
    sure = {topic: max(c.seen) for topic, c in counts.items() if c.complete and max(c.seen) > 0}
    found = violations(actual, _asked(decision), sure)
    if not found:
        return ()
    who = owners(actual)
    return tuple(
        DriftedPartition(
            topic=v.topic,
            partition=v.partition,
            kind=_KINDS[v.kind],
            expected=None,
            actual=tuple(dict.fromkeys(who[v.topic][v.partition])),
        )
        for v in {(v.topic, v.partition, v.kind): v for v in found}.values()
    )


def _asked(decision: ClassicDecision) -> dict[str, frozenset[str]]:
    """Topics that each member may be given; members that may be given any are missing."""
    record = decision.record
    if _may_be_a_return(decision):
        return {}
    if decision.kind != "migration" and record.protocol in known_strategies():
        return {m.member_id: frozenset(m.topics or ()) for m in record.members}
    # Members that subscribe by pattern name the topics they know of; an assignor that is not one of Kafka's four may
    # give them what only the leader knows of yet (Streams does: InternalTopologyBuilder's
    # addSubscribedTopicsFromAssignment).
    anybody = frozenset(topic for m in record.members for topic in m.topics or ())
    return {m.member_id: anybody for m in record.members}
