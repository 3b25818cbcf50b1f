"""Where an alert goes, and whether it waits: pure functions of the alert, the settings, the mutes, and the time.

First the targets: those that its rule names; else those of the first route that matches it (and of later ones, if that
route says so); else, where no route matches, all. Then, for each target, whether something holds the message back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from streaming.alerts.routing.hours import ends
from streaming.config import AlertSettings, Maintenance, Matchers, Owner, QuietHours, Route, fits, owner_of
from streaming.exceptions import SetupError
from streaming.notes import Mute, muting, whole

MUTE: Final = "mute"
QUIET: Final = "quiet hours"
MAINTENANCE: Final = "maintenance"
FIRST_START: Final = "first start"


class RoutedAlert(Protocol):
    """What routing needs to know of an alert."""

    @property
    def cluster(self) -> str:
        """The cluster."""

    @property
    def rule(self) -> str:
        """The rule."""

    @property
    def severity(self) -> str:
        """info, warning, critical."""

    @property
    def group_id(self) -> str | None:
        """The group; None for the cluster."""

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Pairs of name and value."""


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
class HoldReason:
    """Why a message waits.

    Attributes:
        kind: MUTE, QUIET, MAINTENANCE or FIRST_START.
        reason: A clause for people: "muted by ann@host: deploy".
        until: When it ends, ms; None where a person must act.
    """

    kind: str
    reason: str
    until: int | None


@dataclass(frozen=True, slots=True)
class Routing:
    """The settings of who gets which alert, and when.

    Attributes:
        targets: Names of all targets.
        routes: In order.
        quiet_hours: When targets are left in peace.
        maintenance: When alerts are expected.
        owners: Teams and their groups.
        rules: By name of a rule, what it says itself.
    """

    targets: tuple[str, ...]
    routes: Sequence[Route] = ()
    quiet_hours: Sequence[QuietHours] = ()
    maintenance: Sequence[Maintenance] = ()
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
            SetupError: A route, quiet hours, a report or a rule names a target or a team that there is not.
        """
        known = tuple(targets)
        named = [
            *((f"alerts.routes, entry {n}", route.targets) for n, route in enumerate(alerts.routes, 1)),
            *((f"alerts.quiet_hours, entry {n}", one.targets) for n, one in enumerate(alerts.quiet_hours, 1)),
            *((f"alerts.reports, entry {n}", one.targets) for n, one in enumerate(alerts.reports, 1)),
            *((f"the rule {name}", rule.targets or ()) for name, rule in rules.items()),
        ]
        for place, asked in named:
            unknown = sorted(set(asked) - set(known))
            if unknown:
                there = f"the targets are {', '.join(known)}" if known else "there are no targets"
                message = f"{place} names the target {unknown[0]}, which is not set: {there}."
                raise SetupError(message)
        teams = {one.team for one in owners}
        for number, report in enumerate(alerts.reports, 1):
            if report.team and report.team not in teams:
                message = f"alerts.reports, entry {number} names the team {report.team}, which no entry of owners has."
                raise SetupError(message)
        return cls(known, alerts.routes, alerts.quiet_hours, alerts.maintenance, owners, rules)

    def owner(self, about: RoutedAlert) -> str | None:
        """The team that owns the group of an alert; None for nobody."""
        return None if about.group_id is None else owner_of(about.group_id, self.owners)

    def targets_of(self, about: RoutedAlert) -> dict[str, int | None]:
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

    def hold(self, about: RoutedAlert, target: str, now: int, mutes: Iterable[Mute]) -> HoldReason | None:
        """What holds back a message about an alert's beginning; where several do, the one that ends last.

        Args:
            about: The alert.
            target: Name of the target.
            now: Time at which it would be sent, ms.
            mutes: Mutes of the cluster, also those that are over.
        """
        found = [*self._maintained(about, now), *self.quiet(about.severity, target, now)]
        mute = muting(mutes, now, about.rule, about.group_id, self.owner(about))
        if mute is not None:
            found.append(HoldReason(MUTE, f"{whole(mute)} is muted by {mute.made_by}: {mute.reason}", mute.until))
        return max(found, key=lambda hold: hold.until or 0, default=None)

    def quiet(self, severity: str, target: str, now: int) -> list[HoldReason]:
        """Quiet hours of a target in which a message of a severity waits."""
        return [
            HoldReason(QUIET, f"quiet hours of {target}", end)
            for hours in self.quiet_hours
            if (not hours.targets or target in hours.targets)
            and severity not in hours.passes
            and (end := ends(hours, now)) is not None
        ]

    def _maintained(self, about: RoutedAlert, now: int) -> list[HoldReason]:
        found = []
        for one in self.maintenance:
            if about.severity in one.passes or not self._matches(one, about):
                continue
            if one.once is not None:
                begin, end = one.once
                until = end if begin <= now < end else None
            else:
                until = None if one.weekly is None else ends(one.weekly, now)
            if until is not None:
                found.append(HoldReason(MAINTENANCE, f"maintenance: {one.reason}", until))
        return found

    def _matches(self, matchers: Matchers, about: RoutedAlert) -> bool:
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


def _any(name: str | None, patterns: Sequence[str]) -> bool:
    return not patterns or (name is not None and any(fits(name, pattern) for pattern in patterns))
