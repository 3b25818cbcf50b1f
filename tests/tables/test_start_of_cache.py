"""Which files a cache reads when it starts, in lakes whose compaction has joined rows of several clusters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.tables import DeltaLake, LakeReader, LakeUnreadableError, TableCache, Wanted, table_named
from tests.empty_lake import empty_lake
from tests.examples import by_day, examples

MINUTE = 60_000
BEGIN = datetime(2026, 3, 10, tzinfo=UTC)
REACH = timedelta(minutes=10)

WANTED = {
    "group_health": Wanted(current=frozenset({"group_id", "verdict"}), reach=REACH),
    "rounds": Wanted(current=frozenset({"round", "round_time"}), reach=timedelta(minutes=1)),
}
QUESTIONS = (
    "SELECT cluster, group_id, verdict FROM group_health_current ORDER BY ALL",
    "SELECT cluster, round, round_time FROM rounds_current ORDER BY ALL",
)


class Clusters:
    """Jobs of several clusters that share a lake; each has a group."""

    def __init__(self, root: Path) -> None:
        self.lake: DeltaLake = empty_lake(root / "lake")
        self._batch = 0

    def write(self, minute: int, *clusters: str) -> None:
        """A batch of each: a row of its group, then its round."""
        for cluster in clusters:
            self._batch += 1
            values = {
                "cluster": cluster, "group_id": f"of-{cluster}", "round": minute, "ended": False, "findings": [],
                "round_time": int(BEGIN.timestamp() * 1000) + minute * MINUTE, "verdict": f"v{minute}",
                "event_date": int(BEGIN.timestamp()) // 86_400 + minute // 1_440,
            }  # fmt: skip
            for table in ("group_health", "rounds"):
                row: list[Any] = [values.get(column.name) for column in table_named(table).columns]
                self.lake.append(table, [row], f"query-{cluster}", self._batch)

    def join(self) -> None:
        """Join the files of each day that were written since the last time, whatever clusters they are of."""
        for table in map(table_named, WANTED):
            DeltaTable(f"{self.lake.root}/{table.name}").optimize.compact()

    def shown(self) -> list[list[dict[str, Any]]]:
        """What a server shows that starts now."""
        begun = TableCache(self.lake.root, WANTED, timedelta(hours=24))
        begun.update()
        while begun.behind:
            begun.read_on()
        return [begun.rows(sql) for sql in QUESTIONS]

    def there(self) -> list[list[dict[str, Any]]]:
        """What is in the lake."""
        reader = LakeReader(self.lake.root)
        return [reader.rows(sql) for sql in QUESTIONS]


@pytest.fixture
def clusters(tmp_path: Path) -> Clusters:
    return Clusters(tmp_path)


@pytest.mark.parametrize("pause", by_day([60, 3 * 1_440], [60]))
def test_a_silent_cluster_between_two_others_by_name_is_shown_after_a_start(clusters: Clusters, pause: int) -> None:
    clusters.write(0, "a", "b", "c")
    clusters.join()
    clusters.write(pause, "a", "c")
    clusters.join()
    clusters.write(pause + 20, "a", "c")
    assert [row["cluster"] for row in clusters.there()[1]] == ["a", "b", "c"]
    assert clusters.shown() == clusters.there()


_BATCHES = st.lists(
    st.tuples(
        st.sampled_from(("abcd", "abc", "acd", "ad", "bd", "c")),
        st.sampled_from((1, 5, 15, 900, 4_000)),
        st.sampled_from((True, True, False)),
    ),
    min_size=3,
    max_size=8,
)


@settings(max_examples=examples(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_BATCHES)
def test_a_start_shows_what_is_in_the_lake_whichever_cluster_is_silent_and_whatever_was_joined(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[str, int, bool]]
) -> None:
    clusters = Clusters(tmp_path_factory.mktemp("clusters"))
    minute = 0
    for of, later, is_joined in batches:
        clusters.write(minute, *of)
        minute += later
        if is_joined:
            clusters.join()
    assert clusters.shown() == clusters.there()


@pytest.mark.nightly
def test_names_that_the_log_has_cut_hide_no_cluster(clusters: Clusters) -> None:
    # (delta-rs and Spark cut long texts in the statistics of a file.)
    long = [f"{letter * 70}-{end}" for letter in "abc" for end in "xy"]
    clusters.write(0, *long)
    for table in WANTED:
        DeltaTable(clusters.lake.path(table)).optimize.compact()
    clusters.write(1_500, long[0], long[-1])
    for table in WANTED:
        DeltaTable(clusters.lake.path(table)).optimize.compact()
    clusters.write(1_520, long[0], long[-1])
    assert len(clusters.there()[1]) == 6
    assert clusters.shown() == clusters.there()


def test_a_file_of_several_clusters_that_is_gone_is_a_sentence_and_no_missing_cluster(clusters: Clusters) -> None:
    clusters.write(0, "a", "b", "c")
    clusters.join()
    (joined,) = DeltaTable(clusters.lake.path("rounds")).file_uris()
    clusters.write(1_440, "a", "c")
    Path(joined).unlink()
    with pytest.raises(LakeUnreadableError, match=r"rounds cannot be read .*: a data file is gone"):
        clusters.shown()
