"""Settings and alert rules of a release, read today."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.carried_files import FILES, meaning
from tests.e2e.lakes import RELEASES, read_packed


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_s_files_with_every_setting_and_rule_mean_today_what_they_meant(release: str) -> None:
    [[settings, rules, meant]] = read_packed(FILES, release)
    read = meaning(settings, rules)
    assert read["rules"] == meant["rules"]
    assert _within(read["settings"], meant["settings"]) == meant["settings"]


def _within(read: Any, meant: Any) -> Any:
    """What was read, without settings that came after the release."""
    if isinstance(meant, dict) and isinstance(read, dict):
        return {name: _within(value, meant[name]) for name, value in read.items() if name in meant}
    if isinstance(meant, list) and isinstance(read, list) and len(read) == len(meant):
        return [_within(one, other) for one, other in zip(read, meant, strict=True)]
    return read
