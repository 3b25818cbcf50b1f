"""What the settings say of each group: its strategy and its client libraries, read again when the file changes.

Rows depend on these settings, so they travel in the rounds: a replay judges each decision with the settings of that
time. They are the only ones that take effect without a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from streaming.config import Settings, file_mark, load_settings
from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.records import Configured

_LOG = room_log(__name__)

_VERSION_DIGITS = 8
"""Hexadecimal digits of a version. People compare a handful of them: 32 bits never meet by chance there."""


class GroupSettings:
    """The strategies and declared clients of the present. Call `refresh` before each round."""

    def __init__(self, settings: Settings, load: Callable[[], Settings] = load_settings) -> None:
        """Begin with the settings that the process was started with.

        Args:
            settings: All settings.
            load: Reads them again.
        """
        self._load = load
        self._mark = file_mark()
        self._use(settings)

    @property
    def version(self) -> str:
        """Fingerprint of the strategies and clients; the same for the same settings, whichever probe has read them."""
        return self._version

    def refresh(self) -> None:
        """Read the file again if it has changed. A wrong one is refused with a sentence; what was known stays."""
        mark = file_mark()
        if mark == self._mark:
            return
        self._mark = mark
        if mark is None:
            _LOG.warning("The settings file is gone: strategies and clients of groups stay as they were.")
            return
        try:
            settings = self._load()
        except SetupError as error:
            _LOG.warning("The settings file has changed, and strategies and clients stay as they were: %s", error)
            return
        before = self._version
        self._use(settings)
        if self._version != before:
            _LOG.info("Strategies and clients of groups have changed: rounds tell version %s now.", self._version)

    def of(self, group: str) -> Configured | None:
        """What the settings say of a group; None where they say nothing."""
        strategy, clients = self._settings.configured_strategy(group), self._settings.declared_clients(group)
        return Configured(self._version, strategy, clients) if strategy is not None or clients else None

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        says = repr(([rule.model_dump() for rule in settings.strategies], settings.clients))
        self._version = hashlib.sha256(says.encode()).hexdigest()[:_VERSION_DIGITS]
