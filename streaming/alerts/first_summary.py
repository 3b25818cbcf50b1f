"""The summary of a first start (`first_start.py`): when it can be made, and what it says. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from apprise import NotifyType

from streaming.alerts.delivery.messages import Message
from streaming.alerts.judging.firing import FIRING, Active, AlertKey
from streaming.alerts.rules.rules import SEVERITIES, Rule
from streaming.times import DAY_MS

KIND: Final = "first_start"
"""Word in the column `rule` of the summary's deliveries."""

# Rules wait for their `for`; a summary that came before it would count less than what fires a moment later.
_LONGEST_SETTLING_MS: Final = 1_800_000
_MORE_ROUNDS: Final = 3


def settling_ms(rules: Iterable[Rule], interval_ms: int) -> int:
    """For how long rounds must have been judged before a summary can count all that fires, ms."""
    holds = [max(rule.hold_ms, rule.hold_rounds * interval_ms) for rule in rules]
    return min(max(holds, default=0), _LONGEST_SETTLING_MS) + _MORE_ROUNDS * interval_ms


def key_of(cluster: str, told_s: int, now_ms: int) -> str:
    """Id of the summary of today: it is made again once a day, until somebody accepts it."""
    days = max(0, now_ms - told_s * 1000) // DAY_MS
    return f"{KIND}/{cluster}/{days}" if days else f"{KIND}/{cluster}"


def reminder_of(cluster: str, message: Message) -> Message:
    """The summary of a later day: what fires now, which can be more than the first one counted."""
    lines = message.body.split("\n")
    lines[0] = f"Nothing is sent for the cluster {cluster} yet: its first summary was not accepted. Firing now:"
    return replace(message, subject=f"first start on {cluster}: still nothing is sent", body="\n".join(lines))


def summary_of(
    cluster: str, active: Mapping[AlertKey, Active], always: Collection[str], page: str | None
) -> Message | None:
    """The summary of what fires; None where nothing does, nor is about to.

    Args:
        cluster: The cluster.
        active: Alerts that are pending or firing.
        always: Rules that are delivered all the same.
        page: Address of the page's alerts; None for none.
    """
    counted = [(alert, rule) for (rule, _), alert in active.items() if rule not in always]
    if not counted:
        return None
    firing = Counter(rule for alert, rule in counted if alert.state == FIRING)
    pending = Counter(rule for alert, rule in counted if alert.state != FIRING)
    severity = {rule: alert.severity for alert, rule in counted}
    order = sorted(severity, key=lambda rule: (-SEVERITIES.index(severity[rule]), -firing[rule], rule))
    lines = [
        f"{rule} ({severity[rule]}): {firing[rule]:,} firing" + (f", {pending[rule]:,} pending" * bool(pending[rule]))
        for rule in order
    ]
    total = firing.total()
    links = (page,) if page else ()
    body = [
        f"Evenkeel watches the cluster {cluster} for the first time. {total:,} alerts would fire now; none was sent.",
        "",
        *lines,
        "",
        f"Look at them{' and' if page else ','} mute or change the rules that you do not want. Then begin delivery:",
        "evenkeel alert --accept",
        "What the first summary listed is accepted with it; what has fired since is sent then, if it still fires.",
        *(f"page: {link}" for link in links),
    ]
    fields = {"state": "summary", "cluster": cluster, "firing": str(total), "pending": str(pending.total())}
    fields |= {f"rule_{rule}": str(firing[rule]) for rule in order}
    subject = f"first start on {cluster}: {total:,} alerts would fire"
    return Message("summary", subject, "\n".join(body), NotifyType.INFO, fields, links=links)
