"""The demo's stories: who plays, when, and what the tables must say of it.

Every story happens once within `FIRST_PASS_S` of the demo's clock. Stories that can be repeated are repeated after
that, so that a demo without an end stays alive.

The file is long because a story is told in one place: its players, its scenes and what the tables must say of it stand
together, and all stories share the verbs below.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streaming.demo.evidence import (
    Evidence,
    Expectation,
    every_generation_and_commit,
    every_junk_record,
    exactly_these,
    finds,
    has,
    holds,
    now,
    only,
)
from streaming.demo.java_member import SINK_GROUP, TOPIC, UNITS, WORDS, ConnectWorker, JavaMember, WordCountMember
from streaming.demo.kafka_python_member import ForOneMember, KafkaPythonMember, PileUp, Pinned
from streaming.demo.librdkafka_member import FAR_AHEAD, LibrdkafkaMember, ShareMember, TransactionalMember
from streaming.demo.log_writer import (
    HOSTILE_GROUPS,
    JUNK,
    commit_for_hostile_groups,
    write_junk,
    write_past,
)
from streaming.demo.stage import Cast, Player, Story
from streaming.exceptions import EvenkeelError

FIRST_PASS_S = 120.0
"""Seconds of the demo's clock after which every story has happened once."""

_MOST_PARTITIONS = 12
"""A demo that runs for days must not grow a topic for days."""

_STUCK_LAG = 25
"""A member that is stuck for a minute at one record a second gets about 60 records behind. Half of that is enough to
distinguish it from a slow poll."""

_JUNK_COPIES = 10
"""Copies of each kind at a time: some hundred records in total."""

_REBALANCE_MS = 10_000
"""A rebalance that takes three times as long is stuck; the default is five minutes."""


# Who plays.


def _python(group: str, topics: str, client_id: str, **more: Any) -> Player:
    return partial(KafkaPythonMember, group=group, topics=tuple(topics.split()), client_id=client_id, **more)


def _librdkafka(group: str, topics: str, client_id: str, strategy: str) -> Player:
    return partial(LibrdkafkaMember, group=group, topics=tuple(topics.split()), client_id=client_id, strategy=strategy)


def _transactional(group: str, client_id: str, **more: Any) -> Player:
    return partial(TransactionalMember, group=group, topics=("transfers",), client_id=client_id, **more)


def _java(topic: str, group: str, client_id: str) -> Player:
    return partial(JavaMember, topic, group, client_id)


def _streams(group: str, client_id: str) -> Player:
    return partial(WordCountMember, group, client_id)


# What happens: functions of the cast and of what follows them in a scene.

_join, _leave = Cast.join, Cast.leave


def _tell(cast: Cast, name: str, what: str) -> None:
    """Let a member get_stuck, recover or vanish."""
    if (member := cast.members.get(name)) is not None:  # a play may end before it has joined
        getattr(member, what)()
        cast.step(f"{name}: {what}")


def _restart(cast: Cast, name: str) -> None:
    """Within a second; not through the demo's clock, because the stage may go quiet meanwhile."""
    cast.leave(name)
    time.sleep(1.0)
    cast.join(name)


def _grow(cast: Cast, topic: str, count: int) -> None:
    cast.stage.grow_topic(topic, count)
    cast.step(f"the topic has {count} partitions now", topic=topic)


def _delete_topic(cast: Cast, topic: str) -> None:
    cast.stage.delete_topic(topic)
    cast.step("the topic was deleted", topic=topic)


def _delete_group(cast: Cast, group: str) -> None:
    error = cast.stage.admin.delete_groups([group])[group]
    if error != "OK":
        message = f"The group {group} could not be deleted: {error}."
        raise EvenkeelError(message)
    cast.step("the group was deleted", group=group)


def _mend(_: Cast) -> None:
    ForOneMember.mended.set()


# What the tables must say, beyond what `evidence` offers.


