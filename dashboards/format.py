"""Numbers, times and names as people read them, and the one sentence that says what is wrong with a group.

Pure functions over the queries' rows; they return text, never markup. The module is long because every board takes its
wording from here.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from streaming.terminal import age
from streaming.terminal import counted as counted  # noqa: PLC0414 - exported by this alias

_T = TypeVar("_T")
_P = ParamSpec("_P")

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
    "standby_beside_active": "with a standby beside their own active task",
    "not_in_topology": "of no subtopology",
}


def known(say: Callable[Concatenate[_T, _P], str]) -> Callable[Concatenate[_T | None, _P], str]:
    """Let a function that says a value show a dash for None."""

    @wraps(say)
    def shown(value: _T | None, /, *more: _P.args, **named: _P.kwargs) -> str:
        if value is None:
            return DASH
        return say(value, *more, **named)

    return shown


@known
def time(moment: datetime, *, exact: bool = True) -> str:
    """A time of day, to the second or to the minute, as a mark that `markup.said` turns into `<time>`; or a dash.

    The browser knows the viewer's zone, the server does not: so one rendering serves all viewers. A mark is two private
    characters around the time; `visible` escapes those in names, so no name can pass for one.
    """
    return f"\ue000{int(moment.timestamp() * 1000)}{'s' if exact else 'm'}\ue001"


def whole(moment: datetime | None) -> str:
    """The full moment as text, in UTC: the browser adds the viewer's own."""
    if moment is None:
        return ""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@known
def ago(moment: datetime, now: datetime) -> str:
    """For how long until now: "3 min"; 0 s for a time that is still to come."""
    return age(max(timedelta(0), now - moment))


@dataclass(frozen=True, slots=True)
class Clock:
    """How sentences of one rendering say for how long something has been so.

    Attributes:
        now: Time of the rendering.
        past: How far back the tables in memory go.
    """

    now: datetime
    past: timedelta = timedelta(hours=24)

    def since(self, moment: datetime | None) -> str:
        """Part of a sentence: " since 14:03", or for how long if it began before the rows in memory (leading space)."""
        if moment is None:
            return ""
        if self.now - moment > self.past - timedelta(minutes=10):
            return f" for over {age(self.past - timedelta(minutes=10))}"
        return f" since {time(moment, exact=False)}"

    def at_least(self, moment: datetime | None) -> str:
        """Part of a sentence: " for at least 3 min", with a space before."""
        if moment is None:
            return ""
        return f" for at least {age(self.now - moment)}"


@known
def number(value: float) -> str:
    """A count: "12,400"."""
    return f"{value:,.0f}"


@known
def ratio(value: float) -> str:
    """An imbalance: "1.50"; "0" if it rounds to nothing."""
    if abs(value) < 0.005:
        return "0"
    return f"{value:.2f}"


@known
def rate(value: float) -> str:
    """Something per second: "0", "<0.1", "0.4", "12", "1,240"."""
    if 0 < value < 0.05:
        return "<0.1"
    if 0 < value < 9.95:
        return f"{value:.1f}"
    return f"{value:,.0f}"


@known
def percent(share: float) -> str:
    """A part of 1: "0 %", "<1 %", "42 %"."""
    if 0 < share < 0.005:
        return "<1 %"
    return f"{share:.0%}".replace("%", " %")


@known
def seconds(value: float) -> str:
    """Seconds of a cost: "0.4", "12", "1,240"."""
    if value < 10:
        return f"{value:.1f}"
    return f"{value:,.0f}"


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
    said = None if low is None else say(low), None if high is None else say(high)
    span = _from_to(*said)
    if low is None or high is None or said[0] == said[1] or high > _AGREE * low:
        return span
    return f"about {say(math.sqrt(low * high))} ({span})"


def _from_to(low: str | None, high: str | None) -> str:
    if high is None:
        if low is None:
            return DASH
        return f"{low} or more"
    if low is None:
        return f"up to {high}"
    if low == high:
        return high
    return f"{low} to {high}"


