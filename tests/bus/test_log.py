"""Logs in a folder, on a disk and on a real S3 server: offsets, times, two writers, kills, retention, what it costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streaming.bus import BusFolderError, FolderLog, FolderObjects, FolderReader
from streaming.bus import log as log_module
from streaming.bus.folder import Name
from streaming.exceptions import SetupError
from streaming.record_batches import Gone
from tests.bus.build import TOPIC, Objects, appended, read, texts, values
from tests.clock import Clock

pytestmark = [pytest.mark.xdist_group("object_store"), pytest.mark.turn(3)]

MINUTE_MS = 60_000
DAY_MS = 1440 * MINUTE_MS


@pytest.fixture(params=["disk", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "disk":
        return str(tmp_path / "a team" / "bus")
    return f"{request.getfixturevalue('s3')}/a team/bus"


@pytest.fixture
def objects(folder: str) -> Objects:
    made = Objects(folder)
    made.create_bus()
    return made


def reader_of(objects: FolderObjects) -> FolderReader:
    return FolderReader(objects, patience_s=0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(log_module, "steady_s", found)
    return found


def test_records_are_numbered_without_a_gap_and_read_back_from_any_offset(objects: Objects) -> None:
    log = FolderLog(objects, TOPIC)
    assert [appended(log, "a"), appended(log, "b", "c", "d"), appended(log, "e")] == [0, 1, 4]
    reader = reader_of(objects)
    assert (reader.starts(TOPIC), reader.ends(TOPIC)) == ({0: 0}, {0: 5})
    for start in range(6):
        for end in range(start, 6):
            assert values(read(reader, start, end)) == list("abcde")[start:end]
    [(offset, _, key, value)] = [item for item in read(reader, 2, 3) if not isinstance(item, Gone)]
    assert (offset, key, value) == (2, b"key", b"c")


def test_a_new_process_goes_on_behind_the_newest_record(objects: Objects) -> None:
    appended(FolderLog(objects, TOPIC), "a", "b")
    assert appended(FolderLog(objects, TOPIC), "c") == 2


def test_of_writers_that_race_each_gets_offsets_of_its_own_and_no_record_is_lost(objects: Objects, folder: str) -> None:
    offsets: dict[str, list[int]] = {name: [] for name in "xyz"}
    gate = threading.Barrier(len(offsets))

    def write(name: str) -> None:
        log = FolderLog(FolderObjects(folder, "prod"), TOPIC)
        gate.wait()
        for number in range(15):
            offsets[name].append(log.append(texts(f"{name}{number}", f"{name}{number}+"), 0).offset)

    threads = [threading.Thread(target=write, args=(name,)) for name in offsets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offset for own in offsets.values() for offset in own) == list(range(0, 90, 2))
    found = values(read(reader_of(objects), 0, 90))
    for name, own in offsets.items():
        assert own == sorted(own)
        assert [found[offset : offset + 2] for offset in own] == [[f"{name}{n}", f"{name}{n}+"] for n in range(15)]


def test_a_writer_knows_its_own_append_whose_answer_was_lost(objects: Objects) -> None:
    log = FolderLog(objects, TOPIC)
    objects.loses_answer = True
    assert (appended(log, "a"), appended(log, "b")) == (0, 1)
    assert values(read(reader_of(objects), 0, 2)) == ["a", "b"]


def test_an_append_has_the_store_s_time_and_never_one_below_the_append_before(objects: Objects) -> None:
    log = FolderLog(objects, TOPIC)
    first = log.append(texts("a"), 0)
    assert abs(first.time - datetime.now(UTC).timestamp() * 1000) < 60_000
    ahead = log.append(texts("b"), first.time + 30_000)
    behind = log.append(texts("c"), 0)
    assert (ahead.time, behind.time) == (first.time + 30_000, first.time + 30_000)
    times = [item[1] for item in read(reader_of(objects), 0, 3) if not isinstance(item, Gone)]
    assert times == [first.time, ahead.time, behind.time]
    assert FolderLog(objects, TOPIC).append(texts("d"), 0).time == behind.time


def test_a_store_s_clock_that_was_set_back_holds_up_no_time(objects: Objects) -> None:
    log = FolderLog(objects, TOPIC)
    first = log.append(texts("a"), 0)
    assert log.append(texts("b"), first.time + DAY_MS).time - first.time < 60_000


_KILLED = """
import os, sys
import obstore
from streaming.bus import FolderLog, FolderObjects
log = FolderLog(FolderObjects(sys.argv[1], "prod"), "evenkeel.rounds")
number = 0
while True:
    log.append([(None, b"x" * 2_000_000)], 0)
    number += 1
    if number == 3:
        print("going on", flush=True)
