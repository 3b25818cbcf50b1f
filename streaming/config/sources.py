"""The sources of settings: the user's file and the environment. An error is one sentence that names its source.

Values are never shown: any of them could be a secret.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from streaming.exceptions import SetupError
from streaming.places import own_file
from streaming.terminal import printable

_NAME = "evenkeel.toml"

_CLUSTERS_VARIABLE = "EVENKEEL_CLUSTERS"

# Settings of an entry of `[[clusters]]`, with their names in `Settings`.
_OF_CLUSTER = {
    "name": "cluster",
    "kafka": "kafka",
    "offsets_log": "offsets_log",
    "rocketmq": "rocketmq",
    "clients": "clients",
}


class NoJsonError(ValueError):
    """A variable of the environment must be JSON, but is not. Its text is a sentence.

    (A `ValueError`: pydantic-settings treats any other exception as a failure of its own.)
    """


class Environment(EnvSettingsSource):
    """The environment as pydantic-settings reads it, but errors name the variable that is not JSON."""

    def __call__(self) -> dict[str, Any]:
        """What the environment says.

        Raises:
            SetupError: A variable is named after the file's `clusters`, which only a file has.
        """
        wrong = next((name for name in os.environ if name.upper().startswith(_CLUSTERS_VARIABLE)), None)
        if wrong is not None:
            message = (
                f"{printable(wrong)} is not a setting: in the environment the cluster is named by EVENKEEL_CLUSTER, "
                "and its connection by EVENKEEL_KAFKA__BOOTSTRAP_SERVERS and the like."
            )
            raise SetupError(message)
        return super().__call__()

    def decode_complex_value(self, field_name: str, field: FieldInfo | None, value: Any) -> Any:
        """Read a list or an object.

        Raises:
            NoJsonError: The value is not JSON.
        """
        try:
            # pydantic-settings' own signature requires a field, but its calls pass none for a nested one.
            return super().decode_complex_value(field_name, field, value)  # type: ignore[arg-type]
        except (ValueError, RecursionError) as error:
            why = f" ({error.msg})" if isinstance(error, json.JSONDecodeError) else ""
            message = (
                f"The environment variable {self._name_of(field_name, value)} is not JSON{why}: it takes a list such "
                'as ["a", "b"], or an object such as {"name": "value"}. Each entry of an object may also be a variable '
                "of its own, with __NAME after this one's name."
            )
            raise NoJsonError(message) from None

    def _name_of(self, field_name: str, value: Any) -> str:
        for name, given in self.env_vars.items():
            if given == value and name.startswith(self.env_prefix.lower()) and name.endswith(field_name.lower()):
                return next((real for real in os.environ if real.lower() == name), name)
        return self.env_prefix + "..."


def file_mark() -> tuple[object, ...] | None:
    """A value that changes whenever the user's settings file does; None when there is no file, or nobody can tell."""
    given = os.environ.get("EVENKEEL_CONFIG")
    try:
        path = own_file(_NAME) if given is None else Path(given)
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (str(path), found.st_ino, found.st_mtime_ns, found.st_size)


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
    except UnicodeDecodeError as error:
        message = f"{printable(str(path))} is not valid TOML: byte {error.start} is not UTF-8."
    except tomllib.TOMLDecodeError as error:
        message = f"{printable(str(path))} is not valid TOML: {printable(str(error))}."
    except RecursionError:
        message = f"{printable(str(path))} is not valid TOML: it is nested too deeply."
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
