"""Verdicts on classic groups: did the group's leader decide what its strategy gives?

The log does not record the leader's library, its release or its metadata. So candidates are tried, and one that fits
makes a decision `identical`. That none fits proves nothing, because nobody knows all clients; `drifted` needs a basis
(`Verdict.basis`): a partition with two owners, a broken promise of the strategy's name, another strategy than the
configured one, or the word of the operator on which clients run.

- **Partition counts** need no search. Strategies assign every partition that the leader knows, so its count of a topic
  is the highest assigned partition plus one; `possible_counts` has the exceptions of sticky strategies. It remains to
  check that a round around the decision saw that count. A leader may know new partitions before the probe's broker
  does, so a count higher than any seen waits for later rounds.
- **Owned partitions and their generations**, which sticky strategies use, are in the members' subscriptions in the
  record, as the leader saw them.
- **Racks of replicas**, which matter if members have racks, cannot be derived from an assignment and change when
  brokers come and go (`seen_racks`).

docs/verdicts.md explains the verdicts and their limits. Source of the rules: Java's `ConsumerCoordinator` and the
assignors of each client library (docs/assignors.md).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from assignors import (
    NOT_SUBSCRIBED,
    Assignment,
    AssignorError,
    Library,
    UnknownLibrary,
    broken_promises,
    find_strategy,
    owners,
    parse_library,
    strategy_named,
    violations,
)
from streaming.groups.classic.leader_metadata import NO_RACKS, STICKY, SeenCounts, seen_counts, seen_racks
from streaming.groups.classic.membership import (
    columns_of,
    is_connect,
    is_consumer,
    is_streams,
    subscription_of,
    torn_tasks,
    undecodable,
    why_not_judged,
)
from streaming.groups.classic.recompute import recompute
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.classic.what_if import assigned, classic_what_if_rows, result_of
from streaming.groups.context import Context, GroupConfig
from streaming.groups.rows import DriftedPartition
from streaming.groups.state import GroupState
from streaming.groups.verdicts import (
    DRIFTED,
    IDENTICAL,
    INVARIANT,
    MISPLACED,
    NOT_APPLICABLE,
    PROMISE,
    UNEXPLAINED,
    UNVERIFIED,
    Expected,
    Judged,
    Judging,
    Verdict,
    drifted_between,
    standing,
    why_not_shown,
    write_verdicts,
)
from streaming.records import GroupObservation, MembershipRecord

# A new group's first decision is followed by a round within an interval or two. If the first round that shows a topic
# comes later than this after the decision, the probe was not running at the time.
_FIRST_SEEN_MS = 60_000

# The assignors' kinds of violation as kinds of drift (docs/verdicts.md).
_KINDS = {"doubly_assigned": "doubly_assigned", "not_subscribed": "not_subscribed", "beyond_count": MISPLACED}

# What drifted partitions of these kinds break, the gravest first.
_INVARIANTS: Final = {
    "doubly_assigned": "partitions have two owners",
    NOT_SUBSCRIBED: "members own partitions of topics that they do not subscribe to",
    MISPLACED: "members own partitions that do not exist",
}

# Kinds of decisions that no leader made, with the reason why they are not recomputed.
_BY_NO_LEADER: Final = {
    "migration": "the group was downgraded from the KIP-848 protocol: the broker made this assignment",
    "static_replacement": "a static member has come back since the decision, and the members have other ids now",
}


def write_classic_verdicts(
    state: GroupState, observation: GroupObservation, context: Context, *, last: bool = False
) -> None:
    """Judge the waiting decisions that can be judged now, or all of them if no more rounds will come (`last`).

    Those of a group that is Connect's now are judged by `connect/`.
    """
    waiting = state.classic.waiting
    if waiting and not is_connect(waiting[-1].record):
        config = context.config
        judging = Judging(
            partial(_judge, state, observation, config, last),
            judged_of,
            partial(_expected_by, state, config),
            partial(classic_what_if_rows, state, observation, config),
        )
        judge_waiting(state, judging, observation, context)


def judged_of(decision: ClassicDecision, context: Context) -> Judged:
    """A decision's own columns."""
    return Judged(columns_of(decision.record, decision.incarnation, context), decision.record.protocol)


def judge_waiting(
    state: GroupState, kind: Judging[ClassicDecision], observation: GroupObservation, context: Context
) -> None:
    """Judge the waiting decisions that `kind` can judge now."""
    classic = state.classic
    verdicts = write_verdicts(classic.waiting, kind, observation, context)
    classic.verdict = standing(verdicts) or classic.verdict
    classic.waiting = classic.waiting[len(verdicts) :]


def judge_again(state: GroupState, observation: GroupObservation, context: Context) -> None:  # noqa: ARG001
    """Let the newest decision, if it is judged, wait once more: the settings say something else of the group now."""
    classic = state.classic
    if classic.current is not None and classic.verdict is not None and not classic.waiting:
        classic.waiting = [classic.current]


