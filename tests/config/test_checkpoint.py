"""Where the job's state is: beside tables in a folder, else where a setting says."""

from __future__ import annotations

import pytest

from streaming.config import JobSettings, Settings, checkpoint_of
from streaming.exceptions import SetupError


@pytest.mark.parametrize("lake", ["/data/lake/", "hdfs://host/lake"])
def test_beside_tables_that_are_not_on_an_object_store_it_is_in_the_lake(lake: str) -> None:
    assert checkpoint_of(Settings(lake=lake, cluster="c")) == f"{lake.rstrip('/')}/_checkpoints/c"


@pytest.mark.parametrize("lake", ["s3://b/lake", "S3A://b/lake", "gs://b/lake", "abfss://c@a.dfs.core.windows.net/l"])
def test_a_lake_on_an_object_store_needs_a_folder_for_it(lake: str) -> None:
    with pytest.raises(SetupError, match=r"^The lake \S+ is on an object store, .* job\.checkpoint"):
        checkpoint_of(Settings(lake=lake))
    assert checkpoint_of(Settings(lake=lake, job=JobSettings(checkpoint="/data/c"))) == "/data/c"
