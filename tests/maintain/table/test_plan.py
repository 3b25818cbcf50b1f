"""What is done next, as a pure function: no table, no disk, no clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from streaming.maintain.table.plan import (
    Compaction,
    Expiry,
    File,
    Limits,
    Log,
    Sorting,
    all_pieces,
    next_piece,
    present_file_name,
    sorted_file_name,
    today_of,
    wants_checkpoint,
)

TODAY = date(2026, 3, 10)
NOW = 1_773_140_400_000  # 2026-03-10 11:00 UTC
HOUR = 3_600_000
LIMITS = Limits(piece_bytes=1_000_000, piece_rows=10_000, min_files=4, quiet_ms=HOUR)


def file(
    name: str, days_ago: int = 0, size: int = 5_000, rows: int = 10, written: int = NOW - 2 * HOUR, folder: str = ""
) -> File:
    return File(f"{folder}{name}", TODAY - timedelta(days=days_ago), size, rows, written)


def piece_of(files: list[File], keep_days: int = 35) -> Compaction | Sorting | Expiry | None:
    return next_piece(files, TODAY, NOW, keep_days, LIMITS)


def test_a_day_that_is_still_written_waits_until_enough_small_files_are_there() -> None:
    three = [file(f"{n}") for n in range(3)]
    assert piece_of(three) is None
    assert piece_of([*three, file("3")]) == Compaction(TODAY, (*three, file("3")))


def test_a_past_day_is_joined_as_soon_as_nobody_writes_to_it() -> None:
    two = [file("a", 1), file("b", 1)]
    assert piece_of(two) == Compaction(TODAY - timedelta(days=1), tuple(two))
    assert piece_of([two[0], replace(two[1], written=NOW - HOUR + 1)]) is None


def test_a_large_file_of_today_is_not_written_again_for_a_few_small_ones() -> None:
    large = file("large", size=400_000)
    small = [file(f"{n}") for n in range(4)]
    assert piece_of([large, *small]) == Compaction(TODAY, tuple(small))
    assert piece_of([large, *small[:3]]) is None


def test_a_piece_has_no_more_files_than_its_limit() -> None:
    limits = replace(LIMITS, piece_files=3)
    past, today = [file(f"{n}", 1) for n in range(5)], [file(f"{n}") for n in range(3)]
    yesterday = TODAY - timedelta(days=1)
    assert next_piece(past, TODAY, NOW, 35, limits) == Compaction(yesterday, tuple(past[:3]))
    # (Four files of today would be enough to be joined, but three are all that a piece takes.)
    assert next_piece(today, TODAY, NOW, 35, limits) == Compaction(TODAY, tuple(today))
    assert next_piece(today[:2], TODAY, NOW, 35, limits) is None


def test_a_file_of_half_a_piece_is_not_joined() -> None:
    by_size, by_rows = {"size": 500_000}, {"rows": 5_000}
    for half in (by_size, by_rows):
        halves = [file("a", 1, **half), file("b", 1, **half)]
        assert next_piece(halves, TODAY, NOW, 35, replace(LIMITS, sort_files=0)) is None


def test_large_files_of_a_closed_day_are_sorted_together_once_nothing_is_left_to_join() -> None:
    large = [file(f"{n}", 1, size=900_000, written=NOW - (9 - n) * HOUR) for n in range(7)]
    limits = replace(LIMITS, sort_files=3)
    assert next_piece(large, TODAY, NOW, 35, limits) == Sorting(large[0].day, tuple(large[:3]))
    small = [file("x", 1), file("y", 1)]
    assert next_piece([*large, *small], TODAY, NOW, 35, limits) == Compaction(large[0].day, tuple(small))
    assert next_piece([*large, file("late", 1, written=NOW - HOUR + 1)], TODAY, NOW, 35, limits) is None
    assert next_piece([replace(one, day=TODAY) for one in large], TODAY, NOW, 35, limits) is None


def test_what_was_sorted_is_neither_sorted_nor_joined_again() -> None:
    before = [file(sorted_file_name(f"{n}"), 1, folder="event_date=2026-03-09/") for n in range(5)]
    assert piece_of(before) is None
    assert piece_of([*before, file("late", 1)]) is None
    late = [file("late", 1), file("later", 1)]
    assert piece_of([*before, *late]) == Compaction(late[0].day, tuple(late))


def test_files_without_a_day_are_joined_with_none_of_the_day_on_which_they_were_written() -> None:
    dated, undated = [[replace(file(f"{n}{kind}", 1), undated=kind == "u") for n in range(2)] for kind in "du"]
    pieces = all_pieces([*dated, *undated], TODAY, NOW, 35, LIMITS)
    assert [(piece.files, piece.partition_day) for piece in pieces] == [
        (tuple(undated), None),
        (tuple(dated), TODAY - timedelta(days=1)),
    ]


def test_files_without_a_day_expire_by_the_day_on_which_they_were_written() -> None:
    files = [replace(file("u", 37), undated=True), file("d", 37), file("kept", 35)]
    assert all_pieces(files, TODAY, NOW, 35, LIMITS) == [
        Expiry(files[0].day, (files[1],)),
        Expiry(files[0].day, (files[0],)),
    ]


def test_a_piece_reads_no_more_than_its_bounds() -> None:
    found = piece_of([file(f"{n}", 1, rows=4_000) for n in range(3)])
    assert isinstance(found, Compaction)
    assert [one.path for one in found.files] == ["0", "1"]


def test_the_newest_day_is_joined_first() -> None:
    found = piece_of([file("a", 3), file("b", 3), file("c", 1), file("d", 1)])
    assert found is not None
    assert found.day == TODAY - timedelta(days=1)


def test_the_oldest_day_past_its_time_goes_first_and_whole() -> None:
    old = [file("a", 37), file("b", 37)]
    assert piece_of([file("c", 36), *old]) == Expiry(TODAY - timedelta(days=37), tuple(old))


def test_a_day_that_must_wait_holds_back_all_later_ones() -> None:
    files = [file(name, days_ago) for name, days_ago in (("a", 50), ("b", 49), ("c", 48))]

    def next_of(left: list[File]) -> Compaction | Sorting | Expiry | None:
        return next_piece(left, TODAY, NOW, 35, LIMITS, lambda day: day == files[1].day)

    assert next_of(files) == Expiry(files[0].day, (files[0],))
    assert next_of(files[1:]) is None


def test_the_last_day_that_is_kept_stays() -> None:
    assert piece_of([file("a", 35)]) is None
    assert piece_of([file("a", 36)]) == Expiry(TODAY - timedelta(days=36), (file("a", 36),))


def test_what_retention_has_kept_is_looked_at_again_after_a_week() -> None:
    for days_ago, is_due in ((0, False), (6, False), (7, True)):
        name = present_file_name(TODAY - timedelta(days=days_ago), "x")
        found = piece_of([file(name, 100, folder="event_date=2025-11-30/")])
        assert isinstance(found, Expiry) is is_due


def test_late_rows_in_an_expired_day_are_looked_at_with_what_was_kept() -> None:
    kept = file(present_file_name(TODAY, "x"), 100)
    assert piece_of([kept, file("late", 100)]) == Expiry(kept.day, (file("late", 100), kept))


def test_neither_a_clock_nor_a_broker_from_the_future_ages_the_lake() -> None:
    assert today_of(NOW, None) == TODAY
    assert today_of(NOW, TODAY + timedelta(days=400)) == TODAY
    assert today_of(NOW + 400 * 24 * HOUR, TODAY) == TODAY


def test_a_checkpoint_is_due_when_the_commits_weigh_as_much_as_it_does() -> None:
    assert not wants_checkpoint(Log(commits=10, commit_bytes=10_000, checkpoint_bytes=0))
    assert wants_checkpoint(Log(commits=20, commit_bytes=10_000, checkpoint_bytes=0))
    assert not wants_checkpoint(Log(commits=500, commit_bytes=999_999, checkpoint_bytes=1_000_000))
    assert wants_checkpoint(Log(commits=500, commit_bytes=1_000_000, checkpoint_bytes=1_000_000))


FILES = st.lists(
    st.builds(
        file,
        name=st.just("x"),
        days_ago=st.integers(-3, 60),
        size=st.integers(1, 1_200_000),
        rows=st.integers(1, 12_000),
        written=st.integers(NOW - 60 * 24 * HOUR, NOW + HOUR),
    ),
    max_size=60,
).map(lambda files: [replace(one, path=f"{number}", undated=number % 9 == 0) for number, one in enumerate(files)])


@given(FILES, st.integers(2, 40))
def test_every_piece_is_within_bounds_and_concerns_one_day(files: list[File], keep: int) -> None:
    for piece in all_pieces(files, TODAY, NOW, keep, LIMITS):
        assert {(one.day, one.partition_day) for one in piece.files} == {(piece.day, piece.partition_day)}
        assert isinstance(piece, Expiry) == (piece.day < TODAY - timedelta(days=keep))
        if isinstance(piece, Compaction):
            assert len(piece.files) > 1
            assert sum(one.size for one in piece.files) <= LIMITS.piece_bytes
            assert sum(one.rows for one in piece.files) <= LIMITS.piece_rows


@given(FILES, st.integers(2, 40))
def test_the_work_comes_to_an_end_and_leaves_few_files(files: list[File], keep: int) -> None:
    left = {one.path: one for one in files}
    for number in range(1_000):
        piece = next_piece(left.values(), TODAY, NOW, keep, LIMITS)
        if piece is None:
            break
        for one in piece.files:
            del left[one.path]
        if isinstance(piece, Sorting):
            # (As many files as before, and one more: what is left of a group's rows.)
            parts = [replace(one, path=sorted_file_name(f"{number}-{one.path}")) for one in piece.files]
            left |= {one.path: one for one in [*parts, replace(parts[0], path=sorted_file_name(f"{number}"))]}
            continue
        name = present_file_name(TODAY, f"{number}") if isinstance(piece, Expiry) else f"joined-{number}"
        size, rows = sum(one.size for one in piece.files), sum(one.rows for one in piece.files)
        written = max(one.written for one in piece.files)
        left[name] = File(name, piece.day, size, rows, written, undated=piece.partition_day is None)
    else:
        raise AssertionError
    first = TODAY - timedelta(days=keep)
    for day in {(one.day, one.undated) for one in left.values() if one.day < first}:
        assert sum((one.day, one.undated) == day for one in left.values()) == 1
    quiet = [one for one in left.values() if TODAY > one.day >= first]
    for day in {(one.day, one.undated) for one in quiet}:
        of_day = [one for one in quiet if (one.day, one.undated) == day]
        if all(NOW - one.written >= HOUR for one in of_day):
            # (Larger files than a piece were made by another engine and are left alone.)
            fitting = [one for one in of_day if one.size <= LIMITS.piece_bytes and one.rows <= LIMITS.sort_rows]
            assert sum(not one.is_sorted for one in fitting) <= 1


def test_a_day_of_8640_commits_is_never_more_than_200_files() -> None:
    """A job that appends every 10 s, maintained after each append: the first day of `lag` with 7,000 rows each."""
    limits = Limits()
    left: dict[str, File] = {}
    written = most = 0
    for batch in range(8_640):
        added = File(f"{batch}", TODAY, 95_000, 7_100, NOW - 24 * HOUR + batch * 10_000)
        left[added.path] = added
        while (piece := next_piece(left.values(), TODAY, added.written, 35, limits)) is not None:
            for one in piece.files:
                del left[one.path]
            size, rows = sum(one.size for one in piece.files) // 2, sum(one.rows for one in piece.files)
            name = f"joined-{batch}-{len(left)}"
            left[name] = File(name, TODAY, size, rows, max(one.written for one in piece.files))
            written += rows
        most = max(most, len(left))
    assert most <= 200
    # Maintenance writes each row at most three times.
    assert written <= 3 * 8_640 * 7_100
