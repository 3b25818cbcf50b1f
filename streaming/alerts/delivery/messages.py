"""Messages for people, one for one transition or for many at once; and what a target makes of one.

`Wording` adds whose group an alert is about, where to look, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import quote, urlencode

from apprise import NotifyType

from streaming.alerts.transitions import FIRING, GONE, Transition
from streaming.config import SEVERITIES, Owner, owner_of
from streaming.terminal import visible
from streaming.times import utc, utc_text

# What the page shows around the moment of an alert: what led to it, and what came of it at first.
_BEFORE: Final = timedelta(minutes=45)
_AFTER: Final = timedelta(minutes=15)

# Names longer than this are something else in the page's addresses (dashboards.format.key_of): the rule is linked.
_LINK_AT: Final = 300


@dataclass(frozen=True, slots=True)
class Wording:
    """The settings that messages are made with.

    Attributes:
        owners: Teams and their groups.
        public_url: Where people reach the page, without a slash at its end; None writes no links.
        runbooks: URL of what to do, by the rule's name.
    """

    owners: Sequence[Owner] = ()
    public_url: str | None = None
    runbooks: Mapping[str, str] = field(default_factory=dict)

    def owner(self, about: Transition) -> str | None:
        """The team that owns the group; None for nobody."""
        return owner_of(about.group_id, self.owners)

    def link(self, about: Transition) -> str | None:
        """The page as of the alert: the group, or the rule."""
        if self.public_url is None:
            return None
        at = utc(about.at)
        path = ["alerts", about.rule]
        if about.group_id is not None and len(about.group_id) <= _LINK_AT and about.group_id not in {".", ".."}:
            path = ["groups", about.group_id]
        asked = {
            "cluster": about.cluster,
            "from": f"{at - _BEFORE:%Y-%m-%dT%H:%MZ}",
            "to": f"{at + _AFTER:%Y-%m-%dT%H:%MZ}",
        }
        segments = "/".join(quote(part, safe="", errors="replace") for part in path)
        return f"{self.public_url}/{segments}?{urlencode(asked, errors='replace')}"

    def rule_link(self, cluster: str, rule: str) -> str | None:
        """The page of a rule."""
        if self.public_url is None:
            return None
        return f"{self.public_url}/alerts/{quote(rule, safe='')}?{urlencode({'cluster': cluster}, errors='replace')}"


PLAIN: Final = Wording()


PEOPLE = "people"
"""Reads messages: chat, mail, telephone."""

INCIDENTS = "incidents"
"""Opens and closes incidents by the key of a message."""

RECORDS = "records"
"""Takes fields, as programs do: each transition, and names unchanged."""


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of an attempt.

    Attributes:
        reason: Why it failed, without secrets, or why nothing was sent; None when the target accepted it.
        duration_ms: How long it took.
        unsent: Nothing was sent, and nothing is to be sent.
    """

    reason: str | None
    duration_ms: int
    unsent: bool = False


OPENS = "opens"
"""The message's incident begins, or gets another alert."""

GOES_ON = "goes_on"
"""Part of the incident has ended, another part still fires."""

CLOSES = "closes"
"""No part of the incident fires any more."""

_TYPES = {"info": NotifyType.INFO, "warning": NotifyType.WARNING, "critical": NotifyType.FAILURE}

# Lines of a message below its text, in order. Only an alert that fires has a runbook.
_LINES = (
    *("cluster", "group", "owner", "topic", "broker", "partition", "since", "as of", "labels"),
    *("page", "runbook", "id", "alert"),
)

