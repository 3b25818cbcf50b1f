"""Share groups from round to round: what is read, what is asked, and what is unknown when neither tells it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.look import ListedGroup
from streaming.probe.kafka.requests import Refused, ShareOffset, ShareSettings
from streaming.probe.kafka.share_groups import ShareGroups, StateTail
from streaming.records import BROKERS, STATE_LOG, CountedRecords, QuarantinedRecord, SeenShares
from streaming.share_state import TOPIC
from tests.probe.kafka.build import ReadTopic, unreadable

_DATA = Path(__file__).parents[2] / "share_state" / "data" / "broker_4.3.1.jsonl"
REAL = [
    (bytes.fromhex(line["key"]), bytes.fromhex(line["value"]))
    for line in map(json.loads, _DATA.read_text("utf-8").splitlines())
]
"""The state of a group g with two partitions of a topic; `tests/share_state/test_records.py` tells its story."""

ID = "2JghgT4TRIaxs2tQKpO2ww"
TOLD = tuple(ShareOffset("t", ID, partition, 7 - 2 * partition, partition) for partition in (0, 1))


class World(ReadTopic):
    """A cluster with one partition of the state of share groups, and a coordinator."""

    def __init__(self) -> None:
        super().__init__(REAL)
        self.answers: Mapping[str, Sequence[ShareOffset]] | Exception = {"g": TOLD}
        self.asked: list[list[str]] = []

    def share_offsets(self, nodes: Mapping[str, int], _: Deadline) -> Mapping[str, Sequence[ShareOffset]]:
        self.asked.append(sorted(nodes))
        if isinstance(self.answers, Exception):
            raise self.answers
        return {group: answer for group, answer in self.answers.items() if group in nodes}


class Probe:
    """A probe's process."""

    def __init__(self, world: World, *, reads: bool = True) -> None:
        made: Any = world
        self.tail = StateTail(lambda: made) if reads else None
        self._groups = ShareGroups(made, self.tail)
        self.log: tuple[int, ...] = ()

    def observe(self, before: tuple[int, ...] = ()) -> SeenShares | None:
        listed = [ListedGroup("g", 1, "Stable", "share", "share"), ListedGroup("c", 1, "Stable", "consumer", "classic")]
        settings = {"g": ShareSettings(30_000, 5, None)}
        found = self._groups.observe(listed, lambda _: settings, before, 77, Deadline.after(30))
        self.log = found.log
        assert found.groups.keys() <= {"g"}
        return found.groups.get("g")


def test_a_round_reads_what_came_since_the_one_before_and_asks_once_for_names() -> None:
    world = World()
    probe = Probe(world)
    seen = probe.observe()
    assert (seen.source, seen.since, seen.lock_ms, seen.limit) == (STATE_LOG, 77, 30_000, 5)
    assert [(one.partition, one.start, one.done, one.first) for one in seen.topics["t"]] == [(0, 7, 1, 8), (1, 5, 0, 5)]
    assert probe.log == (11,)
    world.log.append(REAL[10])
    probe.observe()
    probe.observe()
    assert (world.read_from, world.asked) == ([0, 11], [["g"]])


def test_without_a_share_group_nothing_is_asked() -> None:
    world: Any = World()
    ShareGroups(world, StateTail(lambda: world)).observe([], lambda _: {}, (), 0, Deadline.after(30))
    assert (world.asked, world.read_from) == ([], [])


@pytest.mark.parametrize(("before", "archivals"), [((), ()), ((11,), ()), ((8,), ((5, 1),)), ((3,), ((1, 1), (5, 1)))])
def test_a_probe_that_starts_counts_from_where_the_last_round_has_read(
    before: tuple[int, ...], archivals: tuple[tuple[int, int], ...]
) -> None:
    seen = Probe(World()).observe(before)
    assert seen.topics["t"][0].archivals == archivals


def test_a_group_whose_topics_nobody_can_name_is_unknown() -> None:
    world = World()
    world.answers = RoundAbandonedError("the coordinator did not answer")
    probe = Probe(world)
    assert probe.observe() is None
    world.answers = {}
    assert probe.observe() is None
    world.answers = {"g": TOLD}
    assert probe.observe() is not None
    # A topic that is gone by then has no name, and the rest is known.
    world.answers = {"g": ()}
    assert Probe(world).observe() == SeenShares(STATE_LOG, 77, {}, 30_000, 5)


@pytest.mark.parametrize("how", ["no right to describe", "no right to read", "the log is not read"])
def test_where_the_topic_may_not_be_read_coordinators_are_asked_in_each_round(how: str) -> None:
    world = World()
    if how == "no right to describe":
        world.topic = Refused.FORBIDDEN
    if how == "no right to read":
        world.raises = unreadable()
    probe = Probe(world, reads=how != "the log is not read")
    for _ in range(2):
        seen = probe.observe()
        told = [(one.partition, one.start, one.lag, one.done, one.first) for one in seen.topics["t"]]
        assert (seen.source, told) == (BROKERS, [(0, 7, 0, -1, -1), (1, 5, 1, -1, -1)])
    assert (world.asked, probe.log) == ([["g"], ["g"]], ())
    assert probe.tail is None or probe.tail.is_refused


def test_why_the_topic_cannot_be_followed_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = World()
    probe = Probe(world)
    world.topic = Refused.UNKNOWN
    assert [probe.observe().source for _ in range(3)] == [BROKERS] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "__share_group_state could not be followed, so coordinators are asked: there is no such topic"
    ]


def test_a_log_that_was_cut_back_is_read_again_from_its_beginning() -> None:
    world = World()
    probe = Probe(world)
    probe.observe()
    del world.log[5:]
    seen = probe.observe()
    assert world.read_from == [0, 0]
    assert [(one.partition, one.start) for one in seen.topics["t"]] == [(0, 1), (1, 0)]


def test_a_topic_that_was_created_again_has_its_name_for_itself() -> None:
    world = World()
    probe = Probe(world)
    probe.observe()
    world.log.append((REAL[2][0][:-20] + bytes(range(16)) + bytes(4), REAL[2][1]))
    world.answers = {"g": (ShareOffset("t", "AAECAwQFBgcICQoLDA0ODw", 0, 0, 4),)}
    seen = probe.observe()
    assert [(one.partition, one.start) for one in seen.topics["t"]] == [(0, 0)]


def test_what_cannot_be_decoded_is_told_with_its_bytes_or_counted_and_once() -> None:
    world = World()
    probe = Probe(world)
    probe.observe()
    world.log += [(b"\0", b"junk")] * 5 + [(b"\0\7", b"later")] * 2
    probe.observe()
    told = probe.tail.unreadable
    whole = [item for item in told if isinstance(item, QuarantinedRecord)]
    counted = [item for item in told if isinstance(item, CountedRecords)]
    assert [(item.offset, item.key, item.value, item.topic) for item in whole] == [
        (at, b"\0", b"junk", TOPIC) for at in (11, 12, 13)
    ]
    assert sorted((item.kind, item.records) for item in counted) == [
        ("7/27745", 2), ("undecodable", 1), ("undecodable", 1)
    ]  # fmt: skip
    probe.tail.forget_unreadable()
    probe.observe()
    assert probe.tail.unreadable == ()
    # The next probe begins behind them.
    again = Probe(world)
    again.observe((18,))
    assert again.tail.unreadable == ()
