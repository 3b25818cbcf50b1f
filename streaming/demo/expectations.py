"""The expected table contents of each of the demo's stories: one check per story, a few queries each; and the alerts.

A check yields one sentence for everything that is missing or wrong, and nothing when the story came out right. The
journal holds what the clients really did and saw, so the tables are compared with something that Evenkeel did not
write.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from streaming.demo.evidence import Evidence, Timed, has
from streaming.demo.stories.hanging_transaction import GROUP as HANGING_GROUP
from streaming.demo.stories.hanging_transaction import TRANSACTIONAL_ID
from streaming.demo.stories.junk import HOSTILE_GROUPS
from streaming.demo.stories.transactions import FAR_AHEAD

_TOLD = {
    ("drift", "clicks-pile-up"): ["firing", "resolved"],
    ("imbalance", "clicks-pile-up"): ["firing", "resolved"],
    ("lag", "billing-stuck"): ["firing", "resolved"],
    ("lag", "orders-retired"): ["firing", "gone"],
    ("lag", "reports-stuck-rebalance"): ["firing", "resolved"],
    ("stuck_rebalance", "reports-stuck-rebalance"): ["firing", "resolved"],
    ("offsets_blocked", None): ["firing", "resolved"],
    ("silence", None): ["firing", "resolved"],
    # Rules on events: the alert lasts for an hour after the last event.
    ("undecodable", None): ["firing"],
    ("unknown_records", None): ["firing"],
}
"""Rule and group: the notified states, in order. Drift over several generations is one alert."""

_REPEATING = frozenset({("lag", "billing-stuck")})
"""The member gets stuck every three minutes: a long demo raises the alert again, and may end while it fires."""

_TIMED = frozenset({"lag", "stuck_rebalance", "offsets_blocked", "silence"})
"""Rules on what takes long. Where members expire any alert may fire again, because its group is well in between."""

_POSSIBLE = frozenset({("gap", None), ("lag", "exports-behind")})
"""The demo stops the probe once, which is a gap. It becomes known one round later, when the demo may have ended. And
the slow member's group falls behind by the lag, too, as soon as ten rounds had a commit, which takes about 100 s."""


# A demo member that is stuck for a minute at one record a second gets about 60 records behind. Half of that is enough
# to distinguish it from a slow poll.
_STUCK_LAG = 25


def check_stories(evidence: Evidence) -> list[str]:
    """Run all checks; one sentence, with the story's number, for everything that is missing."""
    missing: list[str] = []
    for number, check in CHECKS:
        name = f"story {number}" if number else "all stories"
        missing.extend(type(sentence)(f"{name}: {sentence}") for sentence in check(evidence))
    return missing


def _only(evidence: Evidence, group: str, verdict: str) -> Iterator[str]:
    verdicts = evidence.verdicts(group)
    if set(verdicts) != {verdict}:
        yield f"{group} should have only {verdict} verdicts, it has {dict(verdicts) or 'none'}"


def _everything(evidence: Evidence) -> Iterator[str]:
    """Checks for every group: each generation a client saw is there exactly once, and each commit is counted."""
    churn = Counter(
        (row["group_id"], row["generation"])
        for row in evidence.rows(
            "SELECT group_id, generation FROM rebalance_churn WHERE revision = 1 AND kind IN ('rebalance', 'created')"
        )
    )
    seen = {(line["group"], line["generation"]) for line in evidence.noted("generation")}
    lost = sorted(seen - set(churn))
    if lost:
        yield f"generations that clients saw have no churn row: {lost[:5]}"
    twice = sorted(key for key, count in churn.items() if count > 1)
    if twice:
        yield f"generations have more than one churn row: {twice[:5]}"
    made: Counter[str] = Counter()
    for line in evidence.noted("commits"):
        made[line["group"]] += sum(sum(counts.values()) for counts in line["counts"].values())
    unsure = {line["group"] for line in evidence.noted("uncertain")}
    read = {r["group_id"]: r["n"] for r in evidence.rows("SELECT group_id, sum(commits) AS n FROM lag GROUP BY ALL")}
    for group, count in sorted(made.items()):
        if group not in unsure and read.get(group) != count:
            yield f"{group[:60]!r} made {count} commits, the tables count {read.get(group)}"
    for line in evidence.noted("failed"):
        yield Timed(f"story {line['story']} itself failed: {line['error']}")
    if evidence.one("SELECT count(*) FROM group_health WHERE group_id LIKE 'evenkeel%'"):
        yield "Evenkeel's own traffic shows up as a group"


