"""A week of made history with known incidents: what was delivered to whom, how often, and how late.

**What a person would have wanted** was written down before the alerter was asked (`WANTED`):

| when (UTC) | what happens | who should get a message |
|---|---|---|
| Tue 10:00 to 10:25 | pay-checkout is behind (critical) | pager and payments' chat within a minute; its end once |
| Tue 23:10 to 23:40 | search-index is uneven (warning) | nobody: it is night, and over by morning |
| Wed 02:00 to 12:00 | search-index is uneven | search's chat at 07:00, when the night is over; its end at noon |
| Wed 22:05 to 22:40 | brokers are patched: 40 groups are behind | nobody: it was announced, and is over by its end |
| Thu 09:00 to 09:30 | pay-billing is deployed: marked, and muted for half an hour; it drifts for a quarter | nobody |
| Thu 09:10 to 09:50 | pay-ledger drifts | pager and chat at once, with the deploy of its neighbour in the message |
| Thu 15:00 to 15:20 | 60 groups of nobody are behind at once | the operators' chat: one message, and one for the end |
| Fri 11:00 to 20:00 | pay-checkout drifts, and nobody acts | pager and chat at once, and again every four hours |
| Sat 03:00 to 03:20 | no rounds come | pager and operators within two minutes, at night as well; the end |
| Sun 12:00 to 14:00 | pay-refund is uneven; the chat answers 429, 500, and is down | the chat, once, when it is back |

The log target, a program, gets each alert that was not announced or muted away. Nothing else is sent to anybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streaming.alerts.delivery.messages import RECORDS, Message
from streaming.config import Owner
from streaming.notes import Mark, Mute, write_note
from tests.alerts.build import DRIFT, START, UNEVEN
from tests.alerts.living import Living, drifted

pytestmark = [pytest.mark.nightly, pytest.mark.turn(6)]

MONDAY = datetime(2027, 1, 18, tzinfo=UTC)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun", "next mon")

LAG = """\
  - name: lag
    view: group_health_current
    when: lag_status = 'stalled'
    for: 2 rounds
    severity: critical
    message: "{group_id} is stalled"
"""

SILENCE = """\
  - name: silence
    view: rounds_current
    when: silent_s > 30
    severity: critical
    targets: [pager, ops]
    message: "{cluster} is silent"