@known
def size(count: float) -> str:
    """Bytes as people read them: "1.3 MB"."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            if unit == "B" or value >= 100:
                return f"{value:.0f} {unit}"
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def bounds(low: float | None, high: float | None) -> str:
    """A span that is known by its bounds, in s: "12 s", "40 s to 3 min", "12 s or more"."""
    ends = (None if value is None else age(timedelta(seconds=value)) for value in (low, high))
    return _from_to(*ends)


def behind(low: float | None, high: float | None) -> str:
    """The time that an oldest unread record has waited, as bounds in s; "0 s" where none waits."""
    if (low, high) != (None, None) and not low and not high:
        return "0 s"
    return bounds(low, high)


def visible(name: str) -> str:
    """A name with escapes for its invisible characters: control characters, and those that reverse the text."""
    if name.isprintable():
        return name  # A name can have 32 KB, and every refresh shows it again.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def cut(name: str, most: int = _CUT_AT) -> str:
    """A visible name of at most `most` characters, cut in the middle: names differ at their beginnings and ends."""
    # A name can have 32 KB: only its ends are escaped.
    is_long = len(name) > 2 * most
    shown = visible(name[:most] + name[-most:] if is_long else name)
    if len(shown) <= most and not is_long:
        return shown
    head = (most - 1) // 2
    return f"{shown[:head]}…{shown[-(most - 1 - head) :]}"


def names(given: Sequence[str] | None, most: int = 20) -> str:
    """Names as one text, of very many the first: "a, b and 3 more"."""
    listed = given or ()
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


DIGEST: Final = "sha256:"
"""How a digest begins that stands for a name in links."""


def key_of(name: str) -> str:
    """A name as used in links: the name itself, or a digest if it is too long or a path would swallow it."""
    if len(name) <= _LINK_AT and name not in {".", ".."}:
        return name
    return f"{DIGEST}{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


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
    return [
        Reason(_HEALTH[problem], _SAID.get(problem, _finding)(problem, group, clock, since or {}))
        for problem in group["problems"].split()
        if problem in _HEALTH
    ]


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

_KINDS_SAID = {
    "became_empty": "the group became empty",
    "migration": "moved to another protocol",
    "created": "first decision seen",
}

# Causes that the other columns of a decision do not show.
_CAUSES = {
    "subscription_changed": "other topics subscribed",
    "partitions_changed": "another partition count",
    "strategy_changed": "another strategy",
    "settings_changed": "other settings of the assignor",
    "rejoined": "the same members joined again",
    "coordinator_moved": "the group's coordinator was elected again",
    "broker_down": "a broker is down",
    "broker_up": "a broker came up",
    "name_server_differs": "a name server lists other queues",
    "member_lists_changed": "brokers list other members",
    "settled": "members rebalance by themselves, every 20 s",
}


def cause(decision: Row) -> str:
    """Cause of a rebalance, as far as the log shows it: who joined, left, was replaced."""
    kind, causes = decision["kind"], {found["cause"] for found in decision.get("causes") or ()}
    if kind == "static_replacement":
        return "a static member came back, no rebalance"
    said = [f"{len(decision[names])} {names}" for names in ("joined", "left", "replaced") if decision[names]]
    if kind in _KINDS_SAID or decision["joined"] is None:
        said.append(_KINDS_SAID.get(kind, "first decision seen"))
    if decision["follows"] is not None:
        # With an eager strategy all partitions are given up at once, so pending ones can only stem from a migration.
        eager = decision.get("strategy") in _EAGER
        said.append(
            "hands over what the migration before it left" if eager else "second half of a cooperative rebalance"
        )
    said += [text for word, text in _CAUSES.items() if word in causes]
    said = said or ["same members: subscription or metadata changed, or a member asked for it"]
    if decision["generations_skipped"]:
        skipped = decision["generations_skipped"]
        # The broker makes no target for an epoch that the next one overtakes.
        of_broker = decision.get("protocol_type") in {"share", "streams"}
        noun, lacks = ("epoch", "had no target") if of_broker else ("generation", "left no record")
        said.append(f"{counted(skipped, noun)} before it {lacks}")
    return ", ".join(said)


def verdict(name: str, basis: str | None) -> str:
    """A verdict as a word, with its basis: "drifted (promise)"."""
    return name.replace("_", " ") + (f" ({basis})" if basis else "")


def unit(row: Row) -> str:
    """What the members of a group own, by a row with what is known of its type, protocol, strategy and assignor."""
    told = {row.get(name) for name in ("group_type", "protocol_type", "strategy", "nearest_library")}
    if told.isdisjoint({"streams", "stream", "connect"}):
        return "partition"
    return "task"


_TYPES = {"share": "share group", "streams": "streams group", "consumer": "consumer group", "rocketmq": "RocketMQ"}


def group_type(row: Row) -> str:
    """A group's type in words: what Kafka calls it, and for the classic protocol what its members are."""
    if row.get("group_type") in {None, "classic"} and row.get("protocol_type") not in {None, "", "consumer"}:
        return f"classic, {cut(row['protocol_type'], 20)}"
    return _TYPES.get(row["group_type"] or "", row["group_type"] or DASH)


