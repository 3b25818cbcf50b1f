"""Rows of `what_if`: the result that each strategy would have had at one decision, next to the strategy that runs.

They are written with the verdict on the decision, when its partition counts are known. If the verdict is `identical`,
the row of the running strategy shows what the group did. The other strategies are run as in the newest release of the
same client, with members that report their previous partitions in that strategy's own form; what they really reported
was meant for the running strategy.

A decision that is too large, and all but the newest of a rebalance storm, get one row with the reason: a round must not
be delayed by what-ifs that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import msgspec

from assignors import (
    CUSTOM,
    JAVA,
    Assignment,
    AssignorError,
    Bounds,
    CannotTell,
    Group,
    Library,
    Load,
    Outcome,
    PartitionRacks,
    Strategy,
    find_strategy,
    from_topics,
    imbalance_optimal,
    known_strategies,
    load_imbalance_optimal,
    parse_library,
    strategy_named,
)
from assignors.measures import bounds_of, informed, outcome, what_if
from streaming.groups.classic.leader_metadata import STICKY, newest_racks, seen_counts
from streaming.groups.classic.membership import Owners, is_consumer, leader_counts, subscription_of, undecodable
from streaming.groups.classic.state import ClassicDecision, Owned
from streaming.groups.context import NEWEST, GroupConfig, of_decision
from streaming.groups.load.rates import known_load
from streaming.groups.rows import WhatIfRow, partition_column
from streaming.groups.state import GroupState
from streaming.groups.verdict_inputs import ClientInputs
from streaming.groups.verdicts import NOT_APPLICABLE, Judged, Verdict
from streaming.records import GroupObservation, MembershipRecord
from streaming.times import day_of

CROWDED = f"more than {NEWEST} decisions came between two rounds: only the newest are computed"
UNKNOWN_BEFORE = "the members' previous partitions are not known"

_LONGEST_REASON = 200


def by_member(owners: Owners) -> Owned:
    """Owners before a decision, by member: the form that the measures need and the state keeps."""
    owned: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), owner in owners.items():
        owned.setdefault(owner, {}).setdefault(topic, []).append(partition)
    return {member: {topic: tuple(of) for topic, of in topics.items()} for member, topics in owned.items()}


def too_large(partitions: int, members: int, config: GroupConfig) -> str | None:
    """Why a decision of this size gets no what-ifs; None if it does."""
    if partitions * members <= config.what_if_max_size:
        return None
    return (
        f"{partitions:,} partitions times {members:,} members are more than what_if_max_size "
        f"({config.what_if_max_size:,}): only smaller decisions are computed"
    )


def what_if_rows(
    state: GroupState,
    decision: ClassicDecision,
    judged: Judged,
    verdict: Verdict,
    observation: GroupObservation,
    config: GroupConfig,
    *,
    crowded: bool,
) -> list[WhatIfRow]:
    """Write the rows of one decision of a classic group.

    Args:
        state: The group's state, including this round's topics.
        decision: The decision.
        judged: The decision's own columns.
        verdict: Its verdict.
        observation: The round at which it was judged.
        config: Settings.
        crowded: It is not one of the newest.

    Returns:
        Nothing for groups that assign no partitions, for empty groups, and for the first half of a cooperative
        rebalance, whose moves count for the second.
    """
    record = decision.record
    runs = record.protocol
    if not config.what_if_max_size or runs is None or not is_consumer(record) or decision.first_half:
        return []
    if verdict.verdict == NOT_APPLICABLE:
        return []
    row_of = partial(what_if_row, judged, observation, config)
    try:
        why_not = CROWDED if crowded else _why_not(decision, verdict, config)
        counts = _counts(state, decision, verdict, config) if why_not is None else {}
        why_not = why_not or too_large(sum(counts.values()), len(record.members), config)
        if why_not is None:
            with of_decision():
                names = dict.fromkeys((*known_strategies(), runs, configured_name(observation) or runs))
                return _rows(row_of, state, decision, names, verdict, counts, config)
    except AssignorError as error:
        why_not = str(error)[:_LONGEST_REASON]
    return [row_of(runs, runs=True, reason=why_not)]


def with_load_optimal(rows: list[WhatIfRow], group: Group, load: Load | str) -> list[WhatIfRow]:
    """The rows with the bounds of the best that any assignment could do, where one was weighed.

    They come last: where they take more than a decision may cost, only they are missing.
    """
    weighed = [row.load_imbalance for row in rows if row.load_imbalance is not None]
    found = load_imbalance_optimal(group, load) if weighed and not isinstance(load, str) else None
    if found is None:
        return rows
    # One of the strategies may have found a better assignment than that of the bound.
    most = max(found[0], min(found[1], *weighed))
    return [
        msgspec.structs.replace(row, load_imbalance_optimal_min=found[0], load_imbalance_optimal_max=most)
        for row in rows
    ]


def configured_name(observation: GroupObservation) -> str | None:
    """The strategy that the settings name for the group; None where they name none."""
    return observation.configured.strategy if observation.configured is not None else None


def what_if_row(
    judged: Judged,
    observation: GroupObservation,
    config: GroupConfig,
    strategy: str,
    *,
    runs: bool | None,
    library: str | None = None,
    reason: str | None = None,
) -> WhatIfRow:
    """The row of `what_if` for one strategy at one decision, without a result; `reason` is why there is none."""
    configured = configured_name(observation)
    return WhatIfRow(
        cluster=config.cluster,
        group_id=judged.group,
        decision=judged.decision,
        source=judged.source,
        log_partition=partition_column(judged.log_partition),
        record_time=judged.record_time,
        event_date=day_of(judged.record_time),
        incarnation=judged.incarnation,
        generation=judged.generation,
        round=observation.round,
        round_time=observation.time,
        strategy=strategy,
        runs=runs,
        configured=None if configured is None else configured == strategy,
        library=library,
        partitions_moved=None,
        partitions_moved_optimal=None,
        imbalance=None,
        imbalance_optimal=None,
        reason=reason,
        load_imbalance=None,
        load_reason=reason,
    )


def with_result(
    row: WhatIfRow, found: Outcome | AssignorError, bounds: Bounds, load: Load | str, *, known_before: bool
) -> WhatIfRow:
    """The row with the strategy's outcome, or with the reason why there is none.

    `load` is what the outcome was weighed by, or why that is not known.
    """
    row = msgspec.structs.replace(
        row,
        partitions_moved_optimal=bounds.partitions_moved_optimal if known_before else None,
        imbalance_optimal=bounds.imbalance_optimal,
    )
    if isinstance(found, AssignorError):
        reason = str(found)[:_LONGEST_REASON]
        return msgspec.structs.replace(row, reason=reason, load_reason=reason)
    return msgspec.structs.replace(
        row,
        partitions_moved=found.partitions_moved if known_before else None,
        imbalance=found.partitions.imbalance if found.partitions is not None else None,
        reason=None if known_before else UNKNOWN_BEFORE,
        load_imbalance=found.load.imbalance if found.load is not None else None,
        load_reason=load if isinstance(load, str) else None,
    )


def _why_not(decision: ClassicDecision, verdict: Verdict, config: GroupConfig) -> str | None:
    """Why the record allows no what-ifs; None if it does."""
    record = decision.record
    if decision.kind == "migration" or undecodable(record) is not None:
        return verdict.reason
    return too_large(most_partitions(record, decision.before), len(record.members), config)


def most_partitions(record: MembershipRecord, owned: Owned | None) -> int:
    """Number of partitions that members have by a record, or had before, whichever is more."""
    assigned = sum(len(partitions) for member in record.members for _, partitions in member.assigned or ())
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


def _rows(
    row_of: Callable[..., WhatIfRow],
    state: GroupState,
    decision: ClassicDecision,
    names: Iterable[str],
    verdict: Verdict,
    counts: Mapping[str, int],
    config: GroupConfig,
) -> list[WhatIfRow]:
    record, runs = decision.record, decision.record.protocol
    known_before = decision.before is not None
    racks = _racks(state, decision, verdict, counts, config)
    load = known_load(state.load, counts)
    weights = None if isinstance(load, str) else load
    group = Group(tuple(map(subscription_of, record.members)), counts, leader=record.leader)
    had: Assignment = {member: dict(topics) for member, topics in (decision.before or {}).items()}
    if known_before and counts == leader_counts(record):
        current, (_, least) = state.classic.current, state.classic.balance
        is_newest = current is not None and current.record.record == record.record
        least = imbalance_optimal(group) if least is None or not is_newest else least
        bounds = Bounds(decision.partitions_moved_optimal, least)
    else:
        bounds = bounds_of(group, had)
    rows = []
    for name in names:
        library = verdict.library
        found: Outcome | AssignorError
        if name == runs and library is not None:
            found = outcome(group, had, assigned(record), bounds, weights)
        else:
            strategy, as_library = _strategy(name, verdict, decision, config)
            library = None if as_library is None else str(as_library)
            if isinstance(strategy, CannotTell):
                found = strategy
            else:
                asked = group if name == runs else _silent(group)
                now = had if known_before else None
                found = what_if(
                    asked, [strategy], now, library=as_library, partition_racks=racks, load=weights, bounds=bounds
                )[name]
        row = row_of(name, runs=name == runs, library=library)
        rows.append(with_result(row, found, bounds, load, known_before=known_before))
    return with_load_optimal(rows, group, load)


def result_of(
    state: GroupState, decision: ClassicDecision, name: str, verdict: Verdict, config: GroupConfig
) -> tuple[ClientInputs, Outcome] | AssignorError:
    """What a strategy that the group does not run would have decided, and by what; or why nobody can tell.

    What only the other protocol would have carried, such as owned partitions for `sticky`, is taken from the decision
    before.

    Args:
        state: The group's state, including the topics of a round after the decision.
        decision: A decision whose members are decoded.
        name: The strategy.
        verdict: Its verdict on the strategy that runs.
        config: Settings.
    """
    strategy, library = _strategy(name, verdict, decision, config)
    if isinstance(strategy, CannotTell) or library is None:
        return strategy if isinstance(strategy, CannotTell) else CannotTell(UNKNOWN_BEFORE)
    before: Assignment = {member: dict(topics) for member, topics in (decision.before or {}).items()}
    try:
        counts = _counts(state, decision, verdict, config)
        racks = _racks(state, decision, verdict, counts, config)
        record = decision.record
        group = _silent(Group(tuple(map(subscription_of, record.members)), counts, leader=record.leader))
        with of_decision():
            asked = informed(group, name, before, library)
            found = what_if(asked, [strategy], before, library=library, partition_racks=racks)[name]
    except AssignorError as error:
        return error
    return found if isinstance(found, AssignorError) else (ClientInputs(name, asked, library, racks), found)


def _silent(group: Group) -> Group:
    """The group with members that state no previous partitions: what they stated was meant for another strategy."""
    members = [replace(member, owned=(), generation=None, user_data=None) for member in group.members]
    return Group(tuple(members), group.partitions_per_topic, leader=group.leader)


def assigned(record: MembershipRecord) -> Assignment:
    """The assignment of a decision whose members are decoded."""
    return from_topics({member.member_id: member.assigned or () for member in record.members})


def _strategy(
    name: str, verdict: Verdict, decision: ClassicDecision, config: GroupConfig
) -> tuple[Strategy | CannotTell, Library | None]:
    """A strategy, or why its result is not known; and the library that it is computed as.

    The library is the first release of its newest era in the client that the verdict found, or in Java if that is not
    known or does not have the strategy.
    """
    matched = verdict.library or JAVA
    client = JAVA if matched == CUSTOM else parse_library(matched).name
    custom = config.custom.named(name)
    if custom is None and find_strategy(name) is None:
        return CannotTell(f"strategy {name[:100]!r} is not known"), None
    strategy, library = custom or strategy_named(name), Library(CUSTOM)
    if custom is None:
        try:
            era = strategy.era(Library(client))
        except CannotTell:
            era = strategy.era(Library(JAVA))
        library = Library(era.library, era.since)
    if not strategy.deterministic:
        return CannotTell("the strategy is not deterministic: its result is not known"), library
    if decision.before is None and name != decision.record.protocol and name in STICKY:
        return CannotTell(UNKNOWN_BEFORE), library
    return strategy, library