"""

# Who gets which message, at what time, and how late it may be (minutes).
WANTED = (
    ("pager", "tue 10:00", "[firing] lag: pay-checkout (critical)", 1),
    ("pager", "tue 10:25", "[resolved] lag: pay-checkout (critical)", 1),
    ("pay", "tue 10:00", "[firing] lag: pay-checkout (critical)", 1),
    ("pay", "tue 10:25", "[resolved] lag: pay-checkout (critical)", 1),
    ("search", "wed 07:00", "[firing] uneven: search-index (warning)", 1),
    ("search", "wed 12:00", "[resolved] uneven: search-index (warning)", 1),
    ("pager", "thu 09:10", "[firing] drift: pay-ledger (critical)", 1),
    ("pager", "thu 09:50", "[resolved] drift: pay-ledger (critical)", 1),
    ("pay", "thu 09:10", "[firing] drift: pay-ledger (critical)", 1),
    ("pay", "thu 09:50", "[resolved] drift: pay-ledger (critical)", 1),
    ("ops", "thu 15:00", "[firing] lag: 60 alerts (critical)", 1),
    ("ops", "thu 15:20", "[resolved] lag: 60 alerts (critical)", 1),
    ("pager", "fri 11:00", "[firing] drift: pay-checkout (critical)", 1),
    ("pager", "fri 15:00", "[firing] drift: pay-checkout (critical)", 1),
    ("pager", "fri 19:00", "[firing] drift: pay-checkout (critical)", 1),
    ("pager", "fri 20:00", "[resolved] drift: pay-checkout (critical)", 1),
    ("pay", "fri 11:00", "[firing] drift: pay-checkout (critical)", 1),
    ("pay", "fri 15:00", "[firing] drift: pay-checkout (critical)", 1),
    ("pay", "fri 19:00", "[firing] drift: pay-checkout (critical)", 1),
    # At 20:00 the chat's quiet hours begin. Critical alerts pass, and people who got one want its end.
    ("pay", "fri 20:00", "[resolved] drift: pay-checkout (critical)", 1),
    ("pager", "sat 03:00", "[firing] silence: c (critical)", 2),
    ("pager", "sat 03:20", "[resolved] silence: c (critical)", 1),
    ("ops", "sat 03:00", "[firing] silence: c (critical)", 2),
    ("ops", "sat 03:20", "[resolved] silence: c (critical)", 1),
    ("pay", "sun 12:00", "[firing] uneven: pay-refund (warning)", 60),
    ("pay", "sun 14:00", "[resolved] uneven: pay-refund (warning)", 1),
)


def _at(text: str) -> int:
    """A moment of the week, ms: "tue 10:00"."""
    day, _, clock = text.rpartition(" ")
    hours, minutes = clock.split(":")
    span = timedelta(days=DAYS.index(day), hours=int(hours), minutes=int(minutes))
    return round((MONDAY + span).timestamp() * 1000)


class Week:
    """The week as it happens."""

    def __init__(self, folder: Path) -> None:
        self.living = Living(
            folder, DRIFT, UNEVEN, LAG, SILENCE,
            targets=("pager", "pay", "search", "ops", "log"),
            reads={"log": RECORDS},
            owners=(Owner(team="payments", groups=("/^pay-/",)), Owner(team="search", groups=("/^search-/",))),
            routes=[
                {"targets": ["log"], "continue": True},
                {"owners": ["payments"], "severities": ["critical"], "targets": ["pager", "pay"]},
                {"owners": ["payments"], "targets": ["pay"]},
                {"owners": ["search"], "targets": ["search"]},
                {"targets": ["ops"]},
            ],
            longest_retry_ms=1_000,
        )  # fmt: skip
        self.living.wall_ms = _at("mon 08:30")
        root, hour = self.living.writer.root, 3_600_000
        night, patch = _at("mon 20:00"), _at("wed 22:00")
        for mute in (
            Mute("n", "c", "severity", "warning", "night", "ann@host", night, night + 11 * hour, 24 * hour),
            Mute("p", "c", "group", "/./", "brokers are patched", "ann@host", patch, patch + hour, 7 * 24 * hour),
        ):
            write_note(root, mute, _at("mon 08:30"))
        self.living.start()

    def round(self, when: str, seconds: int = 0, **tables: list[dict[str, Any]]) -> None:
        self.living.round((_at(when) - START) // 10_000 + seconds // 10, **tables)

    def rounds(self, when: str, **tables: list[dict[str, Any]]) -> None:
        """A round with rows, and the next ones without news: what fires for two rounds has fired then."""
        self.round(when, **tables)
        for seconds in (10, 20, 30):
            self.round(when, seconds)

    def told(self) -> list[tuple[int, str, Message]]:
        """All messages to people: time in ms, target, message."""
        found = []
        for name, inbox in self.living.inboxes.items():
            if name != "log":
                found += [(round(START + minute * 60_000), name, message) for minute, message in inbox.messages]
        return sorted(found, key=lambda one: one[:2])


def _behind(*groups: str, status: str = "stalled") -> list[dict[str, Any]]:
    return [{"group_id": group, "lag_status": status} for group in groups]


def _uneven(group: str, imbalance: float) -> list[dict[str, Any]]:
    return [{"group_id": group, "imbalance": imbalance}]


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Week]:
    week = Week(tmp_path_factory.mktemp("week"))
    many, patched = [f"job-{n}" for n in range(60)], [f"pay-{n}" for n in range(40)]
    week.rounds("mon 08:30")

    week.rounds("tue 10:00", group_health=_behind("pay-checkout"))
    week.rounds("tue 10:25", group_health=_behind("pay-checkout", status="ok"))
    week.rounds("tue 23:10", group_health=_uneven("search-index", 2.0))
    week.rounds("tue 23:40", group_health=_uneven("search-index", 0.0))
    week.rounds("wed 02:00", group_health=_uneven("search-index", 2.0))
    week.rounds("wed 07:00")
    week.rounds("wed 12:00", group_health=_uneven("search-index", 0.0))
    week.rounds("wed 22:05", group_health=_behind(*patched))
    week.rounds("wed 22:40", group_health=_behind(*patched, status="ok"))
    week.rounds("wed 23:00")

    week.round("thu 09:00")
    root, now = week.living.writer.root, round(week.living.wall_ms)
    write_note(root, Mark("k", "c", "deploy of pay-billing 4.2", None, "ann@host", now), now)
    write_note(root, Mute("m", "c", "group", "pay-billing", "the deploy", "ann@host", now, now + 1_800_000), now)
    week.rounds("thu 09:05", drift=drifted("pay-billing"))
    week.rounds("thu 09:10", drift=drifted("pay-ledger"))
    week.rounds("thu 09:20", drift=drifted("pay-billing", verdict="identical"))
    week.rounds("thu 09:30")
    week.rounds("thu 09:50", drift=drifted("pay-ledger", verdict="identical"))
    week.rounds("thu 15:00", group_health=_behind(*many))
    week.living.start()  # a rolling update
    week.living.poll()
    week.rounds("thu 15:20", group_health=_behind(*many, status="ok"))

    week.rounds("fri 11:00", drift=drifted("pay-checkout"))
    for hour in (15, 19):
        week.rounds(f"fri {hour}:00")
    week.rounds("fri 20:00", drift=drifted("pay-checkout", verdict="identical"))

    week.round("sat 03:00")
    for seconds in (20, 40, 60, 300, 900):
        week.living.poll(_at("sat 03:00") + seconds * 1_000)
    week.rounds("sat 03:20")
    week.rounds("sat 07:00")

    week.living.inboxes["pay"].fails = ["HTTP 429 Too Many Requests", "HTTP 500", "it could not be reached"]
    week.rounds("sun 12:00", group_health=_uneven("pay-refund", 2.0))
    week.rounds("sun 14:00", group_health=_uneven("pay-refund", 0.0))
    week.rounds("next mon 08:00")
    week.rounds("next mon 09:00")
    yield week
    week.living.stop()


def test_everybody_was_told_what_they_would_have_wanted_once_and_in_time_and_nobody_anything_else(week: Week) -> None:
    left = list(week.told())
    missing, late = [], []
    for target, when, title, within in WANTED:
        found = next(
            (one for one in left if one[1] == target and one[2].title.startswith(title) and one[0] >= _at(when)), None
        )
        if found is None:
            missing.append((target, when, title))
            continue
        left.remove(found)
        if found[0] > _at(when) + within * 60_000:
            late.append((target, when, title, (found[0] - _at(when)) / 60_000))
    assert missing == []
    assert late == []
    assert [(target, message.title, _said(at)) for at, target, message in left] == []


def test_a_message_beside_a_deploy_names_it(week: Week) -> None:
    (message,) = (m for _, t, m in week.told() if t == "pager" and m.title == "[firing] drift: pay-ledger (critical)")
    assert "before: mark 9 min earlier: deploy of pay-billing 4.2 (ann@host)" in message.body


def test_no_transition_is_hidden_by_what_held_its_message_back(week: Week) -> None:
    rows = week.living.writer.transitions()
    fired = [row for row in rows if row["state"] == "firing"]
    assert len(fired) == 1 + 2 + 40 + 2 + 60 + 1 + 1 + 1
    assert {row["group_id"] for row in fired} >= {"pay-billing", "pay-39", "search-index", "job-59"}


def test_a_program_got_every_alert_that_was_neither_announced_nor_muted(week: Week) -> None:
    sent = [message.fields for _, message in week.living.inboxes["log"].messages]
    fired = [one.get("group_id", "") for one in sent if one["state"] == "firing"]
    assert sorted(set(fired)) == sorted(
        {"pay-checkout", "search-index", "pay-ledger", "pay-refund", *(f"job-{n}" for n in range(60))}
    )
    assert len([one for one in sent if one["state"] == "firing"]) == len(
        {one["id"] for one in sent if one["state"] == "firing"}
    )


def _said(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{moment:%a %H:%M}"
