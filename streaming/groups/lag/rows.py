"""Rows of `lag` at one round: one pass over a group's partitions, because a second one would cost as much again."""

from __future__ import annotations

from streaming.groups.context import Context
from streaming.groups.kind import LagRules, Ownership, OwningMember
from streaming.groups.lag import oldest_unread
from streaming.groups.lag import partitions as lag
from streaming.groups.lag.oldest_unread import Unread
from streaming.groups.lag.state import MARKER, PartitionState
from streaming.groups.lag.totals import TELLING, Totals
from streaming.groups.load.rates import end_window, is_doubtful, rates_of, void
from streaming.groups.rows import split
from streaming.groups.share.deliveries import apply_done, first_not_done, not_before
from streaming.groups.state import GroupState
from streaming.records import GroupObservation, TopicObservation

_EMPTY: lag.Offsets = (), (), ()


class LagRound:
    """One round of one group, while its partitions are judged."""

    __slots__ = (
        "_arrived",
        "_before",
        "_begins",
        "_context",
        "_doubtful",
        "_elapsed",
        "_held",
        "_now",
        "_observation",
        "_old",
        "_opened_before",
        "_owners",
        "_passed",
        "_rates",
        "_rested",
        "_rounds",
        "_rules",
        "_state",
        "_subscribed",
        "_subtopologies",
        "_totals",
    )

    def __init__(
        self,
        state: GroupState,
        observation: GroupObservation,
        context: Context,
        passed: int,
        rounds: int,
        owners: Ownership,
        rules: LagRules,
    ) -> None:
        """Begin to judge a round.

        Args:
            state: The group's state, including this round's topics.
            observation: The round.
            context: Rows are written here.
            passed: Elapsed time since the group's previous round, ms.
            rounds: How many rounds this one stands for.
            owners: Who owns what.
            rules: How lag is judged.
        """
        self._state, self._observation, self._context = state, observation, context
        self._passed, self._rounds = passed, rounds
        self._subscribed, self._owners, self._rules = owners.topics, owners.by_partition, rules
        self._subtopologies = owners.subtopologies
        self._held = observation.held_since is not None
        self._elapsed = observation.elapsed_time
        # Rows older than this are repeated.
        self._old = self._elapsed - context.config.repeated_after_ms(observation)
        self._now = oldest_unread.times_of(observation, state.clock)
        self._before = state.newest_round
        self._rested = oldest_unread.rested_until(observation, self._now, self._before)
        self._opened_before = max(self._before.opened, self._rested)
        self._arrived = oldest_unread.unread_between(self._opened_before, self._now.closed)
        self._totals = Totals()

    def measure(self) -> Totals:
        """Judge the lag of every partition, and write rows for those that have changed.

        Returns:
            The sums over the partitions of subscribed topics.
        """
        state = self._state
        self._begins = end_window(state, self._observation, self._context.config, self._subscribed)
        shown = {t.topic: t for t in self._observation.topics}
        for topic in sorted({*state.partitions, *shown}):
            self._topic(topic, shown.get(topic))
        totals = self._totals
        totals.keeps_up = totals.unread_reason is None and not totals.is_behind
        if totals.keeps_up:
            totals.unread_partition = None
        state.round_closed = self._now.closed
        if self._now.opened >= 0:
            state.round_opened = self._now.opened
        return totals

    def _topic(self, topic: str, seen: TopicObservation | None) -> None:
        state, subscribed = self._state, self._subscribed
        partitions = state.partitions.setdefault(topic, {})
        ours = subscribed is None or topic in subscribed
        exist = seen.partitions or 0 if seen is not None else 0
        if subscribed is not None and ours:
            for partition in range(exist):
                if partition not in partitions:
                    partitions[partition] = PartitionState()
        owners = self._owners.get(topic, {})
        offsets = _unpack(seen)
        self._rates = rates_of(state.load, topic)
        self._doubtful: tuple[list[int], list[int]] = [], []
        counted, last = False, None
        for partition in sorted(partitions):
            known = partitions[partition]
            owner = owners.get(partition)
            if known.offset_deleted and ours:
                deleted = self._totals.events.deleted
                deleted[topic] = deleted.get(topic, 0) + 1
            if (
                known.committed < 0
                and not known.unreadable
                and owner is None
                and not (ours and subscribed is not None and 0 <= partition < exist)
            ):
                # No commit, owner or subscription any more: write the closing row and drop the state.
                if not known.is_void():
                    end_partition(state, known, self._observation, self._context, topic, partition, subscribed=ours)
                # Should a commit come again in this window, it is not a step from the one that was deleted.
                if not self._begins:
                    self._doubtful[0].append(partition)
                del partitions[partition]
                continue
            if known.of_topic and seen is not None and seen.topic_id in {None, known.of_topic}:
                known.of_topic = None  # the round shows the commit's topic, or no id to compare it with
            measured = lag.measure(known, partition, seen, offsets, self._held, empty_counts=self._rules.empty_counts)
            if (
                ours
                and -1 < known.committed < known.start
                and known.of_topic is None
                and (seen is None or partition < exist)
            ):
                lost = lag.lost_below(known.position, known.start)
                if lost:
                    self._totals.events.lost.setdefault(topic, {})[partition] = lost
            if known.share is not None:
                apply_done(known, known.share, measured)
            lag.sample(known, measured, self._passed, self._rounds)
            status = lag.lag_status(known, measured)
            if status in TELLING:
                self._totals.events.compare(topic, partition, known, measured.reason, subscribed=ours)
            if measured.lag != 0:
                unread = self._unread(known, measured, partition, seen)
            else:
                unread = oldest_unread.NOTHING
                if known.marks:
                    known.marks, known.fresh = [], 0
            if ours:
                self._totals.add(measured, status)
                is_behind = unread.method is not None or unread.reason == oldest_unread.UNCERTAIN_TIME
                if unread is not last and is_behind:
                    last = unread  # partitions that have read all that the round before saw share one
                    self._totals.wait(topic, partition, unread, seen.retention if seen is not None else None)
                    self._totals.is_behind |= unread is not self._arrived
                counted = True
            self._write(topic, partition, known, measured, status, unread, owner, ours)
        of_commits, of_log = self._doubtful
        if state.load is not None and (of_commits or of_log):
            void(state.load, topic, of_commits, of_log=of_log)
        if counted:
            self._totals.topics.add(split(topic)[0])
        if not partitions:
            del state.partitions[topic]

    def _unread(
        self, known: PartitionState, measured: lag.Measured, partition: int, topic: TopicObservation | None
    ) -> Unread:
        """Follow the oldest unread record of a partition whose lag is not 0; it takes short cuts, as there are many."""
        end, row, start = measured.end, known.row, measured.start
        if end is None:
            # What the rounds before have seen stays true.
            known.marks = oldest_unread.marks_before(known, self._before, self._rested)
            return oldest_unread.UNKNOWN
        first, is_exact = known.committed, True
        if known.share is not None:
            first, is_exact = first_not_done(known, known.share, measured)
        if start is not None and start > first:
            first, is_exact = start, known.share is None or is_exact
        if known.committed < 0 or known.of_topic is not None or first >= end:
            known.marks, known.fresh = [], 0
            return oldest_unread.UNKNOWN
        seen = row[1] if row is not None else None
        if seen is not None and seen <= first and (not known.marks or known.marks[-3] <= seen):
            # All that the round before could have read has been read: the usual case.
            known.marks, known.fresh = [seen, self._opened_before, self._before.closed], 0
            unread = self._arrived
        else:
            # While the offsets log is blocked, the marks go on from the last commit that is known.
            told = topic.unread.get(partition) if topic is not None else None
            kept = topic.retention if topic is not None else None
            unread = oldest_unread.see(
                known,
                end,
                first,
                self._now,
                self._before,
                self._rested,
                told,
                append_time=kept is not None and kept.append_time,
            )
        if measured.lag is None:
            return oldest_unread.UNKNOWN
        if not is_exact:
            return not_before(unread)
        if measured.lag > MARKER:
            return unread
        return oldest_unread.PERHAPS_A_MARKER

    def _write(
        self,
        topic: str,
        partition: int,
        known: PartitionState,
        measured: lag.Measured,
        status: lag.LagStatus,
        unread: Unread,
        owner: OwningMember | None,
        subscribed: bool,
    ) -> None:
        """Write the partition's row if it has changed, or if the last one is a heartbeat old."""
        self._state.commits += known.commits
        reason = self._rules.untold.get(topic, measured.reason)
        if reason == "no_commit":
            reason = self._rules.kept_by_members or reason
        says = (
            known.committed if known.committed >= 0 else -1,
            measured.end,
            measured.stable,
            measured.start,
            measured.lost,
            owner.member_id if owner is not None else None,
            status,
            reason,
            subscribed,
        )
        is_news = known.share is not None and known.share.is_news()
        if known.row != says or is_news or known.commits or known.offset_deleted or known.row_at <= self._old:
            if not self._begins:
                of_log, of_commits = is_doubtful(known, measured.end)
                if of_commits:
                    self._doubtful[0].append(partition)
                if of_log:
                    self._doubtful[1].append(partition)
            rates = self._rates[partition] if 0 <= partition < len(self._rates) else (None, None)
            row = lag.row(
                self._context,
                topic,
                partition,
                self._observation,
                known,
                measured,
                status,
                unread,
                subscribed=subscribed,
                owner=owner,
                reason=reason,
                rates=rates,
                subtopology=self._subtopologies.get(topic),
            )
            self._context.rows.lag.append(row)
            known.row = says
            known.row_at = self._elapsed
            if unread.reason == oldest_unread.UNCERTAIN_TIME and self._state.clock.other is not None:
                known.row_at = oldest_unread.AGAIN  # the next round shows whether a clock was wrong


