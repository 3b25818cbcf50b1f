"""What processes are given besides the settings: all of them as environment variables, and where the job's state is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, SecretStr

from streaming.config.kafka import KAFKA_SECRETS, KafkaSettings, secret_variable
from streaming.config.settings import Settings
from streaming.exceptions import SetupError
from streaming.stores import on_object_store, on_s3


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
