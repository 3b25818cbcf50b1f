"""Deliveries of real share groups, with members that accept, release, reject, crash and stall, beside Kafka's own tool."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaProducer

from streaming.groups.rows import LagRow
from streaming.jars import classpath
from tests.java_tools import share_group_offsets
from tests.oracle.java_classes import java_command
from tests.real_groups.followed import Followed
from tests.real_groups.party import make_topics

pytestmark = [pytest.mark.kafka, pytest.mark.turn(2)]

_SOURCE = Path(__file__).resolve().parents[1] / "oracle" / "ShareMember.java"


class ShareMember:
    """A member that does with a record what its value says (`ShareMember.java`)."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": group}
        told = [part for setting in settings.items() for part in setting]
        self._process = subprocess.Popen(
            [*java_command(_SOURCE, classpath("broker"), "128m"), topic, *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def crash(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()


@contextmanager
def member(bootstrap: str, topic: str, group: str) -> Iterator[ShareMember]:
    one = ShareMember(bootstrap, topic, group)
    try:
        yield one
    finally:
        one.crash()


class Words:
    """Writes records whose values say what is to be done with them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer, self._topic = KafkaProducer(bootstrap_servers=bootstrap), topic

    def say(self, partition: int, *words: str) -> None:
        for word in words:
            self._producer.send(self._topic, word.encode(), partition=partition)
        self._producer.flush()


def as_the_tool_says(bootstrap: str, group: str, lag: Mapping[tuple[str, int], LagRow]) -> None:
    """Start offsets and lag of a group at rest."""
    said = share_group_offsets(bootstrap, group)
    assert {place: (row.committed_offset, row.lag) for place, row in lag.items()} == {
        place: (start, left) for place, (start, left) in said.items() if start is not None
    }


def at_rest(followed: Followed, group: str, done: Callable[[dict[int, LagRow]], bool]) -> dict[int, LagRow]:
    def rests() -> bool:
        rows = {number: row for (_, number), row in followed.lag(group).items()}
        return done(rows)

    followed.round_until(rests)
    return {number: row for (_, number), row in followed.lag(group).items()}


@pytest.mark.nightly
def test_start_offset_lag_and_delivery_states_are_those_of_the_tool_whatever_members_do(
    bootstrap: str, unique: str
) -> None:
    make_topics(bootstrap, {unique: 3})
    group = f"{unique}-share"
    words = Words(bootstrap, unique)
    with Followed(bootstrap, unique) as followed, member(bootstrap, unique, group) as one:
        # The group begins at the end of each partition: what comes before its members does not count.
        followed.round_until(lambda: f"g:{group}" in followed.rows and followed.members(group))
        while not all(start is not None for start, _ in share_group_offsets(bootstrap, group).values()):
            for partition in range(3):
                words.say(partition, "accept")
        first = at_rest(followed, group, lambda rows: len(rows) == 3 and all(row.lag == 0 for row in rows.values()))
        as_the_tool_says(bootstrap, group, followed.lag(group))
        base = {number: row.high_watermark or 0 for number, row in first.items()}
        assert {(row.released_records, row.archived_records) for row in first.values()} == {(0, 0)}

        words.say(0, "accept", "once", "reject", "release", "accept")
        words.say(1, *["accept"] * 7)
        rows = at_rest(
            followed,
            group,
            lambda now: (
                now[0].high_watermark == base[0] + 5
                and now[1].high_watermark == base[1] + 7
                and not any(row.lag for row in now.values())
            ),
        )
        as_the_tool_says(bootstrap, group, followed.lag(group))
        of_group = [row for row in followed.rows[f"g:{group}"].lag if row.partition == 0]
        assert (
            sum(row.given_up_records or 0 for row in of_group),
            sum(row.rejected_records or 0 for row in of_group),
        ) == (1, 1)
        assert rows[0].delivery_count_max == 0
        found = {finding.finding: finding.detail for finding in followed.health(group).findings}
        assert found["records_given_up"] == f"archived after 5 deliveries: {unique} 0 (1 record)"
        print(rows)
