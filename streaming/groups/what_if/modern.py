"""Rows of `what_if` for modern groups: what each of the broker's assignors would have given at one decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from assignors import Assignment, AssignorError, CannotTell, Group, Load, TooMuchWork, from_topics, same
from assignors.brokers import ServerGroup, assign_on_server, known_server_strategies
from assignors.measures import bounds_of, outcome
from streaming.groups.context import GroupConfig, of_decision
from streaming.groups.load.rates import known_load
from streaming.groups.modern.group import ModernDecision
from streaming.groups.modern.members import names_at
from streaming.groups.modern.recompute import ERAS, PREFIX, asked_of, before_target, group_of_target, orders_of
from streaming.groups.rows import WhatIfRow
from streaming.groups.state import GroupState
from streaming.groups.verdicts import IDENTICAL, NOT_APPLICABLE, Judged, Verdict
from streaming.groups.what_if.classic import (
    CROWDED,
    too_large,
    what_if_row,
    with_load_optimal,
    with_result,
)
from streaming.records import GroupObservation

_NAMES = tuple([name.removeprefix(PREFIX) for name in known_server_strategies()])


def modern_what_if_rows(
    state: GroupState,
    decision: ModernDecision,
    judged: Judged,
    verdict: Verdict,
    observation: GroupObservation,
    config: GroupConfig,
    *,
    crowded: bool,
) -> list[WhatIfRow]:
    """Write the rows of one decision: one for each built-in assignor, and for any other that members request.

    The arguments are those of `what_if_rows`. Share groups, streams groups and empty groups get no rows.
    """
    if not config.what_if_max_size or verdict.verdict == NOT_APPLICABLE:
        return []
    partitions = sum(len(numbers) for target in decision.targets.values() for _, numbers in target)
    why_not = CROWDED if crowded else too_large(partitions, len(decision.members), config)
    asked = asked_of(state, decision, config) if why_not is None else why_not
    row_of = partial(what_if_row, judged, observation, config)
    try:
        with of_decision():
            rows = asked if isinstance(asked, str) else _rows(state, decision, verdict, asked, row_of)
    except TooMuchWork as error:
        rows = error.reason
    if isinstance(rows, str):
        return [row_of(name, runs=_asks(name, decision), reason=rows) for name in _names(decision)]
    return rows


def _names(decision: ModernDecision) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_NAMES, *decision.assignors)))


def _asks(name: str, decision: ModernDecision) -> bool | None:
    """Whether members request this assignor; None if they request none, or several."""
    return name in decision.assignors if len(decision.assignors) == 1 else None


def _rows(
    state: GroupState,
    decision: ModernDecision,
    verdict: Verdict,
    asked: ServerGroup,
    row_of: Callable[..., WhatIfRow],
) -> list[WhatIfRow] | str:
    """The rows, or why there are none."""
    names = names_at(state, decision)
    group = group_of_target(decision, names)
    had = before_target(decision)
    if group is None or had is None:
        return "the topics of its target are not known, or have no such partitions"
    target = from_topics(decision.targets)
    fits = verdict.on_running == IDENTICAL
    release, found = _answers(decision, asked, target, fits=fits)
    gives = _gives(decision, asked, target) if fits else frozenset()
    bounds = bounds_of(group, had)
    load = _load(state, group, names)
    weights = None if isinstance(load, str) else load
    rows = []
    for name, answer in found.items():
        runs = _asks(name, decision)
        if runs is None and len(gives) == 1:
            runs = name in gives
        library = None if name not in _NAMES else verdict.library if runs and fits else f"broker:{release}"
        measured = answer if isinstance(answer, AssignorError) else outcome(group, had, answer, bounds, weights)
        rows.append(with_result(row_of(name, runs=runs, library=library), measured, bounds, load, known_before=True))
    return with_load_optimal(rows, group, load)


def _load(state: GroupState, group: Group, names: Mapping[str, str]) -> Load | str:
    """As `known_load`, by topic id."""
    counts = group.partitions_per_topic
    if not counts.keys() <= names.keys():
        return "the names of its topics are not known"
    load = known_load(state.load, {names[topic_id]: count for topic_id, count in counts.items()})
    return load if isinstance(load, str) else {topic_id: load[names[topic_id]] for topic_id in counts}


def _answers(
    decision: ModernDecision, asked: ServerGroup, target: Assignment, *, fits: bool
) -> tuple[str, dict[str, Assignment | AssignorError]]:
    """The result of each assignor, in the newest release in which an assignor that may run gives the target.

    Args:
        decision: The decision.
        asked: The assignor's input.
        target: The decision's target.
        fits: There is such a release, for some order of the members. Otherwise the newest release is used.
    """
    group, release = asked, ERAS[-1]
    if fits:
        fitting = (
            (turned, era)
            for turned in orders_of(decision, asked)
            for era in reversed(ERAS)
            if any(_is(_answer(name, turned, era), target) for name in decision.assignors or _NAMES)
        )
        group, release = next(fitting, (asked, ERAS[-1]))
    return release, {name: _answer(name, group, release) for name in _names(decision)}


def _gives(decision: ModernDecision, asked: ServerGroup, target: Assignment) -> frozenset[str]:
    """The assignors that may have made the target in some release: they give it, or their result is unknown."""
    if len(decision.assignors) == 1:
        return frozenset(decision.assignors)
    return frozenset(
        name
        for name in decision.assignors or _NAMES
        if any(
            isinstance(answer := _answer(name, turned, era), CannotTell) or _is(answer, target)
            for turned in orders_of(decision, asked)
            for era in ERAS
        )
    )


def _is(answer: Assignment | AssignorError, target: Assignment) -> bool:
    return not isinstance(answer, AssignorError) and same(answer, target)


def _answer(name: str, asked: ServerGroup, release: str) -> Assignment | AssignorError:
    if name not in _NAMES:
        return CannotTell(f"assignor {name[:100]!r} is not known")
    try:
        return assign_on_server(f"{PREFIX}{name}", asked, release)
    except TooMuchWork:
        raise  # a partial search must not look like a complete one with a single match
    except AssignorError as error:
        return error
