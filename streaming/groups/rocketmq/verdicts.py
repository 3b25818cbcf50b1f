"""Verdicts on a decision, one per topic: does what the members hold follow from what each of them can have seen?

Each member runs its strategy over its own two views. So what it should hold is not one answer but one per pair of a
broker's list and a name server's route. A member that holds what one of them gives has done as it should; one that
holds anything else has not, as soon as it has had time to rebalance after the last change of a view.

- `identical`: every member holds what a view of it gives, and each queue has one owner.
- `drifted`: a member holds what no view of it explains, or a queue has several owners, or none, although each member
  follows a view of its own: that is no assignment. The findings say what splits them.
- `unverified`: it cannot be computed, because a member does not answer, its strategy or parameters are not known, or
  the strategy fails by a view and what the member holds follows from no other.
- `not_applicable`: there is nothing to judge (`Views.not_applicable`).

`identical` is said as soon as it is true, everything else only after `SETTLED_MS` without any change: a route reaches a
client within 30 s, and its next rebalance comes 20 s later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from assignors import AssignorError
from assignors.rocketmq import AllocateStrategy, MessageQueue
from streaming.groups.classic.drift import judged_of
from streaming.groups.classic.state import ClassicDecision
from streaming.groups.context import Context
from streaming.groups.kind import some
from streaming.groups.rocketmq.allocation import (
    MOST_ENTRIES,
    Computed,
    Queue,
    Runs,
    may_leave_out,
    may_share,
    missing_of,
    options_of,
)
from streaming.groups.rocketmq.round import RocketMQRound
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.views import NO_MEMBERS, Views, grouped
from streaming.groups.rocketmq.what_if import rocketmq_what_if_rows
from streaming.groups.rows import DriftedPartition
from streaming.groups.state import GroupState
from streaming.groups.verdict_inputs import AllocateInputs
from streaming.groups.verdicts import (
    DECLARED,
    DRIFTED,
    IDENTICAL,
    INVARIANT,
    MISPLACED,
    NOT_APPLICABLE,
    UNASSIGNED,
    UNVERIFIED,
    Expected,
    StandingVerdict,
    Verdict,
    against_configured,
    drift_row,
)

SETTLED_MS: Final = 60_000
"""`pollNameServerInterval` (30 s), a cycle of 20 s, and 10 s for what lies between two rounds."""

DOUBLY_ASSIGNED: Final = "doubly_assigned"
NOT_SUBSCRIBED: Final = "not_subscribed"

SUPERSEDED: Final = "the group decided again before it had come to rest"

_MOST_VIEWS: Final = 64
"""Pairs of a list and a route that are computed for one topic. A healthy group has one."""

_NAMED = 3

_FAILS: Final = "by what they see, the strategy fails for members, which keep what they had"

_SPLIT: Final = "each member follows a view of its own, and these differ"

_FILTERED: Final = "the filters exclude all its topics"

_Wrong = dict[Queue, tuple[str, tuple[str, ...]]]
"""Queues with a wrong owner, by broker and number: what is wrong, and who holds them."""

_RANKS = (NOT_APPLICABLE, IDENTICAL, UNVERIFIED, DRIFTED)
"""From nothing to say to bad: a group's verdict is that of its worst topic."""


