"""Verdicts on groups that the broker assigns (KIP-848): is the target what its assignor gives?

The verdict is about the target, never about what members own at present, which trails behind it. What the coordinator
went by is in the log: members, subscriptions, the target before. Three things are not: its release, the assignor
where no member asks for one, and partition counts (from 4.1). So every assignor and era that is possible is tried,
with the counts that the target itself shows, if a round saw them: the assignors hand out every partition.

`identical` is a fact; that nothing fits is none, as an assignor may be the operator's own, and where two keys share a
bucket of the coordinator's maps their order is not recorded. Then the verdict is `valid_unverified`. `drifted` is
said of a partition that two members are to own, or one that does not subscribe to its topic: no assignor may do that.

Source of the rules: DESIGN.md 3; kafka.md 4.
"""

from __future__ import annotations

from assignors import Assignment, AssignorError, LeaderWouldFail, from_topics, same
from assignors.server import (
    ServerGroup,
    ServerMember,
    ServerTopic,
    assign_on_server,
    known_server_strategies,
    names_in_hash_order,
)
from streaming.groups.config import GroupConfig
from streaming.groups.consumer_group import Decision
from streaming.groups.drift import mismatch
from streaming.groups.facts import DriftedPartition, DriftRow, Rows
from streaming.groups.inputs import Tick
from streaming.groups.modern_balance import balance_of_target
from streaming.groups.modern_inputs import CONSUMER
from streaming.groups.modern_members import names_at
from streaming.groups.state import GroupState, TopicState
from streaming.groups.times import day_of
from streaming.groups.verdict import DRIFTED, IDENTICAL, NOT_APPLICABLE, VALID_UNVERIFIED, Verdict

__all__ = ["judge_modern", "no_verdict_on", "strategy_of", "write_modern_verdicts"]

# First release of each era of the broker's assignors, oldest first (kafka.md 4.5 to 4.7; assignors/server/registry.py).
_ERAS = ("3.8.1", "3.9.0", "4.0.0", "4.0.1")

_PREFIX = "server-"


def write_modern_verdicts(state: GroupState, tick: Tick, group: str, config: GroupConfig, rows: Rows) -> None:
    """Judge the decisions since the round before; the topics of this round are taken in."""
    for decision in state.unjudged:
        verdict = judge_modern(state, decision, config)
        strategy = strategy_of(decision.assignors)
        expected = config.expected_strategy(group)
        rows.drift.append(
            DriftRow(
                cluster=config.cluster,
                group_id=group,
                log_partition=decision.log_partition,
                record_offset=decision.record,
                record_time=decision.record_time,
                event_date=day_of(decision.record_time),
                incarnation=decision.incarnation,
                generation=decision.epoch,
                round=tick.round,
                round_time=tick.time,
                strategy=strategy,
                expected_strategy=expected,
                strategy_mismatch=mismatch(expected, strategy),
                verdict=verdict.verdict,
                reason=verdict.reason,
                matched_library=verdict.library,
                candidates=verdict.candidates,
                drifted_count=len(verdict.drifted),
                drifted_partitions=verdict.drifted,
            )
        )
        state.modern_verdict = verdict.verdict, verdict.reason, len(verdict.drifted)
    if state.unjudged:
        newest = state.unjudged[-1]
        state.modern_balance = balance_of_target(newest, names_at(state, newest))
    state.unjudged = []


def strategy_of(assignors: tuple[str, ...]) -> str | None:
    """The server assignor that members ask for; None where it is the broker's default, or not to be told."""
    return assignors[0] if len(assignors) == 1 else None


def no_verdict_on(group_type: str) -> str:
    """Why share and streams groups get no verdict."""
    return f"assignments of {group_type} groups are shown, not recomputed"


