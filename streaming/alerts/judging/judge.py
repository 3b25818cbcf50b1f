"""From the tables to transitions: where evaluation stands, and how it continues after a restart.

Little is durable: the alerts that are pending or firing, and the round up to which everything is decided. The rest
follows from the tables: a restart reads what was current when the oldest pending alert began, judges the rounds from
there to the decided one again, silently, and has the same state as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.alerts.judging.conditions import Conditions
from streaming.alerts.judging.feed import EVENTS_BACK_MS, Chunk, EventFeed, Feed
from streaming.alerts.judging.firing import Active, AlertKey, FeedRound, FiringState, RuleRow, step
from streaming.alerts.rules.rules import SILENT_S, Rule
from streaming.alerts.transitions import FIRING, PENDING, Transition


@dataclass(frozen=True, slots=True)
class Remembered:
    """Earlier decisions, as the tables have them.

    Attributes:
        round: The round up to which everything is decided; None when nothing ever was.
        active: Alerts that are pending or firing.
        versions: By table of events, the version up to which it was judged.
    """

    round: int | None
    active: Mapping[AlertKey, Active]
    versions: Mapping[str, int] = field(default_factory=dict)


class Judge:
    """The judge of one cluster's alerts.

    Call `begin` once, then `judge_new_rounds`, `judge_new_events` and `judge_by_clock` repeatedly.
    """

    def __init__(
        self,
        cluster: str,
        rules: Sequence[Rule],
        conditions: Conditions,
        feed: Feed,
        events: EventFeed,
        look_back_ms: int,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            cluster: The cluster.
            rules: The rules.
            conditions: Evaluates them over rows.
            feed: Returns the cluster's rows.
            events: Returns its events.
            look_back_ms: How far back the first start on a lake looks.
        """
        self._rules = {rule.name: rule for rule in rules}
        self._conditions, self._feed, self._events = conditions, feed, events
        self._look_back_ms = look_back_ms
        self._cluster = cluster
        self._state = FiringState(cluster, self._rules)
        self._found: list[Transition] = []
        self._left: dict[AlertKey, RuleRow] = {}
        self._newest_row: pa.Table | None = None
        self._has_begun = False
        self.kept_round: int | None = None
        """The round that the tables record as decided."""

    @property
    def round(self) -> int | None:
        """Number of the newest round that was judged."""
        if self.newest is None:
            return None
        return self.newest.number

    @property
    def newest(self) -> FeedRound | None:
        """The newest round that was judged; None before the first."""
        return self._state.newest

    @property
    def active(self) -> int:
        """Alerts that are pending or firing."""
        return len(self._state.active)

    @property
    def is_silent(self) -> bool:
        """Whether a rule about silence fires."""
        about = {name for name, rule in self._rules.items() if SILENT_S in rule.when.columns}
        return any(rule in about and not known.orphaned for (rule, _), known in self._state.active.items())

    def by_clock(self, rule: str) -> bool:
        """Whether a rule is judged by the clock."""
        return rule in self._rules and self._rules[rule].by_clock

    def begin(self, remembered: Remembered, now: int) -> None:
        """Continue from the decisions; `judge_new_rounds` then returns what is new.

        Args:
            remembered: The decisions.
            now: The alerter's clock, ms: events that a first start finds count for as long as rounds do.

        A failure here loses nothing: the rules by the clock are still judged, by the previous state.

        Raises:
            LakeUnreadableError: A table cannot be read.
        """
        active = {key: self._claimed(*key, known) for key, known in remembered.active.items()}
        if not self._has_begun:
            self._has_begun = True
            by_clock = {key: known for key, known in active.items() if self.by_clock(key[0])}
            self._state = replace(self._state, active=by_clock)
        self._events.begin(remembered.versions, now - min(self._look_back_ms, EVENTS_BACK_MS))
        self._begin(remembered.round, active)
        self.kept_round = remembered.round

    def _claimed(self, rule: str, entity: str, known: Active) -> Active:
        """The alert; orphaned where its rule was given another view, whose rows never speak of what it is about."""
        now = self._rules.get(rule)
        if now is None or now.may_be_about(entity):
            return known
        return replace(known, orphaned=True)

    def _begin(self, decided: int | None, active: Mapping[AlertKey, Active]) -> None:
        pending = [
            known.alert.round
            for known in active.values()
            if known.alert.state == PENDING and known.alert.round is not None
        ]
        since = None if decided is None else min([decided, *pending])
        state, latest = FiringState(self._cluster, self._rules), dict[AlertKey, RuleRow]()
        found: list[Transition] = []
        newest_row: pa.Table | None = None
        # Rounds up to the decided one are judged once more, in silence.
        again = True
        for chunk in self._feed.begin(since, self._look_back_ms):
            if state.newest is None and (since is None or chunk.rounds[0].number != since):
                # Nothing was ever decided, or the round no longer exists.
                state, again = replace(state, active=active), False
            newest_row = _newest_row(chunk)
            # A rule that has not judged a row yet must also see the row that replaces it, even if false there.
            for observed in self._conditions.rounds(chunk, {*state.active, *active, *latest}):
                if not again:
                    state, news = step(state, replace(observed, seen=_merged(latest, observed.seen)))
                    found += news
                    latest = {}
                    continue
                latest |= {seen.key: seen for seen in observed.seen}
                state, _ = step(state, observed)
                if state.newest is not None and state.newest.number == decided:
                    # A rule may be new, or changed: it judges the current rows once more.
                    state, again = replace(state, active=_reconciled(state, active)), False
        if again:
            state = replace(state, active=active)
        self._state, self._newest_row, self._left, self._found = state, newest_row, latest, found

    def judge_new_rounds(self) -> list[Transition]:
        """Judge the new rounds.

        Raises:
            LakeUnreadableError: Start again with `begin`.
        """
        chunk = self._feed.poll(self.round)
        if chunk is not None:
            self._newest_row = _newest_row(chunk)
            for observed in self._conditions.rounds(chunk, {*self._state.active, *self._left}):
                self._state, news = step(self._state, replace(observed, seen=_merged(self._left, observed.seen)))
                self._found += news
                self._left = {}
        found, self._found = self._found, []
        return found

    @property
    def versions(self) -> dict[str, int]:
        """By table of events, the version up to which it was judged."""
        return self._events.versions

    def judge_new_events(self, now: int) -> list[Transition]:
        """Judge the new events (`now` in ms).

        Raises:
            LakeUnreadableError: Start again with `begin`.
        """
        rows = self._events.poll()
        if not rows:
            return []
        self._state, found = step(self._state, self._conditions.events(rows, self.newest, now))
        return list(found)

    def judge_by_clock(self, now: int, known: Mapping[str, Any]) -> list[Transition]:
        """Judge the rules by the clock (`now` in ms) and by what the alerter knows itself, as `Conditions.by_clock`."""
        observed = self._conditions.by_clock(self._cluster, self._newest_row, self.newest, now, known)
        self._state, found = step(self._state, observed)
        return list(found)


def _newest_row(chunk: Chunk) -> pa.Table:
    rounds = chunk.rows["rounds"]
    return rounds.filter(pc.equal(rounds["round"], chunk.rounds[-1].number)).slice(0, 1)


def _merged(latest: Mapping[AlertKey, RuleRow], seen: tuple[RuleRow, ...]) -> tuple[RuleRow, ...]:
    return tuple({**latest, **{one.key: one for one in seen}}.values())


def _reconciled(state: FiringState, active: Mapping[AlertKey, Active]) -> dict[AlertKey, Active]:
    """The alerts as the tables have them; for pending ones, how long they have held comes from the new count."""
    found = dict(active)
    for key, known in active.items():
        again = state.active.get(key)
        if again is None:
            continue
        if known.alert.state == FIRING:
            found[key] = replace(known, known=again.known)
        elif again.alert.alert_id == known.alert.alert_id:
            shown = again.alert
            alert = replace(known.alert, value=shown.value, message=shown.message, labels=shown.labels)
            found[key] = replace(again, alert=alert)
    return found