def write_verdicts(state: GroupState, mine: RocketMQState, seen: RocketMQRound, context: Context) -> None:
    """Judge the newest decision, if it waits and can be judged now, and write its rows of `drift` and `what_if`.

    Args:
        state: The group's state, including this round.
        mine: The part of it that is RocketMQ's.
        seen: The round.
        context: Rows are written here.
    """
    classic, views = state.classic, seen.views
    if not classic.waiting or mine.settling is not None:
        return
    [decision] = classic.waiting
    judged = {topic: _against(seen.configured_strategy, decision, views, topic) for topic in sorted(views.topics)}
    judged = judged or {"": Verdict(NOT_APPLICABLE, NO_MEMBERS if not views.clients else _FILTERED)}
    is_certain = all(verdict.verdict in {IDENTICAL, NOT_APPLICABLE} for verdict in judged.values())
    if not is_certain and seen.unchanged < SETTLED_MS:
        return
    is_judged_again, classic.verdict, classic.waiting = classic.verdict is not None, standing_of(judged.values()), []
    # Verdicts that end those on topics that the group has left: else the last one on each would stand for ever.
    left = Verdict(NOT_APPLICABLE, NO_MEMBERS if not views.clients else "the group has left it")
    ended = {topic: left for topic in mine.judged if topic not in views.topics}
    _write(decision, judged | ended, seen, context)
    mine.judged = tuple(topic for topic, verdict in judged.items() if verdict.verdict != NOT_APPLICABLE)
    if classic.verdict.verdict != NOT_APPLICABLE and not is_judged_again:
        rows = rocketmq_what_if_rows(state, decision, judged_of(decision, context), seen, context.config)
        context.rows.what_if.extend(rows)


def give_up(state: GroupState, mine: RocketMQState, seen: RocketMQRound, context: Context) -> None:
    """Write the verdict of a decision that another one, or the group's end, has overtaken."""
    for decision in state.classic.waiting:
        topics = sorted(mine.facts.routes) if mine.facts is not None else []
        mine.judged = tuple(sorted({*mine.judged, *topics}))
        _write(decision, dict.fromkeys(topics, Verdict(UNVERIFIED, SUPERSEDED)), seen, context)
    state.classic.waiting = []


def standing_of(judged: Collection[Verdict]) -> StandingVerdict:
    """The verdict on the group: that of its worst topic, with the drifted queues of all."""
    worst = max(judged, key=lambda verdict: _RANKS.index(verdict.verdict))
    count = sum(len(verdict.drifted) for verdict in judged)
    return StandingVerdict(worst.verdict, worst.reason, count, worst.basis, worst.own)


def verdict_on_topic(views: Views, topic: str) -> Verdict:
    """Judge one topic by the views of one round, as if they had been so for long enough."""
    why_not = views.not_applicable(topic)
    if why_not is not None:
        return Verdict(NOT_APPLICABLE, why_not)
    if views.is_mapped(topic):
        return Verdict(UNVERIFIED, "a static topic: its logical queues are not asked for")
    found = _Topic(views, topic)
    return replace(found.verdict(), inputs=found.inputs(found.usual()))


def _against(configured: str | None, decision: ClassicDecision, views: Views, topic: str) -> Verdict:
    """The verdict against the configured strategy where members run another one; else their own."""
    own, runs = verdict_on_topic(views, topic), decision.record.protocol
    return against_configured(own, configured, runs, lambda name: _Topic(views, topic).expected_by(name))


