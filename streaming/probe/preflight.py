"""Checks before the start: can the cluster be reached, and has this client every right that probe and job need?

Each missing right becomes one sentence that names the right and the resource. Nothing is written, created or joined.
The list of rights, as ACL lines, is `docs/security.md`.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.admin import ACLOperation
from kafka.errors import AuthorizationError, KafkaError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError

from streaming.config import KafkaSettings, Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.probe.clients import Connections, open_admin
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import error_text
from streaming.probe.kafka.requests import GroupRequests, MetadataRequests, Refused
from streaming.probe.rights import topic_rights
from streaming.probe.rocketmq.preflight import cluster_problems
from streaming.probe.topics import creation_problem, wrong_settings
from streaming.records import ADMIN, LOG

_CONNECT_S = 5.0
"""A broker that can be reached accepts a connection within milliseconds, across continents within a second."""

_CHECK_S = 30.0
"""All requests together take well under a second; a cluster that needs longer is in trouble."""

_NOBODY = "evenkeel-preflight"
"""A group and a topic that need not exist: the broker checks the right to describe one before its existence."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a person must fix before the start.

    Attributes:
        sentence: What is wrong, where, what to do.
    """

    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, slots=True)
class Inspected:
    """One thing that was looked at.

    Attributes:
        what: What it is, in a few words.
        problem: What is wrong, where, what to do; None when nothing is.
        note: What was seen, where nothing is wrong.
        serious: Whether the problem keeps Evenkeel from working.
    """

    what: str
    problem: str | None = None
    note: str = ""
    serious: bool = True


More = Callable[[str, KafkaSettings, Any], Iterator[Inspected]]
"""Further looks at one cluster: its section of the settings, its connection, and an open admin client."""


def check(settings: Settings) -> list[Problem]:
    """Try what the probe and the job will do, and return what will not work; empty when all is well."""
    return [Problem(one.problem) for one in inspect(settings) if one.problem is not None and one.serious]


def inspect(settings: Settings, more: More | None = None) -> Iterator[Inspected]:
    """Try what the probe and the job will do, and say of each thing whether it works.

    Args:
        settings: All settings.
        more: Further looks at each cluster, once it has been reached.
    """
    if settings.rocketmq is not None:
        yield from _each("rocketmq: name servers and brokers", list(cluster_problems(settings)))
        if settings.bus is not None:
            yield from _inspected("bus", settings.bus, lambda admin: _of_bus(admin, settings), more)
        return

    def watched(admin: Any) -> Iterator[Inspected]:
        yield from _watched(admin, settings)
        if settings.bus is None:
            yield from _of_bus(admin, settings)

    yield from _inspected("kafka", settings.kafka, watched, more)
    if settings.bus is not None:
        yield from _inspected("bus", settings.bus, lambda admin: _of_bus(admin, settings), more)


def _inspected(
    section: str, kafka: KafkaSettings, looks: Callable[[Any], Iterator[Inspected]], more: More | None
) -> Iterator[Inspected]:
    """Connect as one section of the settings says, and look around there."""
    connection = f"{section}: connection"
    try:
        unreachable = _unreachable(section, kafka)
        if unreachable:
            yield Inspected(connection, unreachable)
            return
        admin = open_admin(kafka)
    except SetupError as error:
        yield Inspected(connection, str(error))
        return
    except KafkaError as error:
        yield Inspected(connection, _not_opened(section, kafka, error))
        return
    except (OSError, ValueError, ssl.SSLError) as error:
        problem = f"The client settings of section {section} cannot be used ({error}): correct them."
        yield Inspected(connection, problem)
        return
    try:
        yield Inspected(connection, note=f"{kafka.bootstrap_servers} answers with {kafka.security_protocol}")
        yield from looks(admin)
        if more is not None:
            yield from more(section, kafka, admin)
    except (KafkaError, EvenkeelError) as error:
        why = error_text(error) if isinstance(error, KafkaError) else str(error)
        addresses = kafka.bootstrap_servers
        problem = f"The Kafka cluster at {addresses} stopped answering ({why}): look at its brokers."
        yield Inspected(connection, problem)
    finally:
        admin.close()


def _unreachable(section: str, kafka: KafkaSettings) -> str | None:
    """Why none of the addresses takes a connection; None when one does."""
    if kafka.has_proxy:
        return None  # the route goes elsewhere, and the client will report it
    reasons = []
    for address in kafka.bootstrap_servers.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            host, port = address.strip(), "9092"
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
        except (OSError, UnicodeError, OverflowError) as error:
            reasons.append(str(getattr(error, "strerror", None) or error).lower())
        else:
            return None
    return (
        f"The Kafka cluster at {kafka.bootstrap_servers} cannot be reached ({'; '.join(dict.fromkeys(reasons))}): "
        f"correct {section}.bootstrap_servers, or start its brokers."
    )


def _not_opened(section: str, kafka: KafkaSettings, error: KafkaError) -> str:
    addresses = kafka.bootstrap_servers
    if isinstance(error, (SaslAuthenticationFailedError, AuthorizationError)):
        return (
            f"The Kafka cluster at {addresses} refused the user {kafka.sasl_username!r} ({error_text(error)}): correct "
            f"{section}.sasl_username and its password."
        )
    if isinstance(error, UnsupportedSaslMechanismError):
        return (
            f"The Kafka cluster at {addresses} does not offer {kafka.sasl_mechanism} ({error_text(error)}): correct "
            f"{section}.sasl_mechanism."
        )
    return (
        f"{addresses} accepts connections, but no Kafka broker answers there with {kafka.security_protocol} "
        f"({error_text(error)}): correct {section}.security_protocol, or the address."
    )


def _watched(admin: Any, settings: Settings) -> Iterator[Inspected]:
    """The rights on the watched cluster, one by one."""
    connections = Connections(admin)
    groups, topics = GroupRequests(connections), MetadataRequests(connections)
    deadline = Deadline.after(_CHECK_S)
    yield _of_log(topic_rights(admin, [settings.job.offsets_topic]) or {}, settings)
    lacking = list(_group_lacks(groups, topics, settings, deadline))
    yield from _each("right Describe on groups", lacking)
    yield from _each("right Describe on topics", list(_topic_lacks(topics, settings, deadline)))


def _of_log(rights: Mapping[str, set[Any]], settings: Settings) -> Inspected:
    """The right to read the log, which is wanted only where `offsets_log` is "log"."""
    log = f"Topic {settings.job.offsets_topic!r}"
    lacks = ACLOperation.READ not in rights.get(settings.job.offsets_topic, {ACLOperation.READ})
    if settings.offsets_log != LOG and (lacks or settings.offsets_log == ADMIN):
        return Inspected(f"right Read on {log}", None, "not wanted: groups are asked for (docs/admin-mode.md)")
    problem = _lack(settings.kafka, "Read", log, "the job cannot read the groups' log") if lacks else None
    return Inspected(f"right Read on {log}", problem, "" if rights else "not known before it is read")


def _each(what: str, problems: list[str]) -> Iterator[Inspected]:
    """One line a problem, or one line that there is none."""
    yield from (Inspected(what, problem) for problem in problems)
    if not problems:
        yield Inspected(what)


def _of_bus(admin: Any, settings: Settings) -> Iterator[Inspected]:
    """The probe's two topics, on the cluster that has them: rights, creation, settings."""
    names = (settings.probe.rounds_topic, settings.probe.events_topic)
    rights = topic_rights(admin, names) or {}
    for name in names:
        granted = rights.get(name)
        if granted:  # it exists, and we may describe it
            for right, why in (
                (ACLOperation.WRITE, "the probe cannot write its rounds"),
                (ACLOperation.READ, "the job cannot read what the probe wrote"),
            ):
                word, topic = right.name.capitalize(), f"Topic {name!r}"
                problem = None if right in granted else _lack(settings.bus_kafka, word, topic, why)
                yield Inspected(f"right {word} on {topic}", problem)
    yield Inspected("the probe's topics: there, or may be created", creation_problem(admin, settings.probe))
    yield from _each("the probe's topics: settings", wrong_settings(admin, settings.probe))


