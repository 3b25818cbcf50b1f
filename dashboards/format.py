"""Numbers, times and names as people read them, and the one sentence that says what is wrong with a group.

Pure functions over the queries' rows; they return text, never markup.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from streaming.plurals import counted
from streaming.terminal import age

__all__ = [
    "DASH",
    "Clock",
    "Reason",
    "between",
    "bounds",
    "calm",
    "cause",
    "counted",
    "cut",
    "key_of",
    "mark",
    "number",
    "passing",
    "percent",
    "rate",
    "ratio",
    "reasons",
    "seconds",
    "verdict",
    "visible",
]

Row = Mapping[str, Any]
"""A row of a panel's query: values by column."""

DASH = "\N{EN DASH}"
"""Shown where there is no value."""

# Longer names are cut in the middle in tables.
_CUT_AT = 44

# Longer names are replaced by a digest in links: browsers and proxies cut addresses after a few thousand characters.
_LINK_AT = 300

_PASSING = frozenset({"partitions_pending_handover", "reconciling", "offset_deleted"})

_KINDS = {
    "misplaced": "misplaced",
    "unassigned": "without an owner",
    "doubly_assigned": "with two owners",
    "not_subscribed": "with a member that does not subscribe to them",
}


def mark(moment: datetime, *, exact: bool = True) -> str:
    """A time of day, to the second or to the minute, as the mark that `markup.said` turns into `<time>`."""
    return f"\ue000{int(moment.timestamp() * 1000)}{'s' if exact else 'm'}\ue001"


@dataclass(frozen=True, slots=True)
class Clock:
    """Times of one rendering, as marks that a template turns into `<time>`.

    The browser knows the viewer's zone, the server does not: so one rendering serves all viewers. A mark is two private
    characters around the time; `visible` escapes those in names, so no name can pass for one.

    Attributes:
        now: Time of the rendering.
        past: How far back the tables in memory go.
    """

    now: datetime
    past: timedelta = timedelta(hours=24)

    def time(self, moment: datetime | None, *, exact: bool = True) -> str:
        """A mark for a time of day, to the second or to the minute."""
        return DASH if moment is None else mark(moment, exact=exact)

    def whole(self, moment: datetime | None) -> str:
        """The full moment as text, in UTC: the browser adds the viewer's own."""
        return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

    def ago(self, moment: datetime | None) -> str:
        """How long ago: "3 min ago"."""
        return DASH if moment is None else f"{age(self.now - moment)} ago"

    def since(self, moment: datetime | None) -> str:
        """Part of a sentence: " since 14:03", or for how long if it began before the rows in memory (leading space)."""
        if moment is None:
            return ""
        if self.now - moment > self.past - timedelta(minutes=10):
            return f" for over {age(self.past - timedelta(minutes=10))}"
        return f" since {self.time(moment, exact=False)}"

    def at_least(self, moment: datetime | None) -> str:
        """Part of a sentence: " for at least 3 min", with a space before."""
        return "" if moment is None else f" for at least {age(self.now - moment)}"


def number(value: float | None) -> str:
    """A count: "12,400"; a dash for None."""
    return DASH if value is None else f"{value:,.0f}"


def ratio(value: float | None) -> str:
    """An imbalance: "1.50"; "0" if it rounds to nothing."""
    if value is None:
        return DASH
    return "0" if abs(value) < 0.005 else f"{value:.2f}"


def rate(value: float | None) -> str:
    """Something per second: "0", "<0.1", "0.4", "12", "1,240"."""
    if value is None:
        return DASH
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if 0 < value < 9.95 else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """A part of 1: "0 %", "<1 %", "42 %"."""
    if share is None:
        return DASH
    return "<1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")


def seconds(value: float | None) -> str:
    """Seconds of a cost: "0.4", "12", "1,240"."""
    if value is None:
        return DASH
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


_AGREE: Final = 2
"""Bounds agree where the upper one is at most twice the lower one: then the figure between them, the root of their
product, is wrong by a factor of 1.41 at most. With bounds further apart a single figure would only look like one."""


def between(low: float | None, high: float | None, say: Callable[[Any], str]) -> str:
    """A cost that is known by its bounds, and its best figure where they agree: "0.4 to 12", "about 12 (10 to 15)".

    Args:
        low: Lower bound; None if unknown.
        high: Upper bound; None if unknown.
        say: How a number is said.
    """
    if low is None and high is None:
        return DASH
    if high is None:
        return f"{say(low)} or more"
    if low is None:
        return f"up to {say(high)}"
    if say(low) == say(high):
        return say(high)
    span = f"{say(low)} to {say(high)}"
    return f"about {say(math.sqrt(low * high))} ({span})" if high <= _AGREE * low else span


