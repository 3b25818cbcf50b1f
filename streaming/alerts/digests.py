"""What a lane sends next: the gravest first, and many at once as one.

Up to a number, each transition is a message. Above it, people get one message for all that a rule brought into one
state, and an incident tool one incident for the rule (`rule_incident`), which further alerts of the rule join while it
is open; it is closed with the last of them. Programs get each transition.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence

from streaming.alerts.decisions import Decided
from streaming.alerts.firing import FIRING
from streaming.alerts.messages import CLOSES, GOES_ON, OPENS, Message, digest_of, message_of
from streaming.alerts.rules import SEVERITIES
from streaming.alerts.targets import INCIDENTS, RECORDS
from streaming.config import Owner, owner_of

__all__ = ["Open", "chosen", "rule_incident", "told"]


class Open:
    """What a target has been told to fire, and has not been told to end; each with the key of its incident."""

    def __init__(self, sent: Mapping[str, str]) -> None:
        """Begin with what earlier runs told: incidents' keys by alert (`alert_id`)."""
        self._keys = dict(sent)
        self._alerts = Counter(self._keys.values())

    def __contains__(self, alert_id: str) -> bool:
        return alert_id in self._keys

    def incident(self, alert_id: str) -> str:
        """Key of an alert's incident: its own id, unless it was told in a digest."""
        return self._keys.get(alert_id, alert_id)

    def has(self, incident: str) -> bool:
        """Whether an incident is open."""
        return self._alerts[incident] > 0

    def left(self, incident: str, without: Sequence[Decided]) -> int:
        """How many alerts of an incident still fire, without some."""
        return self._alerts[incident] - sum(self._keys.get(d.alert_id) == incident for d in without)

    def begin(self, alert_id: str, incident: str) -> None:
        """An alert was told to fire."""
        self.end(alert_id)
        self._keys[alert_id] = incident
        self._alerts[incident] += 1

    def end(self, alert_id: str) -> None:
        """An alert was told to end, or is never to be."""
        incident = self._keys.pop(alert_id, None)
        if incident is not None:
            self._alerts[incident] -= 1


def rule_incident(cluster: str, rule: str) -> str:
    """Key of the incident that stands for many alerts of a rule."""
    return hashlib.sha256(json.dumps([cluster, rule]).encode()).hexdigest()[:32]


def chosen(ready: Sequence[Decided], opened: Open, reads: str, digest_above: int) -> list[Decided]:
    """What of the transitions is to be told next, in one message.

    Args:
        ready: One per alert at the most, oldest first; at least one.
        opened: What the target knows to fire.
        reads: What kind of target it is.
        digest_above: So many are told one by one.

    Returns:
        Transitions of one rule into one state, oldest first.
    """
    first = min(ready, key=_rank)
    if reads == RECORDS or len(ready) <= digest_above:
        return [first]
    if reads == INCIDENTS and first.closes and opened.incident(first.alert_id) == first.alert_id:
        return [first]  # an incident of its own is closed by its own message, which nobody is called for
    return [
        d
        for d in ready
        if (d.rule, d.state) == (first.rule, first.state)
        and not (reads == INCIDENTS and d.closes and opened.incident(d.alert_id) == d.alert_id)
    ]


def told(decided: Sequence[Decided], opened: Open, owners: Sequence[Owner] = ()) -> Message:
    """The message of what was chosen."""
    first = decided[0]
    of_rule = rule_incident(first.cluster, first.rule)
    if first.state == FIRING:
        incident = of_rule if len(decided) > 1 or opened.has(of_rule) else first.alert_id
        act = OPENS
    else:
        keys = {opened.incident(d.alert_id) for d in decided}
        incident = keys.pop() if len(keys) == 1 else of_rule
        act = GOES_ON if opened.left(incident, decided) else CLOSES
    groups = {d.group_id for d in decided if d.group_id is not None}
    teams = sorted({team for group in groups if (team := owner_of(group, owners)) is not None})
    if len(decided) == 1:
        return message_of(first, incident, act, owner=next(iter(teams), None))
    return digest_of(decided, incident, act, teams)


def _rank(decided: Decided) -> tuple[int, bool]:
    """The gravest first; of the equally grave what is about the whole cluster, as silence is; then the oldest."""
    return -SEVERITIES.index(decided.severity), decided.group_id is not None