# Names in a digest, and their length: this fits on the screen of a phone, and mostly into the 1,000 characters that
# Teams, Rocket.Chat and PagerDuty accept.
_NAMED = 10
_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        state: firing, resolved, gone; test.
        subject: What it is about, on one line: the same in every state.
        body: Some lines of text.
        kind: Apprise's type, which many services show as a colour or a sign.
        fields: The same by name, for targets that take fields.
        incident: Key of the incident that it belongs to; None for a test.
        act: Its effect on the incident: OPENS, GOES_ON or CLOSES.
        links: Addresses in `body` that are ours, and stay addresses where other text is made inert.
        decided: The transition; None for a message about many, or about none.
    """

    state: str
    subject: str
    body: str
    kind: NotifyType
    fields: Mapping[str, str]
    incident: str | None = None
    act: str = OPENS
    links: tuple[str, ...] = ()
    decided: Transition | None = None

    @property
    def title(self) -> str:
        """One line."""
        return f"[{self.state}] {self.subject}"


def message_of(
    decided: Transition,
    incident: str | None = None,
    act: str = OPENS,
    wording: Wording = PLAIN,
) -> Message:
    """The message for a transition.

    Args:
        decided: The transition.
        incident: Key of its incident; without one the alert is an incident of its own.
        act: Its effect on the incident.
        wording: What messages are made with.
    """
    group = visible(decided.group_id, 80) if decided.group_id is not None else decided.cluster
    firing = decided.state == FIRING
    ended = {GONE: "The group, partition or rule of this alert is gone. It was: "}.get(
        decided.state, "No longer true: "
    )
    fields = _fields(decided, wording)
    shown = {
        **fields,
        "group": fields.get("group_id"),
        "as of": _as_of(decided),
        "labels": ", ".join(f"{name}={value}" for name, value in decided.labels) or None,
    }
    named = [name for name in _LINES if firing or name != "runbook"]
    lines = [decided.message if firing else f"{ended}{decided.message}", ""]
    lines += [f"{name}: {shown[name]}" for name in named if shown.get(name) is not None]
    return Message(
        state=decided.state,
        subject=f"{decided.rule}: {group} ({decided.severity})",
        body="\n".join(lines),
        kind=_TYPES[decided.severity] if firing else NotifyType.SUCCESS,
        fields=fields,
        incident=decided.alert_id if incident is None else incident,
        act=act,
        links=tuple(fields[name] for name in ("page", "runbook") if name in fields),
        decided=decided,
    )


def digest_of(decided: Sequence[Transition], incident: str, act: str, wording: Wording = PLAIN) -> Message:
    """One message for many transitions of one rule into one state, oldest first; with the teams that own the groups."""
    first = decided[0]
    owners = sorted({team for one in decided if (team := wording.owner(one)) is not None})
    link, runbook = wording.rule_link(first.cluster, first.rule), wording.runbooks.get(first.rule)
    severity = max((d.severity for d in decided), key=SEVERITIES.index)
    says = {
        FIRING: f"{len(decided):,} alerts of the rule {first.rule} are firing.",
        GONE: f"{len(decided):,} alerts of the rule {first.rule} ended: their groups, partitions or rule are gone.",
    }.get(first.state, f"{len(decided):,} alerts of the rule {first.rule} are resolved.")
    names = [_name(d) for d in decided[:_NAMED]]
    rest = len(decided) - len(names)
    view = "alerts_current" if first.state == FIRING else "alerts"
    lines = [
        says,
        "",
        *names,
        *([f"and {rest:,} more"] if rest else []),
        "",
        f"cluster: {first.cluster}",
        *([f"owners: {', '.join(owners)}"] if owners else []),
        f"since: {utc_text(min(d.since for d in decided))}",
        *([f"page: {link}"] if link else []),
        *([f"runbook: {runbook}"] if runbook else []),
        f"all of them: SELECT * FROM {view} WHERE rule = '{first.rule}' AND state = '{first.state}'",  # noqa: S608 - to read
        f"incident: {incident}",
    ]
    return Message(
        state=first.state,
        subject=f"{first.rule}: {len(decided):,} alerts ({severity})",
        body="\n".join(lines),
        kind=_TYPES[severity] if first.state == FIRING else NotifyType.SUCCESS,
        fields={},
        incident=incident,
        act=act,
        links=tuple(url for url in (link, runbook) if url is not None),
    )


def trial_message(cluster: str) -> Message:
    """A message to show that messages arrive."""
    text = f"This is a test of Evenkeel's alerts for the cluster {cluster}. Nothing is wrong."
    fields = {"evenkeel": "test", "state": "test", "cluster": cluster}
    return Message("test", "Evenkeel: messages arrive", text, NotifyType.INFO, fields)


def _name(decided: Transition) -> str:
    if decided.group_id is None:
        return visible(decided.message, 2 * _NAME_LENGTH)
    group = visible(decided.group_id, _NAME_LENGTH)
    if decided.topic is None:
        return group
    place = [visible(str(part), _NAME_LENGTH) for part in (decided.broker, decided.partition) if part is not None]
    return " ".join([f"{group}, {visible(decided.topic, _NAME_LENGTH)}", *(["/".join(place)] if place else [])])


def _fields(decided: Transition, wording: Wording) -> dict[str, str]:
    named = {
        "id": decided.transition_id,
        "alert": decided.alert_id,
        "rule": decided.rule,
        "severity": decided.severity,
        "state": decided.state,
        "cluster": decided.cluster,
        "group_id": None if decided.group_id is None else visible(decided.group_id),
        "owner": wording.owner(decided),
        "topic": None if decided.topic is None else visible(decided.topic),
        "broker": None if decided.broker is None else visible(decided.broker),
        "partition": decided.partition,
        "since": utc_text(decided.since),
        "round": decided.round,
        "round_time": None if decided.round_time is None else utc_text(decided.round_time),
        "late": "true" if decided.late else "false",
        "value": decided.value,
        "text": decided.message,
        "page": wording.link(decided),
        "runbook": wording.runbooks.get(decided.rule),
        **{f"label_{name}": value for name, value in decided.labels},
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def _as_of(decided: Transition) -> str | None:
    if decided.round_time is None:
        return None
    if decided.late:
        return f"{utc_text(decided.round_time)}, found late"
    return utc_text(decided.round_time)