def judge_modern(state: GroupState, decision: Decision, config: GroupConfig) -> Verdict:
    """Judge one decision with what the round after it knows."""
    if decision.became_empty:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if decision.group_type != CONSUMER:
        return Verdict(NOT_APPLICABLE, no_verdict_on(decision.group_type))
    names = names_at(state, decision)
    broken = _broken(decision, names)
    if broken:
        return Verdict(DRIFTED, "invariants are violated, whatever the assignor", drifted=broken)
    unknown = _unknown(decision)
    if unknown is not None:
        return Verdict(VALID_UNVERIFIED, unknown)
    ids = {name: topic_id for topic_id, name in names.items()}
    actual = from_topics(decision.targets)
    topics: dict[str, ServerTopic] = {}
    for name in sorted({name for of_member in decision.subscriptions.values() for name in of_member or ()}):
        known = state.topics.get(name)
        if name not in ids or known is None:
            if not config.watches_topic(name):
                return Verdict(VALID_UNVERIFIED, f"topic {name[:100]!r} is excluded by the filters: it is not known")
            return Verdict(VALID_UNVERIFIED, f"no round has shown topic {name[:100]!r}: it is not known")
        shown = max(
            (max(ps, default=-1) for of in actual.values() for t, ps in of.items() if t == ids[name]), default=-1
        )
        seen = _seen(known, decision.record_time - config.metadata_grace_ms)
        if shown + 1 not in seen:
            counts = ", ".join(map(str, sorted(seen)))
            reason = f"its target shows {shown + 1} partitions of topic {name[:100]!r}, rounds have seen {counts}"
            return Verdict(VALID_UNVERIFIED, reason)
        if shown >= 0:
            topics[name] = ServerTopic(ids[name], shown + 1)
    return _recomputed(decision, topics, actual)


def _unknown(decision: Decision) -> str | None:
    """Why the target cannot be recomputed: what of the coordinator's inputs is not known; None when all is."""
    if decision.carried_over:
        return "the group came from the classic protocol: this is the assignment that it brought"
    if decision.before is None or not decision.exact:
        return "what was the target before it is not known: records of the group before it may be missing"
    if decision.undescribed:
        return f"the log lacks records of member {decision.undescribed[0][:100]!r}"
    if decision.group_epoch != decision.epoch:
        return "members or subscriptions have changed since the epoch that it was computed for"
    unresolved = [name for name, topics in decision.subscriptions.items() if topics is None]
    if unresolved:
        return f"the regular expression of member {unresolved[0][:100]!r} is not resolved in the log"
    return None


def _broken(decision: Decision, names: dict[str, str]) -> tuple[DriftedPartition, ...]:
    """Partitions of two members, or of one that does not subscribe."""
    if not decision.exact:
        return ()
    owners: dict[tuple[str, int], list[str]] = {}
    for member_id, target in decision.targets.items():
        for topic_id, numbers in target:
            for number in numbers:
                owners.setdefault((topic_id, number), []).append(member_id)
    found = []
    current = decision.group_epoch == decision.epoch
    for (topic_id, number), members in sorted(owners.items()):
        topic = names.get(topic_id, topic_id)
        if len(members) > 1:
            found.append(DriftedPartition(topic, number, "doubly_assigned", None, tuple(members)))
        elif current and topic_id in names:
            subscription = decision.subscriptions.get(members[0])
            if subscription is not None and topic not in subscription:
                found.append(DriftedPartition(topic, number, "not_subscribed", None, tuple(members)))
    return tuple(found)


def _seen(known: TopicState, horizon: int) -> set[int]:
    """Counts that rounds have seen from a time on, with the one in force at it."""
    before = [count for count in known.counts if count.first <= horizon][-1:] or known.counts[:1]
    return {count.count for count in (*before, *(c for c in known.counts if c.first > horizon))}


def _recomputed(decision: Decision, topics: dict[str, ServerTopic], actual: Assignment) -> Verdict:
    old = {new: before for before, new in decision.replaced}
    before = decision.before or {}
    strategies = [f"{_PREFIX}{name}" for name in decision.assignors] or list(known_server_strategies())
    unknown = [name for name in strategies if name not in known_server_strategies()]
    if unknown:
        return Verdict(VALID_UNVERIFIED, f"assignor {unknown[0].removeprefix(_PREFIX)[:100]!r} is not known")
    tried = 0
    cannot: str | None = None
    try:
        members = tuple(
            [
                ServerMember(
                    member.member_id,
                    tuple(names_in_hash_order(decision.subscriptions[member.member_id] or ())),
                    target=before.get(old.get(member.member_id, member.member_id), ()),
                    group_instance_id=member.instance_id,
                    rack=member.rack,
                )
                for member in decision.members
            ]
        )
        server_group = ServerGroup(members, topics)
    except AssignorError as error:
        return Verdict(VALID_UNVERIFIED, str(error)[:200])
    for strategy in strategies:
        for release in _ERAS:
            try:
                fits = same(assign_on_server(strategy, server_group, release), actual)
            except LeaderWouldFail:
                continue
            except AssignorError as error:
                cannot = cannot or str(error)[:200]
                continue
            tried += 1
            if fits:
                return Verdict(IDENTICAL, library=f"broker:{release}", candidates=tried)
    reason = cannot or f"it fits none of {tried} candidates; assignors of one's own, and ties, are not recomputed"
    return Verdict(VALID_UNVERIFIED, reason, candidates=tried)
