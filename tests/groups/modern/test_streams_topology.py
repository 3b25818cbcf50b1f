"""What a topology needs: tasks, topics, and partition counts of internal topics, as far as they follow for certain."""

from __future__ import annotations

from streaming.groups.streams.tasks import needed_topics, subtopologies_of, tasks_of, wrong_counts
from streaming.records import STREAMS, InternalTopics, StreamsTopology

SOURCE = ("0", ("a", "b"), (), ())
COUNTING = ("1", (), (), ("re",))


def wrong(counts: dict[str, int], *internal: InternalTopics) -> dict[str, tuple[int, int]]:
    topology = StreamsTopology(1, 1, STREAMS, 7, 0, (SOURCE, COUNTING), internal)
    return wrong_counts(subtopologies_of(topology).values(), counts.get)


def test_a_subtopology_has_as_many_tasks_as_its_largest_topic_has_partitions() -> None:
    parts = subtopologies_of(StreamsTopology(1, 1, STREAMS, 7, 0, (SOURCE, ("2", ("a",), ("x.*",), ()))))
    counts = {"a": 2, "b": 5}
    assert tasks_of(parts["0"], counts.get) == 5
    assert tasks_of(parts["0"], {"a": 2}.get) is None
    assert tasks_of(parts["2"], counts.get) is None


def test_a_source_topic_that_is_a_store_s_changelog_is_a_source() -> None:
    topology = StreamsTopology(1, 1, STREAMS, 7, 0, (SOURCE,), (InternalTopics((("a", 0), ("log", 0))),))
    assert needed_topics(subtopologies_of(topology).values()) == {"a": "source", "b": "source", "log": "changelog"}


def test_a_repartition_topic_needs_as_many_partitions_as_its_writers_read() -> None:
    internal = InternalTopics(sinks=("re",)), InternalTopics((("log", 0),), (0,))
    assert wrong({"a": 2, "b": 5, "re": 5, "log": 5}, *internal) == {}
    assert wrong({"a": 2, "b": 5, "re": 3, "log": 3}, *internal) == {"re": (5, 3)}
    assert wrong({"a": 2, "b": 5, "re": 5, "log": 4}, *internal) == {"log": (5, 4)}


def test_a_count_that_the_application_sets_is_needed() -> None:
    internal = InternalTopics(sinks=("re",)), InternalTopics((), (8,))
    assert wrong({"a": 2, "b": 5, "re": 8}, *internal) == {}
    assert wrong({"a": 2, "b": 5, "re": 5}, *internal) == {"re": (8, 5)}


def test_nothing_is_derived_of_topics_that_are_read_in_step_or_are_not_known() -> None:
    in_step = InternalTopics(sinks=("re",)), InternalTopics((), (0,), (), (((), (0,)),))
    assert wrong({"a": 2, "b": 5, "re": 3}, *in_step) == {}
    assert wrong({"a": 2, "re": 3}, InternalTopics(sinks=("re",)), InternalTopics((), (0,))) == {}
    assert wrong({"a": 2, "b": 5, "re": 3}) == {}
