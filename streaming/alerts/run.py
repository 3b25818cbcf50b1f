"""The alerter as a process: reads the tables, decides, writes, hands to its targets' queues, until asked to stop."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

from streaming.alerts.decisions import Decisions, Deliveries, KnownDeliveries
from streaming.alerts.delivery.items import Delivery, RetryPolicy, Sender
from streaming.alerts.delivery.messages import Wording
from streaming.alerts.delivery.queues import DeliveryQueue
from streaming.alerts.exceptions import AnotherAlerterError
from streaming.alerts.judging.conditions import Conditions
from streaming.alerts.judging.feed import EventFeed, Feed
from streaming.alerts.judging.itself import PASSING, Liveness, NewestRound, Trouble, Upkeep, one_line
from streaming.alerts.judging.judge import Judge
from streaming.alerts.routes import Routing
from streaming.alerts.rules.rules import MOST_FILES, SILENT_S, UNJUDGED_REASON, UNJUDGED_S, Rule
from streaming.alerts.transitions import FIRING, Transition
from streaming.config import Settings
from streaming.lifecycle import room_log
from streaming.notes import NoteBook
from streaming.process import Lease, LeaseLostError

_LOG = room_log(__name__)

_LATELY_S = 600.0
"""For so long after it took over, an alerter looks for decisions that its predecessor still made."""

# The position of the evaluation is written with every transition, and otherwise this often: a restart repeats no more
# rounds than these. Every round would be 8,640 commits a day for nothing.
_KEEP_PLACE_MS = 600_000


class Alerter:
    """One cluster's alerts. A context manager; call `poll` repeatedly, from one thread.

    A poll does in this order: write the queues' outcomes, judge new rounds, judge the rules by the clock, commit the
    transitions, hand them to the queues. Each step is guarded by itself: its failure holds up no other. So what cannot
    be written is delivered all the same, and written later with the same id.
    """

    def __init__(
        self,
        settings: Settings,
        rules: Sequence[Rule],
        targets: Mapping[str, Sender],
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        turn: Lease | None = None,
    ) -> None:
        """Prepare; the tables are opened by the first `poll`.

        Args:
            settings: All settings.
            rules: The rules.
            targets: Senders of messages, by name of the target.
            clock: Seconds since the epoch.
            steady: Seconds that no change of the clock affects.
            turn: Whose turn it is, where another machine may run an alerter of the cluster; None for always ours.

        Raises:
            SetupError: The routing names a target or team that there is not.
        """
        self._turn, self._is_ours, self._began_at = turn, turn is None, steady()
        self._settings, self._alerts = settings, settings.alerts
        self._clock, self._steady = clock, steady
        self._decisions: Decisions | None = None
        self._deliveries: Deliveries | None = None
        conditions = Conditions(rules)
        feed = Feed(settings.lake, settings.cluster, conditions.columns(), settings.job.heartbeat_ms)
        events = EventFeed(settings.lake, settings.cluster, conditions.columns(of_events=True))
        self._judge = Judge(settings.cluster, rules, conditions, feed, events, self._alerts.look_back_ms)
        self._rounds = NewestRound(settings.lake, settings.cluster)
        self._upkeep = Upkeep(settings.lake, steady)
        self._counts_files = any(MOST_FILES in rule.columns for rule in rules)
        self._liveness = Liveness(steady, self._alerts.start_grace_ms / 1000)
        self._placed_at = self._now_ms()
        self._behind = True
        self._offered = 0
        # Written earlier, but not delivered to anybody.
        self._missed: list[Transition] = []
        self._trouble = Trouble(steady)
        self._beside = Trouble(steady, "mutes", "read")
        # Decided but not written yet; and the ids of those that were handed to the queues all the same.
        self._unwritten: list[Transition] = []
        self._given: set[str] = set()
        self._results: SimpleQueue[Delivery] = SimpleQueue()
        self.wake = threading.Event()
        """Set when a queue has an outcome to write."""
        self._routing = Routing(self._alerts, settings.owners, targets)
        wording = Wording(
            owners=settings.owners,
            public_url=settings.serve.public_url,
            runbooks={rule.name: rule.runbook_url for rule in rules if rule.runbook_url},
        )
        retry = RetryPolicy(self._alerts.longest_retry_ms / 1000, self._alerts.give_up_after_ms)
        above = self._alerts.digest_above
        self._queues = [
            DeliveryQueue(name, sender, retry, self._results, self.wake, above, wording, self._routing, clock)
            for name, sender in targets.items()
        ]
        self._notes = NoteBook(settings.lake, settings.cluster)
        self._beaten: int | None = None

    def __enter__(self) -> Alerter:
        for queue in self._queues:
            queue.start()
        return self

    def __exit__(self, *_: object) -> None:
        for queue in self._queues:
            queue.stop()
        until = time.monotonic() + 2 * self._alerts.timeout_ms / 1000  # one to connect, one to answer
        for queue in self._queues:
            queue.join(until - time.monotonic())
        try:
            self._write_results()
            if not self._behind:
                self._commit(force=True)
        except PASSING as error:
            _LOG.warning("the last deliveries could not be written: %s", one_line(error))
        finally:
            # Otherwise the next alerter waits for `TTL_S`, also this process when it begins again.
            if self._turn is not None:
                self._turn.release()

    @property
    def idle(self) -> bool:
        """Whether nothing is left to deliver now, nor an outcome to write."""
        return all(queue.idle for queue in self._queues) and self._results.empty()

    @property
    def settled(self) -> bool:
        """Whether this alerter works, no alert is pending or firing, and nothing is left to write or to deliver."""
        return self._is_ours and not self._behind and not (self._judge.active or self._unwritten) and self.idle

    def poll(self) -> list[Transition]:
        """Poll once; returns the decisions. Temporary failures are logged, and retried at the next poll.

        Raises:
            LeaseLostError: Another alerter has taken over.
        """
        if not self._works():
            return []
        attempt = self._trouble.attempt
        attempt(self._write_results, None)
        attempt(lambda: self._liveness.saw(self._rounds.read()), None)
        if self._counts_files:
            self._upkeep.count_files()
        self._behind = not attempt(self._judge_rounds, False) or self._behind
        self._judge_by_clock()
        missed = [one for one in self._missed if one.transition_id not in self._given]
        decided = [one for one in self._unwritten if one.transition_id not in self._given]
        self._missed = []
        self._given |= {one.transition_id for one in decided}
        was_behind = self._behind
        attempt(self._commit, None)
        self._trouble.end_poll()
        if self._behind and not was_behind:
            # Another alerter has decided: what follows from its decisions is judged at the next poll.
            decided = []
        for one in decided:
            _log_decided(one)
        # Mutes hold messages back: that they cannot be read does not say that nothing is judged.
        self._beside.attempt(self._read_notes, None)
        self._beside.end_poll()
        is_fresh = self._is_fresh()
        for queue in self._queues:
            queue.offer(missed + decided, is_fresh)
        self._beat()
        return decided

    def _works(self) -> bool:
        """Whether it is this alerter's turn."""
        if self._turn is None:
            return True
        try:
            # While the lake does not answer, the one that worked goes on: it must be able to say so. So does one that
            # has never seen another.
            works = self._beside.attempt(self._turn.poll, self._is_ours or not self._turn.holder)
            if works and not self._is_ours:
                self._began_at = self._steady()
            self._is_ours = works
        except LeaseLostError:
            self._behind, self._is_ours = True, False
            raise
        return self._is_ours

    def _beat(self) -> None:
        """Let the targets know of a healthy poll, which has judged a round that none before it has."""
        judged = self._judge.round
        if self._behind or self._trouble.reason is not None or judged is None or judged == self._beaten:
            return
        self._beaten = judged
        for queue in self._queues:
            queue.judged()

    def run(self, stop: threading.Event, until: Callable[[Alerter], bool] = lambda _: False) -> bool:
        """Poll until asked to stop; at once again when a queue has an outcome to write.

        Args:
            stop: Asks to stop.
            until: Asked after each poll whether this was the last one.

        Returns:
            False when the tables could not be judged for so long that everything must be opened again, and when another
            alerter has taken over.
        """
        while not stop.is_set():
            self.wake.clear()
            try:
                self.poll()
            except LeaseLostError as error:
                _LOG.error("%s", error)
                return False
            if self._trouble.lasts_s * 1000 > self._alerts.trouble_exit_ms:
                _LOG.error(
                    "the tables could not be evaluated for %.0f s (%s): everything is opened again",
                    self._trouble.lasts_s,
                    self._trouble.reason,
                )
                return False
            if until(self):
                break
            self.wake.wait(self._alerts.poll_ms / 1000)
        return True

    def _judge_rounds(self) -> bool:
        """Judge the new rounds; True when that is done."""
        if self._decisions is None or self._deliveries is None:
            self._decisions, self._deliveries = self._open()
        # A commit can report failure after it was made.
        took_over = self._turn is not None and self._steady() - self._began_at < _LATELY_S
        is_in_doubt = bool(self._unwritten) or took_over
        self._behind = self._behind or (is_in_doubt and self._decisions.have_moved())
        if self._behind:
            self._judge.begin(self._decisions.remember(), self._now_ms())
            # The unwritten transitions follow from the tables once more, with the same ids.
            self._unwritten = []
            # Those that were committed after all have not been delivered to anybody yet.
            if self._decisions.number > self._offered:
                self._missed += self._decisions.after(self._offered)
                self._offered = self._decisions.number
            self._behind = False
        self._add(self._judge.judge_new_rounds())
        self._liveness.judged(self._judge.newest)
        self._add(self._judge.judge_new_events(self._now_ms()))
        return True

    def _judge_by_clock(self) -> None:
        # A silence that fired before our start goes on until a round comes: nobody here knows how long it has lasted.
        goes_on = self._judge.is_silent and not self._liveness.has_seen_new
        silent_s = math.inf if goes_on else self._liveness.silent_s
        trouble = {UNJUDGED_S: self._trouble.lasts_s, UNJUDGED_REASON: self._trouble.reason}
        known = {SILENT_S: silent_s, **trouble, **self._upkeep.largest}
        self._add(self._judge.judge_by_clock(self._now_ms(), known))

    def _add(self, found: Sequence[Transition]) -> None:
        oldest = -math.inf if self._is_present() else self._now_ms() - self._alerts.late_after_ms
        self._unwritten += [
            replace(one, late=not self._judge.by_clock(one.rule) and (one.round_time or self._now_ms()) < oldest)
            for one in found
        ]

    def _is_present(self) -> bool:
        return self._liveness.is_present(self._alerts.late_after_ms / 1000)

    def _commit(self, *, force: bool = False) -> None:
        if self._decisions is None:
            return
        now = self._now_ms()
        moved = self._judge.round is not None and self._judge.round != self._judge.kept_round
        due = moved and (force or now - self._placed_at > _KEEP_PLACE_MS or now < self._placed_at)
        if not self._unwritten and not due:
            return
        try:
            self._decisions.commit(self._unwritten, self._judge.round, now, self._judge.versions)
        except AnotherAlerterError:
            self._behind = True
            self._given.clear()
            raise
        self._offered = self._decisions.number
        self._unwritten = []
        self._given.clear()
        self._judge.kept_round = self._judge.round
        self._placed_at = now

    def _is_fresh(self) -> bool:
        """Whether alerts of the newest round are still true: it shows the present, by the clock or by its pace."""
        newest = self._judge.newest
        if self._behind or newest is None:
            return False
        return self._is_present() or self._now_ms() - newest.time <= self._alerts.late_after_ms

    def _open(self) -> tuple[Decisions, Deliveries]:
        """Open the alerter's own tables, and offer what an earlier run has left."""
        decisions = Decisions(self._settings.lake, self._settings.cluster)
        deliveries = Deliveries(self._settings.lake, self._settings.cluster)
        now = self._now_ms()
        firing = {known.alert.alert_id for known in decisions.remember().active.values()}
        decided = decisions.since(now - self._alerts.give_up_after_ms)
        # Before anything is offered: a mute that was not read holds nothing back.
        self._beside.attempt(self._read_notes, None)
        names = [queue.name for queue in self._queues]
        known = deliveries.know(names, [one.transition_id for one in decided], now)
        self._offered = decisions.number
        self._resume(known, decided, firing)
        return decisions, deliveries

    def _resume(
        self, known: Mapping[str, KnownDeliveries], decided: Sequence[Transition], firing: Collection[str]
    ) -> None:
        """Take what earlier runs have sent, and offer what they have left.

        What fires now is also offered to targets to which it was not routed when an earlier run asked.

        Args:
            known: What the tables have about each target.
            decided: Transitions, in order, with those of all alerts that fire now.
            firing: Occurrences that fire now.
        """
        for queue in self._queues:
            of_target = known[queue.name]
            queue.remember(of_target.sent, decided)
            left = of_target.left(decided, firing)
            if left:
                sent = sum(one.notifies for one in left)
                _LOG.info("%d earlier transitions still have to be sent to %s", sent, queue.name)
            queue.offer(left, fresh=False)
            refusal = partial(self._routing.refusal, queue.name)
            rerouted = of_target.rerouted(decided, firing, refusal)
            if rerouted:
                _LOG.info("%d alerts that fire are sent to %s now: they are routed to it", len(rerouted), queue.name)
            # Late: whether they still fire is not known before new rounds are judged.
            queue.offer(rerouted, fresh=False, late=True)

    def _read_notes(self) -> None:
        """Read the mutes again; where the tables cannot be read, what was known goes on."""
        self._routing.mutes = self._notes.mutes()

    def _write_results(self) -> None:
        if self._deliveries is None:
            return
        results: list[Delivery] = []
        while not self._results.empty():
            results.append(self._results.get())
        if not results:
            return
        try:
            self._deliveries.write(results)
        except PASSING:
            for result in results:
                self._results.put(result)
            raise

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


def _log_decided(transition: Transition) -> None:
    level = logging.WARNING if transition.state == FIRING else logging.INFO
    if not transition.notifies:
        level = logging.DEBUG
    when = " (found late)" if transition.late else ""
    _LOG.log(level, "%s %s%s: %s", transition.state, transition.rule, when, transition.message)