def _judge(
    state: GroupState,
    observation: GroupObservation,
    config: GroupConfig,
    last: bool,
    decision: ClassicDecision,
    later_is_judged: bool,
) -> Verdict | None:
    record = decision.record
    if not record.members:
        return Verdict(NOT_APPLICABLE, "the group is empty")
    if not is_consumer(record):
        return Verdict(NOT_APPLICABLE, f"protocol type {record.protocol_type[:100]!r} assigns no topic partitions")
    counts = seen_counts(state, decision, config)
    # It was decided after the round before it, even if its coordinator's clock is behind.
    settled = state.clock.passed - max(record.record_time, decision.after_round) >= config.metadata_grace_ms
    actual = assigned(record)
    is_dated = not (record.seen and record.decided_after < 0)
    broken = _broken(decision, actual, counts if settled and is_dated else {})
    if broken:
        kinds = {found.kind for found in broken}
        reason = next(reason for kind, reason in _INVARIANTS.items() if kind in kinds)
        return Verdict(DRIFTED, reason, basis=INVARIANT, drifted=broken)
    torn = torn_tasks(record)
    if torn:
        reason = f"task {next(iter(torn))[:100]} is active with two members"
        return Verdict(DRIFTED, reason, basis=INVARIANT, drifted=tuple(chain.from_iterable(torn.values())))
    member = undecodable(record)
    if member is not None:
        return Verdict(UNVERIFIED, f"member {member.member_id[:100]!r}: {member.undecodable}")
    waits = not (settled or last or later_is_judged)
    verdict = _recomputed(state, observation, config, decision, actual, counts, settled=settled, waits=waits)
    if verdict is not None and verdict.verdict == IDENTICAL:
        return verdict
    promised = _promised(decision, actual, verdict)
    if promised is not None:
        return promised
    if verdict is None or (verdict.verdict != DRIFTED and verdict.reason != UNEXPLAINED):
        return verdict
    doubt = _doubt(state, decision, counts, is_dated=is_dated)
    if doubt is None:
        return verdict
    return replace(verdict, verdict=UNVERIFIED, reason=doubt, basis=None, drifted=())


def _recomputed(
    state: GroupState,
    observation: GroupObservation,
    config: GroupConfig,
    decision: ClassicDecision,
    actual: Assignment,
    counts: dict[str, SeenCounts],
    *,
    settled: bool,
    waits: bool,
) -> Verdict | None:
    """What the candidates give, or why they cannot be computed; None while a later round may show what is missing.

    Args:
        state: The group's state, including this round.
        observation: The round.
        config: Settings.
        decision: The decision.
        actual: Its assignment.
        counts: Partition counts of its topics.
        settled: No later round can show a count that the leader may have known.
        waits: It may wait for a later round.
    """
    record, told = decision.record, observation.configured
    latest = max(state.clock.now, observation.time)
    if record.record_time - latest > config.metadata_grace_ms:
        return Verdict(UNVERIFIED, "its record time is in the future: the partition counts at that time are not known")
    custom = config.custom.named(record.protocol or "")
    if custom is None and is_streams(record) and decision.kind not in _BY_NO_LEADER:
        return Verdict(UNVERIFIED, why_not_judged(record))
    missing = _missing(record, counts, config)
    if waits and ((missing is not None and missing[1]) or any(c.ahead for c in counts.values())):
        return None
    if decision.kind in _BY_NO_LEADER:
        return Verdict(UNVERIFIED, _BY_NO_LEADER[decision.kind])
    if missing is not None:
        return Verdict(UNVERIFIED, missing[0])
    strategy = record.protocol or ""
    if custom is None and find_strategy(strategy) is None:
        return Verdict(UNVERIFIED, f"strategy {strategy[:100]!r} is not known")
    in_racks = custom is not None or any(member.rack for member in record.members)
    racks = seen_racks(state, decision, config, counts) if in_racks else NO_RACKS
    libraries = tuple(map(_library, told.clients)) if told is not None else ()
    return recompute(record, custom or strategy_named(strategy), actual, counts, racks, libraries, settled=settled)


def _expected_by(
    state: GroupState, config: GroupConfig, decision: ClassicDecision, verdict: Verdict, strategy: str
) -> Expected | str:
    record = decision.record
    if decision.kind in _BY_NO_LEADER:
        return _BY_NO_LEADER[decision.kind]
    if not record.members or undecodable(record) is not None:
        return verdict.reason or "its members are not known"
    try:
        inputs, expected = result_of(state, decision, strategy, verdict, config)
    except AssignorError as error:
        return str(error)
    return Expected(drifted_between(expected, assigned(record)), inputs)


