"""What a cache reads when it starts, for how long it keeps rows, and what it says while the lake cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.tables import DeltaLake, LakeReader, LakeUnreadableError, TableCache, Wanted, table_named
from tests.empty_lake import empty_lake
from tests.examples import examples
from tests.tables.cached import CURRENT, HEALTH, HOUR, begun, cache, health, read_all

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
        started = begun(self.lake, **WANTED)
        return [started.rows(sql) for sql in QUESTIONS]

    def there(self) -> list[list[dict[str, Any]]]:
        """What is in the lake."""
        reader = LakeReader(self.lake.root)
        return [reader.rows(sql) for sql in QUESTIONS]


@pytest.fixture
def clusters(tmp_path: Path) -> Clusters:
    return Clusters(tmp_path)


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
    # delta-rs and Spark cut long texts in the statistics of a file.
    long = [f"{letter * 70}-{end}" for letter in "abc" for end in "xy"]
    clusters.write(0, *long)
    clusters.join()
    clusters.write(1_500, long[0], long[-1])
    clusters.join()
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


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return empty_lake(tmp_path / "lake")


def judged(table: str, group: str, round_: int, *, hour: float = 0.0, strategy: str | None = None) -> list[Any]:
    """A row of `drift` or `what_if`."""
    ms = int(hour * HOUR) + round_
    values = {
        "cluster": "c", "group_id": group, "decision": round_, "round": round_, "round_time": ms,
        "record_time": ms, "event_date": ms // 86_400_000, "verdict": f"v{round_}", "strategy": strategy,
    }  # fmt: skip
    return [values.get(column.name) for column in table_named(table).columns]


def rounds_of(numbers: Iterable[int], *, hour: float, step_ms: int = 10_000, elapsed_ms: int = 0) -> list[list[Any]]:
    """Rounds ten seconds apart, from an hour on."""
    rows = []
    for at, number in enumerate(numbers):
        ms = int(hour * HOUR) + at * step_ms
        values = {
            "cluster": "c", "round": number, "round_time": ms, "event_date": ms // 86_400_000,
            "elapsed_ms": elapsed_ms + at * step_ms,
        }  # fmt: skip
        rows.append([values.get(column.name) for column in table_named("rounds").columns])
    return rows


JUDGED = {
    "group_health": HEALTH,
    "drift": Wanted(current=frozenset({"verdict"})),
    "what_if": Wanted(current=frozenset({"strategy"})),
    "rounds": Wanted(current=frozenset({"round"}), past=frozenset({"round_time", "elapsed_ms"})),
}
VERDICTS = "SELECT group_id, verdict FROM drift_current ORDER BY ALL"
WHAT_IFS = "SELECT group_id, strategy, decision FROM what_if_current ORDER BY ALL"


def held(followed: TableCache, table: str) -> list[str]:
    """Groups of the rows of the present that are in memory, living or not."""
    return [row["group_id"] for row in followed.rows(f"SELECT group_id FROM newest_{table} ORDER BY ALL")]


def test_the_verdict_and_what_ifs_of_a_group_that_has_ended_are_let_go(lake: DeltaLake) -> None:
    followed = cache(lake, **JUDGED)
    for number, (group, ended) in enumerate((("lives", False), ("a-run", True), ("another-run", True)), 1):
        lake.append("drift", [judged("drift", group, number)], "query", number)
        strategies = ("range", "sticky")
        lake.append("what_if", [judged("what_if", group, number, strategy=s) for s in strategies], "query", number)
        lake.append("group_health", [health(group, number)], "query", 2 * number)
        lake.append("group_health", [health(group, number + 10, ended=ended)], "query", 2 * number + 1)
        followed.update()
        read_all(followed)
    followed.tidy()
    assert (held(followed, "drift"), held(followed, "what_if")) == (["lives"], ["lives", "lives"])
    whole = LakeReader(lake.root)
    for sql in (CURRENT, VERDICTS, WHAT_IFS):
        assert followed.rows(sql) == whole.rows(sql)


def test_a_verdict_that_is_read_before_its_groups_row_stays(lake: DeltaLake) -> None:
    followed = cache(lake, **JUDGED)
    lake.append("rounds", rounds_of(range(-400, 0), hour=0), "query", 0)
    lake.append("group_health", [health("other", 1), health("again", 2, ended=True)], "query", 0)
    lake.append("drift", [judged("drift", group, 3) for group in ("new", "again")], "query", 0)
    followed.update()
    read_all(followed)
    followed.tidy()
    lake.append("group_health", [health("new", 3), health("again", 3)], "query", 1)
    followed.update()
    followed.tidy()
    assert followed.rows(VERDICTS) == [{"group_id": "again", "verdict": "v3"}, {"group_id": "new", "verdict": "v3"}]
    assert followed.rows(VERDICTS) == LakeReader(lake.root).rows(VERDICTS)


def test_a_group_that_comes_back_by_its_heartbeat_after_an_outage_has_its_verdict(lake: DeltaLake) -> None:
    # An outage of five hours: at the start no row of before is read, and none has been repeated yet.
    before, after = rounds_of(range(10), hour=0), rounds_of(range(10, 20), hour=5, elapsed_ms=100_000)
    lake.append("rounds", [*before, *after], "query", 0)
    lake.append("group_health", [health("quiet", 1)], "query", 0)
    lake.append("drift", [judged("drift", "quiet", 1)], "query", 0)
    lake.append("group_health", [health("busy", 15, hour=5)], "query", 1)
    followed = begun(lake, **JUDGED)
    followed.tidy()
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["busy"]
    lake.append("group_health", [health("quiet", 20, hour=5.1)], "query", 2)
    followed.update()
    assert followed.rows(VERDICTS) == [{"group_id": "quiet", "verdict": "v1"}]


def test_a_broken_commit_is_a_sentence_and_nothing_is_lost_when_it_is_mended(lake: DeltaLake) -> None:
    lake.append("group_health", [health("a", 1)], "query", 0)
    followed = begun(lake)
    log = Path(lake.path("group_health")) / "_delta_log"
    whole = max(log.glob("*.json"))
    lake.append("group_health", [health("b", 2)], "query", 1)
    newest = max(log.glob("*.json"))
    assert newest != whole
    text = newest.read_text()
    newest.write_text("{")
    with pytest.raises(LakeUnreadableError, match=r"group_health cannot be read \(.*\): check that the lake is whole"):
        followed.update()
    assert (followed.behind, followed.present_behind) == (0, 0)
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["a"]
    newest.write_text(text)
    assert followed.update() is True
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["a", "b"]


def test_files_that_could_not_be_read_are_behind_until_they_are_read(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.tables.cache._AT_FIRST", 1)
    for number, group in enumerate(("a", "b", "c")):
        lake.append("group_health", [health(group, number)], "query", number)
    started = cache(lake)
    started.update()
    assert (started.behind, started.present_behind) == (5, 2)
    files = list(Path(lake.path("group_health")).rglob("*.parquet"))
    away = [file.rename(f"{file}.away") for file in files]
    for again in (started.read_on, started.update, started.read_on):
        with pytest.raises(LakeUnreadableError):
            again()
        assert (started.behind, started.present_behind) == (5, 2)
        assert [row["group_id"] for row in started.rows(CURRENT)] == ["c"]
    for file, gone in zip(files, away, strict=True):
        gone.rename(file)
    read_all(started)
    assert [row["group_id"] for row in started.rows(CURRENT)] == ["a", "b", "c"]
