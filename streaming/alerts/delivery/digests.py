"""What a queue sends next: the most severe first, and many at once as one.

Up to a number, each transition is a message. Above it, people get one message for all alerts that a rule brought into
one state, and an incident tool gets one incident for the rule (`rule_incident`), which further alerts of the rule join
while it is open; it is closed with the last of them. A repetition belongs to the incident that its alert opened.
Programs get each transition.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence

from streaming.alerts.decisions import TransitionRow
from streaming.alerts.delivery.messages import CLOSES, GOES_ON, OPENS, Message, digest_of, message_of
from streaming.alerts.delivery.outcome import INCIDENTS, RECORDS
from streaming.alerts.delivery.wording import PLAIN, Wording
from streaming.alerts.judging.firing import FIRING
from streaming.config import SEVERITIES


class OpenAlerts:
    """Alerts whose firing was sent to a target, but not their end; each with the key of its incident."""

    def __init__(self, sent: Mapping[str, str]) -> None:
        """Start with what earlier runs sent: incidents' keys by alert (`alert_id`)."""
        self._keys = dict(sent)
        self._alerts = Counter(self._keys.values())

    def __contains__(self, alert_id: str) -> bool:
        return alert_id in self._keys

    def incident(self, alert_id: str) -> str:
        """Key of an alert's incident: its own id, unless it was sent in a digest."""
        return self._keys.get(alert_id, alert_id)

    def has(self, incident: str) -> bool:
        """Whether an incident is open."""
        return self._alerts[incident] > 0

    def left(self, incident: str, without: Sequence[TransitionRow]) -> int:
        """Number of alerts of an incident that still fire, not counting some."""
        return self._alerts[incident] - sum(self._keys.get(d.alert_id) == incident for d in without)

    def begin(self, alert_id: str, incident: str) -> None:
        """Note that an alert's firing was sent."""
        self.end(alert_id)
        self._keys[alert_id] = incident
        self._alerts[incident] += 1

    def end(self, alert_id: str) -> None:
        """Note that an alert's end was sent, or never will be."""
        incident = self._keys.pop(alert_id, None)
        if incident is not None:
            self._alerts[incident] -= 1


def rule_incident(cluster: str, rule: str) -> str:
    """Key of the incident that stands for many alerts of a rule."""
    return hashlib.sha256(json.dumps([cluster, rule]).encode()).hexdigest()[:32]


def chosen(
    ready: Sequence[TransitionRow], opened: OpenAlerts, reads: str, digest_above: int, *, repeated: bool = False
) -> list[TransitionRow]:
    """The transitions to send next, in one message.

    Args:
        ready: At most one per alert, oldest first; at least one.
        opened: The alerts that fire as far as the target knows.
        reads: The kind of target.
        digest_above: Up to this many are sent one by one.
        repeated: All are sent again, because they still fire.

    Returns:
        Transitions of one rule into one state, oldest first.
    """
    first = min(ready, key=_rank)
    if reads == RECORDS or len(ready) <= digest_above:
        return [first]
    if reads == INCIDENTS and first.closes and opened.incident(first.alert_id) == first.alert_id:
        return [first]  # its own message closes an incident of its own, for which nobody is called
    alike = [d for d in ready if (d.rule, d.state) == (first.rule, first.state)]
    if reads == INCIDENTS and repeated:
        # (A message belongs to one incident: in another one's, a repetition would look like news of that one.)
        return [d for d in alike if opened.incident(d.alert_id) == opened.incident(first.alert_id)]
    return [d for d in alike if not (reads == INCIDENTS and d.closes and opened.incident(d.alert_id) == d.alert_id)]


def message_for(
    decided: Sequence[TransitionRow], opened: OpenAlerts, wording: Wording = PLAIN, repeat: int | None = None
) -> Message:
    """The message for the chosen transitions; `repeat` numbers a repetition."""
    first = decided[0]
    of_rule = rule_incident(first.cluster, first.rule)
    if first.state == FIRING and not repeat:
        incident = of_rule if len(decided) > 1 or opened.has(of_rule) else first.alert_id
    else:
        keys = {opened.incident(d.alert_id) for d in decided}
        incident = keys.pop() if len(keys) == 1 else of_rule
    act = OPENS if first.state == FIRING else GOES_ON if opened.left(incident, decided) else CLOSES
    if len(decided) == 1:
        return message_of(first, incident, act, wording=wording, repeat=repeat)
    return digest_of(decided, incident, act, wording, repeat=bool(repeat))


def _rank(decided: TransitionRow) -> tuple[int, bool]:
    """The most severe first; of equals those about the whole cluster, such as silence; then the oldest."""
    return -SEVERITIES.index(decided.severity), decided.group_id is not None
