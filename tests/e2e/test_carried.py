"""What a release left, read today: settings, alert rules, lake and checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.e2e.carried import FILES, LAKE, first_half, meaning, restore, settings_on, unpack_lake
from tests.e2e.compacting import TOPICS, Record
from tests.e2e.conftest import run_to_the_end
from tests.e2e.lakes import RELEASES, contents, differences, read_packed


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.nightly
@pytest.mark.parametrize("release", RELEASES)
def test_a_job_goes_on_where_one_of_a_release_has_ended_and_no_row_is_lost_or_doubled(
    spark: SparkSession, bootstrap: str, unique: str, tmp_path: Path, release: str
) -> None:
    records = [Record.of(line) for line in read_packed(TOPICS, release)]
    carried, fresh = (settings_on(bootstrap, unique, tmp_path / name) for name in ("carried", "fresh"))
    unpack_lake(read_packed(LAKE, release), tmp_path / "carried")
    half = set(first_half(records))
    restore(carried, (record for record in records if record in half))
    restore(carried, (record for record in records if record not in half))
    before = contents(carried.lake)
    for settings in (carried, fresh):
        run_to_the_end(spark, settings)
    after = contents(carried.lake)
    assert sum(before["lag"].values()) < sum(after["lag"].values())
    assert differences(after, contents(fresh.lake)) == {}


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
