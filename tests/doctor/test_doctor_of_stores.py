"""`evenkeel doctor` where the lake is on an object store."""

from __future__ import annotations

import pytest

from streaming.config import Settings
from streaming.doctor.run import check_lake, check_watched
from streaming.probe import CheckResult
from streaming.process import JOB, only_one
from streaming.tables import ALL_TABLES, DeltaLake
from tests.faulty_store import BUSY, FaultyStore
from tests.object_store import ObjectStore

pytestmark = pytest.mark.xdist_group("object_store")


def looked(lake: str) -> dict[str, CheckResult]:
    settings = Settings(cluster="orders", lake=lake)
    return {line.what: line for line in (*check_watched(settings), *check_lake(settings))}


@pytest.mark.nightly
def test_leases_in_a_store_are_told_and_nothing_is_written(object_store: ObjectStore, s3: str) -> None:
    lake = DeltaLake(f"{s3}/lake")
    lake.create(ALL_TABLES)
    before = object_store.objects(lake.root)
    assert looked(lake.root)["lease of the job"].text == "free: none runs"
    assert object_store.objects(lake.root) == before
    with only_one(JOB, lake.root, "orders"):
        assert looked(lake.root)["lease of the job"].text.startswith("held by process ")


def test_an_empty_store_has_no_tables_yet(s3: str) -> None:
    assert looked(f"{s3}/lake")["tables"].text == f"none yet in {s3}/lake: the job creates them"


def test_a_store_that_is_away_is_a_line_for_the_cluster_and_the_lake_and_not_one_per_table(
    s3: str, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyStore(object_store.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.fail(BUSY)
        found = looked(f"{s3}/lake")
    wrong = [line for line in found.values() if line.what != "checkpoint"]
    assert [(line.what, line.state) for line in wrong] == [
        ("lease of the job", "wrong"),
        ("lease of the maintainer", "wrong"),
    ]
    assert wrong[0].text.endswith("cannot be read or written: the store is down or overloaded (503).")
