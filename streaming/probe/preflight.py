"""Checks before the start: can the cluster be reached, and has this client every right that probe and job need?

Each missing right becomes one sentence that names the right and the resource. Nothing is written, created or joined.
The list of rights, as ACL lines, is `docs/security.md`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kafka.admin import ACLOperation
from kafka.cluster import collect_hosts
from kafka.errors import KafkaError

from streaming.bus import BusFolderError, FolderObjects
from streaming.config import KafkaSettings, Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.probe.clients import open_admin
from streaming.probe.deadline import Deadline, error_text
from streaming.probe.inspection import CheckResult, CheckState, inspect_brokers, refusal_of, tried
from streaming.probe.kafka.requests import Refused, Requests
from streaming.probe.rocketmq.run import cluster_problems
from streaming.probe.topics import create_missing, own_topics, wrong_settings
from streaming.records import ADMIN, LOG
from streaming.share_state import TOPIC as SHARE_STATE
from streaming.stores import on_object_store

_CHECK_S = 30.0
"""All requests together take well under a second; a cluster that needs longer is in trouble."""

_NOBODY = "evenkeel-preflight"
"""A group and a topic that need not exist: the broker checks the right to describe one before its existence."""


def ensure_ready(settings: Settings) -> None:
    """Try what the probe and the job will do.

    Raises:
        SetupError: Something will not work: a sentence a line, with what to do.
    """
    if problems := check(settings):
        raise SetupError("\n".join(problems))


def check(settings: Settings) -> list[str]:
    """A sentence for each thing that will not work, with what to do."""
    return [line.text for line in inspect(settings) if line.state == "wrong"]


def inspect(settings: Settings, *, thoroughly: bool = False) -> Iterator[CheckResult]:
    """Try what the probe and the job will do, and say of each thing whether it works.

    Args:
        settings: All settings.
        thoroughly: Try also every broker's address, as the doctor does.
    """
    if settings.rocketmq is not None:
        yield from _each("rocketmq: name servers and brokers", list(cluster_problems(settings)))
    else:
        yield from _inspected("kafka", settings.kafka, settings, thoroughly=thoroughly)
    if settings.bus_folder is not None:
        yield tried("cluster", "bus: folder", partial(_inspect_folder, settings.bus_folder, settings.cluster))
    elif settings.bus is not None:
        yield from _inspected("bus", settings.bus_kafka, settings, thoroughly=thoroughly)


def _inspected(section: str, kafka: KafkaSettings, settings: Settings, *, thoroughly: bool) -> Iterator[CheckResult]:
    """Connect as one section of the settings says, and look around there."""
    connection = f"{section}: connection"
    try:
        unreachable = _unreachable(section, kafka)
        if unreachable:
            yield CheckResult("cluster", connection, "wrong", unreachable)
            return
        admin = open_admin(kafka)
    except SetupError as error:
        yield CheckResult("cluster", connection, "wrong", str(error))
        return
    except KafkaError as error:
        yield CheckResult("cluster", connection, "wrong", _not_opened(section, kafka, error))
        return
    except (OSError, ValueError, ssl.SSLError) as error:
        problem = f"The client settings of section {section} cannot be used ({error}): correct them."
        yield CheckResult("cluster", connection, "wrong", problem)
        return
    try:
        yield CheckResult(
            "cluster", connection, "ok", f"{kafka.bootstrap_servers} answers with {kafka.security_protocol}"
        )
        if section == "kafka":
            yield from _watched(Requests(admin), settings)
        if section == "bus" or settings.bus is None:
            yield from _inspect_bus(admin, settings)
        if thoroughly:
            yield from inspect_brokers(section, kafka, admin)
    except (KafkaError, EvenkeelError) as error:
        why = error_text(error) if isinstance(error, KafkaError) else str(error)
        addresses = kafka.bootstrap_servers
        problem = f"The Kafka cluster at {addresses} stopped answering ({why}): look at its brokers."
        yield CheckResult("cluster", connection, "wrong", problem)
    finally:
        admin.close()


def _unreachable(section: str, kafka: KafkaSettings) -> str | None:
    """Why none of the addresses takes a connection; None when one does."""
    if kafka.has_proxy:
        return None  # the route goes elsewhere, and the client will report it
    reasons = dict.fromkeys(refusal_of(host, port) for host, port, _ in collect_hosts(kafka.bootstrap_servers))
    if None in reasons:
        return None
    return (
        f"The Kafka cluster at {kafka.bootstrap_servers} cannot be reached ({'; '.join(map(str, reasons))}): correct "
        f"{section}.bootstrap_servers, or start its brokers."
    )


def _not_opened(section: str, kafka: KafkaSettings, error: KafkaError) -> str:
    user = "" if kafka.sasl_username is None else f" and the user {kafka.sasl_username!r}"
    return (
        f"No Kafka broker lets this client in at {kafka.bootstrap_servers} with {kafka.security_protocol}{user} "
        f"({error_text(error)}): correct the address, and in section {section} security_protocol, sasl_mechanism, "
        "sasl_username and its password, or its token."
    )


def _watched(requests: Requests, settings: Settings) -> Iterator[CheckResult]:
    """The rights on the watched cluster, one by one."""
    deadline = Deadline.after(_CHECK_S)
    yield _of_log(requests.rights([settings.job.offsets_topic], deadline) or {}, settings)
    yield from _of_configs(requests, settings, deadline)
    yield from _each("right Describe on groups", list(_group_lacks(requests, settings, deadline)))
    yield from _each("right Describe on topics", list(_topic_lacks(requests, settings, deadline)))
    yield from _of_share_groups(requests, settings, deadline)


def _of_log(rights: Mapping[str, set[Any]], settings: Settings) -> CheckResult:
    """The right to read the log, which is wanted only where `offsets_log` is "log"."""
    log = f"Topic {settings.job.offsets_topic!r}"
    what = f"right Read on {log}"
    lacks = ACLOperation.READ not in rights.get(settings.job.offsets_topic, {ACLOperation.READ})
    if settings.offsets_log != LOG and (lacks or settings.offsets_log == ADMIN):
        return CheckResult("cluster", what, "ok", "not wanted: groups are asked for (docs/admin-mode.md)")
    if lacks:
        text = _lack(settings.kafka, "Read", log, "the job cannot read the groups' log")
        return CheckResult("cluster", what, "wrong", text)
    return CheckResult("cluster", what, "ok", "yes" if rights else "not known before it is read")


def _of_configs(requests: Requests, settings: Settings, deadline: Deadline) -> Iterator[CheckResult]:
    """The topics that say what Connect groups should run; without one a group is judged by its records alone."""
    topics = sorted(set(settings.connect_config_topics.values()))
    rights = requests.rights(topics, deadline) if topics else None
    for topic in topics:
        what = f"what Connect groups should run: topic {topic!r}"
        if rights is None:
            yield CheckResult("cluster", what, "ok", "not known before it is read")
        elif topic not in rights:
            text = f"There is no topic {topic!r}: correct connect_config_topics, or start the workers that create it."
            yield CheckResult("cluster", what, "warn", text)
        elif ACLOperation.READ not in rights[topic]:
            why = "connectors and tasks that never ran are not missed"
            yield CheckResult("cluster", what, "warn", _lack(settings.kafka, "Read", f"Topic {topic!r}", why))
        else:
            yield CheckResult("cluster", what, "ok", "may be read")


def _of_share_groups(requests: Requests, settings: Settings, deadline: Deadline) -> Iterator[CheckResult]:
    """The rights that only share groups need, where their topic shows that there are any."""
    rights = (requests.rights([SHARE_STATE], deadline) or {}).get(SHARE_STATE)
    if not rights:
        return
    if ACLOperation.READ not in rights and settings.offsets_log != ADMIN:
        why = "only start offsets and lag of share groups are known"
        text = _lack(settings.kafka, "Read", f"Topic {SHARE_STATE!r}", why)
        yield CheckResult("cluster", "rights for share groups", "warn", text)
    watched = [group for group in settings.filters.groups if not group.startswith("/")] or [_NOBODY]
    if Refused.FORBIDDEN in requests.share_settings(watched, deadline).values():
        why = "nobody can say when deliveries of share groups are stuck"
        text = _lack(settings.kafka, "DescribeConfigs", "Group '*'", why)
        yield CheckResult("cluster", "rights for share groups", "warn", text)


def _each(what: str, problems: list[str]) -> Iterator[CheckResult]:
    """One line a problem, or one line that there is none."""
    yield from (CheckResult("cluster", what, "wrong", problem) for problem in problems)
    if not problems:
        yield CheckResult("cluster", what, "ok", "yes")


def _inspect_bus(admin: Any, settings: Settings) -> Iterator[CheckResult]:
    """The probe's two topics, on the cluster that has them: rights, creation, settings."""
    names = (settings.probe.rounds_topic, settings.probe.events_topic)
    rights = Requests(admin).rights(names, Deadline.after(_CHECK_S)) or {}
    for name in names:
        granted = rights.get(name)
        if granted:  # it exists, and we may describe it
            for right, why in (
                (ACLOperation.WRITE, "the probe cannot write its rounds"),
                (ACLOperation.READ, "the job cannot read what the probe wrote"),
            ):
                word, topic = right.name.capitalize(), f"Topic {name!r}"
                lacks = [] if right in granted else [_lack(settings.bus_kafka, word, topic, why)]
                yield from _each(f"right {word} on {topic}", lacks)
    yield tried("cluster", "the probe's topics: there, or may be created", partial(_try_creation, admin, settings))
    found = own_topics(admin, settings.probe)
    yield from _each("the probe's topics: settings", wrong_settings(found, settings.probe))


