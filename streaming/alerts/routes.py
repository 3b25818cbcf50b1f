"""Where an alert goes, and whether it waits: pure, but for the mutes, which the alerter replaces as a whole.

First the targets: those that its rule names; else those of the first route that matches it (and of later ones, if that
route says so); else, where no route matches, all. Then a mute may hold the message back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from streaming.alerts.rules.expressions import ExpressionError
from streaming.alerts.transitions import TransitionRow
from streaming.config import AlertSettings, Matchers, Owner, Route, fits, owner_of, span_ms
from streaming.exceptions import SetupError
from streaming.notes import Mute, muting, whole


@dataclass(frozen=True, slots=True)
class RuleRoute:
    """What a rule itself says of its delivery.

    Attributes:
        targets: Names of targets; None leaves it to the routes.
        repeat_ms: Its alerts are repeated after so long; None leaves it to the routes.
        runbook_url: What to do, as a URL; None for none.
    """

    targets: tuple[str, ...] | None = None
    repeat_ms: int | None = None
    runbook_url: str | None = None


UNSAID: Final = RuleRoute()


@dataclass(frozen=True, slots=True)
class Routing:
    """The settings of who gets which alert.

    Attributes:
        targets: Names of all targets.
        routes: In order.
        owners: Teams and their groups.
        rules: By name of a rule, what it says itself.
    """

    targets: tuple[str, ...]
    routes: Sequence[Route] = ()
    owners: Sequence[Owner] = ()
    rules: Mapping[str, RuleRoute] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        alerts: AlertSettings,
        owners: Sequence[Owner],
        targets: Iterable[str],
        rules: Mapping[str, RuleRoute],
    ) -> Routing:
        """The routing of some settings.

        Raises:
            SetupError: A route or a rule names a target that there is not.
        """
        known = tuple(targets)
        named = [
            *((f"alerts.routes, entry {n}", route.targets) for n, route in enumerate(alerts.routes, 1)),
            *((f"the rule {name}", rule.targets or ()) for name, rule in rules.items()),
        ]
        for place, asked in named:
            unknown = sorted(set(asked) - set(known))
            if unknown:
                there = f"the targets are {', '.join(known)}" if known else "there are no targets"
                message = f"{place} names the target {unknown[0]}, which is not set: {there}."
                raise SetupError(message)
        return cls(known, alerts.routes, owners, rules)

    def owner(self, about: TransitionRow) -> str | None:
        """The team that owns the group of an alert; None for nobody."""
        return None if about.group_id is None else owner_of(about.group_id, self.owners)

    def targets_of(self, about: TransitionRow) -> dict[str, int | None]:
        """The targets of an alert, each with the time after which it is repeated there, ms (None: never)."""
        own = self.rules.get(about.rule, UNSAID)
        if own.targets is not None:
            return dict.fromkeys(own.targets, own.repeat_ms)
        found: dict[str, int | None] = {}
        matched = False
        for route in self.routes:
            if not self._matches(route, about):
                continue
            matched = True
            for target in route.targets:
                found.setdefault(target, own.repeat_ms if own.repeat_ms is not None else route.repeat_after)
            if not route.go_on:
                break
        return found if matched else dict.fromkeys(self.targets, own.repeat_ms)

    def hold(self, about: TransitionRow, now: int, mutes: Iterable[Mute]) -> str | None:
        """Why a message about an alert's beginning waits now (ms), as a clause for people; None where it does not.

        Args:
            about: The alert.
            now: Time at which it would be sent, ms.
            mutes: Mutes of the cluster, also those that are over.
        """
        found = muting(mutes, now, about.rule, about.severity, about.group_id, self.owner(about))
        return None if found is None else f"{whole(found[0])} is muted by {found[0].made_by}: {found[0].reason}"

    def _matches(self, matchers: Matchers, about: TransitionRow) -> bool:
        owner = self.owner(about) if matchers.owners else None
        labels = dict(about.labels)
        return (
            (not matchers.severities or about.severity in matchers.severities)
            and _any(about.rule, matchers.rules)
            and _any(about.cluster, matchers.clusters)
            and _any(about.group_id, matchers.groups)
            and _any(owner, matchers.owners)
            and all(name in labels and fits(labels[name], pattern) for name, pattern in matchers.labels.items())
        )


class Gate:
    """What a target gets, and when. `mutes` may be replaced at any time; the rest never changes."""

    def __init__(self, routing: Routing, target: str) -> None:
        """Prepare for a target, by its name."""
        self._routing, self._target = routing, target
        self.mutes: tuple[Mute, ...] = ()

    def refusal(self, about: TransitionRow) -> str | None:
        """Why this target never gets an alert; None when it does."""
        targets = self._routing.targets_of(about)
        return None if self._target in targets else f"it is routed to {', '.join(targets) or 'nobody'}"

    def repeat_ms(self, about: TransitionRow) -> int | None:
        """After how long an alert that still fires is sent again, ms; None for never."""
        return self._routing.targets_of(about).get(self._target)

    def hold(self, about: TransitionRow, now: int) -> str | None:
        """Why the beginning of an alert waits now (ms); None when it may be sent."""
        return self._routing.hold(about, now, self.mutes)


def _any(name: str | None, patterns: Sequence[str]) -> bool:
    return not patterns or (name is not None and any(fits(name, pattern) for pattern in patterns))


KEYS: Final = ("targets", "repeat_after", "runbook_url")

_LEAST_MS: Final = 60_000


def route_of(given: Mapping[Any, Any]) -> RuleRoute:
    """What a rule says of its delivery.

    Raises:
        ExpressionError: A key is wrong: the reason as a clause.
    """
    return RuleRoute(
        _targets(given.get("targets")), _repeat(given.get("repeat_after")), _runbook(given.get("runbook_url"))
    )


def _targets(given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        message = "targets must be a list of names of targets; an empty one sends to nobody"
        raise ExpressionError(message)
    return tuple(dict.fromkeys(given))


def _repeat(given: object) -> int | None:
    if given is None:
        return None
    try:
        span = span_ms(given) if isinstance(given, str) else 0
    except ValueError:
        span = 0
    if span < _LEAST_MS:
        message = f"repeat_after {given!r} is not a duration of a minute or more (30m, 4h, 1d)"
        raise ExpressionError(message)
    return span


def _runbook(given: object) -> str | None:
    if given is None:
        return None
    try:
        parts = urlsplit(given) if isinstance(given, str) else None
    except ValueError:
        parts = None
    usable = parts is not None and parts.scheme in {"http", "https"} and bool(parts.netloc)
    if not usable or any(c.isspace() or not c.isprintable() for c in str(given)):
        message = "runbook_url must be a URL that begins with http:// or https://, without blanks"
        raise ExpressionError(message)
    return str(given)