class _Topic:
    """One topic of one round, while it is judged."""

    def __init__(self, views: Views, topic: str) -> None:
        self._views, self._topic, self._runs = views, topic, views.runs
        self._lists = views.lists_of(topic)
        self._servers = views.queues_by_server[topic]
        self._subscribed = views.subscribers.get(topic, frozenset())
        self._holders = views.holders[topic]
        held = grouped((client, queue) for queue, holders in self._holders.items() for client in holders)
        self._held = {client: frozenset(queues) for client, queues in held.items()}
        self._candidates = 0
        lists = sorted(set(self._lists.values()), key=lambda clients: (-len(set(clients)), clients))
        routes = sorted(set(self._servers.values()), key=lambda queues: (-len(queues), queues))
        self._pairs = [(queues, clients) for clients in lists for queues in routes if queues]
        self._computed = Computed(topic, self._pairs)

    def verdict(self) -> Verdict:
        """The verdict."""
        broken = self._broken()
        why_not = self._why_not()
        if why_not is not None:
            if self._are_certain(broken):
                return self._drifted(broken, why_not)
            return Verdict(UNVERIFIED, why_not)
        try:
            reasons = {client: self._unexplained(client) for client in self._views.clients}
        except AssignorError as error:
            return Verdict(UNVERIFIED, str(error)[:200])
        odd = {client: reason for client, reason in reasons.items() if reason is not None}
        unsure = [
            client
            for client, reason in odd.items()
            if reason == _FAILS or (client in self._subscribed and not self._runs[client].is_sure)
        ]
        if unsure:
            reason = self._runs[unsure[0]].why_not or f"{odd[unsure[0]]}: {some(unsure)}"
            if self._are_certain(broken):
                return self._drifted(broken, reason)
            return Verdict(UNVERIFIED, reason)
        if odd:
            wrong = self._differences(odd)
            strangers = {queue: of for queue, of in wrong.items() if of[0] == NOT_SUBSCRIBED}
            # A queue with two owners is that first, whichever of them holds it against all views.
            return self._drifted(wrong | broken | strangers, f"{next(iter(odd.values()))}: {some(list(odd))}")
        if broken:
            return self._drifted(broken, _SPLIT)
        return Verdict(IDENTICAL, library=self._library(), candidates=self._candidates)

    def expected_by(self, name: str) -> Expected | str:
        """What another strategy gives by the fullest views, or why nobody can tell."""
        options = options_of(self._views.allocation)
        missing = missing_of(name, self._views.allocation)
        try:
            runs = Runs(name, AllocateStrategy(name, options), is_sure=True)
        except AssignorError as error:
            return str(error)[:200]
        expected = self._expected(runs)
        if missing is not None or not expected:
            return missing or self._why_not() or "the strategy fails for members"
        wrong = {}
        for queue in {*expected, *self._holders}:
            owners = tuple(sorted(self._holders.get(queue, ())))
            if owners != ((expected[queue],) if queue in expected else ()):
                wrong[queue] = (MISPLACED if owners else UNASSIGNED), owners
        return Expected(self._partitions(wrong, expected), self.inputs(runs))

    def usual(self) -> Runs | None:
        """The strategy that most members run."""
        runs = [self._runs[client] for client in sorted(self._subscribed) if client in self._runs]
        names = Counter(one.name for one in runs)
        return max(runs, key=lambda one: names[one.name], default=None)

    def inputs(self, runs: Runs | None) -> AllocateInputs | None:
        """What gives the owners by the fullest views, if members run this."""
        if not self._pairs or runs is None or runs.strategy is None:
            return None
        queues, clients = self._pairs[0]
        listed = tuple([MessageQueue(self._topic, broker, number) for broker, number in queues])
        return AllocateInputs(runs.name, listed, clients, options_of(self._views.allocation))

    def _library(self) -> str:
        versions = {f"{(m.language or 'java').lower()}:{_release(m.version)}" for m in self._views.told.values()}
        return ", ".join(sorted(versions)[:_NAMED])

    def _why_not(self) -> str | None:
        """Why owners cannot be computed; None if they can."""
        if self._views.observation.cut:
            return f"the probe left out parts of the group: {', '.join(self._views.observation.cut)}"
        # One that has never told its topics may have a share of any.
        subscriptions = [(client, self._views.subscriptions[client]) for client in self._views.unknown]
        unknown = [client for client, topics in subscriptions if topics is None or self._topic in topics]
        if unknown:
            answers = {member.client_id: member.answer for member in self._views.observation.members}
            told = sorted({answers.get(client, "not asked") for client in unknown})
            return f"members do not tell what they hold ({', '.join(told)}): {some(unknown)}"
        unasked = sorted(self._views.brokers_of[self._topic] - self._views.lists.keys())
        if unasked:
            return f"brokers did not tell their list of members: {some(unasked)}"
        if not self._pairs:
            return "no name server tells queues that can be read, or no broker of it tells members"
        entries = sum(len(queues) + len(clients) for queues, clients in self._pairs)
        if len(self._pairs) > _MOST_VIEWS or entries > MOST_ENTRIES:
            return f"more than {_MOST_VIEWS} views, or {MOST_ENTRIES:,} queues and members in them: not recomputed"
        for client in sorted(self._subscribed):
            if self._runs[client].strategy is None:
                return self._runs[client].why_not
        return None

    def _unexplained(self, client: str) -> str | None:
        """Why what a member holds follows from none of its views; None if it does from one.

        A call that fails leaves what the client had, which may be anything: then nobody can tell (`_FAILS`).
        """
        holds = self._held.get(client, frozenset())
        if client not in self._subscribed:
            return "members hold queues of a topic that they do not subscribe to" if holds else None
        is_orderly = self._views.told[client].orderly
        fails = False
        for view in range(len(self._pairs)):
            share = self._computed.share(self._runs[client], client, view)
            self._candidates += 1
            if share is None:
                fails = True
            # An orderly client takes only queues that it could lock.
            elif share == holds or (is_orderly and holds < share and self._are_locked(share - holds)):
                return None
        return _FAILS if fails else "members hold what no broker's list and no name server's route explain"

    def _are_locked(self, queues: frozenset[Queue]) -> bool:
        """Whether other members hold these queues: then their locks keep an orderly client from them."""
        return all(self._holders.get(queue) for queue in queues)

    def _broken(self) -> _Wrong:
        """Queues with several owners, or none, by what their holders say."""
        names = self._views.strategies_of(self._topic)
        found: _Wrong = {}
        if not may_share(names):
            found.update((queue, (DOUBLY_ASSIGNED, of)) for queue, of in self._holders.items() if len(of) > 1)
        # A client id that two processes use holds each of its queues twice; only the list shows it.
        if not may_leave_out(names):
            found.update((queue, (UNASSIGNED, ())) for queue in self._views.orphans(self._topic))
        return found

    def _are_certain(self, broken: _Wrong) -> bool:
        """Whether broken owners are a fact although not all is known: two members say that they hold a queue."""
        told = self._views.told
        return any(sum(client in told for client in owners) > 1 for _, owners in broken.values())

    def _differences(self, odd: Mapping[str, str]) -> _Wrong:
        """Queues that members hold or lack against all views."""
        found: _Wrong = {}
        for client in odd:
            holds = self._held.get(client, frozenset())
            if client not in self._subscribed:
                found.update((queue, (NOT_SUBSCRIBED, self._holders[queue])) for queue in holds)
                continue
            share = self._computed.share(self._runs[client], client, 0) or frozenset()
            for queue in holds ^ share:
                owners = self._holders.get(queue, ())
                found[queue] = (MISPLACED if owners else UNASSIGNED), owners
        return found

    def _drifted(self, found: _Wrong, reason: str) -> Verdict:
        basis = INVARIANT if any(kind == DOUBLY_ASSIGNED for kind, _ in found.values()) else DECLARED
        drifted = self._partitions(found, self._expected(self.usual()))
        return Verdict(DRIFTED, reason, basis, candidates=self._candidates, drifted=drifted)

    def _partitions(self, found: _Wrong, expected: Mapping[Queue, str]) -> tuple[DriftedPartition, ...]:
        return tuple(
            DriftedPartition(self._topic, number, kind, expected.get((broker, number)), owners, broker)
            for (broker, number), (kind, owners) in sorted(found.items())
        )

    def _expected(self, runs: Runs | None) -> dict[Queue, str]:
        """The owner of each queue by the fullest views; empty where that is not known."""
        if not self._pairs or runs is None or runs.strategy is None:
            return {}
        found: dict[Queue, str] = {}
        try:
            for client in dict.fromkeys(self._pairs[0][1]):
                share = self._computed.share(runs, client, 0)
                found.update(dict.fromkeys(share or (), client))
        except AssignorError:
            return {}
        return found


def _release(version: str | None) -> str:
    """A client's version as other releases are written: "5.5.0" for "V5_5_0"."""
    if version is None:
        return "?"
    return version.removeprefix("V").replace("_", ".")


def _write(decision: ClassicDecision, verdicts: Mapping[str, Verdict], seen: RocketMQRound, context: Context) -> None:
    judged = judged_of(decision, context)
    context.rows.drift.extend(
        drift_row(replace(judged, topic=topic or None), verdict, seen) for topic, verdict in verdicts.items()
    )