def move_unread(state: GroupState, by: int) -> None:
    """Correct the times of rounds by which lag is judged, after all of them have turned out wrong by so many ms.

    The partitions that are behind get new rows.
    """
    state.round_opened = oldest_unread.moved(state.round_opened, by)
    state.round_closed = oldest_unread.moved(state.round_closed, by)
    for partitions in state.partitions.values():
        for known in partitions.values():
            if known.marks:
                oldest_unread.shift(known, by)
                known.row_at = oldest_unread.AGAIN


def end_partition(
    state: GroupState,
    known: PartitionState,
    observation: GroupObservation,
    context: Context,
    topic: str,
    partition: int,
    *,
    subscribed: bool,
) -> None:
    """Write the closing row of a partition."""
    state.commits += known.commits
    context.rows.lag.append(
        lag.row(
            context,
            topic,
            partition,
            observation,
            known,
            lag.Measured(known.committed, -1, -1, -1, "ended"),
            "unknown",
            oldest_unread.UNKNOWN,
            subscribed=subscribed,
            owner=None,
            reason="ended",
            ended=True,
        )
    )


def _unpack(seen: TopicObservation | None) -> lag.Offsets:
    if seen is None or seen.partitions is None:
        return _EMPTY
    count = seen.partitions
    return (
        lag.offsets_of(seen.high_watermarks, count),
        lag.offsets_of(seen.last_stable_offsets, count),
        lag.offsets_of(seen.log_start_offsets, count),
    )
