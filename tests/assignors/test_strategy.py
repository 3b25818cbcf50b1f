from __future__ import annotations

import pytest

from assignors import (
    AssignorError,
    CannotTell,
    Group,
    Library,
    Subscription,
    UnknownLibrary,
    assign,
    parse_library,
)


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