def _range(evidence: Evidence) -> Iterator[str]:
    yield from _only(evidence, "orders-range", "identical")
    yield from _only(evidence, "orders-java", "identical")
    sql = "SELECT count(*) FROM rebalance_churn WHERE group_id = 'orders-range' AND revision = 1 AND len({}) > 0"
    for what in ("joined", '"left"'):
        if not evidence.one(sql.format(what)):
            yield f"no rebalance of orders-range shows who {what}"


def _roundrobin(evidence: Evidence) -> Iterator[str]:
    yield from _only(evidence, "billing-roundrobin", "identical")
    sql = "SELECT DISTINCT subscription FROM members WHERE group_id = 'billing-roundrobin' AND NOT ended"
    if len(evidence.rows(sql)) < 3:
        yield "billing-roundrobin should show three different subscriptions"


def _static(evidence: Evidence) -> Iterator[str]:
    sql = (
        "SELECT kind, count(*) AS n FROM rebalance_churn WHERE group_id = 'tills-static' AND revision = 1 GROUP BY ALL"
    )
    kinds = {row["kind"]: row["n"] for row in evidence.rows(sql)}
    if kinds.get("static_replacement", 0) < 2:
        yield Timed(f"two restarts of static members should be static_replacement rows, there are {kinds}")
    if kinds.get("rebalance", 0) > 2:
        yield Timed(f"restarts of static members should be no rebalances, there are {kinds}")
    yield from _only(evidence, "tills-static", "identical")


def _pile_up(evidence: Evidence) -> Iterator[str]:
    sql = (
        "SELECT count(*) FROM drift WHERE group_id = 'clicks-pile-up' AND verdict = 'drifted' "
        "AND list_contains(list_transform(drifted_partitions, lambda p: p.kind), 'misplaced')"
    )
    if evidence.one(sql) < 2:
        yield "clicks-pile-up should be drifted with misplaced partitions in two generations at least"
    sql = "SELECT max(imbalance - imbalance_optimal) FROM group_health WHERE group_id = 'clicks-pile-up'"
    worst = evidence.one(sql)
    if worst is None or worst < 1.5:
        yield f"the imbalance of clicks-pile-up should be far above the least possible, it is {worst} above"
    now = evidence.now("clicks-pile-up")
    if now is None or now["verdict"] != "identical":
        yield f"clicks-pile-up should be identical after the healing, it is {now and now['verdict']}"


def _own_strategies(evidence: Evidence) -> Iterator[str]:
    yield from _only(evidence, "orders-pinned", "unverified")
    now = evidence.now("orders-pinned")
    if now is None or not now["verdict_reason"] or now["imbalance"] is None:
        yield "orders-pinned should have a reason and an imbalance"
    for group, state in (("night-batch", "Empty"), ("orders-mirror", "Empty")):
        now = evidence.now(group)
        if now is None or now["verdict"] != "not_applicable" or now["state"] != state:
            yield f"{group} should be {state} and not_applicable, it is {now and (now['state'], now['verdict'])}"


