"""The user's file of settings. An error is one sentence that names it.

Values are never shown: any of them could be a secret.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from streaming.exceptions import SetupError
from streaming.places import own_file
from streaming.terminal import printable

_NAME = "evenkeel.toml"

# Settings of an entry of `[[clusters]]`, with their names in `Settings`.
_OF_CLUSTER = {
    "name": "cluster",
    "kafka": "kafka",
    "offsets_log": "offsets_log",
    "rocketmq": "rocketmq",
    "clients": "clients",
}


def file_values() -> dict[str, Any]:
    """The values of the user's settings file; empty when there is no file.

    `EVENKEEL_CONFIG` names the file; without it `streaming.places` finds it. The file's one entry of `[[clusters]]` is
    returned as `cluster` and `kafka`, its names in the environment and in `Settings`.

    Raises:
        SetupError: The file cannot be read, is not TOML, or has more than one cluster.
    """
    given = os.environ.get("EVENKEEL_CONFIG")
    try:
        path = own_file(_NAME) if given is None else Path(given)
        if path is None:
            return {}
        if given is not None and not path.is_file():
            message = f"EVENKEEL_CONFIG names {printable(given)}, which is not a file: correct it, or unset it."
            raise SetupError(message)
        return _one_cluster(tomllib.loads(path.read_bytes().decode("utf-8")), printable(str(path)))
    except OSError as error:
        place, why = error.filename or given or _NAME, error.strerror or type(error).__name__
        message = (
            f"The settings file {printable(str(place))} cannot be read ({why}): give this user read access, or move it."
        )
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        message = f"{printable(str(path))} is not valid TOML: {printable(str(error))}."
    raise SetupError(message) from None


def _one_cluster(values: dict[str, Any], file: str) -> dict[str, Any]:
    """Put the entry of `[[clusters]]` where the environment can change single settings of it.

    Raises:
        SetupError: There are several, or the cluster is given in another form.
    """
    for name in _OF_CLUSTER.values():
        if name in values:
            message = (
                f"{file} has {name} at its top level: begin the cluster's settings with [[clusters]], give its name as "
                "name, and its connection in [clusters.kafka]."
            )
            raise SetupError(message)
    entries = values.pop("clusters", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        message = f"clusters in {file} is not a list of tables: begin the cluster's settings with [[clusters]]."
        raise SetupError(message)
    if len(entries) > 1:
        message = (
            f"{file} has {len(entries)} entries of [[clusters]], and there is one cluster per process today: start one "
            "`evenkeel up` per cluster, each with a file of its own (EVENKEEL_CONFIG)."
        )
        raise SetupError(message)
    for entry in entries:
        for name, value in entry.items():
            # What is neither is refused as a setting that does not exist, by this name.
            values[_OF_CLUSTER.get(name, f"clusters.{name}")] = value
    return values
