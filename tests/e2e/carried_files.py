"""What a user of a release has in files, settings and alert rules, and what a release reads from them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from streaming.alerts import Rule, load_rules
from streaming.config import load_settings

__all__ = ["FILES", "meaning", "packed_files"]

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
