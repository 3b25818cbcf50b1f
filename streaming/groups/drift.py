"""Verdicts: is what the group decided what its strategy gives?

A verdict is about the decision made then. The leader's library, its release and its metadata are not recorded,
so every candidate that the bytes and the rounds allow is tried; drift is said only when none fits and all could
be computed. Partition counts need no enumeration: strategies hand out every partition the leader knows, so the
leader's count of a topic can be read off its own assignment (highest partition plus one; what sticky strategies hold
back or leave with a member: `possible_counts`), and the only question left is whether a round around the decision
saw that count. What sticky strategies go by, owned partitions and their generations, is in the record as the leader
saw it, in the members' subscriptions. A leader may know of new partitions
before the probe's broker does: a count above all that was seen waits for the rounds to come.

Source of the rules: DESIGN.md 3; kafka.md 3.1, 3.14, 3.15.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product

from assignors import (
    Assignment,
    AssignorError,
    CannotTell,
    Group,
    LeaderWouldFail,
    Library,
    Strategy,
    assign,
    differences,
    from_topics,
    known_strategies,
    recognise,
    same,
    strategy_named,
    topics_without_metadata,
    unrecorded,
    violations,
)
from assignors.library import CUSTOM
from streaming.groups.config import GroupConfig
from streaming.groups.facts import DriftedPartition, DriftRow
from streaming.groups.inputs import MembershipRecord
from streaming.groups.membership import MAX_GROUP_PARTITIONS, is_consumer, leader_counts, subscription_of, undecodable
from streaming.groups.possible_counts import possible_counts
from streaming.groups.state import Decision, GroupState, TopicState
from streaming.groups.times import day_of

__all__ = ["Verdict", "drift_row", "judge"]

IDENTICAL = "identical"
DRIFTED = "drifted"
VALID_UNVERIFIED = "valid_unverified"
NOT_APPLICABLE = "not_applicable"

# Kinds in the words of DESIGN.md 3.
_MISPLACED = "misplaced"
_UNASSIGNED = "unassigned"
_KINDS = {"doubly_assigned": "doubly_assigned", "not_subscribed": "not_subscribed", "beyond_count": _MISPLACED}

# Combinations of partition counts that are tried: four topics, each with two possible counts at one time, are already
# a rare coincidence, and every combination costs a recomputation per candidate.
_MOST_VARIANTS = 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one decision.

    Attributes:
        verdict: "identical", "drifted", "valid_unverified" or "not_applicable".
        reason: Why, where it is not plain from the verdict; None for "identical".
        library: The candidate that fitted, as text; None when none did.
        candidates: Candidates that were tried.
        drifted: Partitions whose owner is not the expected one; empty unless drifted.
    """

    verdict: str
    reason: str | None = None
    library: str | None = None
    candidates: int = 0
    drifted: tuple[DriftedPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class _Counts:
    """What the rounds know of one topic's partition count around a decision.

    Attributes:
        seen: Counts of the rounds from the grace period before the decision to the first round after it.
        newest: The last of them.
        complete: Rounds have shown the topic for all of the grace period before the decision, and the same
            topic: as counts only grow, none lower and none higher was possible.
        leader: Count as the leader knew it at least.
    """

    seen: frozenset[int]
    newest: int
    complete: bool
    leader: int

    @property
    def ahead(self) -> bool:
        """Whether the leader knew more partitions than any round."""
        return self.leader > max(self.seen)

    @property
    def impossible(self) -> bool:
        """Whether the leader's count was surely in force at no time (one between two may have been, unseen)."""
        return self.complete and not min(self.seen) <= self.leader <= max(self.seen)


def judge(
    state: GroupState, decision: Decision, round_time: int, config: GroupConfig, *, last: bool = False
) -> Verdict | None:
    """Judge one decision with what the round after it knows.

    Args:
        state: The group's state, with the topics of that round taken in.
        decision: A decision whose record lies below the round's log position.
        round_time: The round's time, ms.
        config: Settings.
        last: No round will come any more.

    Returns:
        None while something is missing that a coming round may show (the decision stays pending); never when
        this is the last.
    """
    record = decision.record
    if decision.kind == "dropped":
        return Verdict(VALID_UNVERIFIED, "too many generations passed without a round: not recomputed")
    if not record.members:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if not is_consumer(record):
        return Verdict(NOT_APPLICABLE, f"protocol type {record.protocol_type[:100]!r} assigns no topic partitions")
    member = undecodable(record)
    if member is not None:
        return Verdict(VALID_UNVERIFIED, f"member {member.member_id[:100]!r}: {member.undecodable}")
    counts = _counts(state, record, config)
    settled = round_time - record.record_time >= config.metadata_grace_ms
    actual = from_topics({m.member_id: m.assigned or () for m in record.members})
    broken = _broken(decision, actual, counts if settled else {})
    if broken:
        return Verdict(DRIFTED, "invariants are violated, whoever led", drifted=broken)
    if record.record_time - round_time > config.metadata_grace_ms:
        return Verdict(VALID_UNVERIFIED, "its record time lies in the future: the partition counts then are not known")
    missing = _missing(record, counts, config)
    waits = (missing is not None and missing[1]) or any(c.ahead for c in counts.values())
    if waits and not settled and not last:
        return None
    if decision.kind == "migration":
        return Verdict(
            VALID_UNVERIFIED, "the group came from the consumer protocol of KIP-848: a server made this assignment"
        )
    if missing is not None:
        return Verdict(VALID_UNVERIFIED, missing[0])
    strategy = record.protocol or ""
    custom = config.custom.named(strategy)
    if custom is None and strategy not in known_strategies():
        return Verdict(VALID_UNVERIFIED, f"strategy {strategy[:100]!r} is not known")
    verdict = _recompute(record, custom or strategy_named(strategy), actual, counts, settled=settled)
    if verdict.verdict == DRIFTED and _may_be_a_return(decision):
        return Verdict(
            VALID_UNVERIFIED,
            "it fits no candidate, but may be the record of a static member's return, which no leader decided",
            candidates=verdict.candidates,
        )
    return verdict


def drift_row(
    decision: Decision,
    verdict: Verdict,
    group: str,
    partition: int,
    round_number: int,
    round_time: int,
    config: GroupConfig,
) -> DriftRow:
    """Write one verdict as a row of `drift`."""
    record = decision.record
    expected = config.expected_strategy(group)
    return DriftRow(
        cluster=config.cluster,
        group_id=group,
        log_partition=partition,
        record_offset=record.record,
        record_time=record.record_time,
        event_date=day_of(record.record_time),
        incarnation=decision.incarnation,
        generation=record.generation,
        round=round_number,
        round_time=round_time,
        strategy=record.protocol,
        expected_strategy=expected,
        strategy_mismatch=mismatch(expected, record.protocol),
        verdict=verdict.verdict,
        reason=verdict.reason,
        matched_library=verdict.library,
        candidates=verdict.candidates,
        drifted_count=len(verdict.drifted),
        drifted_partitions=verdict.drifted,
    )


def mismatch(expected: str | None, strategy: str | None) -> bool | None:
    """Whether a group runs another strategy than configured; None when either is not known."""
    return None if expected is None or strategy is None else expected != strategy


def _may_be_a_return(decision: Decision) -> bool:
    """Whether the decision may be a record that was written when a static member came back.

    Such a record has the member's new subscription beside the old assignment (kafka.md 2.8). It is known by its
    generation, the same as the one before; where the one before was not read, it cannot be told.
    """
    return decision.after_unseen and any(m.group_instance_id is not None for m in decision.record.members)


def _counts(state: GroupState, record: MembershipRecord, config: GroupConfig) -> dict[str, _Counts]:
    """What the rounds know of each subscribed or assigned topic; topics no round has shown are missing."""
    horizon = record.record_time - config.metadata_grace_ms
    return {
        topic: _of_topic(state.topics[topic], horizon, leader)
        for topic, leader in leader_counts(record).items()
        if topic in state.topics
    }


def _of_topic(known: TopicState, horizon: int, leader: int) -> _Counts:
    newest = known.counts[-1]
    before = known.counts[0]
    in_force = []
    for count in known.counts:
        if count.first <= horizon:
            before = count  # in force at the horizon, for all that the rounds tell
        else:
            in_force.append(count.count)
    return _Counts(
        seen=frozenset((before.count, *in_force)),
        newest=newest.count,
        complete=known.since <= horizon and known.renewed <= horizon,
        leader=leader,
    )


def _missing(record: MembershipRecord, counts: dict[str, _Counts], config: GroupConfig) -> tuple[str, bool] | None:
    """A subscribed topic that no round has shown: the reason, and whether a coming round may show it."""
    for member in record.members:
        for topic in member.topics or ():
            if topic not in counts:
                if not config.watches_topic(topic):
                    return f"topic {topic[:100]!r} is excluded by the filters: its partition count is not known", False
                return f"no round has shown topic {topic[:100]!r}: its partition count is not known", True
    return None


def _broken(decision: Decision, actual: Assignment, counts: dict[str, _Counts]) -> tuple[DriftedPartition, ...]:
    """Partitions that violate an invariant, whoever led; a count is judged only where the rounds are sure."""
    sure = {topic: max(c.seen) for topic, c in counts.items() if c.complete and max(c.seen) > 0}
    found = violations(actual, _asked(decision), sure)
    return tuple(
        DriftedPartition(
            topic=v.topic,
            partition=v.partition,
            kind=_KINDS[v.kind],
            expected=None,
            actual=tuple(m for m, topics in actual.items() if v.partition in topics.get(v.topic, ())),
        )
        for v in {(v.topic, v.partition, v.kind): v for v in found}.values()
    )


def _asked(decision: Decision) -> dict[str, frozenset[str]]:
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


def _recompute(
    record: MembershipRecord, strategy: Strategy, actual: Assignment, counts: dict[str, _Counts], *, settled: bool
) -> Verdict:
    leader = {topic: c.leader for topic, c in counts.items()}
    if sum(leader.values()) > MAX_GROUP_PARTITIONS:
        return Verdict(VALID_UNVERIFIED, "the record assigns partition numbers that no topic has: not recomputed")
    known_to_leader = next((m.topics or () for m in record.members if m.member_id == record.leader), ())
    members = tuple(map(subscription_of, record.members))
    seen = {topic: c.seen for topic, c in counts.items()}
    variants = list(islice(possible_counts(strategy, members, leader, seen), _MOST_VARIANTS + 1))
    cannot: str | None = None
    if len(variants) > _MOST_VARIANTS:
        variants.pop()
        cannot = "too many partition counts are possible where partitions are held back or were owned before"
    expected: Assignment | None = None
    tried: set[Library] = set()
    libraries = (Library(CUSTOM),) if strategy.custom else _candidates(record, strategy.name)
    for library, known in product(libraries, variants):
        try:
            result, fits = _computed(strategy, Group(members, known), library, actual)
        except LeaderWouldFail:
            continue
        except AssignorError as error:
            cannot = cannot or _reason(error)
            continue
        tried.add(library)
        # A leader that did not wait for a topic's metadata gave nobody any of it: its count of 0 needs no round.
        unknown = topics_without_metadata(library, known_to_leader, counts)
        unseen = sorted(
            topic
            for topic, c in counts.items()
            if known[topic] not in c.seen and not (known[topic] == 0 and topic in unknown)
        )
        unsure = [t for t in unseen if not counts[t].impossible or (counts[t].ahead and not settled)]
        if fits and unsure:
            others = ", ".join(map(str, sorted(counts[unsure[0]].seen)))
            return Verdict(
                VALID_UNVERIFIED,
                f"it fits a partition count of topic {unsure[0][:100]!r} that no round has seen "
                f"({known[unsure[0]]}; seen: {others})",
                candidates=len(tried),
            )
        if unseen:
            # (kafka-python can leave the last partitions of a topic to nobody, so its count shows too low.)
            try:
                nearest = known | {topic: counts[topic].newest for topic in unseen}
                result, fits = _computed(strategy, Group(members, nearest), library, actual)
            except AssignorError as error:
                cannot = cannot or f"with the newest partition counts: {_reason(error)}"
                continue
        if fits:
            return Verdict(IDENTICAL, library=str(library), candidates=len(tried))
        expected = result if expected is None else expected
    if expected is not None and not strategy.deterministic:
        cannot = cannot or "the strategy is not deterministic: that it gives another result now proves nothing"
    if cannot is not None:
        return Verdict(VALID_UNVERIFIED, cannot, candidates=len(tried))
    if expected is None:
        return Verdict(VALID_UNVERIFIED, "no known library could have led this group", candidates=len(tried))
    return Verdict(
        DRIFTED,
        f"none of {len(tried)} candidates gives this assignment",
        candidates=len(tried),
        drifted=_kinds(expected, actual),
    )


def _computed(strategy: Strategy, group: Group, library: Library, actual: Assignment) -> tuple[Assignment, bool]:
    """What a candidate gives, and whether that is the assignment.

    Raises:
        CannotTell: It cannot be told; or it is not, and may be by what is in no record.
    """
    result = assign(strategy, group, library)
    if same(result, actual):
        return result, True
    for other, reason in unrecorded(strategy.name, group, library):
        try:
            fits = same(assign(strategy, other, library), actual)
        except LeaderWouldFail:
            continue
        if fits and reason is not None:
            raise CannotTell(reason)
        if fits:
            return result, True
    return result, False


def _reason(error: AssignorError) -> str:
    return error.reason if isinstance(error, CannotTell) else str(error)[:200]


def _candidates(record: MembershipRecord, strategy: str) -> tuple[Library, ...]:
    leader = next((m for m in record.members if m.member_id == record.leader), None)
    if leader is None:
        # The leader itself may have left between join and sync; then nothing of its bytes is known.
        return recognise(strategy, version=None, user_data=None)
    return recognise(
        strategy,
        version=leader.subscription_version,
        user_data=leader.user_data,
        client_id=leader.client_id,
        member_id=leader.member_id,
    )


def _kinds(expected: Assignment, actual: Assignment) -> tuple[DriftedPartition, ...]:
    return tuple(
        DriftedPartition(
            topic=d.topic,
            partition=d.partition,
            kind=_MISPLACED if d.actual else _UNASSIGNED,
            expected=d.expected[0] if d.expected else None,
            actual=d.actual,
        )
        for d in differences(expected, actual)
    )