"""


@pytest.mark.nightly
def test_a_writer_killed_at_any_moment_leaves_whole_objects_only(objects: Objects, folder: str) -> None:
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", _KILLED, folder], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"going on\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    reader = reader_of(objects)
    end = reader.ends(TOPIC)[0]
    assert end >= 9
    assert all(item[3] == b"x" * 2_000_000 for item in read(reader, 0, end))  # type: ignore[index]
    assert appended(FolderLog(objects, TOPIC), "next") == end


def test_what_a_kill_left_beside_its_place_on_a_disk_is_no_object(tmp_path: Path) -> None:
    objects = Objects(str(tmp_path))
    appended(FolderLog(objects, TOPIC), "a")
    (tmp_path / "prod" / TOPIC / f"{1:020}#1").write_bytes(b"half an obj")
    assert appended(FolderLog(objects, TOPIC), "b") == 1


def test_an_object_that_a_power_failure_emptied_is_one_record_with_its_bytes(tmp_path: Path) -> None:
    objects = Objects(str(tmp_path))
    log = FolderLog(objects, TOPIC)
    objects.create_bus()
    appended(log, "a"), appended(log, "b", "c"), appended(log, "d")
    (tmp_path / "prod" / TOPIC / f"{1:020}").write_bytes(b"")
    reader = reader_of(objects)
    [a, damaged, gap, d] = read(reader, 0, reader.ends(TOPIC)[0])
    assert (values([a, damaged, d]), gap.start, gap.end, gap.before_log) == (["a", "", "d"], 2, 3, False)
    # The newest: the log goes on behind it.
    (tmp_path / "prod" / TOPIC / f"{3:020}").write_bytes(b"\x00\x00")
    assert appended(FolderLog(objects, TOPIC), "e") == 4


def age(folder: str, by_ms: int, topic: str = TOPIC, request: pytest.FixtureRequest | None = None) -> None:
    """Make every object of a folder on a disk so much older."""
    for path in (Path(folder) / "prod" / topic).iterdir():
        then = path.stat().st_mtime - by_ms / 1000
        os.utime(path, (then, then))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many appends make an object together."""
    monkeypatch.setattr(log_module, "_TOGETHER", 10)
    return 10


Aged = Callable[[int], None]


@pytest.fixture
def aged(folder: str, request: pytest.FixtureRequest) -> Aged:
    """Makes all objects older by so many ms."""
    if folder.startswith("s3:"):
        root = request.getfixturevalue("object_store").path(folder)
        return lambda by_ms: age(str(root), by_ms)
    return lambda by_ms: age(folder, by_ms)


def test_old_appends_are_put_together_and_read_as_before(objects: Objects, aged: Aged, few: int) -> None:
    log = FolderLog(objects, TOPIC)
    for number in range(25):
        log.append(texts(f"{number}", f"{number}+"), 0)
    aged(11 * MINUTE_MS)
    before = read(reader_of(objects), 0, 50)
    appended(log, "new")
    log.tend(DAY_MS)
    names = objects.names(TOPIC)
    assert [(name.base, name.end) for name in names[:2]] == [(0, 20), (20, 40)]
    assert [name.end for name in names[2:]] == [None] * 6
    assert few == 10
    reader = reader_of(objects)
    # Times, too: what is put together keeps those of its appends.
    assert read(reader, 0, 50) == before
    for start, end in ((0, 1), (7, 9), (19, 21), (39, 43), (45, 51)):
        assert values(read(reader, start, end)) == [*values(before), "new"][start:end]
    assert (reader.starts(TOPIC), reader.ends(TOPIC)) == ({0: 0}, {0: 51})


