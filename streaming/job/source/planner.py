"""The driver's half: finds new rounds, decides how far the next batch goes, plans it.

It lives as long as the query, in a Python process of its own beside Spark's driver. Its memory makes it fast and
patient but never decides: every decision that ends in a checkpoint is one that `plan_batch` makes again from the
topics.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError

from streaming.job.source.exceptions import AnotherClusterError, AnotherSourceError, UnreadableTopicError
from streaming.job.source.fetch import RangeReader
from streaming.job.source.plan import Batch, MostRead, ReadLimits, RoundRecord, VoidRecord, plan_batch
from streaming.job.source.positions import (
    ClusterIdentity,
    Positions,
    Shorter,
    another_cluster,
    gaps_of_turn,
    named,
    recreated,
    turn,
)
from streaming.job.source.rounds_topic import RoundsTopic
from streaming.job.source.settings import SourceSettings
from streaming.job.source.tasks import SourceTask, gap_rows, ready_rows, share_out, window_ends
from streaming.lifecycle import room_log
from streaming.records import LOG, LONGEST_INTERVAL_MS, ROCKETMQ, SILENT_INTERVALS, LogGap, RoundClosed, RoundOpened
from streaming.terminal import visible

# A topic shorter than the offsets already read was cut back, or shows an old end right after a change of leaders.
_CUT_BACK_S = 60.0

# Pause between attempts that must not fail because of a broker's restart.
_PAUSE_S = 0.5

# Void records of the rounds topic that are logged one by one: the table quarantine has the others.
_VOID_TOLD = 10

_LOG = room_log(__name__)


@dataclass(frozen=True, slots=True)
class _Target:
    """The end of a run over what is available now."""

    rounds: int
    limits: ReadLimits


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found in the rounds topic.

    Attributes:
        batch: The batch of the next rounds; without rounds when there are none to take.
        limits: What the closing records were judged by; None when there were no closing records.
        full: The batch is full; later records were not read.
        after: Offset after the last record that was read.
    """

    batch: Batch
    limits: ReadLimits | None
    full: bool
    after: int


