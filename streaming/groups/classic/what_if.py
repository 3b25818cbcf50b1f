"""What each client's strategy would have given at one decision of a classic group.

If the verdict is `identical`, the row of the running strategy shows what the group did. The other strategies are run as
in the newest release of the same client, with members that report their previous partitions in that strategy's own
form; what they really reported was meant for the running strategy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assignors import (
    CUSTOM,
    JAVA,
    Assignment,
    CannotTell,
    Group,
    Library,
    PartitionRacks,
    Strategy,
    find_strategy,
    from_topics,
    known_strategies,
    parse_library,
    strategy_named,
)
from assignors.measures import informed, settled
from streaming.groups.classic.leader_metadata import STICKY, newest_racks, seen_counts
from streaming.groups.classic.membership import (
    Owners,
    is_streams,
    subscription_of,
    undecodable,
)
from streaming.groups.classic.state import ClassicDecision, Owned
from streaming.groups.context import GroupConfig, of_decision
from streaming.groups.load.rates import known_load
from streaming.groups.rows import WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdict_inputs import ClientInputs
from streaming.groups.verdicts import Judged, Verdict
from streaming.groups.what_if import UNKNOWN_BEFORE, Compared, too_large, what_if_rows
from streaming.records import GroupObservation, MembershipRecord, count_of


def by_member(owners: Owners) -> Owned:
    """Owners before a decision, by member: the form that the measures need and the state keeps."""
    owned: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), owner in owners.items():
        owned.setdefault(owner, {}).setdefault(topic, []).append(partition)
    return {member: {topic: tuple(of) for topic, of in topics.items()} for member, topics in owned.items()}


def classic_what_if_rows(
    state: GroupState,
    observation: GroupObservation,
    config: GroupConfig,
    decision: ClassicDecision,
    judged: Judged,
    verdict: Verdict,
    crowded: bool,
) -> list[WhatIfRow]:
    """The rows of one decision.

    Args:
        state: The group's state, including this round's topics.
        observation: The round at which it was judged.
        config: Settings.
        decision: The decision.
        judged: The same for its rows.
        verdict: Its verdict.
        crowded: It is not one of the newest.

    Returns:
        Nothing for threads of Kafka Streams, and for the first half of a cooperative rebalance, whose moves count for
        the second.
    """
    record = decision.record
    runs = record.protocol
    if runs is None or decision.first_half:
        return []
    if is_streams(record) and config.custom.named(runs) is None:
        return []  # its threads have no other strategy
    names = dict.fromkeys((*known_strategies(), runs, observation.configured_strategy or runs))

    def compared() -> Compared | str | None:
        if decision.kind == "migration" or undecodable(record) is not None:
            return verdict.reason
        counts = _counts(state, decision, verdict, config)
        why_not = too_large(sum(counts.values()), len(record.members), config)
        return why_not or _compared(state, decision, verdict, counts, config)

    strategies = {name: name == runs for name in names}
    size = most_partitions(record, decision.before), len(record.members)
    return what_if_rows(judged, observation, config, strategies, size, compared, crowded=crowded)


def most_partitions(record: MembershipRecord, owned: Owned | None) -> int:
    """Number of partitions that members have by a record, or had before, whichever is more."""
    assigned = sum(count_of(member.assigned) for member in record.members)
    before = sum(len(partitions) for topics in (owned or {}).values() for partitions in topics.values())
    return max(assigned, before)


def _counts(state: GroupState, decision: ClassicDecision, verdict: Verdict, config: GroupConfig) -> Mapping[str, int]:
    """Partition counts at the decision: the verdict's, or else the best known ones.

    Raises:
        CannotTell: The count of a subscribed topic is unknown.
    """
    if verdict.counts is not None:
        return verdict.counts
    seen = seen_counts(state, decision, config)
    for member in decision.record.members:
        for topic in member.topics or ():
            if topic not in seen:
                reason = f"the partition count of topic {topic[:100]!r} is not known"
                raise CannotTell(reason)
    return {topic: of.leader if of.leader in of.seen else of.newest for topic, of in seen.items()}


def _racks(
    state: GroupState, decision: ClassicDecision, verdict: Verdict, counts: Mapping[str, int], config: GroupConfig
) -> PartitionRacks | None:
    """The racks used for the verdict, or else those of the newest round; None if they do not matter or are unknown."""
    record = decision.record
    if verdict.racks is not None:
        return verdict.racks
    if config.custom.named(record.protocol or "") is None and not any(member.rack for member in record.members):
        return None
    return newest_racks(state, counts) or None


def _compared(
    state: GroupState, decision: ClassicDecision, verdict: Verdict, counts: Mapping[str, int], config: GroupConfig
) -> Compared:
    record, runs = decision.record, decision.record.protocol
    racks = _racks(state, decision, verdict, counts, config)
    group = Group(tuple(map(subscription_of, record.members)), counts, leader=record.leader)
    had = decision.before or {}

    def gives(name: str) -> tuple[str, Assignment]:
        if name == runs and verdict.library is not None:
            return verdict.library, assigned(record)
        strategy, library = _strategy(name, verdict, decision, config)
        answer, _ = settled(strategy, group if name == runs else _silent(group), had, library, racks)
        return str(library), answer

    return Compared(group, decision.before, known_load(state.load, counts), gives)


def result_of(
    state: GroupState, decision: ClassicDecision, name: str, verdict: Verdict, config: GroupConfig
) -> tuple[ClientInputs, Assignment]:
    """What a strategy that the group does not run would have decided, and by what.

    What only the other protocol would have carried, such as owned partitions for `sticky`, is taken from the decision
    before.

    Args:
        state: The group's state, including the topics of a round after the decision.
        decision: A decision whose members are decoded.
        name: The strategy.
        verdict: Its verdict on the strategy that runs.
        config: Settings.

    Raises:
        AssignorError: Nobody can tell.
    """
    strategy, library = _strategy(name, verdict, decision, config)
    counts = _counts(state, decision, verdict, config)
    racks = _racks(state, decision, verdict, counts, config)
    record, before = decision.record, decision.before or {}
    group = _silent(Group(tuple(map(subscription_of, record.members)), counts, leader=record.leader))
    with of_decision():
        asked = informed(group, name, before, library)
        expected, _ = settled(strategy, asked, before, library, racks)
    return ClientInputs(name, asked, library, racks), expected


def _silent(group: Group) -> Group:
    """The group with members that state no previous partitions: what they stated was meant for another strategy."""
    members = [replace(member, owned=(), generation=None, user_data=None) for member in group.members]
    return Group(tuple(members), group.partitions_per_topic, leader=group.leader)


def assigned(record: MembershipRecord) -> Assignment:
    """The assignment of a decision whose members are decoded."""
    return from_topics({member.member_id: member.assigned or () for member in record.members})


def _strategy(name: str, verdict: Verdict, decision: ClassicDecision, config: GroupConfig) -> tuple[Strategy, Library]:
    """A strategy, and the library that it is computed as.

    The library is the first release of its newest era in the client that the verdict found, or in Java if that is not
    known or does not have the strategy.

    Raises:
        CannotTell: The strategy's result is not known.
    """
    matched = verdict.library or JAVA
    client = JAVA if matched == CUSTOM else parse_library(matched).name
    custom = config.custom.named(name)
    if custom is None and find_strategy(name) is None:
        reason = f"strategy {name[:100]!r} is not known"
        raise CannotTell(reason)
    strategy, library = custom or strategy_named(name), Library(CUSTOM)
    if custom is None:
        try:
            era = strategy.era(Library(client))
        except CannotTell:
            era = strategy.era(Library(JAVA))
        library = Library(era.library, era.since)
    if not strategy.deterministic:
        reason = "the strategy is not deterministic: its result is not known"
        raise CannotTell(reason)
    if decision.before is None and name != decision.record.protocol and name in STICKY:
        raise CannotTell(UNKNOWN_BEFORE)
    return strategy, library