def test_what_a_probe_killed_while_it_put_appends_together_left_is_read_once_and_deleted_later(
    objects: Objects, aged: Aged, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FolderLog(objects, TOPIC)
    for number in range(few + 1):
        appended(log, f"{number}")
    aged(11 * MINUTE_MS)
    appended(log, "new")
    with monkeypatch.context() as patch:
        patch.setattr(objects, "delete", lambda *_: None)
        log.tend(DAY_MS)
    assert len(objects.names(TOPIC)) == few + 3
    assert values(read(reader_of(objects), 0, few + 2)) == [*map(str, range(few + 1)), "new"]
    log = FolderLog(objects, TOPIC)
    for number in range(few):
        appended(log, f"later{number}")
    log.tend(DAY_MS)
    assert [(name.base, name.end) for name in objects.names(TOPIC)[:2]] == [(0, few), (few, None)]


def test_records_beyond_the_retention_are_deleted_and_the_newest_keeps_the_offset(
    objects: Objects, aged: Aged, few: int
) -> None:
    log = FolderLog(objects, TOPIC)
    for number in range(few):
        appended(log, f"old{number}")
    aged(2 * DAY_MS)
    appended(log, "new")
    log.tend(DAY_MS)
    reader = reader_of(objects)
    assert (reader.starts(TOPIC), reader.ends(TOPIC)) == ({0: few}, {0: few + 1})
    [gap, new] = read(reader, 4, few + 1)
    assert (gap.start, gap.end, gap.before_log, values([new])) == (4, few, True, ["new"])
    assert "older records were deleted" in gap.reason
    aged(90 * DAY_MS)
    log = FolderLog(objects, TOPIC)
    assert appended(log, "after a quarter without a probe") == few + 1


def test_a_reader_that_follows_lists_nothing_and_asks_for_one_name(objects: Objects, folder: str) -> None:
    log = FolderLog(FolderObjects(folder, "prod"), TOPIC)
    for number in range(30):
        appended(log, f"{number}")
    reader = reader_of(objects)
    assert reader.ends(TOPIC) == {0: 30}
    objects.asked.clear()
    for number in range(30, 40):
        appended(log, f"{number}")
        assert reader.ends(TOPIC) == {0: number + 1}
        assert values(read(reader, number, number + 1)) == [f"{number}"]
    # The new object, and the free name behind it; what was read is read from memory.
    assert objects.asked == {"get": 20}


def test_a_task_reads_its_share_without_a_listing(objects: Objects, folder: str) -> None:
    log = FolderLog(FolderObjects(folder, "prod"), TOPIC)
    for number in range(30):
        appended(log, f"{number}")
    assert values(read(reader_of(objects), 20, 25)) == [f"{number}" for number in range(20, 25)]
    assert objects.asked == {"get": 5}


def test_a_reader_that_looked_away_for_long_finds_the_end_again(
    objects: Objects, folder: str, aged: Aged, few: int, clock: Clock
) -> None:
    log = FolderLog(FolderObjects(folder, "prod"), TOPIC)
    appended(log, "0")
    reader = reader_of(objects)
    assert reader.ends(TOPIC) == {0: 1}
    for number in range(1, 2 * few):
        appended(log, f"{number}")
    aged(11 * MINUTE_MS)
    appended(log, "new")
    log.tend(DAY_MS)
    # The name behind what it has read is free, because that append is in a larger object now.
    clock.now += 3_600
    assert reader.ends(TOPIC) == {0: 2 * few + 1}
    assert values(read(reader, 1, 2 * few + 1)) == [*map(str, range(1, 2 * few)), "new"]


def test_a_writer_that_stood_still_takes_its_object_back(
    objects: Objects, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FolderLog(objects, TOPIC)
    create = objects.create

    def stand_still(topic: str, name: Name, content: bytes) -> bool:
        clock.now += 7_200
        return create(topic, name, content)

    monkeypatch.setattr(objects, "create", stand_still)
    with pytest.raises(BusFolderError, match="stood still"):
        appended(log, "a")
    assert objects.names(TOPIC) == []


def test_another_folder_at_the_same_place_has_another_id_and_is_read_from_its_beginning(tmp_path: Path) -> None:
    objects = Objects(str(tmp_path / "bus"))
    objects.create_bus()
    appended(FolderLog(objects, TOPIC), "a", "b")
    reader = reader_of(objects)
    [first] = set(reader.identity({"rounds": TOPIC}).topics.values())
    assert reader.ends(TOPIC) == {0: 2}
    (tmp_path / "bus").rename(tmp_path / "aside")
    # A disk that is not mounted: nothing is taken for a new bus.
    with pytest.raises(BusFolderError, match="has no bus: the probe creates it with its first round"):
        reader.identity({"rounds": TOPIC})
    other = Objects(str(tmp_path / "bus"))
    other.create_bus()
    appended(FolderLog(other, TOPIC), "c")
    assert reader.identity({"rounds": TOPIC}).topics != {"rounds": first}
    assert reader.ends(TOPIC) == {0: 1}
    assert values(read(reader, 0, 1)) == ["c"]


def test_a_store_that_ignores_conditions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = FolderObjects(str(tmp_path), "prod")
    monkeypatch.setattr(FolderObjects, "_create", lambda *_: True)
    with pytest.raises(SetupError, match="ignores the conditions of writes"):
        objects.create_bus()


def test_a_folder_that_does_not_answer_is_a_sentence_without_the_answer_s_body(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if folder.startswith("s3:"):
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        with pytest.raises(BusFolderError, match=r"a team/bus/prod cannot be read or written: the store refuses"):
            FolderObjects(folder, "prod").create_bus()
        return
    with pytest.raises(BusFolderError, match="neither a folder nor on an object store"):
        FolderObjects("hdfs://name/bus", "prod").create_bus()


@pytest.mark.nightly
def test_a_start_costs_the_same_requests_after_100_000_appends_as_after_a_few(objects: Objects, folder: str) -> None:
    def requests(topic: str, end: int) -> Counter[str]:
        """Requests of a reader and a writer that start, and follow for a while."""
        objects.asked.clear()
        reader, writer = reader_of(objects), FolderLog(objects, topic)
        for number in range(end, end + 5):
            assert reader.ends(topic) == {0: number}
            assert appended(writer, f"{number}") == number
            assert values(read(reader, number, number + 1, topic)) == [f"{number}"]
        return Counter(objects.asked)

    few, many = "few", "many"
    for topic, old in ((few, 2), (many, 500)):
        for base in range(0, 200 * old, 200):
            together = [log_module._Append(0, ((b"key", b"old"),), 1_000)] * 200
            content = log_module._encoded("another", together)
            assert FolderObjects(folder, "prod").create(topic, Name(base, base + 200), content)
        appended(FolderLog(FolderObjects(folder, "prod"), topic), "newest")
    assert requests(many, 100_001) == requests(few, 401)
    assert objects.asked["list"] == 2
    # A page of a listing on S3 has a thousand names.
    assert len(objects.names(many)) < 1_000
    # What lies far back is found by that listing, too.
    objects.asked.clear()
    assert values(read(reader_of(objects), 199, 201, many)) == ["old", "old"]
    assert objects.asked == {"list": 1, "get": 3}
