"""From the tables to transitions: where evaluation stands, and how it continues after a restart.

Little is durable: the alerts that are pending or firing, and the round up to which everything is decided. The rest
follows from the tables: a restart reads what was current when the oldest pending alert began, judges the rounds from
there to the decided one again, silently, and has the same state as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from streaming.alerts.judging.chunks import Chunk, FeedRound
from streaming.alerts.judging.conditions import ByClock, Conditions
from streaming.alerts.judging.firing import Active, AlertKey, FiringState, Observed, RuleRow, Transition, step
from streaming.alerts.judging.rows import EVENTS_BACK_MS, EventFeed, Feed
from streaming.alerts.rules.rules import SILENT_S, Rule
from streaming.alerts.transitions import FIRING, PENDING


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


class Evaluation:
    """The state of one cluster's alerts.

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
        self._newest: FeedRound | None = None
        self._has_begun = False
        self.kept_round: int | None = None
        """The round that the tables record as decided."""

    @property
    def round(self) -> int | None:
        """The newest round that was judged."""
        return self._state.round

    @property
    def newest(self) -> FeedRound | None:
        """The newest round that was read; None before the first."""
        return self._newest

    @property
    def is_silent(self) -> bool:
        """Whether a rule about silence fires."""
        return any(
            self._is_about_silence(rule) and not alert.orphaned for (rule, _), alert in self._state.active.items()
        )

    def by_clock(self, rule: str) -> bool:
        """Whether a rule is judged by the clock."""
        known = self._rules.get(rule)
        return known is not None and known.by_clock

    def _is_about_silence(self, rule: str) -> bool:
        known = self._rules.get(rule)
        return known is not None and SILENT_S in known.when.columns

    def begin(self, remembered: Remembered, now: int) -> None:
        """Continue from the decisions; `judge_new_rounds` then returns what is new.

        Args:
            remembered: The decisions.
            now: The alerter's clock, ms: events that a first start finds count for as long as rounds do.

        A failure here loses nothing: the rules by the clock are still judged, by the previous state.

        Raises:
            LostTrackError: The tables changed meanwhile in a way that requires a new start.
        """
        remembered = replace(remembered, active={key: self._claimed(*key, a) for key, a in remembered.active.items()})
        known = (self._state, self._newest, self._newest_row, self._left)
        if not self._has_begun:
            by_clock = {key: alert for key, alert in remembered.active.items() if self.by_clock(key[0])}
            known = (replace(self._state, active=by_clock), *known[1:])
        try:
            self._events.begin(remembered.versions, now - min(self._look_back_ms, EVENTS_BACK_MS))
            self._begin(remembered)
        except BaseException:
            self._state, self._newest, self._newest_row, self._left = known
            self._found = []
            raise
        self._has_begun = True

    def _claimed(self, rule: str, entity: str, alert: Active) -> Active:
        """The alert; orphaned where its rule was given another view, whose rows never speak of what it is about."""
        known = self._rules.get(rule)
        return alert if known is None or known.may_be_about(entity) else replace(alert, orphaned=True)

    def _begin(self, remembered: Remembered) -> None:
        self.kept_round = remembered.round
        self._state = FiringState(self._cluster, self._rules)
        self._newest_row = self._newest = None
        self._found = []
        pending = [
            a.since_round for a in remembered.active.values() if a.state == PENDING and a.since_round is not None
        ]
        since = None if remembered.round is None else min([remembered.round, *pending])
        latest: dict[AlertKey, RuleRow] = {}
        again = True
        for chunk in self._feed.begin(since, self._look_back_ms):
            if self._newest is None and (since is None or chunk.rounds[0].number != since):
                # Nothing was ever decided, or the round no longer exists.
                self._state = replace(self._state, active=dict(remembered.active))
                again = False
            # A rule that has not judged a row yet must also see the row that replaces it, even if false there.
            for observed in self._judge_all(chunk, {*self._state.active, *remembered.active, *latest}):
                if not again:
                    self._advance(replace(observed, seen=_merged(latest, observed.seen)))
                    latest = {}
                    continue
                latest |= {(seen.rule, seen.subject.entity): seen for seen in observed.seen}
                self._state, _ = step(self._state, observed)
                if observed.round == remembered.round:
                    self._state = replace(self._state, active=_reconciled(self._state, remembered))
                    # A rule may be new, or changed: it judges the current rows once more.
                    again = False
        if again:
            self._state = replace(self._state, active=dict(remembered.active))
        self._left = latest

    def judge_new_rounds(self) -> list[Transition]:
        """Judge the new rounds.

        Raises:
            LostTrackError: Start again with `begin`.
        """
        found, self._found = self._found, []
        chunk = self._feed.poll(None if self._newest is None else self._newest.number)
        if chunk is not None:
            for observed in self._judge_all(chunk, {*self._state.active, *self._left}):
                self._advance(replace(observed, seen=_merged(self._left, observed.seen)))
                self._left = {}
            found, self._found = found + self._found, []
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
        self._state, found = step(self._state, self._conditions.events(rows, self._newest, now))
        return list(found)

    def judge_by_clock(self, now: int, known: ByClock) -> list[Transition]:
        """Judge the rules by the clock (`now` in ms)."""
        observed = self._conditions.by_clock(self._cluster, self._newest_row, self._newest, now, known)
        self._state, found = step(self._state, observed)
        return list(found)

    def _judge_all(self, chunk: Chunk, active: Collection[AlertKey]) -> list[Observed]:
        rounds = chunk.rows["rounds"]
        self._newest = chunk.rounds[-1]
        self._newest_row = rounds.filter(pc.equal(rounds["round"], self._newest.number)).slice(0, 1)
        return self._conditions.rounds(chunk, active)

    def _advance(self, observed: Observed) -> None:
        self._state, found = step(self._state, observed)
        self._found.extend(found)


def _merged(latest: dict[AlertKey, RuleRow], seen: tuple[RuleRow, ...]) -> tuple[RuleRow, ...]:
    new = {(s.rule, s.subject.entity): s for s in seen}
    return tuple((latest | new).values())


def _reconciled(state: FiringState, remembered: Remembered) -> dict[AlertKey, Active]:
    """The alerts as the tables have them; for pending ones, how long they have held comes from the new count."""
    found: dict[AlertKey, Active] = {}
    for key, alert in remembered.active.items():
        again = state.active.get(key)
        if again is None:
            found[key] = alert
        elif alert.state == FIRING:
            found[key] = replace(alert, known=again.known)
        elif again.alert_id == alert.alert_id:
            found[key] = replace(again, state=PENDING)
        else:
            found[key] = alert
    return found
