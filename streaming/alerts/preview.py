"""`evenkeel alert --preview`: the message of a rule as each target would get it now, and why one would not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streaming.alerts.circumstances import Happened
from streaming.alerts.decisions import transition_of
from streaming.alerts.delivery.alertmanager import AlertmanagerTarget
from streaming.alerts.delivery.messages import Message, message_of
from streaming.alerts.delivery.targets import DeliveryTarget
from streaming.alerts.judging.itself import PASSING, one_line
from streaming.alerts.outgoing import wording_of
from streaming.alerts.routes import Routing
from streaming.alerts.rules.expressions import fill, placeholders
from streaming.alerts.rules.rules import Rule
from streaming.alerts.transitions import FIRING, TransitionRow
from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.notes import NoteBook
from streaming.tables import LakeReader
from streaming.terminal import printable, visible

_NEWEST: Final = """
SELECT * FROM alerts
WHERE cluster = $cluster AND rule = $rule AND state = 'firing' AND ($group IS NULL OR group_id = $group)
ORDER BY decided_time DESC, transition_id LIMIT 1
"""


def preview(
    settings: Settings,
    rules: Sequence[Rule],
    targets: Mapping[str, DeliveryTarget | AlertmanagerTarget],
    name: str,
    group: str | None,
    now: int,
    say: Callable[[str], None],
) -> None:
    """Print the message of a rule for each target, about its newest alert, or about one that is made up.

    Args:
        settings: All settings.
        rules: The rules.
        targets: The targets by name; nothing is sent.
        name: The rule.
        group: The group; None for any.
        now: The time, ms.
        say: Prints a text of several lines.

    Raises:
        SetupError: There is no such rule.
        LakeUnreadableError: The lake cannot be read.
    """
    rule = next((rule for rule in rules if rule.name == name), None)
    if rule is None:
        message = f"There is no rule {visible(name)}: the rules are {', '.join(one.name for one in rules)}."
        raise SetupError(message)
    decided = _newest(settings, rule, group)
    if decided is None:
        decided = _made_up(settings, rule, group, now)
        say(f"No alert of the rule {rule.name} is in the tables: what it would say is made up, with … for its numbers.")
    book = NoteBook(settings.lake, settings.cluster)
    try:
        mutes, marks = book.mutes(), book.marks()
        (decided,) = Happened(settings.lake, settings.cluster).with_circumstances([decided], marks)
    except PASSING as error:
        say(f"Mutes, marks and what preceded the alert cannot be read: {one_line(error)}.")
        mutes = ()
    wording = wording_of(settings, rules)
    routing = Routing.of(settings.alerts, settings.owners, targets, {one.name: one.route for one in rules})
    message_now = message_of(decided, wording=wording)
    if not targets:
        say(f"There is no target. The message:\n\n{_plain(message_now)}")
    chosen = routing.targets_of(decided)
    for target_name, target in targets.items():
        if target_name not in chosen:
            say(f"== {target_name}: not sent, it is routed to {', '.join(chosen) or 'nobody'}")
            continue
        hold = routing.hold(decided, now, mutes)
        held = "" if hold is None else f" (held back now: {printable(hold)})"
        say(f"== {target_name}{held}\n{target.shown(message_now)}")


def _newest(settings: Settings, rule: Rule, group: str | None) -> TransitionRow | None:
    rows = LakeReader(settings.lake).rows(_NEWEST, {"cluster": settings.cluster, "rule": rule.name, "group": group})
    return transition_of(rows[0]) if rows else None


def _made_up(settings: Settings, rule: Rule, group: str | None, now: int) -> TransitionRow:
    known = {"cluster": settings.cluster, "group_id": group or "some-group", "topic": "some-topic"}

    def filled(template: str) -> str:
        return fill(template, dict.fromkeys(placeholders(template), "…") | known)

    keys = set(rule.key)
    about = "group_id" in keys
    return TransitionRow(
        "0" * 32, "1" * 32, settings.cluster, rule.name, rule.severity, known["group_id"] if about else None,
        known["topic"] if "partition" in keys else None, 0 if "partition" in keys else None,
        tuple((name, filled(text)) for name, text in rule.labels), FIRING, None, now, now, None, False, None,
        filled(rule.message), now,
    )  # fmt: skip


def _plain(message: Message) -> str:
    return f"{message.title}\n{message.body}"
