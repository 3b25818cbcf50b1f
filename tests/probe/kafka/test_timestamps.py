"""How old unread records are that were there before the probe: what is asked, and what is said of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.probe.kafka.requests import FirstFrom
from streaming.probe.kafka.timestamps import QUESTIONS_PER_PARTITION, Timestamps
from streaming.records import TopicObservation, TopicRetention, UnreadTimestamp
from tests.clock import Clock
from tests.examples import examples
from tests.probe.kafka.build import topic

NOW = 1_767_225_600_000
INTERVAL = 10_000
DAY = 86_400_000

APPENDED = TopicRetention(DAY, -1, deletes=True, append_time=True)
CREATED = TopicRetention(DAY, -1, deletes=True, append_time=False)
COMPACTED = TopicRetention(DAY, -1, deletes=True, append_time=False, compacts=True)


@dataclass
class Log:
    """One partition as its leader searches it (`UnifiedLog.searchOffsetInLocalLog`).

    Attributes:
        stamps: Timestamp of each record; -1 for none.
        gone: Offsets that compaction has removed.
        segment: Records per segment.
        start: Log start.
        modified: Time for a segment without timestamps: when its file was last written.
    """

    stamps: Sequence[int]
    gone: frozenset[int] = frozenset()
    segment: int = 1_000
    start: int = 0
    modified: int = NOW

    def first_from(self, timestamp: int) -> FirstFrom:
        for base in range(self.start // self.segment * self.segment, len(self.stamps), self.segment):
            there = [o for o in range(base, min(base + self.segment, len(self.stamps))) if o not in self.gone]
            largest = max((self.stamps[o] for o in there), default=-1)
            if (largest if largest >= 0 else self.modified) >= timestamp:
                found = [o for o in there if o >= self.start and self.stamps[o] >= timestamp]
                return FirstFrom(found[0], self.stamps[found[0]]) if found else FirstFrom(-1, -1)
        return FirstFrom(-1, -1)

    def topic(self, retention: TopicRetention | None) -> TopicObservation:
        return topic("x", [len(self.stamps)], start=[self.start], topic_id="id", retention=retention)


def ask(search: Timestamps, logs: dict[str, Log]) -> int:
    """Answer the questions of one round; how many there were."""
    asked = search.questions()
    for one in asked:
        search.note_answers(one, {place: logs[place[0]].first_from(at) for place, at in one.items()})
    return sum(map(len, asked))


def searched(
    log: Log, offset: int, retention: TopicRetention | None, rounds: int = 60
) -> tuple[UnreadTimestamp | None, int]:
    """What is said of an oldest unread record in the end, and the number of questions."""
    search = Timestamps(INTERVAL, Clock(0.0))
    topics = {"x": log.topic(retention)}
    total, found = 0, None
    for number in range(rounds):
        search.note_topics(topics)
        now = NOW + number * INTERVAL
        told = search.unread_timestamps({"g": [("x", 0, offset)]}, now)
        found = told["g"]["x"][0] if told else None
        asked = ask(search, {"x": log})
        total += asked
        if not asked:
            break
    return found, total


def three_days(count: int) -> list[int]:
    return [NOW - 3 * DAY + 3 * DAY * offset // count for offset in range(count)]


def test_a_backlog_of_appended_records_is_bounded_to_a_tenth_of_its_age_in_ten_questions() -> None:
    stamps = three_days(5_000)
    for offset in (0, 1, 77, 2_500, 4_900, 4_990):
        found, asked = searched(Log(stamps), offset, APPENDED)
        assert found.reached <= stamps[offset]
        assert stamps[offset] < (found.below if found.below >= 0 else NOW)
        if not found.own:
            assert found.below - found.reached <= max(INTERVAL, (NOW - stamps[offset]) / 10)
        assert asked <= 10


def test_what_producers_wrote_in_order_is_found_exactly() -> None:
    stamps = three_days(5_000)
    for offset in (0, 1, 77, 2_500, 4_900, 4_990):
        found, asked = searched(Log(stamps), offset, CREATED)
        assert (found.own, found.reached) == (True, stamps[offset])
        assert asked <= 25


def test_of_several_records_with_one_timestamp_only_the_first_is_known_to_have_it() -> None:
    stamps = [NOW - DAY, NOW - DAY, NOW - DAY, NOW - DAY + 1, NOW - 5]
    found, _ = searched(Log(stamps), 1, CREATED)
    assert not found.own
    assert stamps[1] < found.below
    found, _ = searched(Log(stamps), 0, CREATED)
    assert (found.own, found.reached) == (True, NOW - DAY)


def test_a_timestamp_from_the_future_hides_all_that_come_after_it_and_nothing_is_said() -> None:
    stamps = [NOW - DAY, 253_402_300_799_999, NOW - DAY + 5, NOW - DAY + 10, NOW]
    assert searched(Log(stamps), 2, CREATED) == (None, 1)
    found, _ = searched(Log(stamps), 0, CREATED)
    assert found.own


def test_records_from_before_kafka_and_records_without_a_timestamp_say_nothing() -> None:
    for early in (-1, 0, 1_700_000_000):
        found, asked = searched(Log([early] * 5 + [NOW - DAY] * 5, modified=NOW - DAY), 2, CREATED)
        assert found is None
        assert asked <= 12


def test_where_the_right_to_see_settings_is_missing_only_a_record_that_is_found_counts() -> None:
    stamps = three_days(100)
    found, _ = searched(Log(stamps), 50, None)
    assert (found.own, found.below) == (True, -1)
    found, _ = searched(Log([*stamps[:50], stamps[49], *stamps[51:]]), 50, None)
    assert found is None


def test_a_record_that_compaction_removed_has_no_timestamp() -> None:
    # Nobody knows when 50 was written; that nothing below 90 is older than two days says nothing of it.
    log = Log(three_days(100), gone=frozenset(range(40, 90)))
    assert searched(log, 50, COMPACTED)[0] is None
    found, _ = searched(log, 90, COMPACTED)
    assert found.own


def test_a_group_that_is_not_behind_the_first_round_is_not_looked_for() -> None:
    search, clock = Timestamps(INTERVAL, Clock(0.0)), Clock(0.0)
    search.note_topics({"x": Log(three_days(100)).topic(CREATED)})
    longer = {"x": Log(three_days(200)).topic(CREATED)}
    search.note_topics(longer)
    assert search.unread_timestamps({"g": [("x", 0, 150)]}, NOW) == {}
    assert search.questions() == []
    assert clock.now == 0.0


def test_when_retention_has_passed_the_offset_the_log_start_is_looked_for() -> None:
    stamps = three_days(100)
    found, _ = searched(Log(stamps, start=60), 10, CREATED)
    assert (found.offset, found.reached, found.own) == (60, stamps[60], True)


def test_a_leader_that_refuses_is_asked_again_in_a_minute() -> None:
    clock = Clock(0.0)
    search = Timestamps(INTERVAL, clock)
    topics = {"x": Log(three_days(100)).topic(CREATED)}
    asked = []
    for _ in range(30):
        search.note_topics(topics)
        assert search.unread_timestamps({"g": [("x", 0, 10)]}, NOW) == {}
        rows = search.questions()
        for row in rows:
            search.note_answers(row, {})
        asked += [clock.now] if rows else []
        clock.now += 10.0
    assert asked == [0.0, 60.0, 120.0, 180.0, 240.0]


def test_leaders_that_do_not_answer_in_time_are_asked_less_and_not_at_once() -> None:
    clock = Clock(0.0)
    search = Timestamps(INTERVAL, clock)
    logs = {f"t{n}": Log(three_days(10)) for n in range(2_000)}
    topics = {name: log.topic(CREATED) for name, log in logs.items()}
    early = {"g": [(name, 0, 1) for name in topics]}

    def count() -> int:
        search.note_topics(topics)
        search.unread_timestamps(early, NOW)
        return sum(map(len, search.questions()))

    assert count() == 1_000
    search.give_up()
    assert count() == 0
    clock.now += 60.0
    assert count() == 500


def test_a_log_that_was_replaced_or_cut_back_is_searched_anew() -> None:
    search = Timestamps(INTERVAL, Clock(0.0))
    log = Log(three_days(100))
    topics = {"x": log.topic(APPENDED)}
    for _ in range(20):
        search.note_topics(topics)
        told = search.unread_timestamps({"g": [("x", 0, 10)]}, NOW)
        ask(search, {"x": log})
    assert told["g"]["x"][0].offset == 10
    for other in (
        topic("x", [90], topic_id="id", retention=APPENDED),
        topic("x", [100], topic_id="another", retention=APPENDED),
    ):
        again = {"x": other}
        search.note_topics(again)
        assert search.unread_timestamps({"g": [("x", 0, 10)]}, NOW) == {}
        assert ask(search, {"x": log}) == 1


def test_a_record_that_was_found_is_reported_in_every_round_and_its_bound_ends_when_the_topic_is_compacted() -> None:
    log, search = Log(three_days(100)), Timestamps(INTERVAL, Clock(0.0))

    def reported(retention: TopicRetention, now: int) -> UnreadTimestamp | None:
        topics = {"x": log.topic(retention)}
        search.note_topics(topics)
        found = search.unread_timestamps({"g": [("x", 0, 50)]}, now)
        return found["g"]["x"][0] if found else None

    while (found := reported(CREATED, NOW)) is None or not found.own:
        assert ask(search, {"x": log})
    assert found.below >= 0
    assert [reported(CREATED, NOW + INTERVAL * later) for later in range(1, 4)] == [found] * 3
    assert reported(COMPACTED, NOW) == UnreadTimestamp(50, found.reached, -1, own=True)


@dataclass(frozen=True)
class Step:
    """What changes before a round: records that are written, deleted, or lost by an unclean election; or a setting."""

    written: int = 0
    start: int = 0
    lost: int = 0
    retention: TopicRetention = CREATED
    clock: int = 0


steps = st.lists(
    st.builds(
        Step,
        written=st.integers(0, 2),
        start=st.sampled_from([0, 0, 0, 3, 8]),
        lost=st.sampled_from([0, 0, 0, 0, 5]),
        retention=st.sampled_from([CREATED, CREATED, CREATED, APPENDED, COMPACTED]),
        clock=st.sampled_from([0, 0, 0, -3 * DAY]),
    ),
    max_size=12,
)


@settings(max_examples=examples(200), deadline=None)
@given(offset=st.integers(0, 11), newest=st.sampled_from([-DAY, -5_000, DAY]), changes=steps)
def test_what_is_kept_of_a_group_from_round_to_round_is_what_a_search_says_that_looks_at_all_of_it_in_each(
    offset: int, newest: int, changes: list[Step]
) -> None:
    log = Log([*three_days(6), *[NOW + newest] * 6])
    keeps, looks = Timestamps(INTERVAL, Clock(0.0)), Timestamps(INTERVAL, Clock(0.0))
    committed = (("x", 0, offset),)
    for number, step in enumerate(Step() if n % 20 else step for step in changes for n in range(21)):
        stamps = [*log.stamps, *[NOW] * step.written]
        log = Log(stamps[: max(2, len(stamps) - step.lost)], start=min(max(log.start, step.start), len(stamps) - 1))
        topics = {"x": log.topic(step.retention)}
        now = NOW + number * INTERVAL + step.clock
        found = []
        for search, early in ((keeps, committed), (looks, [*committed])):
            search.note_topics(topics)
            found.append(search.unread_timestamps({"g": early}, now))
            ask(search, {"x": log})
        assert found[0] == found[1]


def test_a_group_of_which_nothing_changes_is_looked_at_once() -> None:
    search = Timestamps(INTERVAL, Clock(0.0))
    # The oldest unread record shares its timestamp with the one before it, so it cannot be found itself.
    log = Log([*[NOW - DAY] * 8, NOW - 9, NOW - 8])
    committed = (("x", 0, 1),)
    found = []
    for number in range(40):
        search.note_topics({"x": log.topic(CREATED)})
        found.append(search.unread_timestamps({"g": committed}, NOW + number * INTERVAL))
        ask(search, {"x": log})
    assert found[-1]["g"]["x"][0].reached == NOW - DAY
    assert found[-1]["g"] is found[-2]["g"]
    moved = search.unread_timestamps({"g": (("x", 0, 2),)}, NOW + 40 * INTERVAL)
    assert moved["g"]["x"][0].offset == 2


def test_ten_thousand_groups_on_one_partition_share_the_answers() -> None:
    search = Timestamps(INTERVAL, Clock(0.0))
    log = Log(three_days(20_000), segment=20_000)
    topics = {"x": log.topic(APPENDED)}
    early = {f"g{n}": [("x", 0, 2 * n)] for n in range(0, 10_000, 10)}
    answers = 0
    for number in range(200):
        search.note_topics(topics)
        told = search.unread_timestamps(early, NOW + number * INTERVAL)
        rows = search.questions()
        assert len(rows) <= QUESTIONS_PER_PARTITION
        for row in rows:
            search.note_answers(row, {place: log.first_from(at) for place, at in row.items()})
        answers += len(rows)
        if not rows:
            break
    assert len(told) == 1_000
    assert answers < 150


stamps_of = st.lists(
    st.one_of(st.integers(NOW - 30 * DAY, NOW), st.integers(NOW - 1_000, NOW), st.sampled_from([-1, 0, NOW + DAY])),
    min_size=3,
    max_size=60,
)


@settings(max_examples=examples(600), deadline=None)
@given(stamps_of, st.integers(0, 57), st.integers(1, 20), st.integers(0, 5), st.integers(NOW - DAY, NOW))
def test_nothing_untrue_is_said_of_records_in_any_order(
    stamps: list[int], offset: int, segment: int, start: int, modified: int
) -> None:
    offset = min(offset, len(stamps) - 3)
    log = Log(stamps, segment=segment, start=min(start, len(stamps) - 3), modified=modified)
    found, asked = searched(log, offset, CREATED)
    assert asked <= 60
    if found is not None:
        own = stamps[found.offset]
        assert found.offset == max(offset, log.start)
        assert own == found.reached if found.own else own < found.below


@settings(max_examples=examples(300), deadline=None)
@given(stamps_of, st.integers(0, 57), st.integers(1, 20), st.integers(0, 5))
def test_what_brokers_have_stamped_is_between_the_bounds(
    stamps: list[int], offset: int, segment: int, start: int
) -> None:
    stamps = sorted(max(NOW - 30 * DAY, stamp) for stamp in stamps)
    offset = min(offset, len(stamps) - 3)
    log = Log(stamps, segment=segment, start=min(start, len(stamps) - 3))
    found, asked = searched(log, offset, APPENDED)
    assert asked <= 30
    if stamps[max(offset, log.start)] < NOW:
        assert found.reached <= stamps[found.offset]
        assert found.below < 0 or stamps[found.offset] < found.below


@settings(max_examples=examples(300), deadline=None)
@given(stamps_of, st.integers(0, 57), st.integers(1, 20), st.frozensets(st.integers(0, 57)))
def test_nothing_untrue_is_said_of_compacted_records(
    stamps: list[int], offset: int, segment: int, gone: frozenset[int]
) -> None:
    offset = min(offset, len(stamps) - 3)
    found, _ = searched(Log(stamps, gone=gone, segment=segment), offset, COMPACTED)
    if found is not None:
        assert found.own
        assert found.offset not in gone
        assert stamps[found.offset] == found.reached