def _gone_from_views(group: str) -> Expectation:
    def check(evidence: Evidence) -> Iterator[str]:
        if not evidence.one("SELECT count(*) FROM group_health WHERE group_id = ? AND ended", group):
            yield f"{group} should have a closing row"
        for table in ("group_health", "lag", "members", "drift", "what_if"):
            if evidence.one(f"SELECT count(*) FROM {table}_current WHERE group_id = ?", group):
                yield f"{group} lingers in {table}_current"

    return check


def _is_a_group(group: str) -> Expectation:
    def check(evidence: Evidence) -> Iterator[str]:
        if not evidence.one("SELECT count(*) FROM group_health_current WHERE group_id = ?", group):
            yield f"the group {group[:40]!r} is missing"

    return check


ALL_STORIES: tuple[Story, ...] = (
    Story(
        1,
        "range, steady: members join and leave, one vanishes and expires",
        ("orders-range", "orders-java"),
        {"orders": 6},
        {
            **{name: _python("orders-range", "orders", f"orders-{name}", session_timeout_ms=6_000) for name in "abcd"},
            **{f"java-{name}": _java("orders", "orders-java", f"java-{name}") for name in "ab"},
        },
        (
            (0, (_join, "a", "b", "java-a")),
            (20, (_join, "c")),
            (25, (_join, "java-b")),
            (32, (_join, "d")),
            (55, (_tell, "d", "vanish")),
            (80,),
        ),
        (
            only("identical", "orders-range", "orders-java"),
            holds(
                "rebalances of orders-range should show who joined, and who left",
                'SELECT bool_or(len(joined) > 0) AND bool_or(len("left") > 0) AS holds FROM rebalance_churn '
                "WHERE group_id = 'orders-range' AND revision = 1",
            ),
        ),
        rates={"orders": 6.0},
        again=((0, (_leave, "c")), (15, (_leave, "java-b")), (30, (_join, "c")), (60, (_join, "java-b"))),
        again_s=90,
    ),
    Story(
        2,
        "roundrobin with different subscriptions (librdkafka: kafka-python's own raises KeyError here)",
        ("billing-roundrobin",),
        {"payments": 4, "refunds": 3},
        {
            "payments": _librdkafka("billing-roundrobin", "payments", "billing-payments", "roundrobin"),
            "both": _librdkafka("billing-roundrobin", "payments refunds", "billing-both", "roundrobin"),
            "refunds": _librdkafka("billing-roundrobin", "refunds", "billing-refunds", "roundrobin"),
        },
        ((0, (_join, "payments", "both")), (15, (_join, "refunds")), (70,)),
        (
            only("identical", "billing-roundrobin"),
            holds(
                "billing-roundrobin should show three different subscriptions",
                "SELECT count(DISTINCT subscription) >= 3 AS holds FROM members "
                "WHERE group_id = 'billing-roundrobin' AND NOT ended",
            ),
        ),
        rates={"payments": 4.0, "refunds": 1.5},
        again=((0, (_leave, "both")), (20, (_join, "both"))),
        again_s=90,
    ),
    Story(
        3,
        "static members restart within their session: no generation changes",
        ("tills-static",),
        {"clicks": 6},
        {
            till: _python("tills-static", "clicks", till, group_instance_id=till, session_timeout_ms=30_000)
            for till in ("till-1", "till-2")
        },
        ((0, (_join, "till-1", "till-2")), (25,)),
        (
            holds(
                "restarts of static members should be static_replacement rows, and no rebalances",
                "SELECT count(*) FILTER (kind = 'static_replacement') >= 2 "
                "AND count(*) FILTER (kind = 'rebalance') <= 2 AS holds, list(kind) AS kinds "
                "FROM rebalance_churn WHERE group_id = 'tills-static' AND revision = 1",
                timed=True,
            ),
            only("identical", "tills-static"),
        ),
        rates={"clicks": 6.0},
        again=((0, (_restart, "till-1")), (31, (_restart, "till-2"))),
        again_s=62,
    ),
    Story(
        4,
        "a leader that calls itself range piles everything on one member, until the group is healed",
        ("clicks-pile-up",),
        {"clicks": 6},
        {
            **{name: _python("clicks-pile-up", "clicks", f"clicks-{name}", assignors=(PileUp,)) for name in "abcd"},
            **{f"healed-{name}": _python("clicks-pile-up", "clicks", f"clicks-{name}") for name in "abc"},
        },
        (
            (0, (_join, "a", "b", "c")),
            (45, (_join, "d")),
            (75, (_leave, "a", "b", "c", "d"), (_join, "healed-a", "healed-b", "healed-c")),
        ),
        (
            holds(
                "clicks-pile-up should be drifted with misplaced partitions in two generations at least",
                "SELECT count(*) >= 2 AS holds, count(*) AS n FROM drift "
                "WHERE group_id = 'clicks-pile-up' AND verdict = 'drifted' "
                "AND list_contains(list_transform(drifted_partitions, lambda p: p.kind), 'misplaced')",
            ),
            holds(
                "the imbalance of clicks-pile-up should be far above the least possible",
                "SELECT max(imbalance - imbalance_optimal) >= 1.5 AS holds, max(imbalance) AS worst "
                "FROM group_health WHERE group_id = 'clicks-pile-up'",
            ),
            now("clicks-pile-up", "be identical after the healing", "verdict = 'identical'"),
        ),
        {("drift", "clicks-pile-up"): ("firing", "resolved"), ("imbalance", "clicks-pile-up"): ("firing", "resolved")},
    ),
    Story(
        5,
        "an unknown strategy, an empty group, a group without membership",
        ("orders-pinned", "night-batch", "orders-mirror"),
        {"orders": 6},
        {
            **{f"pinned-{name}": _python("orders-pinned", "orders", name, assignors=(Pinned,)) for name in "ab"},
            **{f"batch-{name}": _python("night-batch", "orders", f"batch-{name}") for name in "ab"},
            "mirror": _python("orders-mirror", "orders", "orders-mirror", joins=False),
        },
        ((0, (_join, "pinned-a", "pinned-b", "mirror", "batch-a", "batch-b")), (25, (_leave, "batch-a", "batch-b"))),
        (
            only("unverified", "orders-pinned"),
            now("orders-pinned", "have a reason and an imbalance", "verdict_reason <> '' AND imbalance IS NOT NULL"),
            now("night-batch", "be empty, without a verdict", "verdict = 'not_applicable' AND state = 'Empty'"),
            now("orders-mirror", "be empty, without a verdict", "verdict = 'not_applicable' AND state = 'Empty'"),
        ),
    ),
    Story(
        6,
        "a stuck member: its heartbeat goes on, its commits stop, lag grows; then it recovers",
        ("billing-stuck",),
        {"payments": 4},
        {name: _python("billing-stuck", "payments", f"billing-stuck-{name}") for name in "ab"},
        ((0, (_join, "a", "b")), (30,)),
        (
            holds(
                "the lag of billing-stuck should have grown",
                f"SELECT max(lag) >= {_STUCK_LAG} AS holds, max(lag) AS worst FROM lag "
                "WHERE group_id = 'billing-stuck'",
                timed=True,
            ),
            now("billing-stuck", "have recovered", f"lag_max < {_STUCK_LAG}", timed=True),
            # Partitions without an owner are left out: there the lag of a group without members has really stopped.
            holds(
                "no group that was well should have stopped",
                "SELECT count(*) = 0 AS holds, list(DISTINCT group_id) AS stopped FROM lag "
                "WHERE lag_status IN ('stopped', 'stalled') AND subscribed AND member_id IS NOT NULL "
                "AND group_id NOT IN ('billing-stuck', 'orders-retired', 'reports-stuck-rebalance')",
                timed=True,
            ),
        ),
        {("lag", "billing-stuck"): ("firing", "resolved")},
        again=((0, (_tell, "b", "get_stuck")), (60, (_tell, "b", "recover"))),
        again_s=180,
        at_end=((_tell, "b", "recover"),),
    ),
    Story(
        7,
        "a topic grows while it is consumed; the leader sees it at its next refresh, 75 s after it joined",
        ("signups-growing",),
        {"signups": 3},
        {name: _python("signups-growing", "signups", f"signups-{name}", metadata_max_age_ms=75_000) for name in "ab"},
        (
            (0, (_join, "a", "b")),
            (40, (_grow, "signups", 5)),
            *((40 + 240 * (count - 5), (_grow, "signups", count)) for count in range(6, _MOST_PARTITIONS + 1)),
        ),
        (
            finds("stale_metadata", "signups-growing"),
            holds(
                "signups-growing should not have the finding unassigned, within its leader's grace",
                "SELECT count(*) = 0 AS holds FROM group_health "
                f"WHERE group_id = 'signups-growing' AND {has('unassigned')}",
                timed=True,
            ),
            now("signups-growing", "have no finding left", "len(coalesce(findings, [])) = 0", timed=True),
            only("identical", "signups-growing"),
        ),
        rates={"signups": 3.0},
    ),
    Story(
        8,
        "transactions: committed offsets count, aborted ones never",
        ("transfers-exactly-once",),
        {"transfers": 3},
        {"booker": _transactional("transfers-exactly-once", "transfers-booker", strategy="range", abort_every=3)},
        ((0, (_join, "booker")),),
        (
            holds(
                "transfers-exactly-once should have committed, and never an offset of an aborted transaction",
                f"SELECT sum(commits) > 0 AND max(committed_offset) < {FAR_AHEAD} "
                "AND coalesce(max(ahead_by), 0) = 0 AS holds, max(committed_offset) AS highest, "
                "max(ahead_by) AS ahead FROM lag WHERE group_id = 'transfers-exactly-once'",
            ),
        ),
        rates={"transfers": 3.0},
    ),
    Story(
        9,
        "sticky and cooperative-sticky: two generations a rebalance, the second follows the first",
        ("clicks-sticky", "orders-cooperative"),
        {"clicks": 6, "orders": 6},
        {
            **{
                f"sticky-{name}": _python(
                    "clicks-sticky", "clicks", f"sticky-{name}", assignors=(StickyPartitionAssignor,)
                )
                for name in "abc"
            },
            **{
                name: _librdkafka("orders-cooperative", "orders", f"cooperative-{name}", "cooperative-sticky")
                for name in "abc"
            },
        },
        (
            (0, (_join, "sticky-a", "sticky-b", "a")),
            (18, (_join, "b")),
            (20, (_join, "sticky-c")),
            (40, (_join, "c")),
            (80,),
        ),
        (
            only("identical", "clicks-sticky", "orders-cooperative"),
            holds(
                "a generation of orders-cooperative should be the second half of a cooperative rebalance",
                "SELECT count(*) > 0 AS holds FROM rebalance_churn "
                "WHERE group_id = 'orders-cooperative' AND follows > 0",
            ),
            holds(
                "a second half in orders-cooperative should show its moves beside those of other strategies",
                "SELECT count(*) > 0 AS holds FROM rebalance_churn_current AS c "
                "JOIN what_if AS w USING (group_id, decision) WHERE c.group_id = 'orders-cooperative' "
                "AND c.follows > 0 AND w.runs AND w.partitions_moved = c.partitions_moved",
            ),
        ),
        again=((0, (_leave, "b")), (5, (_leave, "sticky-c")), (20, (_join, "b")), (25, (_join, "sticky-c"))),
        again_s=90,
    ),
    Story(
        10,
        "junk in the offsets log, and groups with hostile names that assign and commit like any other",
        HOSTILE_GROUPS,
        {"orders": 6},
        {},
        (
            (10, (commit_for_hostile_groups, 1)),
            *((at, (write_junk, _JUNK_COPIES * JUNK)) for at in (30, 35, 40, 45)),
            (60, (commit_for_hostile_groups, 2)),
        ),
        (every_junk_record, *map(_is_a_group, HOSTILE_GROUPS)),
        # Rules on events: the alert lasts for an hour after the last event.
        {("undecodable", None): ("firing",), ("unknown_records", None): ("firing",)},
    ),
    Story(
        11,
        "a group is deleted, and a topic",
        ("orders-retired", "coupons-reader"),
        {"coupons": 2, "orders": 6, "payments": 4},
        {
            "retired": _python("orders-retired", "orders", "retired-a"),
            "both": _python("coupons-reader", "coupons payments", "coupons-a"),
            "payments": _python("coupons-reader", "payments", "coupons-b"),
        },
        (
            (0, (_join, "retired", "both")),
            (30, (_tell, "retired", "get_stuck")),
            (45, (_leave, "both"), (_join, "payments")),
            (65, (_delete_topic, "coupons")),
            (75, (_leave, "retired")),
            (80, (_delete_group, "orders-retired")),
        ),
        (
            _gone_from_views("orders-retired"),
            holds(
                "the partitions of the deleted topic coupons should have closing rows, and be in no current view",
                "SELECT count(*) FILTER (ended) > 0 AND (SELECT count(*) FROM lag_current WHERE topic = 'coupons') = 0 "
                "AS holds FROM lag WHERE group_id = 'coupons-reader' AND topic = 'coupons'",
            ),
            # A group may be gone one round before its tombstones are read: then its closing rows show no deletion.
            holds(
                "deleted offsets should be shown once",
                "SELECT count(*) = 0 AS holds, list(topic) AS topics FROM (SELECT group_id, topic, partition, "
                "count(*) FILTER (offset_deleted) AS times FROM lag "
                "WHERE group_id = 'coupons-reader' GROUP BY ALL "
                "HAVING max(committed_offset) IS NOT NULL AND (times > 1 OR (topic = 'coupons' AND times = 0)))",
            ),
            _is_a_group("coupons-reader"),
        ),
        {("lag", "orders-retired"): ("firing", "gone")},
        rates={"coupons": 1.0},
    ),
    Story(
        12,
        "a transaction that hangs from 25 s to 85 s, and holds the log back",
        ("settlement-exactly-once",),
        {"transfers": 3},
        {"writer": _transactional("settlement-exactly-once", "settlement-writer")},
        ((0, (_join, "writer")), (25, (_tell, "writer", "get_stuck")), (85, (_tell, "writer", "recover"))),
        (
            # The producer may become known a round after the hold.
            holds(
                "one transaction should have held the log back, and then no longer",
                "SELECT count(*) FILTER (NOT held) = 1 AND list((held, transactional_id, groups) ORDER BY round)[-2:] "
                "= [(true, 'settlement-writer', 1), (false, 'settlement-writer', 0)] AS holds, "
                "list((held, transactional_id, groups) ORDER BY round) AS rows "
                "FROM open_transactions WHERE repeat IS NULL",
                timed=True,
            ),
            holds(
                "a finding of settlement-exactly-once should name the transaction that hangs",
                "SELECT count(*) > 0 AS holds FROM group_health WHERE group_id = 'settlement-exactly-once' "
                "AND contains(CAST(findings AS VARCHAR), 'settlement-writer')",
            ),
            holds(
                "the lag of settlement-exactly-once should be unknown for a while, and never of the open transaction",
                f"SELECT bool_or(reason = 'offsets_blocked') AND max(committed_offset) < {FAR_AHEAD} "
                "AND coalesce(max(ahead_by), 0) = 0 AS holds, max(committed_offset) AS highest "
                "FROM lag WHERE group_id = 'settlement-exactly-once'",
            ),
            now(
                "settlement-exactly-once",
                "be well after the transaction",
                "len(coalesce(findings, [])) = 0 AND lag_total IS NOT NULL",
                timed=True,
            ),
        ),
        {("offsets_blocked", None): ("firing", "resolved")},
        at_end=((_tell, "writer", "recover"),),
    ),
    Story(
        13,
        "a rebalance that does not end: the leader's assignor fails with two members, from 30 s until 85 s",
        ("reports-stuck-rebalance",),
        {"reports": 2, "reports-late": 2},
        {
            name: _python(
                "reports-stuck-rebalance",
                "reports reports-late",
                f"reports-{name}",
                assignors=(ForOneMember,),
                session_timeout_ms=_REBALANCE_MS,
                max_poll_interval_ms=_REBALANCE_MS,
            )
            for name in "ab"
        },
        ((0, (_join, "a")), (30, (_join, "b")), (85, (_mend,))),
        (
            finds("stuck_rebalance", "reports-stuck-rebalance", timed=True),
            only("identical", "reports-stuck-rebalance"),
            now("reports-stuck-rebalance", "have no finding left", "len(coalesce(findings, [])) = 0", timed=True),
        ),
        {
            ("lag", "reports-stuck-rebalance"): ("firing", "resolved"),
            ("stuck_rebalance", "reports-stuck-rebalance"): ("firing", "resolved"),
        },
        rates={"reports": 1.0, "reports-late": 1.0},
        at_end=((_mend,),),
    ),
    # A storm is measured against the group's own past, and only in a group that is older than an hour. No group of a
    # demo is, so this one begins with a record of two hours ago: the only history in the demo that is made up.
    Story(
        14,
        "a rebalance storm: a member that crashes soon after each of its starts",
        ("logins-storm",),
        {"logins": 4},
        {name: _python("logins-storm", "logins", f"logins-{name}") for name in ("steady", "crashing")},
        (
            (5, (write_past, "logins-storm"), (_join, "steady")),
            *((second, (_join if second % 10 == 0 else _leave, "crashing")) for second in range(20, 60, 5)),
        ),
        (
            holds(
                "only logins-storm should have the finding rebalance_storm",
                "SELECT list(DISTINCT group_id) = ['logins-storm'] AS holds, list(DISTINCT group_id) AS have "
                f"FROM group_health WHERE {has('rebalance_storm')}",
                timed=True,
            ),
        ),
        rates={"logins": 1.0},
    ),
    Story(
        15,
        "an idle member: three members for two partitions",
        ("newsletter-idle",),
        {"newsletters": 2},
        {name: _python("newsletter-idle", "newsletters", f"newsletter-{name}") for name in "abc"},
        ((0, (_join, "a", "b", "c")),),
        (
            now(
                "newsletter-idle",
                "have the finding idle_members with one member's name",
                "len(list_filter(findings, lambda f: f.finding = 'idle_members' "
                "AND contains(f.detail, 'newsletter-'))) = 1",
                timed=True,
            ),
            only("identical", "newsletter-idle"),
        ),
        rates={"newsletters": 1.0},
    ),
    Story(
        16,
        "minutes behind, with a lag that looks small: ten seconds for each record, until it keeps up at 95 s",
        ("exports-behind",),
        {"exports": 1},
        {"a": _python("exports-behind", "exports", "exports-a", record_s=10.0)},
        ((0, (_join, "a"), (_tell, "a", "get_stuck")), (95,)),
        (
            holds(
                "exports-behind should have been more than a minute behind, and no longer than it exists",
                "SELECT longest > 60 AND longest <= watched + 10 AS holds, longest, watched FROM "
                "(SELECT max(time_behind_seconds_min) AS longest, "
                "date_diff('millisecond', min(round_time), max(round_time)) / 1000 AS watched FROM group_health "
                "WHERE group_id = 'exports-behind')",
                timed=True,
            ),
            now("exports-behind", "keep up again", "time_behind_seconds_min <= 60", timed=True),
        ),
        rates={"exports": 1.0},
        again=((0, (_tell, "a", "recover")), (30, (_tell, "a", "get_stuck"))),
        again_s=360,
        at_end=((_tell, "a", "recover"),),
    ),
    Story(
        17,
        "a share group on one partition with records that no member can process: each is released until it is given up",
        ("payouts-share",),
        {"payouts": 1},
        {name: partial(ShareMember, "payouts-share", "payouts", f"payouts-{name}") for name in "abc"},
        ((0, (_join, "a", "b")), (40, (_join, "c")), (80, (_leave, "c"))),
        (
            only("identical", "payouts-share"),
            holds(
                "payouts-share should have had three members of its one partition",
                "SELECT max(members) = 3 AND max(partitions) = 1 AS holds, max(members) AS had "
                "FROM rebalance_churn WHERE group_id = 'payouts-share'",
            ),
            finds("records_given_up", "payouts-share"),
            holds(
                "payouts-share should have given up one record in fifty, and rejected none",
                "SELECT sum(given_up_records) >= 1 AND sum(given_up_records) <= max(high_watermark) / 50 + 1 "
                "AND sum(rejected_records) = 0 AS holds, sum(given_up_records) AS had, max(high_watermark) AS ends "
                "FROM lag WHERE group_id = 'payouts-share'",
            ),
            now("payouts-share", "have done everything else", "lag_total = 0"),
        ),
        {("deliveries", "payouts-share"): ("firing",)},
        rates={"payouts": 1.0},
    ),
    Story(
        18,
        "a streams application: a second instance takes half of the tasks, and leaves",
        ("words-streams",),
        {WORDS: 4},
        {name: _streams("words-streams", f"words-{name}") for name in "ab"},
        ((0, (_join, "a")), (30, (_join, "b")), (75, (_leave, "b"))),
        (
            only("identical", "words-streams"),
            holds(
                "both instances of words-streams should have had active tasks of both subtopologies",
                "SELECT count(DISTINCT client_id) = 2 AS holds FROM members WHERE group_id = 'words-streams' "
                "AND len(list_distinct(list_transform(list_filter(tasks, lambda t: t.kind = 'active'), "
                "lambda t: t.subtopology))) = 2",
            ),
            holds(
                "the lag of words-streams should be told by subtopology, of its repartition topic too",
                "SELECT count(DISTINCT topic) = 2 AND list_sort(list(DISTINCT subtopology)) = ['0', '1'] AS holds "
                "FROM lag WHERE group_id = 'words-streams' AND lag IS NOT NULL",
            ),
            now("words-streams", "have no finding left", "len(coalesce(findings, [])) = 0", timed=True),
        ),
        rates={WORDS: 1.0},
        again=((0, (_join, "b")), (60, (_leave, "b"))),
        again_s=180,
    ),
    Story(
        19,
        "two Connect workers with a source and a sink: one crashes, and after a delay the other runs everything",
        ("files-connect", SINK_GROUP),
        {TOPIC: 2},
        {name: partial(ConnectWorker, "files-connect", f"connect-{name}") for name in "ab"},
        # The first one leads: a leader that follows on one that crashed waits for nobody.
        ((5, (_join, "a")), (22, (_join, "b")), (38, (_tell, "a", "deploy")), (70, (_tell, "b", "vanish")), (105,)),
        (
            holds(
                "no decision of files-connect should be drifted, and most should be recomputed",
                "SELECT count(*) FILTER (verdict = 'drifted') = 0 AND "
                "count(*) FILTER (verdict = 'identical') > count(*) / 2 AS holds, list(verdict) AS verdicts "
                "FROM drift WHERE group_id = 'files-connect'",
            ),
            holds(
                "both workers of files-connect should have run connectors or tasks",
                "SELECT count(DISTINCT client_host) = 2 AS holds FROM members "
                "WHERE group_id = 'files-connect' AND partition_count > 0",
            ),
            holds(
                "what the crashed worker ran should have waited for its return",
                "SELECT count(*) > 0 AS holds FROM group_health WHERE group_id = 'files-connect' "
                "AND contains(CAST(findings AS VARCHAR), 'the worker that ran it comes back')",
                timed=True,
            ),
            now(
                "files-connect",
                "run everything on one worker, without a finding",
                f"members = 1 AND assigned_partitions = {UNITS} AND len(coalesce(findings, [])) = 0",
                timed=True,
            ),
            now(SINK_GROUP, "have written everything", "lag_total = 0"),
        ),
        rates={TOPIC: 1.0},
    ),
)


def check_stories(evidence: Evidence) -> list[str]:
    """Run all checks; one sentence, with the story's number, for everything that is missing."""
    alerts = {alert: states for story in ALL_STORIES for alert, states in story.alerts.items()}
    # At its end the demo stops the probe for a while.
    alerts["silence", None] = ("firing", "resolved")
    checks: list[tuple[str, Expectation]] = [("all stories", every_generation_and_commit)]
    checks += [(f"story {story.number}", check) for story in ALL_STORIES for check in story.checks]
    checks.append(("all stories", exactly_these(alerts)))
    return [type(sentence)(f"{name}: {sentence}") for name, check in checks for sentence in check(evidence)]
