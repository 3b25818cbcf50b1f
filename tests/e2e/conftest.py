"""The recording that the tests of this folder share, and the lakes that the job makes of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config import Settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.job.run import start_query
from streaming.tables import DeltaLake
from tests.e2e.recording import Recording, record, settings_for

UNDISTURBED_ROUNDS = 60
"""Read limit of the undisturbed run; the others have smaller ones."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording and its lakes.

    Attributes:
        recording: The recording.
        quiet_lake: The lake as it was when all was quiet and all members were in their groups.
        lake: The lake after all of it; the same query, started again on its checkpoint.
    """

    recording: Recording
    quiet_lake: Path
    lake: Path


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Recorded]:
    """The recording; its broker is there until the end of the run, and nothing writes to it any more."""
    folder = tmp_path_factory.mktemp("recorded")
    lake, quiet_lake = folder / "lake", folder / "quiet_lake"
    # A broker of its own: the demo's groups are all that lives on it, so nothing needs a filter.
    with EmbeddedBroker(folder / "broker", overrides=DEMO_OVERRIDES) as broker:
        settings = settings_for(broker.bootstrap, lake, max_rounds=UNDISTURBED_ROUNDS)

        def when_quiet() -> None:
            run_to_the_end(spark, settings)
            shutil.copytree(lake, quiet_lake)

        recording = record(broker.bootstrap, folder / "play", when_quiet)
        run_to_the_end(spark, settings)
        yield Recorded(recording, quiet_lake, lake)


def run_to_the_end(spark: SparkSession, settings: Settings) -> None:
    """Run the job over what is there now, in this process's own session."""
    lake = DeltaLake(settings.lake)
    lake.create()
    query = start_query(spark, settings, lake, available_now=True)
    query.awaitTermination()
    assert query.exception() is None
