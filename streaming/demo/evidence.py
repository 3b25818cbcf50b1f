"""What a demo leaves behind, the tables and the journal, and what its stories expect of it.

A check yields one sentence for everything that is missing or wrong, and nothing when the story came out right. The
journal holds what the clients really did and saw, so the tables are compared with something that Evenkeel did not
write.

Some checks rest on timeouts: members that send no heartbeat in time expire, and those that do not commit for ten rounds
count as stopped. On a machine that is too slow that happens to members that a story meant to be well, and the tables
that show it are right. Such a check yields a `Timed` sentence, which then counts as not judged.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streaming.tables import LakeReader

INTERVAL_MS = 2_000
"""Rounds and batches are frequent, so that people who watch the demo see events at once."""

_LATE_S: Final = 2.0
"""A demo that stood still for longer is late. The shortest session timeout of a member is 6 s, with a heartbeat every
1.5 s, and only some moments are measured; a start of Spark on two idle cores holds up others for less than a second."""

_REPEATING = frozenset({("lag", "billing-stuck")})
"""The member gets stuck every three minutes: a long demo raises the alert again, and may end while it fires."""

_TIMED_RULES = frozenset({"lag", "stuck_rebalance", "offsets_blocked", "silence"})
"""Rules on what takes long. Where members expire any alert may fire again, because its group is well in between."""

_POSSIBLE = frozenset({("gap", None), ("lag", "exports-behind")})
"""The demo stops the probe once, which is a gap. It becomes known one round later, when the demo may have ended. And
the slow member's group falls behind by the lag, too, as soon as ten rounds had a commit, which takes about 100 s."""


class Timed(str):
    """A sentence about something that is missing or wrong, but that a slow machine can be the cause of."""

    __slots__ = ()


