"""Alerts: what fires, what fired, what was sent where, the rules behind it; and what people left: mutes and marks.

A board whose address has a range gets the marks of that time below its content (`marks.html.j2`); `charts.js` draws
them from there, so that no chart need know of them.

The rules are texts to show, from the file that the alerter reads, which checks them; here not.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, NotThereError, View, name_of
from dashboards.spans import MINUTE
from streaming.config import SHIPPED_RULES, Thresholds, owner_of, read_rules_file, rules_file
from streaming.exceptions import EvenkeelError
from streaming.notes import Mute, muting, note_of
from streaming.terminal import age
from streaming.times import epoch_ms

_THRESHOLD: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")

_TEXTS: Final = ("name", "severity", "view", "when", "for", "value", "message", "keep")


RuleText = Mapping[str, Any]
"""One rule as texts by the names of the file, "" for what it does not say. Beside them `enabled`; `labels` as pairs of
name and template; `thresholds`, those in condition and value with their numbers, None for one that the file lacks."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The content of a rules file.

    Attributes:
        rules: In the order of the file.
        shipped: Whether it is the file that comes with Evenkeel.
        problem: Why it cannot be read, in one sentence; None when it can.
    """

    rules: tuple[RuleText, ...]
    shipped: bool
    problem: str | None = None


def read_rules(file: Path | None = None) -> Rules:
    """The rules of now.

    Args:
        file: The file; None finds it as the alerter does.
    """
    try:
        file = file or rules_file()
        return Rules(rules_of(read_rules_file(file), file), shipped=file == SHIPPED_RULES)
    except (EvenkeelError, OSError) as error:
        return Rules((), shipped=False, problem=f"The alert rules cannot be read: {error}")


def rules_of(content: Mapping[str, Any], file: Path) -> tuple[RuleText, ...]:
    """The rules in the content of a file; what is no rule is left out.

    Raises:
        SetupError: The thresholds are wrong.
    """
    thresholds = Thresholds.of(content.get("thresholds"), file).by_name()
    listed = content.get("rules")
    given = [rule for rule in (listed if isinstance(listed, list) else []) if isinstance(rule, dict)]
    return tuple(_as_text(rule, thresholds) for rule in given)


def _as_text(given: Mapping[Any, Any], thresholds: Mapping[str, float]) -> RuleText:
    texts = {name: _text(given.get(name)) for name in _TEXTS}
    labels, per = given.get("labels"), given.get("per")
    labels = labels if isinstance(labels, dict) else {}
    return texts | {
        "enabled": given.get("enabled") is not False,
        "labels": [(_text(k), _text(v)) for k, v in sorted(labels.items(), key=str)],
        "per": ", ".join(map(_text, per)) if isinstance(per, list) else "",
        "thresholds": [
            (name, thresholds.get(name))
            for name in dict.fromkeys(_THRESHOLD.findall(f"{texts['when']} {texts['value']}"))
        ],
    }


def _text(given: object) -> str:
    # YAML reads `when: true` as a boolean.
    if given is None:
        return ""
    if isinstance(given, bool):
        return str(given).lower()
    return str(given).strip()


_SEVERITIES: Final = {"critical": 3, "warning": 2, "info": 1}
"""The signs of severities, as the numbers of `HEALTH`."""

# Rows of a table; the newest are what people look for, the rest is counted.
_SHOWN: Final = 100
_MOST: Final = 2_000

# Enough alerts on another board to see the gravest; its groups show the rest.
_GRAVEST: Final = 5

# More lines in one chart hide what they are to explain.
_MOST_MARKS: Final = 50

_OUTCOMES: Final[Mapping[str, tuple[str, str]]] = {
    "delivered": ("delivered", ""),
    "failed": ("failed, will be tried again", "warn"),
    "given_up": ("given up", "bad"),
    "skipped": ("not sent", "quiet"),
    "held": ("held back", "quiet"),
}
"""Words and style by the column `outcome`."""


def _alerts(view: View) -> Mapping[str, Any]:
    severity = view.address.one_of("severity", _SEVERITIES)
    now, file = view.rows("alert_states", rule=None), read_rules(view.rules_file)
    names = {rule["name"] for rule in file.rules}
    targets = view.rows("targets")
    return {
        **_panels(view, now, None, severity),
        "severities": view.chips("severity", _SEVERITIES),
        "targets": sorted(targets, key=lambda row: (-row["failed"], -row["given_up"], row["target"], row["cluster"])),
        "rules": file.rules,
        "counts": Counter((row["rule"], row["state"]) for row in now),
        "unlisted": sorted({row["rule"] for row in now if row["rule"] and row["rule"] not in names}),
        "shipped": file.shipped,
        "problem": file.problem or "",
    }


def _rule(view: View) -> Mapping[str, Any]:
    name, file = view.address.path[1], read_rules(view.rules_file)
    rule = next((rule for rule in file.rules if rule["name"] == name), None)
    panels = _panels(view, view.rows("alert_states", rule=name), name, "")
    known = rule is not None or panels["history"] or view.unread
    if not known and not view.rows("alert_states", cluster=None, rule=name):
        message = f"No alert rule is called {words.cut(name, 120)}, and no alert of that name is in the tables."
        raise NotThereError(message)
    return {**panels, "name": name, "rule": rule, "problem": file.problem or ""}


def _panels(view: View, now: Sequence[Row], rule: str | None, severity: str) -> dict[str, Any]:
    """What both boards show: alerts of now and of a time, and their deliveries. Of each, as many as are shown."""
    asked: dict[str, Any] = {"rule": rule, "most": _MOST}
    found: dict[str, Sequence[Row]] = {
        "firing": [row for row in now if row["state"] == "firing"],
        "pending": [row for row in now if row["state"] == "pending"],
        "history": view.rows("alert_history", view.span, **asked),
        "attempts": view.rows("deliveries", view.span, **asked),
        "owed": view.rows("owed", **asked),
    }
    wanted = {
        name: [row for row in rows if not severity or row["severity"] == severity] for name, rows in found.items()
    }
    return {
        **{name: rows[:_SHOWN] for name, rows in wanted.items()},
        "number": {name: _count(len(rows)) for name, rows in wanted.items()},
        "fires": {row["alert_id"] for row in wanted["firing"]},
        "muted": muted(wanted["firing"][:_SHOWN], view),
        "mutes": [row for row in _holding(view) if rule is None or (row["kind"], row["name"]) == ("rule", rule)],
        "severity_of": _SEVERITIES,
        "place": place_of,
        "lasted": lasted,
        "outcomes": _OUTCOMES,
        "shown": _SHOWN,
    }


def _count(rows: int) -> str:
    if rows < _MOST:
        return words.number(rows)
    return f"{words.number(rows)} or more"


def lasted(row: Row) -> str:
    """For how long an alert was true, from its first round to its end; "" while it has no end."""
    if row["since"] is None or row["ended_time"] is None:
        return ""
    # The ends of two rounds by a broker's clock, which may have been set back.
    return age(max(timedelta(0), row["ended_time"] - row["since"]))


def place_of(row: Row) -> str:
    """Topic and partition of an alert, with the broker where each broker numbers its own (RocketMQ); "" for neither."""
    topic = row.get("topic")
    if topic is None:
        return ""
    # Only the key has the broker, and only some of the queries have the key.
    broker = json.loads(row.get("entity") or "{}").get("broker")
    known = "/".join(str(part) for part in (broker, row["partition"]) if part is not None)
    if known:
        return f"{topic} {known}"
    return str(topic)


def firing(view: View, group: Row | None) -> dict[str, Any]:
    """Values of the macro `firing`: the gravest alerts of one group or of all."""
    rows = view.rows("alerts", **({} if group is None else name_of(group)))
    return {
        "number": len(rows),
        "with_group": group is None,
        "rows": rows[:_GRAVEST],
        "muted": muted(rows[:_GRAVEST], view),
        "severity_of": _SEVERITIES,
    }


def muted(rows: Iterable[Row], view: View) -> Mapping[str, str]:
    """By `alert_id`, why nobody is sent an alert now: of rows with cluster, rule, severity and group_id."""
    held, ms = [note_of(Mute, row) for row in _holding(view)], epoch_ms(view.now)
    found = {}
    for row in rows if held else ():
        group, here = row["group_id"], [one for one in held if one.cluster == row["cluster"]]
        owner = owner_of(group, view.owners)
        holding = muting(here, ms, row["rule"] or "", row["severity"] or "", group, owner)
        if holding is not None:
            mute, until = holding
            left = age(timedelta(milliseconds=until - ms))
            found[row["alert_id"]] = f"muted for {left} more: {mute.reason} ({mute.made_by})"
    return found


def marks(view: View) -> list[dict[str, Any]]:
    """Marks of the time that a board shows, the oldest first: of the group that its address names, or of all."""
    path = view.address.path
    group = path[1] if len(path) > 1 and path[0] == "groups" else None
    span = view.span.whole(MINUTE)
    rows = view.lake.ask(
        "marks",
        {"cluster": view.cluster, "group_id": group, "since": span.begin, "until": span.end, "most": _MOST_MARKS},
    )
    return rows[::-1]


def _holding(view: View) -> list[Row]:
    """Mutes that hold now, each with the end of this time as `until_time`."""
    begun = (
        row for row in view.rows("mutes") if None not in (row["kind"], row["name"], row["from_time"], row["until_time"])
    )
    holding = ((row, note_of(Mute, row).holds_until(epoch_ms(view.now))) for row in begun)
    return [
        {**row, "until_time": datetime.fromtimestamp(until / 1000, UTC)} for row, until in holding if until is not None
    ]


ALERTS = Board(
    path=("alerts",),
    template="alerts.html.j2",
    fill=_alerts,
    title="Alerts · Evenkeel",
    word="Alerts",
    parameters=TIMES | {"severity"},
    span="24h",
)

RULE = Board(
    path=("alerts", "{rule}"),
    template="rule.html.j2",
    fill=_rule,
    title="{rule} · Evenkeel",
    parameters=TIMES,
    span="24h",
)
