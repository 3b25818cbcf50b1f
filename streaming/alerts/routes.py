"""Where an alert goes, and whether it waits: pure, but for the mutes, which the alerter replaces as a whole.

First the targets: those of the first route that matches it; where none does, all. Then a mute may hold the message
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streaming.alerts.transitions import Transition
from streaming.config import AlertSettings, Owner, Route, fits, owner_of
from streaming.exceptions import SetupError
from streaming.notes import Mute, muting, whole


class Routing:
    """Who gets which alert. `mutes` may be replaced at any time, from any thread; the rest never changes.

    Attributes:
        mutes: Mutes of the cluster, also those that are over.
    """

    def __init__(self, alerts: AlertSettings, owners: Sequence[Owner], targets: Iterable[str]) -> None:
        """Check the routing of some settings.

        Args:
            alerts: Has the routes.
            owners: Teams and their groups.
            targets: Names of all targets.

        Raises:
            SetupError: A route names a target that there is not.
        """
        self.mutes: tuple[Mute, ...] = ()
        self._targets, self._routes, self._owners = tuple(targets), alerts.routes, owners
        for number, route in enumerate(alerts.routes, 1):
            unknown = sorted(set(route.targets) - set(self._targets))
            if unknown:
                there = f"the targets are {', '.join(self._targets)}" if self._targets else "there are no targets"
                message = f"alerts.routes, entry {number} names the target {unknown[0]}, which is not set: {there}."
                raise SetupError(message)

    def targets_of(self, about: Transition) -> tuple[str, ...]:
        """The targets of an alert."""
        matching = (route.targets for route in self._routes if self._matches(route, about))
        return next(matching, self._targets)

    def refusal(self, target: str, about: Transition) -> str | None:
        """Why a target never gets an alert; None when it does."""
        targets = self.targets_of(about)
        if target in targets:
            return None
        return f"it is routed to {', '.join(targets) or 'nobody'}"

    def hold(self, about: Transition, now: int) -> str | None:
        """Why a message about an alert's beginning waits now (ms), as a clause for people; None where it does not."""
        owner = owner_of(about.group_id, self._owners)
        found = muting(self.mutes, now, about.rule, about.severity, about.group_id, owner)
        if found is None:
            return None
        return f"{whole(found[0])} is muted by {found[0].made_by}: {found[0].reason}"

    def _matches(self, route: Route, about: Transition) -> bool:
        labels = dict(about.labels)
        return (
            (not route.severities or about.severity in route.severities)
            and _any(about.rule, route.rules)
            and _any(about.cluster, route.clusters)
            and _any(about.group_id, route.groups)
            and _any(owner_of(about.group_id, self._owners) if route.owners else None, route.owners)
            and all(name in labels and fits(labels[name], pattern) for name, pattern in route.labels.items())
        )


def _any(name: str | None, patterns: Sequence[str]) -> bool:
    return not patterns or (name is not None and any(fits(name, pattern) for pattern in patterns))
