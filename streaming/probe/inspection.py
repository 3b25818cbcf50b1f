"""What `evenkeel doctor` asks of a cluster beside the check at the start: brokers, the log, retention.

Nothing is written, created or joined. A look that a right or an old release forbids says that it is not known.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

from kafka import TopicPartition
from kafka.errors import AuthorizationError, KafkaError
from kafka.protocol.metadata import MetadataRequest

from streaming.config import KafkaSettings, Settings
from streaming.exceptions import EvenkeelError
from streaming.probe.clients import Connections, open_consumer
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import error_text
from streaming.probe.readback import bounds
from streaming.probe.topics import OwnTopic
from streaming.records import ADMIN

CheckState = Literal["ok", "warn", "wrong"]
"""ok: nothing to do. warn: it works, but not as it should, or not for long. wrong: it does not work."""

# A broker that can be reached accepts a connection within milliseconds, across continents within a second.
_CONNECT_S: Final = 3.0

# All requests of one kind together.
_REQUESTS_S: Final = 15.0

# A record of the log comes within milliseconds; a cluster that needs longer is in trouble.
_READ_MS: Final = 5_000

# A weekend: a job that stands still from Friday evening to Monday morning should lose nothing.
_DOWNTIME_MS: Final = 48 * 3_600_000


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check, of `up`'s start or of the doctor, has seen.

    Attributes:
        area: What it belongs to: settings, cluster, lake, machine, alerts.
        what: What was checked.
        state: ok, warn or wrong.
        text: What was seen; for warn and wrong also what to do.
    """

    area: str
    what: str
    state: CheckState
    text: str


def tried(area: str, what: str, look: Callable[[], tuple[CheckState, str]]) -> CheckResult:
    """What a look at something has seen, as state and text; an error that says what to do is wrong."""
    try:
        state, text = look()
    except EvenkeelError as error:
        state, text = "wrong", str(error)
    return CheckResult(area, what, state, text)


def inspect_cluster(section: str, kafka: KafkaSettings, admin: Any, settings: Settings) -> Iterator[CheckResult]:
    """Ask one cluster.

    Args:
        section: Its section of the settings, `kafka` or `bus`.
        kafka: Its connection.
        admin: An open admin client.
        settings: All settings.
    """
    topics = [settings.job.offsets_topic] if section == "kafka" else []
    if section == "bus" or settings.bus is None:
        topics += [settings.probe.rounds_topic, settings.probe.events_topic]
    answer = _metadata(admin, topics)
    yield _version(section, admin)
    yield from _brokers(section, kafka, answer)
    if section == "kafka":
        yield _log(settings, answer)


def _metadata(admin: Any, topics: list[str]) -> Any:
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    [answer] = Connections(admin).ask([(None, request)], Deadline.after(_REQUESTS_S))
    return answer


def _version(section: str, admin: Any) -> CheckResult:
    found = admin._manager.broker_version_data.broker_version  # noqa: SLF001  (as clients.py does, and why)
    release = ".".join(map(str, found))
    return _ok(f"{section}: release", f"the brokers answer requests as Kafka {release} or newer does")


def _brokers(section: str, kafka: KafkaSettings, answer: Any) -> Iterator[CheckResult]:
    """Brokers that are down, by the replicas that they should have; and those whose advertised address is no use."""
    alive = {broker.node_id: broker for broker in answer.brokers}
    missing: set[int] = set()
    leaderless: list[str] = []
    for topic in answer.topics:
        for partition in topic.partitions or ():
            missing.update(node for node in partition.replica_nodes if node not in alive)
            if partition.leader_id not in alive:
                leaderless.append(f"{topic.name} {partition.partition_index}")
    what = f"{section}: brokers"
    for node in sorted(missing):
        problem = f"Broker {node} is down or unknown: it should have replicas of our topics or of the log. Start it."
        yield CheckResult("cluster", what, "warn", problem)
    if leaderless:
        listed = ", ".join(leaderless[:5]) + (f" and {len(leaderless) - 5} more" if len(leaderless) > 5 else "")
        yield _wrong(what, f"{len(leaderless)} partitions have no leader ({listed}): start their brokers.")
    unreachable = 0
    for node, broker in sorted(alive.items()) if not kafka.has_proxy else ():
        reason = refusal_of(broker.host, broker.port)
        if reason is not None:
            unreachable += 1
            problem = (
                f"Broker {node} says that it is at {broker.host}:{broker.port}, which cannot be reached from here "
                f"({reason}): correct its advertised.listeners, or the network's way there."
            )
            yield _wrong(what, problem)
    if not (missing or leaderless or unreachable):
        yield _ok(what, f"{len(alive)} up, and every one that has replicas")


