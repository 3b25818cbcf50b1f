"""Checks before the start: can the cluster be reached, and has this client every right that probe and job need?

Each missing right becomes one sentence that names the right and the resource. Nothing is written, created or joined.
The list of rights, as ACL lines, is `docs/security.md`.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kafka.admin import ACLOperation
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from streaming.config import KafkaSettings, Settings
from streaming.events import LOG
from streaming.exceptions import EvenkeelError, SetupError
from streaming.probe.clients import Connections, open_admin
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import error_text
from streaming.probe.requests import GroupRequests, MetadataRequests, Refused
from streaming.probe.rights import topic_rights
from streaming.probe.rocketmq.preflight import cluster_problems
from streaming.probe.topics import creation_problem, wrong_settings

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


def check(settings: Settings) -> list[Problem]:
    """Try what the probe and the job will do, and return what will not work; empty when all is well."""
    if settings.rocketmq is not None:
        found = [Problem(sentence) for sentence in cluster_problems(settings)]
        if settings.bus is not None:
            found += _checked("bus", settings.bus, lambda admin: _bus_lacks(admin, settings))
        return found

    def watched(admin: Any) -> Iterator[str]:
        yield from _watched_lacks(admin, settings)
        if settings.bus is None:
            yield from _bus_lacks(admin, settings)

    problems = _checked("kafka", settings.kafka, watched)
    if settings.bus is not None:
        problems += _checked("bus", settings.bus, lambda admin: _bus_lacks(admin, settings))
    return problems


def _checked(section: str, kafka: KafkaSettings, lacks: Callable[[Any], Iterator[str]]) -> list[Problem]:
    """Connect as one section of the settings says, and return what is missing there."""
    try:
        unreachable = _unreachable(section, kafka)
        if unreachable:
            return [Problem(unreachable)]
        admin = open_admin(kafka)
    except SetupError as error:
        return [Problem(str(error))]
    except KafkaError as error:
        return [Problem(_not_opened(section, kafka, error))]
    except (OSError, ValueError, ssl.SSLError) as error:
        return [Problem(f"The client settings of section {section} cannot be used ({error}): correct them.")]
    try:
        return [Problem(sentence) for sentence in lacks(admin)]
    except (KafkaError, EvenkeelError) as error:
        why = error_text(error) if isinstance(error, KafkaError) else str(error)
        addresses = kafka.bootstrap_servers
        return [Problem(f"The Kafka cluster at {addresses} stopped answering ({why}): look at its brokers.")]
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


def _watched_lacks(admin: Any, settings: Settings) -> Iterator[str]:
    """What is missing on the watched cluster."""
    connections = Connections(admin)
    groups, topics = GroupRequests(connections), MetadataRequests(connections)
    deadline = Deadline.after(_CHECK_S)
    rights = topic_rights(admin, [settings.job.offsets_topic]) or {}
    if settings.offsets_log == LOG and ACLOperation.READ not in rights.get(
        settings.job.offsets_topic, {ACLOperation.READ}
    ):
        log = f"Topic {settings.job.offsets_topic!r}"
        yield _lack(settings.kafka, "Read", log, "the job cannot read the groups' log")
    yield from _group_lacks(groups, topics, settings, deadline)
    yield from _topic_lacks(topics, settings, deadline)


def _bus_lacks(admin: Any, settings: Settings) -> Iterator[str]:
    """What is missing on the cluster with the probe's two topics."""
    rights = topic_rights(admin, [settings.probe.rounds_topic, settings.probe.events_topic]) or {}
    for name in (settings.probe.rounds_topic, settings.probe.events_topic):
        granted = rights.get(name)
        if granted:  # it exists, and we may describe it
            if ACLOperation.WRITE not in granted:
                yield _lack(settings.bus_kafka, "Write", f"Topic {name!r}", "the probe cannot write its rounds")
            if ACLOperation.READ not in granted:
                yield _lack(settings.bus_kafka, "Read", f"Topic {name!r}", "the job cannot read what the probe wrote")
    if problem := creation_problem(admin, settings.probe):
        yield problem
    yield from wrong_settings(admin, settings.probe)


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
    for topic, places in topics.metadata(watched, deadline).topics.items():
        if places is not Refused.FORBIDDEN:
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
