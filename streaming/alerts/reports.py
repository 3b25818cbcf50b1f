"""Daily and weekly reports of a team's alerts: a pure function of a span's transitions, the settings, and the time."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from apprise import NotifyType

from streaming.alerts.decisions import TransitionRow
from streaming.alerts.delivery.messages import Message
from streaming.alerts.delivery.wording import Wording
from streaming.alerts.judging.firing import FIRING
from streaming.alerts.routing.hours import latest
from streaming.alerts.rules.rules import SEVERITIES
from streaming.config import Report
from streaming.notes import Mark
from streaming.terminal import age, visible

KIND: Final = "report"
"""Word in the column `rule` of a report's deliveries."""

# A report that could not be made in time (the alerter was down) is made later, but not at noon for the morning before.
_AT_MOST_LATE_MS: Final = 6 * 3_600_000

_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class Due:
    """A report that is to be sent.

    Attributes:
        report: Its settings.
        begin: Begin of its span, ms.
        end: End of it, and when it is due, ms.
        key: Its id.
    """

    report: Report
    begin: int
    end: int
    key: str


def due(reports: Iterable[Report], cluster: str, now: int) -> list[Due]:
    """Reports whose time has come lately (`now` in ms), whether or not they were sent."""
    found = []
    for report in reports:
        days = report.day if report.every == "week" else None
        end = latest(days, report.at, report.time_zone, now)
        if now - end > _AT_MOST_LATE_MS:
            continue
        # (Not 24 hours before: where clocks change, a day has 23 or 25.)
        begin = latest(days, report.at, report.time_zone, end - 1)
        parts = [cluster, report.team, report.every, report.at, sorted(report.day), report.time_zone, end]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
        found.append(Due(report, begin, end, key))
    return found


def report_of(
    one: Due, cluster: str, decided: Sequence[TransitionRow], marks: Sequence[Mark], wording: Wording
) -> Message:
    """The message of a report.

    Args:
        one: Which.
        cluster: The cluster.
        decided: Transitions of the span, and those of alerts that are active at its end, in order.
        marks: Marks of the cluster.
        wording: What messages are made with.
    """
    team = one.report.team
    mine = [d for d in decided if (not team or wording.owner(d) == team) and d.decided < one.end]
    fired = [d for d in mine if d.state == FIRING and d.decided >= one.begin]
    ended = {d.alert_id: d for d in mine if d.closes and d.from_state == FIRING}
    still = [d for d in mine if d.state == FIRING and d.alert_id not in ended]
    word = one.report.every
    about = f"of {team} on {cluster}" if team else f"of {cluster}"
    lines = [f"The last {word} {about}, up to {_local(one.end, one.report.time_zone)}.", ""]
    lines += _by_rule(fired, ended) or ["No alert fired."]
    lines += ["", f"Still firing: {len(still):,}." if still else "Nothing fires now."]
    lines += [f"{d.rule}: {_name(d)}, for {_for(one.end - d.since)}" for d in still[:_NAMED]]
    lines += [f"and {len(still) - _NAMED:,} more"] if len(still) > _NAMED else []
    done = [mark for mark in marks if one.begin <= mark.time < one.end]
    if done:
        lines += ["", "Marks:", *(f"{_local(m.time, one.report.time_zone)} {visible(m.text)}" for m in done[-_NAMED:])]
    page = f"{wording.public_url}/alerts" if wording.public_url else None
    lines += ["", f"page: {page}"] if page else []
    subject = f"{word} {about}: {len(fired):,} alerts, {len(still):,} still firing"
    fields = {"state": "report", "cluster": cluster, "fired": str(len(fired)), "firing": str(len(still))}
    fields |= {"owner": team} if team else {}
    return Message(KIND, subject, "\n".join(lines), NotifyType.INFO, fields, links=(page,) if page else ())


def _by_rule(fired: Sequence[TransitionRow], ended: dict[str, TransitionRow]) -> list[str]:
    by_rule: dict[str, list[TransitionRow]] = defaultdict(list)
    for one in fired:
        by_rule[one.rule].append(one)
    order = sorted(by_rule, key=lambda rule: (-SEVERITIES.index(by_rule[rule][0].severity), -len(by_rule[rule]), rule))
    lines = []
    for rule in order:
        alerts = by_rule[rule]
        named = Counter(_name(one) for one in alerts)
        often = sorted(named.items(), key=lambda item: (-item[1], item[0]))[:3]
        lasted = [(end.time or end.decided) - one.since for one in alerts if (end := ended.get(one.alert_id))]
        longest = f", the longest {_for(max(lasted))}" if lasted else ""
        names = ", ".join(name if number == 1 else f"{name} ({number} times)" for name, number in often)
        more = len(named) - len(often)
        lines.append(
            f"{rule} ({alerts[0].severity}): {len(alerts):,}{longest}: {names}{f' and {more:,} more' * bool(more)}"
        )
    return lines


def _name(one: TransitionRow) -> str:
    return visible(one.group_id if one.group_id is not None else one.cluster, 60)


def _for(ms: int) -> str:
    return age(timedelta(milliseconds=max(0, ms)))


def _local(ms: int, zone: str) -> str:
    at = datetime.fromtimestamp(ms / 1000, UTC).astimezone(ZoneInfo(zone))
    return f"{at:%a %Y-%m-%d %H:%M} {at.tzname()}"
