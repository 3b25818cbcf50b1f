"""The clusters of one deployment: an entry of `[[clusters]]` each, read again when the file changes.

And what processes of a cluster are given: its settings as variables, and where the job's state is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, SecretStr

from streaming.config.kafka import KAFKA_SECRETS, KafkaSettings, secret_variable
from streaming.config.settings import Settings, load_settings
from streaming.config.sources import CHOSEN, read_file, settings_path
from streaming.exceptions import SetupError
from streaming.stores import on_object_store, on_s3

_OF_ONE = (
    "EVENKEEL_KAFKA__",
    "EVENKEEL_BUS__",
    "EVENKEEL_ROCKETMQ",
    "EVENKEEL_OFFSETS_LOG",
    "EVENKEEL_CONNECT_CONFIG_TOPICS",
    "EVENKEEL_JOB__CHECKPOINT",
)
"""Beginnings of variables that cannot be meant for several clusters."""


_SHARED = ("lake", "alerts", "serve", "maintenance", "owners", "custom_strategies")
"""Settings that a process keeps as it read them at its start."""


def load_fleet(**given: Any) -> tuple[Settings, ...]:
    """The settings of every cluster; of one, where `cluster` is given or the environment names it (`EVENKEEL_CLUSTER`).

    What is not a cluster's own (lake, server, alerts, owners) is the same in each, so a process that needs nothing else
    takes the first.

    Args:
        given: As `load_settings` takes it.

    Raises:
        SetupError: A setting is wrong, or a variable of one cluster's connection would hold for several.
    """
    if given.get("cluster") or os.environ.get(CHOSEN):
        return (load_settings(**given),)
    file = read_file()
    if len(file.entries) <= 1:
        return (load_settings(**given),)
    meant = next((name for name in os.environ if name.upper().startswith(_OF_ONE)), None)
    if meant is not None:
        message = (
            f"{meant} would hold for each of the {len(file.entries)} clusters of {file.name}: name it "
            f"EVENKEEL_CLUSTERS__<NAME>__{meant.removeprefix('EVENKEEL_')}, or choose one cluster with {CHOSEN}."
        )
        raise SetupError(message)
    return tuple(load_settings(**given, cluster=name) for name in file.clusters)


class FleetFile:
    """The clusters as the settings file has them now.

    Attributes:
        clusters: The settings of those that this process watches, by name.
        names: The names of all: more than these where one is chosen.
    """

    def __init__(self, clusters: Sequence[Settings]) -> None:
        """Begin with what was read at the start."""
        self.clusters = {settings.cluster: settings for settings in clusters}
        self.names = _names(self.clusters)
        self._stamp = _stamp()

    def poll(self) -> bool:
        """Read the file again if it has changed; returns whether a cluster has.

        Raises:
            SetupError: The file is wrong now, or names no cluster any more: what was read before holds. It is raised
                once per change of the file.
        """
        stamp = _stamp()
        if stamp in {self._stamp, None}:
            return False
        self._stamp = stamp
        if not os.environ.get(CHOSEN) and not read_file().entries:
            # An editor may empty a file before it writes it.
            message = "The settings file has no [[clusters]] any more: what it had before holds on."
            raise SetupError(message)
        before = self.clusters
        shared = {name: getattr(next(iter(before.values())), name) for name in _SHARED}
        self.clusters = {settings.cluster: settings.model_copy(update=shared) for settings in load_fleet()}
        self.names = _names(self.clusters)
        return self.clusters != before


def _names(clusters: Mapping[str, Settings]) -> frozenset[str]:
    return frozenset(read_file().clusters) | clusters.keys()


def _stamp() -> tuple[str, int, int, int] | None:
    """What changes whenever the file does; None while it is not there."""
    try:
        path = settings_path()
        if path is None:
            return None
        found = path.stat()
    except (OSError, SetupError):
        return None
    return (str(path), found.st_ino, found.st_mtime_ns, found.st_size)


def checkpoint_of(settings: Settings, named: str | None = None) -> str:
    """The place of the query's offsets and state: beside the tables, one per cluster, unless another is set.

    Args:
        settings: All settings.
        named: The place of this start (`--checkpoint`); None for the settings' own.

    Raises:
        SetupError: The lake is on an object store, and no place is set.
    """
    place = named or settings.job.checkpoint
    if place is None and on_object_store(settings.lake):
        message = (
            f"The lake {settings.lake} is on an object store, and the job's state has no place: name a folder on a "
            "disk that outlives the job in job.checkpoint (EVENKEEL_JOB__CHECKPOINT), or with --checkpoint; or a "
            "prefix on S3 (docs/lake.md)."
        )
        raise SetupError(message)
    return place or f"{settings.lake.rstrip('/')}/_checkpoints/{settings.cluster}"


def needs_s3a(settings: Settings, checkpoint: str | None = None) -> bool:
    """Whether the job's Spark reads or writes S3 itself.

    Args:
        settings: All settings.
        checkpoint: The place of this start's checkpoint; None for the settings' own.
    """
    place = checkpoint or settings.job.checkpoint
    return place is not None and on_s3(place)


def secret_names(clusters: Iterable[Settings]) -> frozenset[str]:
    """Names of the variables by which the job's tasks get the secrets that are in no file of their own."""
    return frozenset(
        secret_variable(name, section, settings.cluster)
        for settings in clusters
        for section, kafka in settings.connections().items()
        for name in KAFKA_SECRETS
        if getattr(kafka, name) is not None
    )


def environment_of(settings: Settings) -> dict[str, str]:
    """The settings as environment variables for the programs, secrets among them; files stay files.

    Strategies and declared clients are left out: the probe reads them itself, again and again
    (`streaming/probe/rounds_probe.py`), and the environment would win over the file.
    """
    variables: dict[str, str] = {}
    for name in type(settings).model_fields.keys() - {"strategies", "clients"}:
        value = getattr(settings, name)
        fields = {name: value}
        if isinstance(value, BaseModel):
            fields = {f"{name}__{field}": getattr(value, field) for field in type(value).model_fields}
        variables |= {f"EVENKEEL_{field}".upper(): _as_text(v) for field, v in fields.items() if v is not None}
    if isinstance(settings.bus, KafkaSettings):
        variables["EVENKEEL_BUS__FOLDER"] = ""  # one in the user's file would win over a Kafka
    return variables


def _as_text(value: object) -> str:
    plain = _plain(value)
    if isinstance(plain, (bool, dict, list)):
        return json.dumps(plain)
    return str(plain)


def _plain(value: object) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
