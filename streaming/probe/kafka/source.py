"""Where a cluster's groups are read from: its offsets log, or Kafka's requests about groups (`Settings.offsets_log`).

Decisions are numbered by the log's offsets, or by rounds; so a cluster keeps the source with which its rounds began,
for as long as the topic of the rounds remembers it. Only a person changes it, together with the lake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kafka.admin import ACLOperation

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.probe.clients import Connections
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.kafka.requests import GroupRequests, MetadataRequests, Refused
from streaming.probe.topics import topic_rights
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
        KafkaError: A broker did not answer.
    """
    topic = settings.job.offsets_topic
    connections = Connections(admin)
    missing = 0
    for ask in range(_ABSENT_ASKS):
        if ask:
            deadline.stop.wait(min(_AGAIN_S, deadline.remaining()))
        rights = topic_rights(admin, [topic])
        if rights is None:
            return True  # brokers before 2.3 tell no rights, and the job names the one that is missing
        if topic in rights:
            return ACLOperation.READ in rights[topic]
        # A topic that is there and has no leader abandons the round.
        metadata = MetadataRequests(connections).metadata([topic], deadline)
        if metadata.topics.get(topic) is Refused.UNKNOWN:
            missing += 1
            if not GroupRequests(connections).list_groups(metadata.brokers, deadline):
                return None
    if missing < _ABSENT_ASKS:
        message = f"the brokers do not agree on whether there is a topic {topic}"
        raise RoundAbandonedError(message)
    # Some services say of a topic that they hide that it does not exist.
    return False