def _stuck(evidence: Evidence) -> Iterator[str]:
    worst = evidence.one("SELECT max(lag) FROM lag WHERE group_id = 'billing-stuck'")
    if worst is None or worst < _STUCK_LAG:
        yield Timed(f"the lag of billing-stuck should have grown beyond {_STUCK_LAG}, it reached {worst}")
    now = evidence.now("billing-stuck")
    if now is None or now["lag_max"] is None or now["lag_max"] >= _STUCK_LAG:
        yield Timed(f"billing-stuck should have recovered, its largest lag is {now and now['lag_max']}")
    # (Partitions without an owner are left out: there the lag of a group without members has really stopped.)
    elsewhere = evidence.rows(
        "SELECT DISTINCT group_id FROM lag WHERE lag_status IN ('stopped', 'stalled') AND subscribed "
        "AND member_id IS NOT NULL AND group_id NOT IN ('billing-stuck', 'orders-retired', 'reports-stuck-rebalance')"
    )
    told = [row["group_id"] for row in elsewhere]
    if told:
        yield Timed(f"groups that were well are said to have stopped: {told}")


def _growing(evidence: Evidence) -> Iterator[str]:
    if not evidence.found("signups-growing", "stale_metadata"):
        yield "signups-growing should have had the finding stale_metadata"
    if evidence.found("signups-growing", "unassigned"):
        yield Timed("signups-growing has the finding unassigned, within its leader's grace")
    now = evidence.now("signups-growing")
    if now is None or now["findings"]:
        yield Timed(f"signups-growing should have no finding left, it has {now and now['findings']}")
    yield from _only(evidence, "signups-growing", "identical")


def _transactions(evidence: Evidence) -> Iterator[str]:
    sql = (
        "SELECT max(committed_offset) AS highest, max(ahead_by) AS ahead, sum(commits) AS commits FROM lag "
        "WHERE group_id = 'transfers-exactly-once'"
    )
    found = evidence.rows(sql)[0]
    if not found["commits"]:
        yield "transfers-exactly-once should have committed"
    elif found["highest"] >= 1_000_000 or found["ahead"]:
        yield f"aborted offsets of transfers-exactly-once show up: {found}"


def _cooperative(evidence: Evidence) -> Iterator[str]:
    for group in ("clicks-sticky", "orders-cooperative"):
        yield from _only(evidence, group, "identical")
    if not evidence.one("SELECT count(*) FROM rebalance_churn WHERE group_id = 'orders-cooperative' AND follows > 0"):
        yield "no generation of orders-cooperative is the second half of a cooperative rebalance"
    sql = (
        "SELECT count(*) FROM rebalance_churn_current AS c JOIN what_if AS w USING (group_id, decision) "
        "WHERE c.group_id = 'orders-cooperative' AND c.follows > 0 AND w.runs "
        "AND w.partitions_moved = c.partitions_moved"
    )
    if not evidence.one(sql):
        yield "no second half in orders-cooperative shows its own moves beside what other strategies would have moved"


def _junk(evidence: Evidence) -> Iterator[str]:
    kept = Counter(
        (row["partition"], row["record_offset"])
        for row in evidence.rows(
            "SELECT partition, record_offset FROM quarantine "
            "WHERE kind = 'undecodable' AND topic = '__consumer_offsets'"
        )
    )
    written = {(r["partition"], r["offset"]): r["expected"] for r in evidence.noted("junk")}
    undecodable = {position for position, expected in written.items() if expected == "undecodable"}
    if not undecodable:
        yield "no junk was written"
    if lost := undecodable - set(kept):
        yield f"{len(lost)} undecodable records are not in quarantine"
    if more := set(kept) - set(written):
        yield f"{len(more)} sound records are in quarantine"
    if any(count > 1 for count in kept.values()):
        yield "records are in quarantine twice"
    # Unknown types and newer versions: quarantine keeps only samples with counts. Records whose group does not belong
    # to their partition are strays, with a row each.
    others = set(written) - undecodable - set(kept)
    sql = (
        "SELECT coalesce(sum(n), 0) FROM (SELECT max(records) AS n FROM quarantine WHERE kind = 'unknown' "
        "GROUP BY topic, partition, key_type, value_version, event_date)"
    )
    counted = evidence.one(sql)
    if counted != len(others):
        yield f"{len(others)} records of unknown types or newer versions were written, quarantine counts {counted}"
    for group in HOSTILE_GROUPS:
        if evidence.now(group) is None:
            yield f"the group {group[:40]!r} is missing"


