"""Where the job's state is: beside tables in a folder, else where a setting says."""

from __future__ import annotations

import pytest

from streaming.config import JobSettings, Settings, checkpoint_of
from streaming.exceptions import SetupError


@pytest.mark.parametrize("lake", ["/data/lake/", "hdfs://host/lake"])
def test_beside_tables_that_are_not_on_an_object_store_it_is_in_the_lake(lake: str) -> None:
    assert checkpoint_of(Settings(lake=lake, cluster="c")) == f"{lake.rstrip('/')}/_checkpoints/c"


@pytest.mark.parametrize("lake", ["s3://b/lake", "S3A://b/lake", "gs://b/lake", "abfss://c@a.dfs.core.windows.net/l"])
def test_a_lake_on_an_object_store_needs_a_place_for_it(lake: str) -> None:
    with pytest.raises(SetupError, match=r"^The lake \S+ is on an object store, .* job\.checkpoint"):
        checkpoint_of(Settings(lake=lake))
    for place in ("/data/c", "s3://b/checkpoint"):
        assert checkpoint_of(Settings(lake=lake, job=JobSettings(checkpoint=place))) == place
        assert checkpoint_of(Settings(lake=lake), place) == place


def test_the_place_of_a_start_wins_over_the_settings() -> None:
    assert checkpoint_of(Settings(job=JobSettings(checkpoint="/a")), "/b") == "/b"
