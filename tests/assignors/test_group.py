"""Groups refuse inputs that no leader could have seen; `assign` refuses unknown names."""

from __future__ import annotations

import pytest

from assignors import (
    AssignorError,
    BadGroup,
    CannotTell,
    Group,
    Library,
    Subscription,
    UnknownLibrary,
    UnknownStrategy,
    assign,
    parse_library,
)
from assignors.model import MAX_PARTITIONS


def test_a_member_twice_is_refused() -> None:
    with pytest.raises(BadGroup, match="'a' appears twice"):
        Group((Subscription("a", ()), Subscription("b", ()), Subscription("a", ("t",))), {})


def test_a_group_reads_as_the_call_that_makes_it() -> None:
    group = Group((Subscription("a", ("t",)),), {"t": 3}, remembered_generation=7)
    assert "_by_id" not in repr(group)
    assert eval(repr(group)) == group


@pytest.mark.parametrize("count", [-1, 2**31, True, 1.0, None, "3"])
def test_a_partition_count_that_is_none_is_refused(count: object) -> None:
    with pytest.raises(BadGroup, match="Topic 't'"):
        Group((), {"t": count})  # type: ignore[dict-item]


def test_topics_may_have_as_many_partitions_together_as_the_limit_and_not_one_more() -> None:
    counts = {"t": MAX_PARTITIONS - 1, "u": 1}
    assert Group((), counts).partitions_per_topic == counts
    with pytest.raises(BadGroup, match=f"{MAX_PARTITIONS + 1} partitions in total"):
        Group((), {"t": MAX_PARTITIONS, "u": 1})


def test_a_group_of_nobody_has_an_empty_assignment() -> None:
    for strategy in ("range", "roundrobin"):
        for library in ("java:2.3.1", "java:4.3.1", "librdkafka:2.16", "kafka-python:3.0.12", "sarama:1.60.1"):
            assert assign(strategy, Group((), {"t": 3}), library) == {}


def test_a_member_is_found_by_its_id() -> None:
    member = Subscription("a", ("t",))

    assert Group((member,), {}).member("a") is member
    assert Group((member,), {}).member("b") is None


def test_an_unknown_strategy_is_named_with_those_that_are_known() -> None:
    with pytest.raises(UnknownStrategy, match=r"'my-own'.*range, roundrobin"):
        assign("my-own", Group((), {}))


def test_a_library_without_an_era_cannot_be_told() -> None:
    with pytest.raises(CannotTell, match="not recomputed"):
        assign("range", Group((), {}), "unknown")


@pytest.mark.parametrize(
    ("text", "library"),
    [
        ("java:3.7.1", Library("java", (3, 7, 1))),
        ("3.7.1", Library("java", (3, 7, 1))),
        ("librdkafka:2.16", Library("librdkafka", (2, 16))),
        ("kafka-python:3.0.12", Library("kafka-python", (3, 0, 12))),
        ("java:4.2.0-rc1", Library("java", (4, 2, 0))),
        ("3.7.1-ccs", Library("java", (3, 7, 1))),
        ("kafka-python:3.1.0.dev", Library("kafka-python", (3, 1, 0))),
        ("franz-go:v1.21.5", Library("franz-go", (1, 21, 5))),
        ("sarama", Library("sarama")),
    ],
)
def test_a_library_is_read_from_its_text(text: str, library: Library) -> None:
    assert parse_library(text) == library


@pytest.mark.parametrize(
    "text", ["", ":", "java:", "java:x", "jav:3.7", "3.7:java", "java:3.7.1.2.3", "3..7", "\u0663.\u0667"]
)
def test_what_is_no_library_is_refused(text: str) -> None:
    with pytest.raises(UnknownLibrary, match=r"use one of|cannot be read"):
        parse_library(text)


def test_a_library_is_written_as_it_is_read() -> None:
    for text in ("java:3.7.1", "sarama"):
        assert str(parse_library(text)) == text


def test_no_release_means_the_newest() -> None:
    twice = Group((Subscription("a", ("t", "t")), Subscription("b", ("t",))), {"t": 9})

    assert assign("range", twice, "java") == assign("range", twice, "java:4.3.1") == assign("range", twice)
    assert assign("range", twice, "java") != assign("range", twice, "java:3.4.1")


def test_a_release_before_all_consumer_groups_cannot_be_told() -> None:
    with pytest.raises(CannotTell) as caught:
        assign("range", Group((), {}), "java:0.8")

    assert isinstance(caught.value, AssignorError)
    assert caught.value.reason == "this library's range is not recomputed"