def _deletions(evidence: Evidence) -> Iterator[str]:
    for group in ("orders-retired", "one-off-report"):
        if not evidence.one("SELECT count(*) FROM group_health WHERE group_id = ? AND ended", group):
            yield f"{group} should have a closing row"
        for view in ("group_health_current", "lag_current", "members_current", "drift_current", "what_if_current"):
            if evidence.one(f"SELECT count(*) FROM {view} WHERE group_id = ?", group):  # noqa: S608 - our own names
                yield f"{group} lingers in {view}"
    if not evidence.one("SELECT count(*) FROM lag WHERE group_id = 'coupons-reader' AND topic = 'coupons' AND ended"):
        yield "the partitions of the deleted topic coupons should have closing rows"
    if evidence.one("SELECT count(*) FROM lag_current WHERE topic = 'coupons'"):
        yield "the deleted topic coupons lingers in lag_current"
    # (A group may be gone one round before its tombstones are read: then its closing rows show no deletion.)
    sql = (
        "SELECT group_id, topic, partition, count(*) FILTER (offset_deleted) AS times FROM lag "
        "WHERE group_id IN ('coupons-reader', 'one-off-report') GROUP BY ALL "
        "HAVING max(committed_offset) IS NOT NULL AND (times > 1 OR (topic = 'coupons' AND times = 0))"
    )
    if wrong := evidence.rows(sql):
        yield f"deleted and expired offsets should be told once: {wrong}"
    if evidence.now("coupons-reader") is None:
        yield "coupons-reader should go on"


def _hanging(evidence: Evidence) -> Iterator[str]:
    sql = "SELECT held, transactional_id, groups FROM open_transactions WHERE repeat IS NULL ORDER BY round"
    rows = [(row["held"], row["transactional_id"], row["groups"]) for row in evidence.rows(sql)]
    # (The producer may become known a round after the hold.)
    if (
        rows[-2:] != [(True, TRANSACTIONAL_ID, 1), (False, TRANSACTIONAL_ID, 0)]
        or sum(not held for held, _, _ in rows) != 1
    ):
        yield Timed(
            f"one transaction should have held the log back, of {TRANSACTIONAL_ID}, open_transactions has {rows}"
        )
    sql = "SELECT count(*) FROM group_health WHERE group_id = ? AND contains(CAST(findings AS VARCHAR), ?)"
    if not evidence.one(sql, HANGING_GROUP, TRANSACTIONAL_ID):
        yield f"no finding of {HANGING_GROUP} names the transaction that hangs"
    sql = (
        "SELECT max(committed_offset) AS highest, max(ahead_by) AS ahead, "
        "count(*) FILTER (reason = 'offsets_blocked') AS unknown FROM lag WHERE group_id = ?"
    )
    found = evidence.rows(sql, HANGING_GROUP)[0]
    if not found["unknown"] or found["highest"] is None or found["highest"] >= FAR_AHEAD or found["ahead"]:
        yield f"the lag of {HANGING_GROUP} should be unknown for a while, and never of the open transaction: {found}"
    now = evidence.now(HANGING_GROUP)
    if now is None or now["findings"] or now["lag_total"] is None:
        state = now and (now["findings"], now["lag_total"])
        yield Timed(f"{HANGING_GROUP} should be well after the transaction, it is {state}")


def _stuck_rebalance(evidence: Evidence) -> Iterator[str]:
    if not evidence.found("reports-stuck-rebalance", "stuck_rebalance"):
        yield Timed("reports-stuck-rebalance should have had the finding stuck_rebalance")
    yield from _only(evidence, "reports-stuck-rebalance", "identical")
    now = evidence.now("reports-stuck-rebalance")
    if now is None or now["findings"]:
        yield Timed(f"reports-stuck-rebalance should have no finding left, it has {now and now['findings']}")


