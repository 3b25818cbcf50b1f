"""The libraries to try by the bytes of the leader's subscription: those that write them first, then all others."""

from __future__ import annotations

import contextlib

import pytest

from assignors import (
    CannotTell,
    Group,
    Library,
    Subscription,
    assign,
    declared_leaders,
    parse_library,
    possible_leaders,
    strategy_named,
    topics_without_metadata,
    with_hidden_inputs,
)


def names(strategy: str, version: int | None, user_data: bytes | None, **hints: str) -> list[str]:
    found = possible_leaders(strategy, version=version, user_data=user_data, **hints)
    return [str(library) for library in found.likely]


def test_what_any_small_library_writes_is_likely_of_several() -> None:
    assert {"java:0.9", "sarama:1.19", "sarama:1.34.1", "franz-go:1.0"} <= set(names("range", 0, None))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
@pytest.mark.parametrize("version", [None, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("user_data", [None, b"", bytes(4), b"my own"])
def test_every_behaviour_is_tried_once_whatever_the_bytes(
    strategy: str, version: int | None, user_data: bytes | None
) -> None:
    found = possible_leaders(strategy, version=version, user_data=user_data)

    tried = []
    for library in (*found.likely, *found.others):
        with contextlib.suppress(CannotTell):
            tried.append(strategy_named(strategy).era(library).recompute)
    assert len(tried) == len(set(tried))
    assert set(tried) == {era.recompute for era in strategy_named(strategy).eras}


def test_an_unregistered_strategy_has_no_candidates() -> None:
    found = possible_leaders("my-assignor", version=3)

    assert (found.likely, found.others) == ((), ())


@pytest.mark.parametrize(
    ("strategy", "library", "candidates"),
    [
        pytest.param("range", "java", "java:0.9 java:2.4 java:3.5", id="without a release it has all its behaviours"),
        pytest.param("range", "java:3.7.1", "java:3.7.1", id="a release has one"),
        pytest.param("sticky", "sarama", "sarama", id="one that cannot be computed stays a candidate"),
    ],
)
def test_a_declared_library_is_tried_with_its_behaviours(strategy: str, library: str, candidates: str) -> None:
    assert list(map(str, declared_leaders(strategy, [parse_library(library)]))) == candidates.split()


def test_a_client_id_excludes_no_candidate() -> None:
    assert sorted(names("range", 1, None, client_id="sarama")) == sorted(names("range", 1, None))


@pytest.mark.parametrize(
    ("version", "user_data", "hint", "begins"),
    [
        (1, None, {"client_id": "sarama"}, "sarama:1.60.1 java:2.4"),
        # Two libraries behave alike: the likely one is named.
        (0, b"", {"client_id": "aiokafka-0.14.0"}, "aiokafka:0.1 kafka-python:2.3 librdkafka:0.9 librdkafka:1.3"),
        # A member id stands in for a client id.
        (0, b"", {"member_id": "rdkafka-1234"}, "librdkafka:0.9"),
    ],
)
def test_an_id_moves_candidates_of_its_library_to_the_front(
    version: int, user_data: bytes | None, hint: dict[str, str], begins: str
) -> None:
    first = begins.split()
    assert names("range", version, user_data, **hint)[: len(first)] == first


JAVA_3 = "java:3.4 java:3.4.1 java:3.5 java:3.5.2 java:3.7.1"
SARAMA = "sarama:1.19 sarama:1.34.1"


@pytest.mark.parametrize(
    ("strategy", "version", "user_data", "candidates"),
    [
        # Java before and after the change of 3.5 writes the same bytes.
        ("range", 3, None, "java:3.4 java:3.5 franz-go:1.14.1 krafka:0.27"),
        # A behaviour that never changed is one candidate, and a newer version is read as version 3.
        ("roundrobin", 3, None, "java:3.4 franz-go:1.14.1 krafka:0.27"),
        ("roundrobin", 7, None, "java:3.4 franz-go:1.14.1 krafka:0.27"),
        ("range", 0, b"", f"kafka-python:1.0 kafka-python:2.3 librdkafka:0.9 librdkafka:1.3 {SARAMA}"),
        ("range", 1, None, "java:2.4 sarama:1.60.1 kafka-go:0.1 sarama-cluster:2.0"),
        ("range", 1, b"", f"librdkafka:1.6 {SARAMA}"),
        ("range", 3, b"", "librdkafka:2.2"),
        ("roundrobin", 2, None, "sarama:1.60.1"),
        # User data of an application is likely sarama's, whatever its length.
        *(("range", version, data, SARAMA) for version in (0, 1, 2) for data in (b"my own", b"four")),
        ("range", 3, b"my own", ""),
        # The leader was not decoded.
        ("range", None, None, ""),
        ("RoundRobinAssigner", 1, b"", "kafkajs:1.0 kafkajs:1.13"),
        # Cooperative bytes tell more than eager ones.
        ("cooperative-sticky", 1, None, "java:2.4 java:2.5.1 sarama:1.60.1"),
        ("cooperative-sticky", 1, bytes(4), "java:2.8.1 java:3.0 sarama:1.60.1"),
        ("cooperative-sticky", 3, bytes(4), f"{JAVA_3} franz-go:1.15.2 franz-go:1.21"),
        # A sticky leader without a past writes no user data.
        ("sticky", 1, None, "java:2.4 java:2.5.1 java:2.8.1 java:3.0 sarama:1.60.1"),
        ("sticky", 3, None, JAVA_3),
        ("sticky", 3, bytes(8), f"{JAVA_3} franz-go:1.15.2 franz-go:1.21"),
        ("cooperative-sticky", 1, b"", "kafka-python:3 kafka-python:3.0.12 librdkafka:1.6"),
        ("cooperative-sticky", 1, bytes(9), "librdkafka:1.6 franz-go:1.0"),
        ("cooperative-sticky", 2, bytes(4), "sarama:1.60.1"),
        ("cooperative-sticky", 3, b"", "librdkafka:2.2 librdkafka:2.6.1 franz-go:1.15.2 franz-go:1.21"),
        ("cooperative-sticky", 3, bytes(9), "librdkafka:2.2 librdkafka:2.6.1 franz-go:1.15.2 franz-go:1.21"),
        ("sticky", 0, None, "java:0.11 sarama"),
        ("sticky", 0, b"", "kafka-python:2.0 kafka-python:3 kafka-python:3.0.12 aiokafka:0.9 sarama"),
        ("sticky", 3, bytes(4), "franz-go:1.15.2 franz-go:1.21"),
        ("sticky", 1, b"", "sarama:1.60.1"),
        (
            "sticky",
            0,
            bytes(8),
            "java:0.11 kafka-python:2.0 kafka-python:3 kafka-python:3.0.12 aiokafka:0.9 sarama franz-go:1.0",
        ),
        ("sticky", 1, bytes(8), "java:2.4 java:2.5.1 java:2.8.1 java:3.0 sarama:1.60.1"),
        ("sticky", 2, None, "sarama:1.60.1"),
        ("sticky", 2, bytes(8), "sarama:1.60.1"),
    ],
)
def test_version_and_user_data_name_the_libraries_that_write_them(
    strategy: str, version: int | None, user_data: bytes | None, candidates: str
) -> None:
    assert names(strategy, version, user_data) == candidates.split()


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("user_data", [None, b""])
def test_every_candidate_is_computed_or_cannot_be_told(strategy: str, version: int, user_data: bytes | None) -> None:
    group = Group((Subscription("a", ("t",)), Subscription("b", ("t",))), {"t": 3}, leader="a")
    found = possible_leaders(strategy, version=version, user_data=user_data)
    for library in (*found.likely, *found.others):
        with contextlib.suppress(CannotTell):
            assert sum(len(parts["t"]) for parts in assign(strategy, group, library).values()) == 3


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky", "RoundRobinAssigner"])
def test_the_eras_of_a_library_follow_each_other_without_gap_or_overlap(strategy: str) -> None:
    eras = strategy_named(strategy).eras
    for library in {era.library for era in eras}:
        of_library = [era for era in eras if era.library == library]
        assert of_library[-1].before is None
        assert [e.before for e in of_library[:-1]] == [e.since for e in of_library[1:]]
        assert all(e.since < e.before for e in of_library[:-1] if e.before is not None)


def test_a_candidate_is_written_as_library_and_first_release_of_its_era() -> None:
    assert str(Library("java", (3, 5))) == "java:3.5"
    assert str(strategy_named("range").era(Library("java", (3, 7, 1)))) == "java >= 3.5"
    assert str(strategy_named("range").era(Library("java", (3, 4)))) == "java >= 2.4, < 3.5"


def test_a_kafka_python_leader_may_not_know_a_topic_be_it_its_own() -> None:
    assert topics_without_metadata(Library("kafka-python", (2, 3)), ("a", "b", "c")) == {"a", "b", "c"}


def test_every_other_leader_waits_for_them() -> None:
    for name in ("java", "librdkafka", "aiokafka", "sarama", "franz-go"):
        assert topics_without_metadata(Library(name), ("a", "b")) == frozenset()


def test_a_java_leader_may_remember_a_generation_as_high_as_a_record_can_hold() -> None:
    group = Group((Subscription("a", ("t",)),), {"t": 1})
    ((seen, reason),) = with_hidden_inputs("sticky", group, Library("java", (3, 0)))
    assert seen.remembered_generation == 2_147_483_647  # the largest int32
    assert reason is not None
    assert list(with_hidden_inputs("sticky", group, Library("java", (2, 8)))) == []
