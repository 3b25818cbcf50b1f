"""Everything that leaves the alerter: the delivery queues, what holds them back, and messages about no single alert."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue

from streaming.alerts.circumstances import Happened
from streaming.alerts.decisions import Decisions, TransitionRow
from streaming.alerts.delivery.deliveries import KnownDeliveries
from streaming.alerts.delivery.gate import Gate, Present
from streaming.alerts.delivery.items import Delivery, RetryPolicy
from streaming.alerts.delivery.messages import Message
from streaming.alerts.delivery.outcome import INCIDENTS, PEOPLE
from streaming.alerts.delivery.queues import DeliveryQueue
from streaming.alerts.delivery.resending import Sender
from streaming.alerts.delivery.wording import Wording
from streaming.alerts.first_start import FirstStart
from streaming.alerts.first_summary import KIND as SUMMARY
from streaming.alerts.first_summary import key_of, reminder_of, summary_of
from streaming.alerts.judging.firing import Active, AlertKey
from streaming.alerts.reports import KIND as REPORT
from streaming.alerts.reports import due, report_of
from streaming.alerts.routing.routes import Routing
from streaming.alerts.rules.rules import Rule
from streaming.config import Settings
from streaming.lifecycle import room_log
from streaming.notes import Mark, NoteBook

_LOG = room_log(__name__)

# Circumstances are read for so many alerts at once; more are a digest, which has no room for them.
_MOST_EXPLAINED = 200


def wording_of(settings: Settings, rules: Iterable[Rule]) -> Wording:
    """What messages are made with, by the settings."""
    rules = tuple(rules)
    return Wording(
        owners=settings.owners,
        public_url=settings.serve.public_url,
        # (RocketMQ has none of Kafka's tools.)
        bootstrap=settings.kafka.bootstrap_servers if settings.rocketmq is None else None,
        has_login=settings.kafka.security_protocol != "PLAINTEXT",
        tables={rule.name: rule.table.name for rule in rules},
        runbooks={rule.name: rule.route.runbook_url for rule in rules if rule.route.runbook_url},
    )


class Outgoing:
    """The targets of one alerter. Call from one thread; `open` first, then `look` before each `offer`."""

    def __init__(
        self,
        settings: Settings,
        rules: Sequence[Rule],
        targets: Mapping[str, Sender],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare.

        Args:
            settings: All settings.
            rules: The rules.
            targets: Senders by name of the target.
            clock: Seconds since the epoch.

        Raises:
            SetupError: The routing names a target or team that there is not.
        """
        self._settings, self._clock = settings, clock
        self.results: SimpleQueue[Delivery] = SimpleQueue()
        """Outcomes that are to be written."""
        self.wake = threading.Event()
        """Set when there is a new outcome."""
        alerts = settings.alerts
        routing = Routing.of(alerts, settings.owners, targets, {rule.name: rule.route for rule in rules})
        self._wording = wording_of(settings, rules)
        # Whether Evenkeel works is worth a message also where nobody has accepted anything.
        self.always = frozenset(rule.name for rule in rules if rule.by_clock)
        self._gates = {name: Gate(routing, name, reads_ends=sender.reads == PEOPLE) for name, sender in targets.items()}
        retry = RetryPolicy(alerts.longest_retry_ms / 1000, alerts.give_up_after_ms)
        self.queues = [
            DeliveryQueue(
                name,
                sender,
                retry,
                self.results,
                self.wake,
                alerts.digest_above,
                self._wording,
                self._gates[name],
                clock,
            )
            for name, sender in targets.items()
        ]
        self._reads = {name: sender.reads for name, sender in targets.items()}
        self._notes = NoteBook(settings.lake, settings.cluster)
        self._happened = Happened(settings.lake, settings.cluster)
        self._marks: tuple[Mark, ...] = ()
        self._present = Present(always=self.always)
        self._posted: dict[str, set[str]] = {name: set() for name in targets}
        self._added: dict[str, int] = {}
        self._first_start = FirstStart()

    def start(self) -> None:
        """Begin to send."""
        for queue in self.queues:
            queue.start()

    def stop(self, patience_s: float) -> None:
        """End after the attempts in progress; waits so long at the most."""
        for queue in self.queues:
            queue.stop()
        until = time.monotonic() + patience_s
        for queue in self.queues:
            queue.join(until - time.monotonic())

    @property
    def idle(self) -> bool:
        """Whether nothing is left to send now, nor to write."""
        return all(queue.idle for queue in self.queues) and self.results.empty()

    def remember(self, known: Mapping[str, KnownDeliveries], decided: Sequence[TransitionRow]) -> None:
        """Take what earlier runs have sent."""
        for queue in self.queues:
            queue.remember(known[queue.name].sent, known[queue.name].told_of(decided))
            self._posted[queue.name] |= known[queue.name].notices
            self._added[queue.name] = known[queue.name].added

    def reroute(
        self, known: Mapping[str, KnownDeliveries], decided: Sequence[TransitionRow], firing: Collection[str]
    ) -> None:
        """Offer what fires now to targets to which it was not routed when an earlier run asked.

        Call after `begin`: what was accepted with the summary of a first start stays unsent.

        Args:
            known: What the tables have about each target.
            decided: Transitions, in order, with those of all alerts that fire now.
            firing: Occurrences that fire now.
        """
        for queue in self.queues:
            found = known[queue.name].rerouted(decided, firing, self._gates[queue.name].refusal)
            if found:
                _LOG.info("%d alerts that fire are sent to %s now: they are routed to it", len(found), queue.name)
            # (Late: whether they still fire is not known before new rounds are judged.)
            queue.offer(found, fresh=False, late=True)

    def begin(self, decisions: Decisions, *, is_first: bool) -> None:
        """Begin a first start, or go on with one.

        Args:
            decisions: The alerter's decisions.
            is_first: No target has ever been known on this cluster.
        """
        self._first_start = decisions.first_start()
        wanted = self._settings.alerts.first_start == "summary"
        if is_first and self.queues and wanted and not self._first_start.began:
            decisions.write_first_start(FirstStart(began=True))
            self._first_start = decisions.first_start()
            _LOG.info("a first start: a summary of what fires comes first, and alerts once it is accepted")
        self._hold()

    def look(self) -> None:
        """Read mutes and marks again.

        Raises:
            DeltaError, OSError, LakeUnreadableError: The tables cannot be read now; what was known goes on.
        """
        # (Mutes first: marks that cannot be read only leave a line out of messages.)
        mutes = self._notes.mutes()
        if mutes != self._present.mutes:
            self._present = replace(self._present, mutes=mutes)
            self._hold()
        self._marks = self._notes.marks()

    def settle(self, decisions: Decisions, active: Mapping[AlertKey, Active], *, settled: bool) -> None:
        """See whether a first start was accepted, and make its summary once everything was judged.

        Args:
            decisions: The alerter's decisions.
            active: Alerts that are pending or firing.
            settled: The rules have judged for long enough to know all that fires.
        """
        if not self._first_start.waits:
            return
        self._first_start = decisions.first_start()
        if self._settings.alerts.first_start == "deliver":
            decisions.write_first_start(FirstStart(accepted=0))
            self._first_start = decisions.first_start()
        if self._first_start.waits and settled:
            page = self._settings.serve.public_url
            link = None if page is None else f"{page}/alerts"
            message = summary_of(self._settings.cluster, active, self.always, link)
            if message is None:
                decisions.write_first_start(FirstStart(accepted=decisions.number))
                self._first_start = decisions.first_start()
            else:
                self._summarise(decisions, message)
        if not self._first_start.waits:
            _LOG.info("delivery begins: alerts that fire from now on are sent")
            self._hold()

    def _summarise(self, decisions: Decisions, message: Message) -> None:
        now, cluster = round(self._clock() * 1000), self._settings.cluster
        if self._first_start.summary is None or self._first_start.told_s is None:
            decisions.write_first_start(FirstStart(summary=decisions.number, told_s=now // 1000))
            self._first_start = decisions.first_start()
            _LOG.warning("%s; accept it with `evenkeel alert --accept`", message.subject)
        told_s = self._first_start.told_s
        key = key_of(cluster, now // 1000 if told_s is None else told_s, now)
        if key != key_of(cluster, 0, 0):
            message = reminder_of(cluster, message)
        self._post(SUMMARY, key, message, self._reads)

    def report(self, decisions: Decisions) -> None:
        """Post the reports whose time has come."""
        now = round(self._clock() * 1000)
        for one in due(self._settings.alerts.reports, self._settings.cluster, now):
            # (A target that is new gets no report of a time before it was one.)
            known = [name for name in one.report.targets if self._added.get(name, now) < one.end]
            missing = [name for name in known if one.key not in self._posted[name]]
            if missing:
                decided = decisions.between(one.begin, one.end)
                message = report_of(one, self._settings.cluster, decided, self._marks, self._wording)
                self._post(REPORT, one.key, message, missing)

    def _post(self, kind: str, key: str, message: Message, targets: Collection[str]) -> None:
        """Post a message that is about no alert; incident tools, which would call somebody, get none."""
        for queue in self.queues:
            is_new = queue.name in targets and key not in self._posted[queue.name]
            if is_new and self._reads[queue.name] != INCIDENTS:
                queue.post(kind, key, message)
            self._posted[queue.name] |= {key} if is_new else set()

    def judged(self) -> None:
        """Note that a look has judged something."""
        for queue in self.queues:
            queue.judged()

    def offer(self, decided: Sequence[TransitionRow], fresh: bool) -> None:
        """Hand transitions to every queue; see `DeliveryQueue.offer`."""
        for queue in self.queues:
            queue.offer(decided, fresh)

    def explained(self, decided: Sequence[TransitionRow]) -> list[TransitionRow]:
        """The same transitions with what had happened before them.

        Raises:
            DeltaError, OSError, duckdb.Error, LakeUnreadableError: The tables cannot be read now.
        """
        if not self.queues or not 0 < sum(one.notifies for one in decided) <= _MOST_EXPLAINED:
            return list(decided)
        return self._happened.with_circumstances(decided, self._marks)

    def _hold(self) -> None:
        first = self._first_start
        self._present = replace(self._present, waits=first.waits, accepted=first.accepted or 0)
        for gate in self._gates.values():
            gate.present = self._present