def _storm(evidence: Evidence) -> Iterator[str]:
    sql = "SELECT DISTINCT group_id FROM group_health WHERE {}"
    told = {row["group_id"] for row in evidence.rows(sql.format(has("rebalance_storm")))}
    if told != {"logins-storm"}:
        yield Timed(f"only logins-storm should have the finding rebalance_storm, these have it: {sorted(told)}")


def _idle(evidence: Evidence) -> Iterator[str]:
    now = evidence.now("newsletter-idle")
    details = [found["detail"] for found in (now or {}).get("findings") or () if found["finding"] == "idle_members"]
    if len(details) != 1 or "newsletter-" not in details[0]:
        yield Timed(f"newsletter-idle should have the finding idle_members with one member's name, it has {details}")
    yield from _only(evidence, "newsletter-idle", "identical")


def _behind(evidence: Evidence) -> Iterator[str]:
    sql = (
        "SELECT max(time_behind_seconds_min) AS longest, max(lag_total) AS lag, "
        "date_diff('millisecond', min(round_time), max(round_time)) / 1000 AS watched FROM group_health "
        "WHERE group_id = 'exports-behind'"
    )
    found = evidence.rows(sql)[0]
    if found["longest"] is None or not 60 < found["longest"] <= found["watched"] + 10:
        yield Timed(f"exports-behind should have been more than a minute behind, and no longer than it exists: {found}")
    now = evidence.now("exports-behind")
    if now is None or now["time_behind_seconds_min"] is None or now["time_behind_seconds_min"] > 60:
        yield Timed(f"exports-behind should keep up again, it is {now and now['time_behind_seconds_min']} s behind")


def _alerts(evidence: Evidence) -> Iterator[str]:
    """The alerts that the shipped rules must raise; any other is an error."""
    told: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for row in evidence.rows(
        "SELECT rule, group_id, state FROM alerts WHERE state = 'firing' OR (ended AND from_state = 'firing') "
        "ORDER BY decision, round"
    ):
        told[row["rule"], row["group_id"]].append(row["state"])
    for (rule, group), states in _TOLD.items():
        found = told.pop((rule, group), [])
        if (rule, group) in _REPEATING:
            found = found[: len(states)]
        if found != states:
            again = states * (len(found) // len(states))
            kind = Timed if rule in _TIMED or found == again != [] else str
            yield kind(f"the alert {rule} of {group or 'the cluster'} should have been {states}, it was {found}")
    for (rule, group), states in told.items():
        if (rule, group) in _POSSIBLE:
            continue
        kind = Timed if rule in _TIMED else str
        yield kind(f"nothing should have told {rule} of {group!r}, it was {states}")
    sql = (
        "SELECT rule, group_id, state FROM alerts WHERE rule NOT IN ('silence', 'gap') AND state <> 'pending' "
        "AND decision >= (SELECT min(decision) FROM alerts WHERE rule = 'silence' AND state = 'firing') "
        "AND decision <= (SELECT max(decision) FROM alerts WHERE rule = 'silence' AND state = 'resolved')"
    )
    if others := evidence.rows(sql):
        yield f"while there was silence other alerts changed: {others}"


CHECKS: tuple[tuple[int, Callable[[Evidence], Iterator[str]]], ...] = (
    (0, _everything),
    (1, _range),
    (2, _roundrobin),
    (3, _static),
    (4, _pile_up),
    (5, _own_strategies),
    (6, _stuck),
    (7, _growing),
    (8, _transactions),
    (9, _cooperative),
    (10, _junk),
    (11, _deletions),
    (12, _hanging),
    (13, _stuck_rebalance),
    (14, _storm),
    (15, _idle),
    (16, _behind),
    (0, _alerts),
)
"""Story number (0: all of them) and its check."""
