"""The clusters of one deployment: an entry of `[[clusters]]` each, read again when the file changes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from streaming.config.settings import Settings, load_settings
from streaming.config.sources import CHOSEN, read_file, settings_path
from streaming.exceptions import SetupError

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
