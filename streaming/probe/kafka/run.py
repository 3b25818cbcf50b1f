"""The probe of a Kafka cluster: what it keeps from round to round, and what it asks in one round.

    (a) the end of the offsets log: high watermark, then last stable offset; where it is held back, by whom
    (b) everything else: groups; their subscriptions and committed topics, as far as the log since the round before does
        not tell them (`followed.py`); then the topics' metadata and offsets; a few of the cluster's other topics

Where the offsets log is not read (`KafkaCluster.reads_log`), (a) is left out, (b) has membership and committed offsets
as well. The questions by timestamp whose answers later rounds tell follow the round.

Decisions are numbered by the log's offsets, or by rounds; so a cluster keeps the source with which its rounds began
(`Settings.offsets_log`), for as long as the topic of the rounds remembers it. Only a person changes it, together with
the lake.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kafka.admin import ACLOperation

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.probe.bus import read_back
from streaming.probe.clients import open_admin, open_reader
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.brokers import brokers_after, is_outdated
from streaming.probe.kafka.cluster import KafkaCluster
from streaming.probe.kafka.cluster_topics import gone, turns_after
from streaming.probe.kafka.connect_groups import ConfigTail
from streaming.probe.kafka.followed import LogState, LogTail
from streaming.probe.kafka.holds import advance_holds, reported_holds
from streaming.probe.kafka.look import RoundHead
from streaming.probe.kafka.memory import Memory, memory_after, recall
from streaming.probe.kafka.observe import cluster_topic_events, round_events, seen_round
from streaming.probe.kafka.requests import Metadata, Refused, Requests
from streaming.probe.kafka.share_groups import StateTail
from streaming.probe.rounds_probe import ObservedRound, RoundsProbe
from streaming.probe.standby.others import Identity
from streaming.probe.writer import Opened
from streaming.records import ADMIN, LOG

_ABSENT_ASKS: Final = 3
"""How often in a row the log must be missing beside groups to count as hidden, as `turns.ABSENT_ROUNDS`: while a broker
starts it may not know a topic yet, and what is decided by this stays."""

_AGAIN_S: Final = 2.0
"""Until the log is asked for again. All asks together must fit into the shortest deadline (`Probe.LEAST_ROUND_S`, 10 s)
and leave time for their answers."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the groups are read from, and why.

    Attributes:
        name: `LOG` or `ADMIN`.
        sentence: What that means, for people.
    """

    name: str
    sentence: str


def choose(settings: Settings, before: str | None, readable: Callable[[], bool | None]) -> Source | None:
    """Decide where groups are read from.

    Args:
        settings: All settings.
        before: Source of the newest closed round; None when there is none.
        readable: Whether this client may read the offsets log; None if nobody can tell yet, because the cluster has
            neither that topic nor groups. Only asked where it matters.

    Returns:
        None while nobody can tell.

    Raises:
        SetupError: The rounds so far were of the log, which may not be read any more.
    """
    topic, wanted = settings.job.offsets_topic, settings.offsets_log
    if wanted == LOG:
        return Source(LOG, f"Groups are read from {topic}: no completed rebalance is missed.")
    seconds = settings.probe.interval_ms / 1000
    costs = (
        f"groups are asked for every {seconds:g} s: rebalances between two rounds are seen as one, and generations, "
        "leaders, the number of commits and the cost of rebalances stay unknown (docs/admin-mode.md)."
    )
    if wanted == ADMIN:
        return Source(ADMIN, f'With offsets_log = "admin" {topic} is not read; {costs}')
    may_read = readable()
    if before == ADMIN:
        now = ' It may be read now: for the log, set offsets_log = "log" and begin a new lake.' if may_read else ""
        return Source(ADMIN, f"As in the rounds before, {topic} is not read; {costs}{now}")
    if may_read:
        return Source(
            LOG, f"Groups are read from {topic}, which this client may read: no completed rebalance is missed."
        )
    if before == LOG:
        message = (
            f"This client may no longer read {topic}, from which the groups of cluster {settings.cluster!r} were read "
            f'so far: grant Read on Topic {topic!r} again, or set offsets_log = "admin" and begin a new lake '
            "(docs/admin-mode.md)."
        )
        raise SetupError(message)
    if may_read is None:
        return None
    return Source(
        ADMIN,
        f"This client may not read {topic}, so {costs} To read it, grant Read on Topic {topic!r} to this client.",
    )


def is_readable(admin: Any, settings: Settings, deadline: Deadline) -> bool | None:
    """Whether a client may read the offsets log; None if it has neither that topic nor groups.

    A denial counts at once; a topic that is missing beside groups only after several asks, some seconds apart.

    Raises:
        RoundAbandonedError: A broker did not answer, or brokers do not agree on whether there is a log.
        StopRequestedError: The probe is to stop.
    """
    topic = settings.job.offsets_topic
    requests = Requests(admin)
    missing = 0
    for ask in range(_ABSENT_ASKS):
        if ask:
            deadline.stop.wait(min(_AGAIN_S, deadline.remaining()))
        rights = requests.rights([topic], deadline)
        if rights is None:
            return True  # brokers before 2.3 tell no rights, and the job names the one that is missing
        if topic in rights:
            return ACLOperation.READ in rights[topic]
        # A topic that is there and has no leader abandons the round.
        metadata = requests.metadata([topic], deadline)
        if metadata.topics.get(topic) is Refused.UNKNOWN:
            missing += 1
            if not requests.list_groups(metadata.brokers, deadline):
                return None
    if missing < _ABSENT_ASKS:
        message = f"the brokers do not agree on whether there is a topic {topic}"
        raise RoundAbandonedError(message)
    # Some services say of a topic that they hide that it does not exist.
    return False


_LOG = room_log(__name__)


class Probe(RoundsProbe[Memory]):
    """Runs rounds against one Kafka cluster, written to it or to the bus."""

    LEAST_ROUND_S = 10.0
    """Interval settings can be shorter, for demos and tests; a broker's election takes seconds there as well."""

    def __init__(self, settings: Settings, stop: threading.Event | None = None, who: Identity | None = None) -> None:
        """Prepare, as `RoundsProbe` does."""
        super().__init__(settings, stop, who)
        self._clients = ExitStack()
        self._admin: Any = None
        self._cluster: KafkaCluster | None = None
        self._share_tail: StateTail | None = None
        self._source: Source | None = None
        self._log = LogState(Metadata(None, (), False, {}))

    def _close(self) -> None:
        self._admin, self._cluster, self._share_tail = None, None, None
        self._clients.close()

    def _remember(self, deadline: Deadline) -> Memory:
        return read_back(self._settings, deadline, recall) or Memory()

    def _prepare(self, memory: Memory, deadline: Deadline) -> None:
        settings = self._settings
        if self._admin is None:
            self._admin = self._clients.enter_context(closing(open_admin(settings.kafka)))
        if self._source is None:
            self._source = self._choose(memory, deadline)
        if self._cluster is None:
            connect, keep = partial(open_reader, settings.kafka), self._clients.enter_context
            log_tail = None
            if self._source.name == LOG:
                watches = settings.filters.watches_group
                log_tail = keep(closing(LogTail(settings.job.offsets_topic, connect, watches)))
                self._share_tail = keep(closing(StateTail(connect)))
            config_tails = {
                group: keep(closing(ConfigTail(topic, connect)))
                for group, topic in settings.connect_config_topics.items()
            }
            self._cluster = KafkaCluster(
                self._admin,
                settings.job.offsets_topic,
                settings.filters,
                settings.job.heartbeat_ms,
                settings.probe.interval_ms,
                settings.watches_cluster_topic if settings.probe.cluster_topics else None,
                reads_log=self._source.name == LOG,
                tail=log_tail,
                share_tail=self._share_tail,
                config_tails=config_tails,
            )
        # The leaders of the offsets log are requested before the round opens: they say nothing about any group, and
        # without a log there is no round.
        self._log = self._cluster.offsets_log(deadline)

    def _choose(self, memory: Memory, deadline: Deadline) -> Source:
        """Decide for the life of this process where groups are read from."""
        settings = self._settings
        source = choose(settings, memory.source, lambda: is_readable(self._admin, settings, deadline))
        if source is None:
            message = f"the cluster has no topic {settings.job.offsets_topic} yet, because it never had a group"
            raise RoundAbandonedError(message)
        _LOG.info("%s", source.sentence)
        return source

    def _observe(self, opened: Opened, memory: Memory, deadline: Deadline) -> ObservedRound[Memory]:
        assert self._cluster is not None  # noqa: S101 - it is prepared
        settings, cluster = self._settings, self._cluster
        log = cluster.log_positions(self._log, opened.time, deadline)
        holds = advance_holds(memory.holds, log.stable, log.end, log.time)
        head = RoundHead(
            cluster=settings.cluster,
            cluster_id=log.metadata.cluster_id,
            number=opened.number,
            time=log.time,
            log=log.stable,
            holds=cluster.name_holders(log, holds, deadline),
            configured=self._configured,
        )
        brokers = brokers_after(
            memory.brokers, log.metadata.hosts, log.coordinators, log.time, memory.time, memory.outdated
        )
        outdated = memory.outdated + 1 if is_outdated(brokers, log.coordinators) else 0
        look = cluster.observe_groups(log, memory, deadline)
        asked = cluster.ask_topics(log, look, memory.turns, deadline)
        ended = gone(memory.turns, asked, settings.watches_cluster_topic)
        turns = turns_after(memory.turns, asked, ended, log.time)
        after = replace(memory_after(head, look, memory, turns), brokers=brokers, outdated=outdated)
        seen = None if cluster.reads_log else seen_round(head, look, memory, after, settings.job.heartbeat_ms)
        if seen is not None:
            after = replace(after, told=seen.told)
        events = round_events(head, look, memory, after, settings.filters, settings.job.heartbeat_ms, seen)
        closing = {
            "log": log.stable,
            "log_end": log.end,
            "cluster_id": head.cluster_id,
            "holds": reported_holds(head.holds, log.end, map(log.home, look.groups)) if cluster.reads_log else None,
            "untold": len(look.groups.keys() - {event.key for event in events}),
            "topics_since": turns.since,
            "offsets_retention_minutes": cluster.offsets_retention(log, deadline),
            "source": LOG if cluster.reads_log else ADMIN,
            "brokers": brokers,
            "share_log": look.share_log,
            "unreadable": self._share_tail.unreadable if self._share_tail is not None else (),
        }
        return ObservedRound([*cluster_topic_events(head, asked, ended, look, memory), *events], after, closing)

    def _follow_up(self, deadline: Deadline) -> None:
        assert self._cluster is not None  # noqa: S101 - it has observed
        if self._share_tail is not None:
            self._share_tail.forget_unreadable()
        self._cluster.ask_timestamps(deadline)
