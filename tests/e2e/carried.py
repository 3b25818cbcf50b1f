"""What a user of a release has when the next one is installed: files, a lake and its checkpoint, half way.

The recorded topics are written to a broker again, record by record, with their offsets and times.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.alerts import Rule, load_rules
from streaming.config import JobSettings, KafkaSettings, ProbeSettings, Settings, load_settings
from tests.e2e.compacting import PARTITIONS, Record, names
from tests.e2e.recording import CLUSTER

LAKE = "lake.txt"

_IDENTITY = re.compile(r'"(cluster_id|topics)": ?("[^"]*"|\{[^}]*\})')
"""In a query's offsets: Kafka's ids of the cluster and of the topics, which no other broker has."""


def first_half(records: list[Record]) -> list[Record]:
    """The records up to the close of a round in the middle."""
    closed = [record for record in records if record.topic == "rounds" and record.offset % 2]
    end = closed[len(closed) // 2]
    return [
        record
        for record in records
        if (record.offset <= end.offset if record.topic == "rounds" else record.time <= end.time)
    ]


def settings_on(bootstrap: str, unique: str, lake: Path) -> Settings:
    """Settings of a job on topics of their own."""
    return Settings(
        cluster=CLUSTER,
        lake=str(lake),
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        probe=ProbeSettings(events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds"),
        job=JobSettings(offsets_topic=f"{unique}.log", trigger_ms=0, shuffle_partitions=2),
    )


def restore(settings: Settings, records: Iterable[Record]) -> None:
    """Write the records to the topics, which are created if they are not there."""
    servers, topics = {"bootstrap.servers": settings.kafka.bootstrap_servers}, names(settings)
    admin = AdminClient(servers)
    there = admin.list_topics().topics
    wanted = [NewTopic(topic, PARTITIONS[kind], 1) for kind, topic in topics.items() if topic not in there]
    for future in admin.create_topics(wanted).values() if wanted else ():
        future.result()
    producer = Producer(servers | {"enable.idempotence": True})
    for record in records:
        producer.produce(topics[record.topic], record.value, record.key, record.partition, timestamp=record.time)
        producer.poll(0)
    producer.flush()


def packed_lake(lake: Path) -> Iterator[list[str]]:
    """A lake and its checkpoint as JSON values: name and content of each file, but for checksums and logs."""
    for file in sorted(lake.rglob("*")):
        name = file.relative_to(lake).as_posix()
        if file.is_file() and file.suffix != ".crc" and not name.startswith("_logs"):
            yield [name, base64.b64encode(file.read_bytes()).decode()]


def unpack_lake(lines: Iterable[list[str]], lake: Path) -> None:
    """Write the files of `packed_lake` to a folder; the offsets then belong to any cluster that has the topics."""
    for name, content in lines:
        file = lake / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content))
        if file.parent.name == "offsets":
            file.write_text(_IDENTITY.sub(_nobodys, file.read_text()))


def _nobodys(found: re.Match[str]) -> str:
    return json.dumps({found[1]: {} if found[1] == "topics" else None})[1:-1]


FILES = "files.txt"

_SHIPPED = ("evenkeel.toml", "alerts.yaml")

_TURNED_OFF = re.compile(r"# (?=\[+[a-z_.]+\]+$|[a-z_]+ = (?!\[\]))")
"""What stands before a section or a setting; an empty list stands above the sections that fill it."""

_NUMBER = re.compile(r"(?<= = )\d+(?=\s|$)", re.MULTILINE)

_BOOLEAN = re.compile(r"(?<= = )(true|false)(?=\s|$)", re.MULTILINE)


def packed_files(folder: Path) -> Iterator[list[Any]]:
    """The files that are shipped in a folder, all settings turned on, and what is read from them, as JSON values."""
    settings, rules = ((folder / name).read_text("utf-8") for name in _SHIPPED)
    settings = _with_every_setting(settings)
    yield [settings, rules, meaning(settings, rules)]


def meaning(settings: str, rules: str) -> dict[str, Any]:
    """What this release reads from a file of settings and one of rules, as JSON values."""
    with tempfile.TemporaryDirectory() as name:
        files = Path(name, _SHIPPED[0]), Path(name, _SHIPPED[1])
        for file, text in zip(files, (settings, rules), strict=True):
            file.write_text(text, "utf-8")
        others = {name: value for name, value in os.environ.items() if not name.startswith("EVENKEEL_")}
        with patch.dict(os.environ, others | {"EVENKEEL_CONFIG": str(files[0])}, clear=True):
            read = load_settings().model_dump(mode="json")
        return {
            "settings": read,
            "rules": {rule.name: _meaning_of(rule) for rule in load_rules(files[1], disabled_too=True)},
        }


def _with_every_setting(shipped: str) -> str:
    """The text of a file of settings with every setting turned on, and numbers and switches unlike the defaults."""
    on = "\n".join(_TURNED_OFF.sub("", line, count=1) for line in shipped.splitlines())
    on = _NUMBER.sub(lambda number: str(int(number[0]) + 1), on)
    return _BOOLEAN.sub(lambda given: "true" if given[0] == "false" else "false", on)


def _meaning_of(rule: Rule) -> dict[str, Any]:
    return {
        "table": rule.table.name,
        "when": rule.when.sql,
        "hold": [rule.hold_ms, rule.hold_rounds],
        "severity": rule.severity,
        "labels": dict(rule.labels),
        "value": rule.value and rule.value.sql,
        "message": rule.message,
        "key": list(rule.key),
        "keep_ms": rule.keep_ms,
        "runbook_url": rule.runbook_url,
        "enabled": rule.enabled,
    }