class Planner:
    """Decides where batches end (`latest`), and what they read (`tasks`)."""

    def __init__(
        self,
        settings: SourceSettings,
        connect: Callable[[SourceSettings, float], RangeReader],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; no request is sent yet.

        Args:
            settings: Settings of the source.
            connect: Returns the process's reader; its second argument is how long to try, in s.
            clock: Seconds that only grow; used for patience alone.
        """
        self._settings = settings
        self._connect = connect
        self._clock = clock
        self._topic = RoundsTopic(settings.rounds_topic)
        self._interval_ms = settings.interval_ms
        self._last_round = clock()
        self._last_without = -math.inf
        self._shorter_since: float | None = None
        self._another_since: float | None = None
        self._another_newest = -1
        self._has_taken = False
        self._outages = 0
        self._target: _Target | None = None
        self._seen: ReadLimits | None = None
        self._log_readable = False

    def available_now(self) -> None:
        """Fix the end of the run: the rounds that are closed now, and the log's ends for a cluster without rounds.

        Raises:
            KafkaError: The brokers cannot be reached.
        """
        until = self._clock() + self._settings.patience_s
        while self._target is None:
            try:
                reader = self._connect(self._settings, self._settings.patience_s)
                rounds = self._rounds_end(reader)
                limits = self._limits(reader, fresh=True, log=self._wanted in {None, LOG})
                self._target = _Target(rounds, limits)
            except KafkaError:
                if self._clock() > until:
                    raise
                time.sleep(_PAUSE_S)

    def latest(self, offsets: dict[str, Any], max_rounds: int | None) -> dict[str, Any]:
        """Where the next batch ends.

        Whole rounds, as far as they are closed, at most `max_rounds` of them. If no round has closed for three
        intervals, the ends of the log without rounds, once per interval: membership goes on. A round that closes later
        with positions that such a batch has gone beyond is passed over. In a run over what is available now the log is
        read without rounds only if there was never a round.

        Args:
            offsets: Where the batch starts, as Spark keeps it.
            max_rounds: Rounds at the most; None for all.

        Returns:
            The same object `offsets` when there is nothing new, when the source is held (`SourceSettings.hold`), or
            when the brokers cannot be reached: an outage is waited out.

        Raises:
            AnotherClusterError: The brokers belong to another cluster than the offsets.
            AnotherSourceError: Rounds come from another source of groups than the query follows, and none from its own
                for longer than three intervals; in a run over what is available now, none from its own at all.
        """
        if self._settings.hold is not None and Path(self._settings.hold).exists():
            return offsets
        try:
            end = self._latest(self._connect(self._settings, 0.0), Positions.read(offsets), max_rounds)
        except (KafkaError, UnreadableTopicError, OSError) as error:
            self._outages += 1
            if self._outages == 1 or self._outages % 10 == 0:
                what = visible(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
                _LOG.warning("evenkeel source: no answer from Kafka (attempt %d): %s", self._outages, what)
            return offsets
        if self._outages:
            _LOG.warning("evenkeel source: Kafka answers again after %d attempts", self._outages)
            self._outages = 0
        written = end.write()
        return offsets if written == offsets else written

    def newest(self) -> dict[str, Any] | None:
        """The newest ends that `latest` saw, as offsets: the backlog is these minus the batch's end."""
        if self._seen is None:
            return None
        return Positions(self._seen.log, self._seen.events, self._topic.end).write()

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
            return share_out(first, first, Batch(first, (), ()), gap_rows(gaps), self._settings.tasks)
        reader = self._connect(self._settings, self._settings.patience_s)
        records, gap = self._topic.between(reader, first.rounds, last.rounds)
        batch = plan_batch(
            first, records, ReadLimits(last.log, last.events), self._settings.cluster, source=last.follows
        )
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
        kept = [each for each in void if each.keep]
        for each in kept[:_VOID_TOLD]:
            reason = visible(each.reason)
            _LOG.warning("evenkeel source: record %d of the rounds topic: %s", each.record.offset, reason)
        if len(kept) > _VOID_TOLD:
            _LOG.warning("evenkeel source: and %d further records of that kind", len(kept) - _VOID_TOLD)

    def _is_ours(self, closed: RoundClosed) -> bool:
        return closed.cluster == self._settings.cluster

    def _latest(self, reader: RangeReader, start: Positions, max_rounds: int | None) -> Positions:
        until = self._target.rounds if self._target else self._rounds_end(reader)
        self._refuse_another(start)
        follows = start.follows or self._wanted
        here = reader.identity(_topics_of(self._settings, follows))
        refused = another_cluster(start, here, self._settings.cluster)
        if refused is not None:
            raise AnotherClusterError(refused)
        if recreated(start, here):
            return self._turned(start, here, Shorter())
        look = self._look(reader, start, until, max_rounds)
        limits = look.limits
        may_read_on = not look.batch.rounds and self._is_silent(start) and self._reads_log(reader, follows)
        if may_read_on and limits is None:
            limits = self._limits(reader)
        shorter = _shorter(start, until, limits)
        if not shorter:
            self._shorter_since = None
        elif self._stays_shorter():
            return self._turned(start, here, shorter)
        if look.batch.rounds:
            self._last_round = self._clock()
            self._another_since, self._has_taken = None, True
            return named(look.batch.end, here)
        if limits is None or not may_read_on:
            return replace(start, rounds=look.after, inside=True) if look.full else start
        # The ends that the closing records were judged by, where there were any: the batch is planned again from its
        # end, and must then come to the same judgement.
        log = {p: max(end, start.log.get(p, 0)) for p, end in limits.log.items()}
        if all(start.log.get(p) == end for p, end in log.items()):
            return start
        self._last_without = self._clock()
        rounds = max(look.after, start.rounds)
        return named(replace(start, log={**start.log, **log}, rounds=rounds, inside=True), here)

    @property
    def _wanted(self) -> str | None:
        """The source that the settings name; None where the first round decides."""
        return None if self._settings.offsets_log == "auto" else self._settings.offsets_log

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

    def _reads_log(self, reader: RangeReader, follows: str | None) -> bool:
        """Whether the log may be read without rounds: where the query follows it, or could from its beginning."""
        if follows is not None:
            return follows == LOG
        if not self._log_readable:
            self._log_readable = reader.may_read(self._settings.offsets_topic)
        if not self._log_readable:
            self._last_without = self._clock()  # asked again after an interval
        return self._log_readable

    def _turned(self, start: Positions, here: ClusterIdentity, shorter: Shorter) -> Positions:
        """Continue in topics that were created again, or cut back."""
        end = turn(start, here, shorter)
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

    def _stays_another(self, rounds: Sequence[RoundClosed]) -> bool:
        """Whether the source has changed: no round of ours came for three intervals, and others still come.

        Anybody who may write to the topic can write some between two of ours. And when offsets_log was set back, those
        that are there must not end the query before the first of ours comes.
        """
        if self._target:
            # Nothing else will come. What lies behind rounds of ours is met first by the next run.
            return not self._has_taken and len(rounds) >= SILENT_INTERVALS
        # By time and not by their number, because batches without rounds pass over them one by one.
        now, newest = self._clock(), rounds[-1].round
        if self._another_since is None:
            self._another_since, self._another_newest = now, newest
        still_come, self._another_newest = newest != self._another_newest, newest
        return still_come and now - self._another_since > SILENT_INTERVALS * self._interval_s

    def _look(self, reader: RangeReader, start: Positions, until: int, max_rounds: int | None) -> _Look:
        """Find the batch of the next rounds."""
        wanted = max_rounds
        while True:
            upcoming = self._topic.upcoming(reader, start.rounds, until, wanted)
            self._learn_interval(upcoming.records)
            closed = [c for c in (record.closed for record in upcoming.records) if c is not None and self._is_ours(c)]
            limits = None
            batch = Batch(start, (), ())
            if closed:
                # Requested after the closing records, not before: then a position beyond the ends is false, not early.
                follows = start.follows or self._wanted or closed[0].source
                limits = self._limits(reader, log=follows == LOG)
                if _names_unknown_partitions(closed, limits) and not self._target:
                    limits = self._limits(reader, fresh=True, log=follows == LOG)
                most = (
                    None
                    if max_rounds is None
                    else MostRead(max_rounds, self._settings.max_records, self._settings.max_bytes)
                )
                batch = plan_batch(start, upcoming.records, limits, self._settings.cluster, most, follows)
                others = {c.source for c in closed} - {follows}
                # Only once all records are read: one of ours may lie behind the first of them.
                alone = upcoming.complete and not batch.rounds and all(c.source in others for c in closed)
                if alone and self._stays_another(closed):
                    raise AnotherSourceError(self._another(follows, min(others)))
            if batch.rounds or upcoming.complete or upcoming.full:
                return _Look(batch, limits, upcoming.full, upcoming.after)
            wanted = None if wanted is None else 2 * wanted

    def _learn_interval(self, records: Sequence[RoundRecord]) -> None:
        """Know how long to wait for the next round, also from one that is still open or came too late.

        A round of a large cluster can take minutes. If only rounds that are taken counted, the log would be read on
        before each of them closes, and none would ever be taken.
        """
        for record in records:
            content = record.content
            if isinstance(content, RoundOpened | RoundClosed) and content.cluster == self._settings.cluster:
                self._interval_ms = content.interval_ms

    def _another(self, follows: str, other: str) -> str:
        return (
            f"The rounds of {self._settings.cluster!r} show groups from the source {other!r} now, and this query "
            f"follows {follows!r}, which numbers its decisions otherwise: set offsets_log back to {follows!r}, or give "
            "the cluster a lake of its own."
        )

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

    def _rounds_end(self, reader: RangeReader) -> int:
        partition = TopicPartition(self._settings.rounds_topic, 0)
        if not reader.partitions(partition.topic):
            return 0
        return reader.ends([partition])[partition]

    def _limits(self, reader: RangeReader, *, fresh: bool = False, log: bool = True) -> ReadLimits:
        """Ends of the topics; without `log` those of the offsets log are not asked for."""
        if self._target:
            return self._target.limits
        of_log = reader.partitions(self._settings.offsets_topic, fresh=fresh) if log else set()
        events = reader.partitions(self._settings.events_topic, fresh=fresh)
        asked = [TopicPartition(self._settings.offsets_topic, p) for p in sorted(of_log)]
        asked += [TopicPartition(self._settings.events_topic, p) for p in sorted(events)]
        ends = reader.ends(asked)
        self._seen = ReadLimits(
            {p.partition: end for p, end in ends.items() if p.topic == self._settings.offsets_topic},
            {p.partition: end for p, end in ends.items() if p.topic == self._settings.events_topic},
        )
        return self._seen


def _topics_of(settings: SourceSettings, follows: str | None) -> dict[str, str]:
    topics = {"log": settings.offsets_topic, "events": settings.events_topic, "rounds": settings.rounds_topic}
    return topics if follows in {None, LOG} else {name: topic for name, topic in topics.items() if name != "log"}


def _names_unknown_partitions(closed: Iterable[RoundClosed], limits: ReadLimits) -> bool:
    # Partitions that were added a moment ago are not in the client's metadata yet.
    return any(len(c.log) > len(limits.log) or any(int(name) not in limits.events for name in c.events) for c in closed)


def _shorter(start: Positions, rounds_end: int, limits: ReadLimits | None) -> Shorter:
    rounds = rounds_end if rounds_end < start.rounds else None
    if limits is None:
        return Shorter(rounds=rounds)
    return Shorter(_ends_before(start.log, limits.log), _ends_before(start.events, limits.events), rounds)


def _ends_before(read: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    return {p: ends[p] for p, position in read.items() if ends.get(p, position) < position}
