from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import TopicRow, decode_reserved, encode_rows, encode_state
from streaming.log_health import ClusterTopicState, advance_topic
from streaming.records import ClusterTopicObservation, decode_cluster_topics, encode_inputs
from streaming.times import DAY_MS
from tests.examples import examples

START = 1_767_225_600_000
MINUTE = 60_000


def look(minute: int, end: tuple[int, ...] = (100, 50), **changes: object) -> ClusterTopicObservation:
    fields: dict[str, object] = {
        "round": 60 * minute,
        "time": START + minute * MINUTE,
        "elapsed": minute * MINUTE,
        "gone": None,
        "topic_id": "id-1",
        "end": end,
        "start": (0,) * len(end),
        "leaders": (1,) * len(end),
        "sizes": tuple([10 * offset for offset in end]),
        "unsized": None,
        "groups": 1,
        "readers": ("billing",),
        "hidden": None,
    }
    return ClusterTopicObservation(**(fields | changes))  # type: ignore[arg-type]


def gone(minute: int) -> ClusterTopicObservation:
    nothing: dict[str, object] = {"topic_id": None, "sizes": None, "groups": 0, "readers": ()}
    return look(minute, (), gone="deleted", **nothing)


def unread(minute: int, hidden: str | None = None, **changes: object) -> ClusterTopicObservation:
    return look(minute, groups=0, readers=(), hidden=hidden, **changes)


def rows_of(*batches: list[ClusterTopicObservation]) -> list[TopicRow]:
    """The rows of these batches, through packed inputs and packed states."""
    stored: tuple[int, bytes] | None = None
    found: list[TopicRow] = []
    for batch in batches:
        state = decode_reserved(stored, ClusterTopicState) if stored is not None else None
        state, rows = advance_topic(state, "orders", decode_cluster_topics(encode_inputs(batch)), "prod")
        stored = encode_state(state) if state is not None else None
        found += rows.topics
    return found


def test_the_first_look_tells_everything_but_rates() -> None:
    (row,) = rows_of([look(0, start=(40, 50), leaders=(1, -1))])
    assert (row.cluster, row.topic, row.round, row.round_time, row.topic_id) == ("prod", "orders", 0, START, "id-1")
    assert (row.partitions, row.offline_partitions, row.records_max, row.log_bytes) == (2, 1, 60, 1_500)
    assert (row.produced_per_second, row.produced_reason) == (None, "first_look")
    assert (row.produced_bytes_per_second_min, row.bytes_reason, row.rates_over_seconds) == (None, "first_look", None)
    assert (row.groups, row.readers, row.read_by_nobody) == (1, ("billing",), False)


def test_rates_are_differences_between_two_looks() -> None:
    row = rows_of([look(0, (100, 50)), look(10, (700, 650))])[1]
    assert (row.produced_per_second, row.produced_bytes_per_second_min, row.rates_over_seconds) == (2.0, 20.0, 600.0)
    assert (row.produced_reason, row.bytes_reason) == (None, None)


def test_a_clock_that_is_a_second_ahead_of_the_time_that_has_passed_leaves_rates_as_they_are() -> None:
    row = rows_of([look(0), look(10, (700, 650), time=START + 10 * MINUTE + 1_000)])[1]
    assert (row.produced_per_second, row.produced_reason) == (2.0, None)


def test_new_partitions_count_from_their_beginning() -> None:
    row = rows_of([look(0, (100,)), look(10, (100, 600))])[1]
    assert (row.partitions, row.produced_per_second, row.produced_bytes_per_second_min) == (2, 1.0, 10.0)


def test_a_look_with_fewer_partitions_of_the_same_topic_gives_no_rates_and_the_next_ones_go_by_the_look_before_it() -> (
    None
):
    six, three, grown = (100,) * 6, (400,) * 3, (700,) * 6
    rows = rows_of([look(0, six)], [look(10, three)], [look(20, grown)], [look(30, (1_000,) * 6)])
    old = rows[1]
    assert (old.partitions, old.produced_per_second, old.produced_reason) == (3, None, "offset_unknown")
    assert (old.records_max, old.log_bytes, old.produced_bytes_per_second_min) == (None, None, None)
    assert (old.bytes_reason, old.rates_over_seconds) == ("size_unknown", None)
    after = [(row.produced_per_second, row.produced_bytes_per_second_min, row.rates_over_seconds) for row in rows[2:]]
    assert after == [(3.0, 30.0, 1_200.0), (3.0, 30.0, 600.0)]