def refusal_of(host: str, port: int) -> str | None:
    """Why an address takes no connection; None when it does."""
    try:
        socket.create_connection((host.strip("[]"), port), _CONNECT_S).close()
    except (OSError, UnicodeError, OverflowError) as error:
        return str(getattr(error, "strerror", None) or error).lower()
    return None


def _log(settings: Settings, answer: Any) -> CheckResult:
    """Whether the offsets log can be read: one record of it is."""
    what = f"{settings.job.offsets_topic}: readable"
    if settings.offsets_log == ADMIN:
        return _ok(what, 'not asked: with offsets_log = "admin" groups are asked for instead')
    topic = next((t for t in answer.topics if t.name == settings.job.offsets_topic), None)
    if topic is None or topic.error_code or not topic.partitions:
        return _ok(what, "it is not there yet: it comes with the cluster's first consumer group")
    partitions = [TopicPartition(topic.name, p.partition_index) for p in topic.partitions]
    try:
        with closing(open_consumer(settings.kafka)) as consumer:
            offsets = bounds(consumer, partitions, Deadline.after(_REQUESTS_S))
            full = [partition for partition, (first, end) in offsets.items() if first < end]
            if not full:
                return _ok(what, f"{len(partitions)} partitions, all empty: no group has committed yet")
            consumer.assign(full[:1])
            consumer.seek(full[0], offsets[full[0]][0])
            read = consumer.poll(timeout_ms=_READ_MS, max_records=1)
    except (KafkaError, EvenkeelError, AssertionError) as error:
        if isinstance(error, AuthorizationError) and settings.offsets_log == "auto":
            return _ok(what, "no, so groups are asked for instead (docs/admin-mode.md says what is lost)")
        why = error_text(error) if isinstance(error, KafkaError) else str(error)
        mend = "docs/security.md has the rights" if isinstance(error, AuthorizationError) else "Look at the brokers"
        return _wrong(what, f"The log cannot be read ({why}): the job would stop. {mend}.")
    if read:
        records = sum(end - first for first, end in offsets.values())
        return _ok(what, f"{len(partitions)} partitions, offsets for {records:,} records")
    problem = (
        f"No record of {full[0].topic} {full[0].partition} came within {_READ_MS // 1000} s, although it should have "
        "some: look at its leader's log, and at quotas."
    )
    return CheckResult("cluster", what, "warn", problem)


def retention(found: Mapping[str, OwnTopic], settings: Settings) -> CheckResult:
    """How long the job may be down before the probe's topics lose rounds that it has not read."""
    what = "the probe's topics: retention"
    if not found:
        return _ok(what, "not there yet: the probe creates them at its first start")
    told = {name: topic.configs.get("retention.ms") for name, topic in found.items()}
    known = {name: int(value) for name, value in told.items() if value is not None}
    if not known:
        return _ok(what, "not known without the right DescribeConfigs on these topics")
    name, shortest = min(known.items(), key=lambda pair: pair[1] if pair[1] >= 0 else 2**63)
    if 0 <= shortest < _DOWNTIME_MS:
        problem = (
            f"Topic {name} keeps records for {shortest / 3_600_000:,.1f} h: a job that is down for longer loses "
            f"rounds. Raise it with kafka-configs --alter --topic {name} --add-config "
            f"retention.ms={settings.probe.retention_ms}."
        )
        return CheckResult("cluster", what, "warn", problem)
    hours = "for ever" if shortest < 0 else f"for {shortest / 3_600_000:,.0f} h"
    return _ok(what, f"records are kept {hours}: the job may be down as long")


def _ok(what: str, text: str) -> CheckResult:
    return CheckResult("cluster", what, "ok", text)


def _wrong(what: str, text: str) -> CheckResult:
    return CheckResult("cluster", what, "wrong", text)
