from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboards.format import (
    DASH,
    Clock,
    ago,
    calm,
    cause,
    cut,
    group_type,
    key_of,
    number,
    passing,
    ratio,
    reasons,
    seconds,
    size,
    time,
    visible,
    whole,
)  # fmt: skip
from dashboards.page.markup import plain, said
from dashboards.query import queries

NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)
CLOCK = Clock(NOW)

GROUP = {
    "problems": "", "verdict": "identical", "verdict_reason": None, "drifted_partitions": None, "drifted_count": 0,
    "partitions": 30, "assigned_partitions": 30, "last_decision_time": NOW - timedelta(minutes=27), "lag_total": 12_400,
    "lag_unknown": 0, "imbalance": 1.5, "imbalance_optimal": 0.0, "findings": [], "strategy": "range",
    "expected_strategy": "sticky",
}  # fmt: skip
DECISION = {
    "kind": "rebalance", "joined": [], "left": [], "replaced": [], "follows": None, "generations_skipped": 0,
}  # fmt: skip


def group(problems: str, **values: object) -> dict[str, object]:
    return GROUP | {"problems": problems} | values


def found(finding: str, ago: timedelta, detail: str) -> dict[str, object]:
    """A group whose only problem is this finding."""
    return group(finding, findings=[{"finding": finding, "since": NOW - ago, "detail": detail}])


def told(text: str) -> str:
    """A text of ours with its times in UTC, without saying so."""
    return plain(text).replace(" UTC", "")


def wrong(*kinds: str) -> list[dict[str, str]]:
    return [{"kind": kind} for kind in kinds]


@pytest.mark.parametrize(
    ("row", "since", "said"),
    [
        (
            group("drifted", drifted_partitions=wrong("misplaced", "misplaced")),
            {"drifted_since": NOW - timedelta(minutes=27)},
            "2 of 30 partitions misplaced since 14:03",
        ),
        (
            group("drifted", drifted_partitions=wrong("misplaced", "misplaced", "unassigned")),
            {"drifted_since": NOW - timedelta(hours=23, minutes=58)},
            "of 30 partitions 2 misplaced, 1 without an owner for over 23 h 50 min",
        ),
        (group("drifted", drifted_count=3), {}, "3 of 30 partitions with the wrong owner since 14:03"),
        (
            group("drifted", drifted_partitions=wrong("doubly_assigned"), group_type="streams", assigned_partitions=8),
            {},
            "1 of 8 tasks with two owners since 14:03",
        ),
        (
            group("stopped"),
            {"lag_since": NOW - timedelta(minutes=3)},
            "lag 12,400 and nothing committed for at least 3 min",
        ),
        (
            group("stalled"),
            {"lag_since": NOW - timedelta(seconds=50)},
            "lag 12,400 and not moving for at least 50 s",
        ),
        (group("falling_behind"), {}, "lag 12,400 and growing"),
        (group("imbalance"), {}, "imbalance 1.50, could be 0"),
        (group("mismatch"), {}, "runs range, should run sticky"),
        (
            found(
                "rewound",
                timedelta(minutes=1),
                "committed offsets went back: orders 0 is 1,200 below where it was",
            ),
            {},
            "committed offsets went back: orders 0 is 1,200 below where it was · since 14:29, lag 12,400",
        ),
        (
            found(
                "offsets_blocked",
                timedelta(minutes=27),
                "lag is unknown, transaction 'x' is open: no progress on partition 7 of the log",
            ),
            {},
            "lag is unknown, transaction 'x' is open: no progress on partition 7 of the log · since 14:03",
        ),
        (group("lag_unknown", lag_unknown=4), {}, "lag of 4 partitions is not known"),
        (
            found("unassigned", timedelta(hours=16), "t (2 partitions)"),
            {},
            "t (2 partitions) · since 22:30",
        ),
        (
            found(
                "rebalance_storm",
                timedelta(minutes=27),
                "10 rebalances in the last 10 minutes; usually about 11.7 a day",
            ),
            {},
            "10 rebalances in the last 10 minutes; usually about 11.7 a day · since 14:03",
        ),
    ],
)
def test_a_reason_is_one_sentence_with_its_numbers(row: dict[str, object], since: dict[str, object], said: str) -> None:
    assert [told(reason.text) for reason in reasons(row, CLOCK, since)] == [said]


@pytest.mark.parametrize(
    ("kind", "protocol", "said"),
    [
        ("share", "share", "share group"),
        ("streams", "streams", "streams group"),
        ("consumer", "consumer", "consumer group"),
        ("classic", "consumer", "classic"),
        ("classic", "connect", "classic, connect"),
        (None, "", DASH),
    ],
)
def test_a_type_of_group_is_said_as_kafka_calls_it(kind: str | None, protocol: str, said: str) -> None:
    assert group_type({"group_type": kind, "protocol_type": protocol}) == said


