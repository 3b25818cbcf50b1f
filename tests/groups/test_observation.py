"""What a round leaves in a group's state."""

from __future__ import annotations

from tests.groups.build import CONFIG, MINUTE, SECOND, START, Life, even, make_observation, make_record, make_topic


def counts_of(life: Life, topic: str) -> list[tuple[int, int, int]]:
    """Partition counts in the state, and the first and last second in which each was seen."""
    assert life.state is not None
    return [
        (seen.count, (seen.first - START) // SECOND, (seen.last - START) // SECOND)
        for seen in life.state.topics[topic].counts
    ]


def test_the_newest_count_before_twice_the_grace_is_still_in_force_and_kept_and_older_ones_are_not() -> None:
    assert CONFIG.metadata_grace_ms == 10 * MINUTE
    life = Life()
    life.take(make_record(5, even("x", 1, "a")))
    for second, partitions in ((10, 1), (60, 2), (120, 3), (190, 3)):
        life.take(make_observation(second, make_topic("x", partitions)))
    assert counts_of(life, "x") == [(1, 10, 10), (2, 60, 60), (3, 120, 190)]
    life.take(make_observation(200 + 20 * 60, make_topic("x", 4)))
    assert counts_of(life, "x") == [(3, 120, 190), (4, 1400, 1400)]


def test_counts_within_twice_the_grace_are_all_kept() -> None:
    life = Life()
    life.take(make_record(5, even("x", 1, "a")))
    for second, partitions in ((200, 1), (260, 2), (320, 3), (260 + 20 * 60, 4)):
        life.take(make_observation(second, make_topic("x", partitions)))
    assert [count for count, _, _ in counts_of(life, "x")] == [1, 2, 3, 4]


def test_a_topic_is_forgotten_when_no_round_has_shown_it_for_more_than_twice_the_grace() -> None:
    life = Life()
    life.take(make_record(5, even("x", 1, "a", topics=("x", "y"))))
    life.take(make_observation(10, make_topic("x", 1), make_topic("y", 1)))
    for second, known in ((10 + 20 * 60, {"x", "y"}), (11 + 20 * 60, {"x"})):
        life.take(make_observation(second, make_topic("x", 1)))
        assert life.state is not None
        assert set(life.state.topics) == known
