"""The driver's half: finds new rounds, decides how far the next batch goes, plans it.

It lives as long as the query, in a Python process of its own beside Spark's driver. Its memory makes it fast and
patient but never decides: every decision that ends in a checkpoint is one that `plan_batch` makes again from the
topics.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kafka.errors import KafkaError
from msgspec.structs import replace

from streaming.job.source.connection import Readers
from streaming.job.source.exceptions import AnotherClusterError, AnotherSourceError
from streaming.job.source.plan import Batch, MostRead, RoundRecord, RoundsTopic, VoidRecord, plan_batch
from streaming.job.source.positions import (
    Positions,
    TopicEnds,
    another_cluster,
    gaps_of_turn,
    named,
    recreated,
    turn,
)
from streaming.job.source.settings import SourceSettings
from streaming.job.source.tasks import SourceTask, gap_rows, ready_rows, share_out, window_ends
from streaming.lifecycle import room_log
from streaming.record_batches import ClusterIdentity, UnreadableTopicError
from streaming.records import (
    LOG,
    LONGEST_INTERVAL_MS,
    ROCKETMQ,
    SILENT_INTERVALS,
    LogGap,
    RoundClosed,
    RoundOpened,
    rest_interval_ms,
)
from streaming.terminal import visible

# A topic shorter than the offsets already read was cut back, or shows an old end right after a change of leaders.
_CUT_BACK_S = 60.0

# Pause between attempts that must not fail because of a broker's restart.
_PAUSE_S = 0.5

# Void records of the rounds topic that are logged one by one: the table quarantine has the others.
_VOID_TOLD = 10

_LOG = room_log(__name__)


class Planner:
    """Decides where batches end (`latest`), and what they read (`tasks`).

    Attributes:
        backlog: Rounds that the newest batch took, and that had closed and were left to later ones (`rounds_behind`; no
            more than one look finds); None before the first look.
    """

    def __init__(
        self,
        settings: SourceSettings,
        connect: Callable[[SourceSettings, float], Readers],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; no request is sent yet.

        Args:
            settings: Settings of the source.
            connect: Returns the process's readers; its second argument is how long to try, in s.
            clock: Seconds that only grow; used for patience alone.
        """
        self._settings = settings
        self._connect = connect
        self._clock = clock
        self._topic = RoundsTopic(settings.rounds_topic)
        self._interval_ms = settings.interval_ms
        self._last_round = clock()
        self._last_without = -math.inf
        self._rests = False
        self._shorter_since: float | None = None
        self._outages = 0
        self._passed_over: str | None = None
        self.backlog: dict[str, int] | None = None
        self._target: TopicEnds | None = None

    def available_now(self) -> None:
        """Fix the end of the run: the rounds that are closed now, and the log's ends for a cluster without rounds.

        Raises:
            KafkaError, UnreadableTopicError: The brokers, or the folder of the bus, cannot be reached.
        """
        until = self._clock() + self._settings.patience_s
        while self._target is None:
            try:
                readers = self._connect(self._settings, self._settings.patience_s)
                self._target = self._ends(readers, self._rounds_end(readers), self._wanted)
            except (KafkaError, UnreadableTopicError):
                if self._clock() > until:
                    raise
                time.sleep(_PAUSE_S)

    def latest(self, offsets: dict[str, Any], max_rounds: int | None = None) -> dict[str, Any]:
        """Where the next batch ends.

        Whole rounds, as far as they are closed, at most `max_rounds` of them. If no round has closed for three
        intervals, the log is read on without rounds, once an interval: decisions are not lost while no probe runs. A
        run over what is available now does so only if there was never a round. Before its first round a query reads
        only a log that the settings name (`offsets_log`).

        Args:
            offsets: Where the batch starts, as Spark keeps it.
            max_rounds: Rounds at the most; None for the settings' own.

        Returns:
            The same object `offsets` when there is nothing new, when the source is held (`SourceSettings.hold`), or
            when the brokers cannot be reached: an outage is waited out.

        Raises:
            AnotherClusterError: The brokers belong to another cluster than the offsets.
            AnotherSourceError: The settings name another source of groups than the query follows.
        """
        if self._settings.hold is not None and Path(self._settings.hold).exists():
            return offsets
        try:
            end = self._latest(self._connect(self._settings, 0.0), Positions.read(offsets), max_rounds)
        except (KafkaError, UnreadableTopicError, OSError) as error:
            self._outages += 1
            if self._outages == 1 or self._outages % 10 == 0:
                what = visible(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
                _LOG.warning("evenkeel source: no answer (attempt %d): %s", self._outages, what)
            return offsets
        if self._outages:
            _LOG.warning("evenkeel source: there is an answer again after %d attempts", self._outages)
            self._outages = 0
        written = end.write()
        if written == offsets:
            return offsets
        return written

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[SourceTask]:
        """The tasks of a batch; the same after a restart as before, as long as the rounds topic holds its records.

        Raises:
            UnreadableTopicError: The rounds topic could not be read for too long.
            KafkaError: The brokers cannot be reached.
        """
        first, last = Positions.read(start), Positions.read(end)
        if first == last:
            return []
        gaps = gaps_of_turn(first, last, self._settings)
        if gaps:
            return share_out(first, first, Batch(first), gap_rows(gaps), self._settings.tasks)
        readers = self._connect(self._settings, self._settings.patience_s)
        records, gap = self._topic.between(readers.bus, first.rounds, last.rounds)
        batch = plan_batch(first, records, self._settings.cluster, source=last.follows)
        self._tell(batch.void)
        lost = None
        if gap is not None and first.rounds:
            lost = LogGap(0, gap.start, gap.end, gap.reason, self._settings.rounds_topic)
        rows = ready_rows(self._settings.rounds_topic, first, batch, lost)
        if first.inside and batch.rounds:
            rows += window_ends(self._settings.offsets_topic, self._settings.rounds_topic, last)
        return share_out(first, last, batch, rows, self._settings.tasks)

    def _tell(self, void: Sequence[VoidRecord]) -> None:
        """Log the records of the rounds topic that go to `quarantine`, as far as they are few."""
        for each in void[:_VOID_TOLD]:
            reason = visible(each.reason)
            _LOG.warning("evenkeel source: record %d of the rounds topic: %s", each.record.offset, reason)
        if len(void) > _VOID_TOLD:
            _LOG.warning("evenkeel source: and %d further records of that kind", len(void) - _VOID_TOLD)

    def _latest(self, readers: Readers, start: Positions, max_rounds: int | None) -> Positions:
        until = self._target.rounds if self._target else self._rounds_end(readers)
        self._refuse_another(start)
        follows = start.follows or self._wanted
        here = readers.identity(self._settings, follows)
        refused = another_cluster(start, here, self._settings.cluster)
        if refused is not None:
            raise AnotherClusterError(refused)
        if recreated(start, here):
            return self._turned(start, turn(start, here))
        records, is_full = self._topic.upcoming(readers.bus, start.rounds, until)
        self._learn_interval(records)
        most = MostRead(max_rounds or self._settings.max_rounds, self._settings.max_records, self._settings.max_bytes)
        batch = plan_batch(start, records, self._settings.cluster, most, follows)
        self.backlog = {"rounds": 0, "rounds_behind": 0}
        if len(batch.rounds) < most.rounds and self._may_wait(batch):
            return start
        if batch.rounds:
            # A topic that was deleted and created again may have these offsets by now, of other rounds.
            readers.refresh()
            here = readers.identity(self._settings, follows)
            if recreated(start, here):
                return self._turned(start, turn(start, here))
            self._last_round = self._clock()
            self._rests = batch.rounds[-1].rests
            self._shorter_since = self._passed_over = None
            behind = [
                each for each in records if each.offset >= batch.end.rounds and each.closed(self._settings.cluster)
            ]
            self.backlog = {"rounds": len(batch.rounds), "rounds_behind": len(behind)}
            return named(batch.end, here)
        closed = [closed for record in records if (closed := record.closed(self._settings.cluster)) is not None]
        self._tell_passed_over(closed, follows)
        may_read_on = follows == LOG and self._is_silent(start)
        if until < start.rounds or closed or may_read_on:
            ends = self._target or self._ends(readers, until, follows)
            turned = turn(start, here, ends)
            if turned is start:
                self._shorter_since = None
            elif self._stays_shorter():
                return self._turned(start, turned)
            if may_read_on and (end := self._read_on(start, here, ends, records)) is not start:
                return end
        if is_full:
            return replace(start, rounds=records[-1].offset + 1, inside=True)
        return start

    def _may_wait(self, batch: Batch) -> bool:
        """Whether rounds wait for each other because nothing moves, as in the newest one that was taken."""
        if self._target or not self._rests or not batch.rounds or not all(each.rests for each in batch.rounds):
            return False
        interval_ms = batch.rounds[-1].closed.interval_ms
        together_ms = rest_interval_ms(interval_ms)
        waited_ms = 1000 * (self._clock() - self._last_round)
        return len(batch.rounds) * interval_ms < together_ms and waited_ms < together_ms + interval_ms

    def _read_on(
        self, start: Positions, here: ClusterIdentity, ends: TopicEnds, records: Sequence[RoundRecord]
    ) -> Positions:
        """The end of a batch without rounds: that of the log, and behind the records that hold none of the query's."""
        log = {p: max(end, start.log.get(p, 0)) for p, end in ends.log.items()}
        if all(start.log.get(p) == end for p, end in log.items()):
            return start
        self._last_without = self._clock()
        rounds = records[-1].offset + 1 if records else start.rounds
        return named(replace(start, log={**start.log, **log}, rounds=rounds, inside=True), here)

    @property
    def _wanted(self) -> str | None:
        """The source that the settings name; None where the first round decides."""
        if self._settings.offsets_log == "auto":
            return None
        return self._settings.offsets_log

    def _refuse_another(self, start: Positions) -> None:
        if start.follows is None or self._wanted in {None, start.follows}:
            return
        wanted = f"offsets_log is {self._wanted!r}"
        back = "set offsets_log back"
        if ROCKETMQ in {self._wanted, start.follows}:
            wanted = "the cluster is RocketMQ" if self._wanted == ROCKETMQ else "the cluster is Kafka"
            back = "correct the cluster's section"
        message = (
            f"In the settings {wanted}, and the checkpoint of {self._settings.cluster!r} follows {start.follows!r}, "
            f"which numbers its decisions otherwise: {back}, or give the cluster a lake of its own."
        )
        raise AnotherSourceError(message)

    def _tell_passed_over(self, closed: Sequence[RoundClosed], follows: str | None) -> None:
        """Log once that rounds of another source come: without one of ours the tables show that no round closes."""
        other = next((each.source for each in closed if each.source != follows), None)
        if other is not None and other != self._passed_over:
            self._passed_over = other
            _LOG.warning(
                "evenkeel source: the rounds of %r show groups from the source %r now, and this query follows %r, "
                "which numbers its decisions otherwise: set offsets_log back, or give the cluster a lake of its own",
                *(self._settings.cluster, other, follows),
            )

    def _turned(self, start: Positions, end: Positions) -> Positions:
        """Continue in topics that were created again, or cut back."""
        for gap in gaps_of_turn(start, end, self._settings):
            _LOG.warning("evenkeel source: partition %d: %s", gap.partition, gap.reason)
        self._topic = RoundsTopic(self._settings.rounds_topic)
        self._shorter_since = None
        return end

    def _stays_shorter(self) -> bool:
        now = self._clock()
        if self._shorter_since is None:
            self._shorter_since = now
            _LOG.warning("evenkeel source: a topic ends before what was read of it: waiting to see if it stays so")
        return now - self._shorter_since > _CUT_BACK_S

    def _learn_interval(self, records: Sequence[RoundRecord]) -> None:
        """Know how long to wait for the next round, also from one that is still open or came too late.

        A round of a large cluster can take minutes. If only rounds that are taken counted, the log would be read on
        before each of them closes, and none would ever be taken.
        """
        for record in records:
            content = record.content
            if isinstance(content, RoundOpened | RoundClosed) and content.cluster == self._settings.cluster:
                self._interval_ms = content.interval_ms

    def _is_silent(self, start: Positions) -> bool:
        if self._target:
            return start.round < 0
        now = self._clock()
        # The trigger is shorter than an interval, so that no round has to wait; a batch at each trigger would cost
        # several times as much as a batch per round, possibly for days.
        if now - self._last_without < self._interval_s:
            return False
        return now - self._last_round > SILENT_INTERVALS * self._interval_s

    @property
    def _interval_s(self) -> float:
        return min(max(self._interval_ms, self._settings.interval_ms), LONGEST_INTERVAL_MS) / 1000

    def _rounds_end(self, readers: Readers) -> int:
        return readers.bus.ends(self._settings.rounds_topic).get(0, 0)

    def _ends(self, readers: Readers, rounds: int, follows: str | None) -> TopicEnds:
        """Ends of the topics; those of the offsets log only where the query follows it, or may come to."""
        log = {}
        if readers.log is not None and follows in {None, LOG}:
            log = readers.log.ends(self._settings.offsets_topic)
        return TopicEnds(log, readers.bus.ends(self._settings.events_topic), rounds)