def test_a_topic_that_shows_fewer_partitions_for_a_day_has_rates_again() -> None:
    six, three = (100,) * 6, (400,) * 3
    day = DAY_MS // MINUTE
    narrow = [look(minute, three) for minute in (10, day - 10, day)]
    rows = rows_of([look(0, six)], *([one] for one in narrow), [look(day + 10, (600,) * 3)])
    assert [row.produced_reason for row in rows] == ["first_look", *["offset_unknown"] * 3, None]
    assert (rows[-1].produced_per_second, rows[-1].log_bytes, rows[-1].records_max) == (1.0, 18_000, 1_800)


def test_a_topic_whose_id_is_another_may_have_fewer_partitions() -> None:
    rows = rows_of(
        [look(0, (100,) * 6)], [look(10, (5,) * 3, topic_id="id-2")], [look(20, (605,) * 3, topic_id="id-2")]
    )
    assert [row.produced_reason for row in rows] == ["first_look", "recreated", None]
    assert (rows[1].records_max, rows[1].log_bytes, rows[2].produced_per_second) == (15, 150, 3.0)


def test_sums_that_the_tables_cannot_hold_are_the_most_that_they_can() -> None:
    most = 2**63 - 1
    row = rows_of([look(0, (0,) * 3), look(10, (most,) * 3, sizes=(most,) * 3)])[1]
    assert (row.records_max, row.log_bytes) == (most, most)
    assert row.produced_per_second == pytest.approx(3 * most / 600)


def test_bytes_that_retention_took_away_are_not_counted_against_those_written() -> None:
    row = rows_of([look(0, sizes=(9_000, 500)), look(10, sizes=(3_000, 1_100))])[1]
    assert (row.log_bytes, row.produced_bytes_per_second_min) == (4_100, 1.0)


def test_copies_of_another_broker_are_not_compared() -> None:
    row = rows_of([look(0, sizes=(0, 0)), look(10, sizes=(600, 6_000), leaders=(1, 2))])[1]
    assert row.produced_bytes_per_second_min == 1.0


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (look(10, (700, 650), topic_id="id-2"), "recreated"),
        (look(10, (700,), topic_id=None), "recreated"),
        (look(10, (700, 650), elapsed=MINUTE), "missing_rounds"),
        (look(10, (700, 650), time=START), "missing_rounds"),
        (look(0, (700, 650)), "missing_rounds"),
        (look(10, (700, 40)), "offset_unknown"),
        (look(10, (700, -1)), "offset_unknown"),
    ],
)
def test_no_rate_is_told_where_it_would_be_wrong(then: ClusterTopicObservation, reason: str) -> None:
    row = rows_of([look(0), then])[1]
    assert (row.produced_per_second, row.produced_reason) == (None, reason)


@pytest.mark.parametrize("reason", ["no_right", "unsupported", "no_answer"])
def test_without_sizes_bytes_are_unknown_and_records_are_not(reason: str) -> None:
    row = rows_of([look(0), look(10, (700, 650), sizes=None, unsized=reason)])[1]
    assert (row.log_bytes, row.produced_bytes_per_second_min, row.bytes_reason) == (None, None, reason)
    assert row.produced_per_second == 2.0


def test_a_topic_without_readers_is_read_by_nobody_since_the_first_look_that_found_it_so() -> None:
    rows = rows_of([look(0), unread(10), unread(20)], [unread(30), look(40)], [unread(50)])
    assert [row.read_by_nobody for row in rows] == [False, True, True, True, False, True]
    since = [row.read_by_nobody_since for row in rows]
    assert since == [None, *[START + 10 * MINUTE] * 3, None, START + 50 * MINUTE]


def test_nobody_is_not_said_while_groups_may_be_hidden() -> None:
    rows = rows_of([unread(0), unread(10, "share_groups"), unread(20)])
    assert [(row.read_by_nobody, row.read_by_nobody_reason) for row in rows] == [
        (True, None),
        (None, "share_groups"),
        (True, None),
    ]
    # No look has seen a reader since the first one.
    assert [row.read_by_nobody_since for row in rows] == [START, None, START]


def test_a_known_reader_is_told_even_where_others_may_be_hidden() -> None:
    (row,) = rows_of([look(0, hidden="filtered")])
    assert (row.read_by_nobody, row.read_by_nobody_reason) == (False, None)


