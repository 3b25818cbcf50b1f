"""What the settings say of each group: its strategy and its client libraries, read again when the file changes.

Rows depend on these settings, so they travel in the rounds: a replay judges each decision with the settings of that
time. They are the only ones that take effect without a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from streaming.config import GroupRules, Settings, file_mark, load_settings
from streaming.exceptions import SetupError
from streaming.lifecycle import room_log
from streaming.records import Configured

_LOG = room_log(__name__)

_MOST_REMEMBERED = 200_000
"""Groups whose rules are remembered, because patterns are slow and each round asks for every group that it reports:
twice the groups of the largest clusters that we know of."""


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
        self._use(settings.group_rules)

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
            rules = self._load().group_rules
        except SetupError as error:
            _LOG.warning("The settings file has changed, and strategies and clients stay as they were: %s", error)
            return
        if rules != self._rules:
            self._use(rules)
            _LOG.info("Strategies and clients of groups have changed: rounds tell version %s now.", rules.version)

    def of(self, group: str) -> Configured | None:
        """What the settings say of a group; None where they say nothing."""
        return self._of(group)

    def _use(self, rules: GroupRules) -> None:
        self._rules, version = rules, rules.version

        def of(group: str) -> Configured | None:
            says = rules.of(group)
            return None if says is None else Configured(version, *says)

        self._of = lru_cache(_MOST_REMEMBERED)(of)