class Evidence:
    """The tables and the journal."""

    def __init__(self, reader: LakeReader, journal: Path) -> None:
        self.reader = reader
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]

    def rows(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """Run a query."""
        return self.reader.rows(sql, list(parameters))

    def one(self, sql: str, *parameters: object) -> Any:
        """The only value of a query."""
        return next(iter(self.rows(sql, *parameters)[0].values()))

    def noted(self, what: str) -> Iterator[dict[str, Any]]:
        """Lines of the journal of one kind."""
        return (line for line in self.lines if line["what"] == what)

    @property
    def lateness(self) -> str | None:
        """A sentence where the machine was too slow for some checks."""
        quiet = next(self.noted("quiet"))
        sql = (
            "SELECT coalesce(max(step), 0) AS late FROM (SELECT (epoch_ms(round_time) - epoch_ms(lag(round_time) "
            "OVER (ORDER BY round)) - ?) / 1000 AS step, round_time FROM rounds) WHERE epoch_ms(round_time) < ?"
        )
        return lateness(quiet["late_s"], float(self.one(sql, INTERVAL_MS, quiet["at_ms"])))


Expectation = Callable[[Evidence], Iterator[str]]


def holds(sentence: str, sql: str, *, timed: bool = False) -> Expectation:
    """A query of one row must hold: its column `holds` is true; what else the row has is shown where it is not."""

    def check(evidence: Evidence) -> Iterator[str]:
        row = next(iter(evidence.rows(sql)), {"holds": False, "rows": None})
        if not row.pop("holds"):
            yield (Timed if timed else str)(f"{sentence}, found {row}")

    return check


def now(group: str, sentence: str, condition: str, *, timed: bool = False) -> Expectation:
    """A condition on a group's newest row of health."""
    columns = "verdict, state, findings, lag_max, lag_total, time_behind_seconds_min"
    sql = f"SELECT ({condition}) AS holds, {columns} FROM group_health_current WHERE group_id = '{group}'"
    return holds(f"{group} should {sentence}", sql, timed=timed)


def only(verdict: str, *groups: str) -> Expectation:
    """All decisions of groups that had members have one verdict."""

    def check(evidence: Evidence) -> Iterator[str]:
        sql = "SELECT verdict FROM drift WHERE group_id = ? AND verdict <> 'not_applicable'"
        for group in groups:
            verdicts = Counter(row["verdict"] for row in evidence.rows(sql, group))
            if set(verdicts) != {verdict}:
                yield f"{group} should have only {verdict} verdicts, it has {dict(verdicts) or 'none'}"

    return check


def finds(finding: str, group: str, *, timed: bool = False) -> Expectation:
    """A group has had a finding."""
    sql = f"SELECT count(*) > 0 AS holds FROM group_health WHERE group_id = '{group}' AND {has(finding)}"
    return holds(f"{group} should have had the finding {finding}", sql, timed=timed)


def has(finding: str) -> str:
    """SQL: whether a row of health has a finding."""
    return f"list_contains(list_transform(findings, lambda f: f.finding), '{finding}')"


def every_generation_and_commit(evidence: Evidence) -> Iterator[str]:
    """Each generation that a client saw is there exactly once, and each commit is counted."""
    churn = Counter(
        (row["group_id"], row["generation"], row["incarnation"])
        for row in evidence.rows(
            "SELECT group_id, generation, incarnation FROM rebalance_churn "
            "WHERE revision = 1 AND kind IN ('rebalance', 'created')"
        )
    )
    seen = {(line["group"], line["generation"]) for line in evidence.noted("generation")}
    if lost := sorted(seen - {(group, generation) for group, generation, _ in churn}):
        yield f"generations that clients saw have no churn row: {lost[:5]}"
    if twice := sorted(key for key, count in churn.items() if count > 1):
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


def every_junk_record(evidence: Evidence) -> Iterator[str]:
    """What was written as junk is in quarantine, once, and nothing else is."""
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


def exactly_these(alerts: Mapping[tuple[str, str | None], Sequence[str]]) -> Expectation:
    """The alerts by rule and group, with the states that are notified, in order; any other is an error."""

    def check(evidence: Evidence) -> Iterator[str]:
        notified: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        for row in evidence.rows(
            "SELECT rule, group_id, state FROM alerts WHERE state = 'firing' OR (ended AND from_state = 'firing') "
            "ORDER BY decision, round"
        ):
            notified[row["rule"], row["group_id"]].append(row["state"])
        for (rule, group), wanted in alerts.items():
            states, found = list(wanted), notified.pop((rule, group), [])
            if (rule, group) in _REPEATING:
                found = found[: len(states)]
            if found != states:
                again = states * (len(found) // len(states))
                kind = Timed if rule in _TIMED_RULES or found == again != [] else str
                yield kind(f"the alert {rule} of {group or 'the cluster'} should have been {states}, it was {found}")
        for (rule, group), found in notified.items():
            if (rule, group) not in _POSSIBLE:
                kind = Timed if rule in _TIMED_RULES else str
                yield kind(f"nothing should have raised {rule} of {group!r}, it was {found}")
        sql = (
            "SELECT rule, group_id, state FROM alerts WHERE rule NOT IN ('silence', 'gap') AND state <> 'pending' "
            "AND decision >= (SELECT min(decision) FROM alerts WHERE rule = 'silence' AND state = 'firing') "
            "AND decision <= (SELECT max(decision) FROM alerts WHERE rule = 'silence' AND state = 'resolved')"
        )
        if others := evidence.rows(sql):
            # Timed: a job that is slow to start is silence, and what it then catches up with is judged at once.
            yield Timed(f"while there was silence other alerts changed: {others}")

    return check


def lateness(ticks_s: float, rounds_s: float) -> str | None:
    """A sentence where the machine was too slow for checks that rest on timeouts; None where it was not.

    Args:
        ticks_s: The longest delay of a step of the traffic, which the members share a process with.
        rounds_s: The longest delay of a round after the one before, beyond the interval.
    """
    if max(ticks_s, rounds_s) <= _LATE_S:
        return None
    return (
        f"The machine was too slow for the stories: the traffic stood still for {ticks_s:.1f} s, and a round came "
        f"{rounds_s:.1f} s late, where {_LATE_S:.0f} s are allowed. Members expire by that."
    )


def judged(found: Sequence[str], late: str | None) -> tuple[list[str], list[str]]:
    """Sentences that count, and those that nobody can judge because the machine was too slow."""
    missing = [sentence for sentence in found if late is None or not isinstance(sentence, Timed)]
    unjudged = [sentence for sentence in found if sentence not in missing]
    return missing, [*unjudged, late] if late is not None and unjudged else unjudged
