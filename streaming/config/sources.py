"""The user's file of settings, and which entry of `[[clusters]]` a process takes. An error is one sentence.

Values are never shown: any of them could be a secret.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from streaming.exceptions import SetupError
from streaming.places import own_file
from streaming.terminal import printable

_NAME = "evenkeel.toml"

CHOSEN: Final = "EVENKEEL_CLUSTER"
"""Environment variable with the name of the cluster that a process is for."""

_OF_CLUSTER = ("renamed_from", "kafka", "offsets_log", "connect_config_topics", "rocketmq", "clients")
"""Settings that only an entry of `[[clusters]]` can have, in the file."""

_ALSO_OF_CLUSTER = ("bus", "filters", "probe", "job", "strategies")
"""Settings that an entry may have for itself: a table's values go before those of the file's own table, a list takes
the place of the file's."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The user's file.

    Attributes:
        name: Its path, for messages; "" where there is no file.
        shared: What holds for every cluster.
        entries: The entries of `[[clusters]]`.
    """

    name: str
    shared: Mapping[str, Any]
    entries: tuple[Mapping[str, Any], ...]

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names of the entries; "" for one without."""
        return tuple(str(entry.get("name", "")) for entry in self.entries)

    def values(self, chosen: str | None) -> dict[str, Any]:
        """The settings of one cluster, by their names in `Settings`.

        Args:
            chosen: Its name; None where the file has one entry at most.

        Raises:
            SetupError: No entry has this name, or nothing says which of several is meant.
        """
        if not self.entries:
            return dict(self.shared)
        if len(self.entries) == 1 and (chosen is None or not self.clusters[0]):
            return self._merged(self.entries[0])
        for name, entry in zip(self.clusters, self.entries, strict=True):
            if name == chosen:
                return self._merged(entry)
        names = printable(", ".join(self.clusters))
        if chosen is None:
            message = (
                f"{self.name} has {len(self.entries)} clusters: choose one with --cluster or {CHOSEN}, of {names}."
            )
        else:
            message = f"{self.name} has no cluster named {printable(chosen)}: it has {names}."
        raise SetupError(message)

    def _merged(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(self.shared)
        for name, value in entry.items():
            if name in _ALSO_OF_CLUSTER and isinstance(value, dict) and isinstance(values.get(name), dict):
                values[name] = values[name] | value
            elif name == "name":
                values["cluster"] = value
            else:
                # What is no setting of a cluster is refused as one that does not exist, by this name.
                values[name if name in _OF_CLUSTER + _ALSO_OF_CLUSTER else f"clusters.{name}"] = value
        return values


def cluster_variables(cluster: str) -> str:
    """What the names of the environment variables begin with that hold for one cluster: `EVENKEEL_CLUSTERS__ORDERS__`.

    They go before those that hold for every cluster. What is no letter or digit of ASCII in the name is `_`.
    """
    return f"EVENKEEL_CLUSTERS__{re.sub(r'[^A-Za-z0-9]', '_', cluster).upper()}__"


def settings_path() -> Path | None:
    """The user's file: that of `EVENKEEL_CONFIG`, else the first that `streaming.places` finds; None without one.

    Raises:
        SetupError: `EVENKEEL_CONFIG` names no file.
        OSError: A folder cannot be searched.
    """
    given = os.environ.get("EVENKEEL_CONFIG")
    if given is None:
        return own_file(_NAME)
    if not Path(given).is_file():
        message = f"EVENKEEL_CONFIG names {printable(given)}, which is not a file: correct it, or unset it."
        raise SetupError(message)
    return Path(given)


def read_file() -> SettingsFile:
    """Read the user's file; without one nothing is set.

    Raises:
        SetupError: The file cannot be read, is not TOML, or gives its clusters in another form.
    """
    path: Path | None = None
    try:
        path = settings_path()
        if path is None:
            return SettingsFile("", {}, ())
        return _parted(tomllib.loads(path.read_bytes().decode("utf-8")), printable(str(path)))
    except OSError as error:
        place, why = error.filename or path or _NAME, error.strerror or type(error).__name__
        message = (
            f"The settings file {printable(str(place))} cannot be read ({why}): give this user read access, or move it."
        )
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        message = f"{printable(str(path))} is not valid TOML: {printable(str(error))}."
    raise SetupError(message) from None


def _parted(values: dict[str, Any], file: str) -> SettingsFile:
    """Part what is shared from the entries of `[[clusters]]`.

    Raises:
        SetupError: A cluster is given in another form, or two have one name or one prefix of variables.
    """
    for name in ("cluster", *_OF_CLUSTER):
        if name in values:
            message = (
                f"{file} has {name} at its top level: begin the cluster's settings with [[clusters]], give its name as "
                "name, and its connection in [clusters.kafka]."
            )
            raise SetupError(message)
    entries = values.pop("clusters", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        message = f"clusters in {file} is not a list of tables: begin each cluster's settings with [[clusters]]."
        raise SetupError(message)
    found = SettingsFile(file, values, tuple(entries))
    if len(entries) > 1:
        _refuse_unclear(found)
    return found


def _refuse_unclear(file: SettingsFile) -> None:
    if "" in file.clusters:
        message = f"{file.name} has several clusters, and one without a name: give each entry of [[clusters]] a name."
        raise SetupError(message)
    if isinstance(file.shared.get("job"), dict) and "checkpoint" in file.shared["job"]:
        message = (
            f"{file.name} has one job.checkpoint for several clusters, which need one each: set it in "
            "[clusters.job] of each entry."
        )
        raise SetupError(message)
    names = sorted(file.clusters, key=cluster_variables)
    for one, other in pairwise(names):
        if cluster_variables(other).startswith(cluster_variables(one)):
            message = (
                f"Variables of the clusters {printable(one)} and {printable(other)} of {file.name} begin alike "
                f"({cluster_variables(one)}…): name one of them otherwise."
            )
            raise SetupError(message)