def test_nobody_reads_a_topic_since_no_later_than_its_row_where_the_first_look_had_a_clock_that_was_ahead() -> None:
    rows = rows_of([unread(0, time=START + 365 * DAY_MS)], [unread(10)], [unread(20)])
    assert [row.read_by_nobody_since for row in rows[1:]] == [START + 10 * MINUTE, START + 20 * MINUTE]


def test_a_recreated_topic_is_read_by_nobody_from_then_on() -> None:
    rows = rows_of([unread(0), unread(10, topic_id="id-2")])
    assert [row.read_by_nobody_since for row in rows] == [START, START + 10 * MINUTE]


def test_a_topic_that_is_gone_has_one_closing_row() -> None:
    rows = rows_of([look(0), gone(10)], [gone(20)], [look(30)])
    assert [(row.round // 60, row.ended, row.ended_reason) for row in rows] == [
        (0, False, None),
        (10, True, "deleted"),
        (30, False, None),
    ]
    assert rows[2].produced_reason == "first_look"


def test_rows_do_not_depend_on_how_looks_are_cut_or_ordered() -> None:
    looks = [look(0), unread(10, end=(160, 50)), unread(20, "undescribed"), gone(30), look(40), look(50, (900, 60))]
    whole = rows_of(looks)
    for cuts in itertools.product((False, True), repeat=len(looks) - 1):
        batches: list[list[ClusterTopicObservation]] = [[looks[0]]]
        for cut, one in zip(cuts, looks[1:], strict=True):
            batches.append([one]) if cut else batches[-1].insert(0, one)
        assert [msgspec.structs.astuple(row) for row in rows_of(*batches)] == [
            msgspec.structs.astuple(row) for row in whole
        ]


NUMBER = st.sampled_from((-1, 0, 1, 100, 2**62, 2**63 - 1)) | st.integers(-1, 2**63 - 1)
COUNT = st.sampled_from((0, 1, 2, 3, 4))
TIME = st.sampled_from((START, START + MINUTE, 0, 253_402_300_799_999)) | st.integers(0, 2 * START)
HIDDEN = st.sampled_from((None, None, "filtered")) | st.text(min_size=1, max_size=100)
READERS = st.sampled_from(((0, ()), (1, ("billing",)), (2**31 - 1, ("x" * 1_000,) * 20)))


@st.composite
def looks(draw: st.DrawFn) -> ClusterTopicObservation:
    """A look of a probe."""
    of = [st.just(draw(COUNT))] * 4
    end, start, sizes, leaders = (draw(st.lists(NUMBER, min_size=n, max_size=n).map(tuple)) for n in map(draw, of))
    groups, readers = draw(READERS)
    return ClusterTopicObservation(
        round=draw(st.integers(0, 9) | st.just(2**63 - 1)),
        time=draw(TIME),
        elapsed=draw(st.integers(-1, 2 * DAY_MS)),
        topic_id=draw(st.sampled_from(("id-1", "id-1", "id-1", "id-2", None))),
        end=end,
        start=start,
        sizes=draw(st.sampled_from((sizes, sizes, None))),
        leaders=leaders,
        unsized=draw(st.sampled_from((None, None, "no_right"))),
        groups=groups,
        readers=readers,
        hidden=draw(HIDDEN),
        gone=None if end else "deleted",
    )


@settings(deadline=None, max_examples=examples(800))
@given(st.lists(st.lists(looks(), max_size=3), min_size=1, max_size=3))
def test_whatever_the_probe_sees_fits_the_table(batches: list[list[ClusterTopicObservation]]) -> None:
    # Imported here: it loads deltalake and pyarrow, which this folder's other tests do without.
    from streaming.job.batch import rows_by_table  # noqa: PLC0415

    stored: tuple[int, bytes] | None = None
    for batch in batches:
        state = decode_reserved(stored, ClusterTopicState) if stored is not None else None
        state, rows = advance_topic(state, "orders", decode_cluster_topics(encode_inputs(batch)), "prod")
        stored = encode_state(state) if state is not None else None
        tables = rows_by_table([encode_rows(rows)])
        assert sum(table.num_rows for table in tables.values()) == len(rows.topics)
        for row in rows.topics:
            assert (row.produced_per_second is None) == (row.produced_reason is not None) or row.ended
            assert row.read_by_nobody_since is None or row.read_by_nobody_since <= row.round_time