def bounds(low: float | None, high: float | None) -> str:
    """A span that is known by its bounds, in s: "12 s", "40 s to 3 min", "12 s or more"."""
    shortest = None if low is None else age(timedelta(seconds=low))
    longest = None if high is None else age(timedelta(seconds=high))
    if longest is None:
        return DASH if shortest is None else f"{shortest} or more"
    if shortest is None:
        return f"up to {longest}"
    return longest if shortest == longest else f"{shortest} to {longest}"


def visible(name: str) -> str:
    """A name with escapes for its invisible characters: control characters, and those that reverse the text."""
    if name.isprintable():
        return name  # (A name can have 32 KB, and every refresh shows it again.)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def cut(name: str, most: int = _CUT_AT) -> str:
    """A visible name of at most `most` characters, cut in the middle: names differ at their beginnings and ends."""
    # (A name can have 32 KB: only its ends are escaped.)
    if len(name) > 2 * most:
        name = name[:most] + name[-most:]
        shown = visible(name)
    else:
        shown = visible(name)
        if len(shown) <= most:
            return shown
    head = (most - 1) // 2
    return f"{shown[:head]}…{shown[-(most - 1 - head) :]}"


def key_of(name: str) -> str:
    """A name as used in links: the name itself, or a digest if it is too long or a path would swallow it."""
    if len(name) <= _LINK_AT and name not in {".", ".."}:
        return name
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is wrong, or worth knowing.

    Attributes:
        health: Severity, as the column of groups.sql: 3, 2 or 1.
        text: The sentence.
    """

    health: int
    text: str


def reasons(group: Row, clock: Clock, since: Row | None = None) -> list[Reason]:
    """Reasons for a group's health, the worst first; empty when nothing is wrong.

    Args:
        group: A row of groups.sql.
        clock: The viewer's clock.
        since: The group's row of since.sql, if it has one.
    """
    known = since or {}
    found = [_REASONS[problem] for problem in group["problems"].split() if problem in _REASONS]
    return [Reason(health, say(group, clock, known)) for health, say in found]


def passing(group: Row, clock: Clock) -> list[Reason]:
    """Reasons that are normal for moments and worth knowing while they last, such as partitions being handed over."""
    return [
        Reason(0, _with_its_beginning(finding, clock))
        for finding in group["findings"] or ()
        if finding["finding"] in _PASSING
    ]


def calm(group: Row) -> str:
    """Short text for a group with nothing wrong."""
    verdict = group["verdict"]
    if verdict == "identical":
        return "as expected"
    if verdict == "pending":
        return "the newest decision waits for its verdict"
    if verdict == "unverified":
        return f"not recomputed: {visible(group['verdict_reason'] or '')}"
    return visible(group["verdict_reason"] or "")


_EAGER = frozenset({"range", "roundrobin", "sticky"})

# Causes that the other columns of a decision do not show.
_CAUSES = {
    "subscription_changed": "other topics subscribed",
    "partitions_changed": "another partition count",
    "metadata_stale": "the leader's metadata had been old",
    "racks_changed": "replicas in other racks",
    "strategy_changed": "another strategy",
    "rejoined": "the same members joined again",
    "coordinator_moved": "the group's coordinator was elected again",
    "member_frozen": "a member does not answer",
    "broker_down": "a broker is down",
    "broker_up": "a broker came back",
    "broker_added": "a broker was added",
    "name_server_differs": "a name server lists other queues",
    "member_lists_changed": "brokers list other members",
    "settled": "members rebalance by themselves, every 20 s",
}


def cause(decision: Row) -> str:
    """Cause of a rebalance, as far as the log shows it: who joined, left, was replaced."""
    kind = decision["kind"]
    if kind == "static_replacement":
        return "a static member came back, no rebalance"
    said = []
    for names, word in ((decision["joined"], "joined"), (decision["left"], "left")):
        if names:
            said.append(f"{len(names)} {word}")
    if decision["replaced"]:
        said.append(f"{len(decision['replaced'])} replaced")
    if kind == "became_empty":
        said.append("the group became empty")
    elif kind == "migration":
        said.append("moved to another protocol")
    elif kind == "created" or decision["joined"] is None:
        said.append("first decision seen")
    if decision["follows"] is not None:
        # (With an eager strategy all partitions are given up at once, so pending ones can only stem from a migration.)
        if decision.get("strategy") in _EAGER:
            said.append("hands over what the migration before it left")
        else:
            said.append("second half of a cooperative rebalance")
    listed = decision.get("causes") or ()
    said += [text for word, text in _CAUSES.items() if any(found["cause"] == word for found in listed)]
    if not said:
        said.append("same members: subscription or metadata changed, or a member asked for it")
    if decision["generations_skipped"]:
        said.append(f"{decision['generations_skipped']} generations before it left no record")
    return ", ".join(said)


def _drifted(group: Row, clock: Clock, since: Row) -> str:
    of = number(group["partitions"] or group["assigned_partitions"])
    kinds = Counter(item["kind"] for item in group["drifted_partitions"] or ())
    when = clock.since(since.get("drifted_since") or group["last_decision_time"])
    if not kinds:
        return f"{number(group['drifted_count'])} of {of} partitions with the wrong owner{when}"
    if len(kinds) == 1:
        kind, count = next(iter(kinds.items()))
        return f"{number(count)} of {of} partitions {_KINDS.get(kind, kind)}{when}"
    parts = ", ".join(f"{number(count)} {_KINDS.get(kind, kind)}" for kind, count in kinds.most_common())
    return f"of {of} partitions {parts}{when}"


def _finding(name: str) -> Callable[[Row, Clock, Row], str]:
    def say(group: Row, clock: Clock, _since: Row) -> str:
        found = next((f for f in group["findings"] or () if f["finding"] == name), None)
        if found is None:
            return name.replace("_", " ")
        return _with_its_beginning(found, clock)

    return say


def _with_its_beginning(finding: Row, clock: Clock) -> str:
    # Set apart, because a detail may end in figures of its own: "usually about 11.7 a day · since 14:03".
    since = clock.since(finding["since"])
    return visible(finding["detail"]) + (f" ·{since}" if since else "")


def _rewound(group: Row, clock: Clock, since: Row) -> str:
    return f"{_finding('rewound')(group, clock, since)}, lag {number(group['lag_total'])}"


def _imbalance(group: Row, _clock: Clock, _since: Row) -> str:
    return f"imbalance {ratio(group['imbalance'])}, could be {ratio(group['imbalance_optimal'])}"


def verdict(name: str, basis: str | None) -> str:
    """A verdict as a word, with its basis: "drifted (promise)"."""
    return name.replace("_", " ") + (f" ({basis})" if basis else "")


def _mismatch(group: Row, _clock: Clock, _since: Row) -> str:
    return f"runs {cut(group['strategy'] or 'no strategy')}, should run {cut(group['expected_strategy'] or '')}"


def _lag(text: str) -> Callable[[Row, Clock, Row], str]:
    def say(group: Row, clock: Clock, since: Row) -> str:
        return f"lag {number(group['lag_total'])}{text}{clock.at_least(since.get('lag_since'))}"

    return say


def _loses_data(group: Row, _clock: Clock, _since: Row) -> str:
    place = f"{cut(group['loses_data_topic'] or '')} {group['loses_data_partition']}"
    low, high = group["loses_data_in_seconds_min"], group["loses_data_in_seconds_max"]
    when = "has ended" if not high else f"ends in {bounds(low, high)}"
    said = f"the retention of unread records of {place} {when}: they may be deleted any time from then on"
    return said if group["loses_data_by"] == "append_time" else f"{said} (by the producers' timestamps)"


# Problems as explained in groups.sql: 3 critical, 2 warning, 1 unknown.
_REASONS: dict[str, tuple[int, Callable[[Row, Clock, Row], str]]] = {
    "drifted": (3, _drifted),
    "unassigned": (3, _finding("unassigned")),
    "stuck_rebalance": (3, _finding("stuck_rebalance")),
    "loses_data": (3, _loses_data),
    "stopped": (3, _lag(" and nothing committed")),
    "stalled": (3, _lag(" and not moving")),
    "falling_behind": (2, _lag(" and growing")),
    "rewound": (2, _rewound),
    "ahead": (2, lambda g, c, s: "commits lie beyond the end of the log"),  # noqa: ARG005
    "may_lose_data": (2, _loses_data),
    "imbalance": (2, _imbalance),
    "rebalance_storm": (2, _finding("rebalance_storm")),
    "idle_members": (1, _finding("idle_members")),
    "never_committed": (1, _finding("never_committed")),
    "mismatch": (2, _mismatch),
    "not_subscribed": (2, _finding("not_subscribed")),
    "no_such_partition": (2, _finding("no_such_partition")),
    "offsets_blocked": (1, _finding("offsets_blocked")),
    "lag_unknown": (1, lambda g, c, s: f"lag of {number(g['lag_unknown'])} partitions is not known"),  # noqa: ARG005
    "stale_metadata": (1, _finding("stale_metadata")),
    "topic_not_visible": (1, _finding("topic_not_visible")),
    "topic_recreated": (1, _finding("topic_recreated")),
    "split_brain": (3, _finding("split_brain")),
    "doubly_held": (3, _finding("doubly_held")),
    "held_by_nobody": (3, _finding("held_by_nobody")),
    "orderly_not_locked": (3, _finding("orderly_not_locked")),
    "member_lists_differ": (2, _finding("member_lists_differ")),
    "route_differs": (2, _finding("route_differs")),
    "mixed_strategies": (2, _finding("mixed_strategies")),
    "subscriptions_differ": (2, _finding("subscriptions_differ")),
    "duplicate_client_id": (2, _finding("duplicate_client_id")),
    "not_answering": (2, _finding("not_answering")),
    "broker_not_answering": (2, _finding("broker_not_answering")),
}
