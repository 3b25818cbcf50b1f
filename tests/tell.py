"""What a long test has found, for people: printed when the test ends, also where several processes share the tests.

Processes of pytest-xdist have no terminal, so the lines travel with the test's report.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

__all__ = ["Tell", "Telling"]

Tell = Callable[..., None]
"""Takes lines, or what has a line as its text."""

_PROPERTY = "told"


class Telling:
    """The plugin that prints the lines, in the process that has the terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @staticmethod
    def of(record_property: Callable[[str, object], None]) -> Tell:
        """The function for a test."""
        return lambda *lines: record_property(_PROPERTY, "\n".join(map(str, lines)))

    @pytest.hookimpl(trylast=True)  # below the line that says that the test has passed
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print what the test has told, whether it passed or not."""
        if report.when != "call":
            return
        for name, lines in report.user_properties:
            if name == _PROPERTY:
                terminal = self._config.pluginmanager.get_plugin("terminalreporter")
                terminal.ensure_newline()
                terminal.write_line(f"{report.nodeid}:\n{lines}")