def test_what_is_normal_for_moments_is_told_and_is_no_problem() -> None:
    moving = {"finding": "partitions_pending_handover", "since": NOW, "detail": "2 partitions given up"}
    row = group("", findings=[moving, moving | {"finding": "topic_not_visible"}])
    assert reasons(row, CLOCK) == []
    assert [(r.health, told(r.text)) for r in passing(row, CLOCK)] == [(0, "2 partitions given up · since 14:30")]


def test_every_problem_of_the_query_has_a_sentence() -> None:
    text = queries()["groups"].sql
    problems = [
        "drifted", "unassigned", "stopped", "stalled", "falling_behind", "rewound", "ahead", "imbalance", "mismatch",
        "offsets_blocked", "lag_unknown", "stale_metadata", "topic_not_visible", "topic_recreated",
    ]  # fmt: skip
    assert all(problem in text for problem in problems)
    assert len(reasons(group(" ".join(problems)), CLOCK)) == len(problems)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"verdict": "identical"}, "as expected"),
        ({"verdict": "pending"}, "the newest decision waits for its verdict"),
        ({"verdict": "unverified", "verdict_reason": "strategy 'x\n' is not known"},
         "not recomputed: strategy 'x\\n' is not known"),
        ({"verdict": "not_applicable", "verdict_reason": "no membership"}, "no membership"),
    ],
)  # fmt: skip
def test_a_group_with_which_nothing_is_wrong_says_what_that_rests_on(values: dict[str, object], said: str) -> None:
    assert calm(GROUP | values) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"joined": ["a"]}, "1 joined"),
        ({"joined": ["a", "b"], "left": ["c"]}, "2 joined, 1 left"),
        ({"joined": None}, "first decision seen"),
        ({"kind": "static_replacement"}, "a static member came back, no rebalance"),
        ({"kind": "became_empty", "left": ["c"]}, "1 left, the group became empty"),
        ({"follows": 7}, "second half of a cooperative rebalance"),
        ({"follows": 7, "strategy": "range"}, "hands over what the migration before it left"),
        ({"kind": "migration", "left": ["c"]}, "1 left, moved to another protocol"),
        ({}, "same members: subscription or metadata changed, or a member asked for it"),
        ({"joined": ["a"], "generations_skipped": 2}, "1 joined, 2 generations before it left no record"),
        (
            {"joined": ["a"], "generations_skipped": 1, "protocol_type": "share"},
            "1 joined, 1 epoch before it had no target",
        ),
    ],
)
def test_a_cause_says_what_the_log_tells(values: dict[str, object], said: str) -> None:
    assert cause(DECISION | values) == said


def test_causes_that_no_other_column_shows_are_said() -> None:
    listed = [{"cause": word} for word in ("member_joined", "subscription_changed", "coordinator_moved")]
    said = "1 joined, other topics subscribed, the group's coordinator was elected again"
    assert cause(DECISION | {"joined": ["a"], "causes": listed}) == said


def test_a_long_name_keeps_its_ends_and_a_short_one_all() -> None:
    assert cut("orders") == "orders"
    assert cut("a" * 44) == "a" * 44
    assert cut("begin-" + "x" * 100 + "-end", 15) == "begin-x…xxx-end"
    assert len(cut("x" * 32_000)) == 44


def test_what_cannot_be_seen_is_shown() -> None:
    assert visible("a\nb\t\x00\x1b\u202e\u200b\ud83d") == "a\\nb\\t\\x00\\x1b\\u202e\\u200b\\ud83d"
    assert visible("häuser 😀 日本") == "häuser 😀 日本"
    assert "\u202e" not in cut("\u202e" * 90)


def test_a_link_holds_a_name_or_where_it_is_too_long_a_digest_of_it() -> None:
    assert key_of("orders & more") == "orders & more"
    assert key_of("x" * 301).startswith("sha256:")
    assert key_of("x" * 301) != key_of("x" * 302)


def test_numbers_and_times_read_as_people_write_them() -> None:
    assert [number(12_400), number(None), ratio(1.5), ratio(0.001), ratio(None)] == ["12,400", DASH, "1.50", "0", DASH]
    assert [seconds(0.44), seconds(1240.4), seconds(None)] == ["0.4", "1,240", DASH]
    assert whole(NOW) == "2026-11-21 14:30:00 UTC"
    assert [ago(NOW - timedelta(minutes=3), NOW), ago(NOW + timedelta(minutes=3), NOW)] == ["3 min", "0 s"]
    assert [time(None), whole(None), ago(None, NOW)] == [DASH, "", DASH]
    assert [size(n) for n in (None, 0, 999, 1_000, 1_340_000, 250_000_000, 3_000_000_000_000)] == [
        DASH, "0 B", "999 B", "1.0 KB", "1.3 MB", "250 MB", "3.0 TB",
    ]  # fmt: skip


def test_a_time_is_a_mark_that_no_name_can_pass_for() -> None:
    assert time(NOW) == f"\ue000{NOW.timestamp() * 1000:.0f}s\ue001"
    assert plain(time(NOW)) == "14:30:00 UTC"
    assert said(time(NOW, exact=False)) == '<time datetime="2026-11-21T14:30:00Z" data-as="m">14:30</time>'
    assert "<time" not in said(visible(time(NOW)))
