"""Everything that leaves the alerter: the delivery queues, and what holds them back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from queue import SimpleQueue

from streaming.alerts.decisions import KnownDeliveries
from streaming.alerts.delivery.items import Delivery, RetryPolicy, Sender
from streaming.alerts.delivery.messages import Wording
from streaming.alerts.delivery.queues import DeliveryQueue
from streaming.alerts.routes import Routing
from streaming.alerts.rules.rules import Rule
from streaming.alerts.transitions import Transition
from streaming.config import Settings
from streaming.lifecycle import room_log
from streaming.notes import NoteBook

_LOG = room_log(__name__)


class Outgoing:
    """The targets of one alerter. Call from one thread; `read_notes` before each `offer`."""

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
        self.results: SimpleQueue[Delivery] = SimpleQueue()
        """Outcomes that are to be written."""
        self.wake = threading.Event()
        """Set when there is a new outcome."""
        alerts = settings.alerts
        self._routing = Routing(alerts, settings.owners, targets)
        wording = Wording(
            owners=settings.owners,
            public_url=settings.serve.public_url,
            runbooks={rule.name: rule.runbook_url for rule in rules if rule.runbook_url},
        )
        retry = RetryPolicy(alerts.longest_retry_ms / 1000, alerts.give_up_after_ms)
        self.queues = [
            DeliveryQueue(
                name, sender, retry, self.results, self.wake, alerts.digest_above, wording, self._routing, clock
            )
            for name, sender in targets.items()
        ]
        self._notes = NoteBook(settings.lake, settings.cluster)

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

    def resume(
        self, known: Mapping[str, KnownDeliveries], decided: Sequence[Transition], firing: Collection[str]
    ) -> None:
        """Take what earlier runs have sent, and offer what they have left.

        What fires now is also offered to targets to which it was not routed when an earlier run asked.

        Args:
            known: What the tables have about each target.
            decided: Transitions, in order, with those of all alerts that fire now.
            firing: Occurrences that fire now.
        """
        for queue in self.queues:
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

    def read_notes(self) -> None:
        """Read the mutes again.

        Raises:
            DeltaError, OSError, LakeUnreadableError: The tables cannot be read now; what was known goes on.
        """
        self._routing.mutes = self._notes.mutes()

    def judged(self) -> None:
        """Note that a poll has judged something."""
        for queue in self.queues:
            queue.judged()

    def offer(self, decided: Sequence[Transition], fresh: bool) -> None:
        """Hand transitions to every queue; see `DeliveryQueue.offer`."""
        for queue in self.queues:
            queue.offer(decided, fresh)