def _library(client: str) -> Library:
    """A declared library; one that this release does not know (a newer probe told it) cannot be computed."""
    try:
        return parse_library(client)
    except UnknownLibrary:
        return Library(client)


def _promised(decision: ClassicDecision, actual: Assignment, verdict: Verdict | None) -> Verdict | None:
    """The verdict on a decision that breaks what its strategy's name promises; None for any other.

    Args:
        decision: A decision whose members are decoded.
        actual: Its assignment.
        verdict: What the candidates give; None while that is not known.
    """
    record = decision.record
    if decision.kind in _BY_NO_LEADER or _may_be_a_return(decision):
        return None
    broken = broken_promises(record.protocol or "", [subscription_of(member) for member in record.members], actual)
    if not broken:
        return None
    verdict = verdict or Verdict(UNVERIFIED)
    worst = max(broken, key=lambda one: one.most - one.fewest)
    of = "partitions" if worst.topic is None else f"partitions of topic {worst.topic[:100]!r}"
    reason = (
        f"{record.protocol} gives members with equal subscriptions as many {of} as it can: member "
        f"{worst.most_loaded[0][:100]!r} has {worst.most:,}, and {worst.least_loaded[0][:100]!r} has {worst.fewest:,}"
    )
    owner = owners(actual)
    surplus = sorted({partition for one in broken for partition in one.surplus})
    drifted = tuple([DriftedPartition(t, p, MISPLACED, None, tuple(owner[t][p])) for t, p in surplus])
    if verdict.nearest is not None and verdict.nearest.differing:
        drifted = verdict.nearest.differing
    return replace(verdict, verdict=DRIFTED, reason=reason, basis=PROMISE, drifted=drifted)


def _doubt(
    state: GroupState, decision: ClassicDecision, counts: dict[str, SeenCounts], *, is_dated: bool
) -> str | None:
    """Why that no candidate fits says even less; None if there is no such reason."""
    if _may_be_a_return(decision):
        return "no candidate fits, but this may be the record of a static member's return, which no leader decided"
    if not is_dated:
        return (
            "no candidate fits, but the group was met with this assignment: when it was made, and with which partition "
            "counts, is not known"
        )
    old = _changed_before_it_was_seen(state, decision, counts)
    if old is not None:
        return (
            f"no candidate fits, but the partition count of topic {old[:100]!r} at that time is not known: no round "
            "has seen the topic before it grew"
        )
    return None


def _may_be_a_return(decision: ClassicDecision) -> bool:
    """Whether the decision's record may have been written because a static member came back.

    Such a record has the member's new subscription and the old assignment (KIP-345; `GroupCoordinator`'s
    `updateStaticMemberAndRebalance` since 2.6.1). It has the same generation as the previous record, so if that one was
    not read, it cannot be recognised. Nor can it where a membership was only seen, without its generation.
    """
    return (decision.after_unseen or decision.record.seen) and any(
        m.group_instance_id is not None for m in decision.record.members
    )


def _changed_before_it_was_seen(
    state: GroupState, decision: ClassicDecision, counts: dict[str, SeenCounts]
) -> str | None:
    """A topic first shown by a round long after the decision, with another partition count than the leader's.

    The assignment shows only a lower bound of the leader's count: some partitions may be held back or not assigned.
    """
    late = decision.record.record_time + _FIRST_SEEN_MS
    doubtful = (topic for topic, of in counts.items() if not of.complete and of.leader not in of.seen)
    return next((topic for topic in doubtful if state.topics[topic].since > late), None)


def _missing(record: MembershipRecord, counts: dict[str, SeenCounts], config: GroupConfig) -> tuple[str, bool] | None:
    """The reason if no round has shown a subscribed topic, and whether a later round may show it; None if all are."""
    for member in record.members:
        for topic in member.topics or ():
            if topic not in counts:
                return why_not_shown(topic, config), config.watches_topic(topic)
    return None


def _broken(
    decision: ClassicDecision, actual: Assignment, counts: dict[str, SeenCounts]
) -> tuple[DriftedPartition, ...]:
    """Partitions that violate an invariant.

    No leader gives a partition two owners. A member that does not subscribe, or a partition that does not exist, proves
    something only under the name of a strategy of which no known client does so: sticky leaders leave members what they
    had, and counts are checked only if the rounds are certain.
    """
    record, strategy = decision.record, find_strategy(decision.record.protocol or "")
    asked, sure = {}, {}
    if strategy is not None and decision.kind not in _BY_NO_LEADER and not _may_be_a_return(decision):
        if not strategy.gives_unsubscribed:
            asked = {m.member_id: frozenset(m.topics) for m in record.members if m.topics is not None}
        if strategy.name not in STICKY:
            sure = {topic: max(c.seen) for topic, c in counts.items() if c.complete and max(c.seen) > 0}
    found = violations(actual, asked, sure)
    who = owners(actual) if found else {}
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