def _drifted(_problem: str, group: Row, clock: Clock, since: Row) -> str:
    sizes = group["partitions"], group["assigned_partitions"]
    noun = unit(group)
    of = f"{number(sizes[0] or sizes[1] if noun == 'partition' else sizes[1] or sizes[0])} {noun}s"
    kinds = Counter(item["kind"] for item in group["drifted_partitions"] or ())
    when = clock.since(since.get("drifted_since") or group["last_decision_time"])
    if not kinds:
        return f"{number(group['drifted_count'])} of {of} with the wrong owner{when}"
    if len(kinds) == 1:
        [(kind, count)] = kinds.items()
        return f"{number(count)} of {of} {_KINDS.get(kind, kind)}{when}"
    parts = ", ".join(f"{number(count)} {_KINDS.get(kind, kind)}" for kind, count in kinds.most_common())
    return f"of {of} {parts}{when}"


def _finding(problem: str, group: Row, clock: Clock, _since: Row) -> str:
    found = next((finding for finding in group["findings"] or () if finding["finding"] == problem), None)
    if found is None:
        return problem.replace("_", " ")
    return _with_its_beginning(found, clock)


def _with_its_beginning(finding: Row, clock: Clock) -> str:
    # Set apart, because a detail may end in figures of its own: "usually about 11.7 a day · since 14:03".
    since = clock.since(finding["since"])
    return visible(finding["detail"]) + (f" ·{since}" if since else "")


def _rewound(problem: str, group: Row, clock: Clock, since: Row) -> str:
    return f"{_finding(problem, group, clock, since)}, lag {number(group['lag_total'])}"


def _lag(problem: str, group: Row, clock: Clock, since: Row) -> str:
    return f"lag {number(group['lag_total'])} and {_MOVES[problem]}{clock.at_least(since.get('lag_since'))}"


def _imbalance(_problem: str, group: Row, _clock: Clock, _since: Row) -> str:
    return f"imbalance {ratio(group['imbalance'])}, could be {ratio(group['imbalance_optimal'])}"


def _mismatch(_problem: str, group: Row, _clock: Clock, _since: Row) -> str:
    return f"runs {cut(group['strategy'] or 'no strategy')}, should run {cut(group['expected_strategy'] or '')}"


def _loses_data(_problem: str, group: Row, _clock: Clock, _since: Row) -> str:
    place = f"{cut(group['loses_data_topic'] or '')} {group['loses_data_partition']}"
    low, high = group["loses_data_in_seconds_min"], group["loses_data_in_seconds_max"]
    when = "has ended" if not high else f"ends in {bounds(low, high)}"
    said = f"the retention of unread records of {place} {when}: they may be deleted any time from then on"
    if group["loses_data_by"] == "append_time":
        return said
    return f"{said} (by the producers' timestamps)"


_MOVES = {"stopped": "nothing committed", "stalled": "not moving", "falling_behind": "growing"}

_SAID: dict[str, Callable[[str, Row, Clock, Row], str]] = {
    "drifted": _drifted,
    "rewound": _rewound,
    **dict.fromkeys(_MOVES, _lag),
    **dict.fromkeys(("loses_data", "may_lose_data"), _loses_data),
    "imbalance": _imbalance,
    "mismatch": _mismatch,
    "ahead": lambda *_: "commits lie beyond the end of the log",
    "lag_unknown": lambda _problem, group, *_: f"lag of {number(group['lag_unknown'])} partitions is not known",
}
"""How a problem is said; all others are findings, which say it themselves."""

_CRITICAL = (
    "drifted", "unassigned", "stuck_rebalance", "loses_data", "stopped", "stalled", "split_brain", "doubly_held",
    "held_by_nobody", "orderly_not_locked", "missing_topics", "wrong_partition_counts",
    "topology_not_ready", "doubly_owned",
)  # fmt: skip
_WARNING = (
    "falling_behind", "rewound", "ahead", "may_lose_data", "imbalance", "rebalance_storm", "mismatch", "not_subscribed",
    "no_such_partition", "member_lists_differ", "route_differs", "mixed_strategies", "subscriptions_differ",
    "duplicate_client_id", "not_answering", "broker_not_answering", "redelivering", "stuck_deliveries",
    "records_given_up", "standby_beside_active", "long_warmup", "assignment_error", "worker_behind",
)  # fmt: skip
_UNKNOWN = (
    "idle_members", "never_committed", "offsets_blocked", "lag_unknown", "stale_metadata", "topic_not_visible",
    "topic_recreated",
)  # fmt: skip

_HEALTH = {**dict.fromkeys(_CRITICAL, 3), **dict.fromkeys(_WARNING, 2), **dict.fromkeys(_UNKNOWN, 1)}
"""Problems as groups.sql has them: 3 critical, 2 warning, 1 unknown."""
