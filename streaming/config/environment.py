"""All settings as environment variables, for the processes that run with them."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, SecretStr

from streaming.config.settings import Settings


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
    return variables


def _as_text(value: object) -> str:
    plain = _plain(value)
    return json.dumps(plain) if isinstance(plain, (bool, dict, list)) else str(plain)


def _plain(value: object) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_none=True)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