def _try_creation(admin: Any, settings: Settings) -> tuple[CheckState, str]:
    create_missing(admin, settings.probe, validate_only=True)
    return "ok", "yes"


def _inspect_folder(folder: str, cluster: str) -> tuple[CheckState, str]:
    """The folder that is the bus: it can be read, and on a disk written. Nothing is created."""
    objects = FolderObjects(folder, cluster)
    if not on_object_store(folder):
        path = Path(folder).absolute() / cluster
        there = next(place for place in (path, *path.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.R_OK | os.W_OK | os.X_OK):
            return "wrong", f"The probe cannot write to {objects}: give this user {there}, or set bus.folder otherwise."
        if there != path:
            return "ok", f"{objects}, which the probe creates"
    try:
        objects.bus_id()
    except BusFolderError as error:
        return "wrong", f"The bus cannot be used, {error}: correct bus.folder or the store's credentials."
    return "ok", str(objects)


def _group_lacks(requests: Requests, settings: Settings, deadline: Deadline) -> Iterator[str]:
    watched = [group for group in settings.filters.groups if not group.startswith("/")] or [_NOBODY]
    brokers = requests.metadata([], deadline).brokers
    refused = requests.forbidden_groups(watched, brokers[0], deadline)
    if refused == [_NOBODY]:
        # Rights on a prefix of names show the groups with that prefix, which is then what was meant.
        if not requests.list_groups(brokers, deadline):
            yield _lack(settings.kafka, "Describe", "Group '*'", "no group would be seen")
        return
    for group in refused:
        yield _lack(settings.kafka, "Describe", f"Group {group!r}", "the group is to be watched")


def _topic_lacks(requests: Requests, settings: Settings, deadline: Deadline) -> Iterator[str]:
    watched = [topic for topic in settings.filters.topics if not topic.startswith("/")] or [_NOBODY]
    for topic, metadata in requests.metadata(watched, deadline).topics.items():
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