def _group_lacks(
    groups: GroupRequests, topics: MetadataRequests, settings: Settings, deadline: Deadline
) -> Iterator[str]:
    watched = [group for group in settings.filters.groups if not group.startswith("/")] or [_NOBODY]
    brokers = topics.metadata([], deadline).brokers
    refused = groups.forbidden_groups(watched, brokers[0], deadline)
    if refused == [_NOBODY]:
        # Rights on a prefix of names show the groups with that prefix, which is then what was meant.
        if not groups.list_groups(brokers, deadline):
            yield _lack(settings.kafka, "Describe", "Group '*'", "no group would be seen")
        return
    for group in refused:
        yield _lack(settings.kafka, "Describe", f"Group {group!r}", "the group is to be watched")


def _topic_lacks(topics: MetadataRequests, settings: Settings, deadline: Deadline) -> Iterator[str]:
    watched = [topic for topic in settings.filters.topics if not topic.startswith("/")] or [_NOBODY]
    for topic, metadata in topics.metadata(watched, deadline).topics.items():
        if metadata is not Refused.FORBIDDEN:
            continue
        if topic != _NOBODY:
            yield _lack(settings.kafka, "Describe", f"Topic {topic!r}", "the topic is to be watched")
        elif not settings.filters.topics:
            yield _lack(
                settings.kafka, "Describe", "Topic '*'", "partitions and ends of the groups' topics stay unseen"
            )


def _lack(kafka: KafkaSettings, right: str, resource: str, why: str) -> str:
    who = f"User {kafka.sasl_username!r}" if kafka.sasl_username else "This client"
    return f"{who} lacks the right {right} on {resource}, so {why}: grant it (docs/security.md has the ACL lines)."
