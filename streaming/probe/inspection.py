"""What `evenkeel doctor` asks of a cluster beside the check at the start: brokers' addresses, and a record of the log.

Nothing is written, created or joined. A look that a right or an old release forbids says that it is not known.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

from kafka import TopicPartition
from kafka.admin import ACLOperation
from kafka.errors import AuthorizationError, KafkaError
from kafka.protocol.metadata import MetadataRequest

from streaming.config import KafkaSettings, Settings
from streaming.exceptions import EvenkeelError
from streaming.probe.bus import bounds
from streaming.probe.clients import Connections, open_consumer
from streaming.probe.deadline import Deadline, error_text
from streaming.probe.kafka.requests import MetadataRequests, Refused
from streaming.probe.topics import topic_rights
from streaming.records import ADMIN
from streaming.share_state import TOPIC as SHARE_STATE

CheckState = Literal["ok", "warn", "wrong"]
"""ok: nothing to do. warn: it works, but not as it should, or not for long. wrong: it does not work."""

# A broker that can be reached accepts a connection within milliseconds, across continents within a second.
_CONNECT_S: Final = 3.0

# All requests of one kind together.
_REQUESTS_S: Final = 15.0

# A group that need not exist: the broker checks the right to read its settings before that.
_NO_GROUP: Final = "evenkeel-preflight"

# A record of the log comes within milliseconds; a cluster that needs longer is in trouble.
_READ_MS: Final = 5_000


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
    answer = _metadata(admin, [settings.job.offsets_topic] if section == "kafka" else [])
    yield from _brokers(section, kafka, answer)
    if section == "kafka":
        yield _log(settings, answer)
        yield from _share_groups(admin, settings)


def _metadata(admin: Any, topics: list[str]) -> Any:
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    [answer] = Connections(admin).ask([(None, request)], Deadline.after(_REQUESTS_S))
    return answer


def _brokers(section: str, kafka: KafkaSettings, answer: Any) -> Iterator[CheckResult]:
    """Brokers whose advertised address is no use."""
    what, reached = f"{section}: brokers", True
    for broker in answer.brokers if not kafka.has_proxy else ():
        reason = refusal_of(broker.host, broker.port)
        if reason is not None:
            reached = False
            problem = (
                f"Broker {broker.node_id} says that it is at {broker.host}:{broker.port}, which cannot be reached from "
                f"here ({reason}): correct its advertised.listeners, or the network's way there."
            )
            yield _wrong(what, problem)
    if reached:
        yield _ok(what, f"{len(answer.brokers)} up")


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


def _share_groups(admin: Any, settings: Settings) -> Iterator[CheckResult]:
    """The rights that only share groups need, where there are any: their topic shows it."""
    what = f"right Read on Topic {SHARE_STATE!r}"
    rights = (topic_rights(admin, [SHARE_STATE]) or {}).get(SHARE_STATE)
    if not rights:
        yield _ok(what, "not known: the topic is not there, or not visible; only share groups have it")
        return
    grant = "grant it (docs/security.md has the ACL lines)"
    if settings.offsets_log == ADMIN:
        yield _ok(what, "not wanted: share groups are asked for (docs/admin-mode.md)")
    elif ACLOperation.READ in rights:
        yield _ok(what, "yes")
    else:
        lacks = f"This client lacks it, so only start offsets and lag of share groups are known: {grant}."
        yield CheckResult("cluster", what, "warn", lacks)
    what = "right DescribeConfigs on groups"
    named = [group for group in settings.filters.groups if not group.startswith("/")] or [_NO_GROUP]
    told = MetadataRequests(Connections(admin)).share_settings(named, Deadline.after(_REQUESTS_S))
    if Refused.FORBIDDEN in told.values():
        lacks = f"This client lacks it, so nobody can say when deliveries of share groups are stuck: {grant}."
        yield CheckResult("cluster", what, "warn", lacks)
    else:
        yield _ok(what, "yes" if told else "not known: these brokers do not tell settings of groups")


def _ok(what: str, text: str) -> CheckResult:
    return CheckResult("cluster", what, "ok", text)


def _wrong(what: str, text: str) -> CheckResult:
    return CheckResult("cluster", what, "wrong", text)
