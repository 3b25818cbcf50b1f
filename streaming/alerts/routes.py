"""Where an alert goes, and whether it waits: pure, but for the mutes, which the alerter replaces as a whole.

First the targets: those that its rule names; else those of the first route that matches it (and of later ones, if that
route says so); else, where no route matches, all. Then a mute may hold the message back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streaming.alerts.rules.rules import Rule
from streaming.alerts.transitions import Transition
from streaming.config import AlertSettings, Matchers, Owner, fits, owner_of
from streaming.exceptions import SetupError
from streaming.notes import Mute, muting, whole


class Routing:
    """Who gets which alert. `mutes` may be replaced at any time, from any thread; the rest never changes.

    Attributes:
        mutes: Mutes of the cluster, also those that are over.
    """

    def __init__(
        self, alerts: AlertSettings, owners: Sequence[Owner], targets: Iterable[str], rules: Iterable[Rule]
    ) -> None:
        """Check the routing of some settings.

        Args:
            alerts: Has the routes.
            owners: Teams and their groups.
            targets: Names of all targets.
            rules: What they say of their targets comes before the routes.

        Raises:
            SetupError: A route or a rule names a target that there is not.
        """
        self.mutes: tuple[Mute, ...] = ()
        self._targets, self._routes, self._owners = tuple(targets), alerts.routes, owners
        self._rules = {rule.name: rule.targets for rule in rules}
        named = [
            *((f"alerts.routes, entry {n}", route.targets) for n, route in enumerate(alerts.routes, 1)),
            *((f"the rule {name}", asked or ()) for name, asked in self._rules.items()),
        ]
        for place, asked in named:
            unknown = sorted(set(asked) - set(self._targets))
            if unknown:
                there = f"the targets are {', '.join(self._targets)}" if self._targets else "there are no targets"
                message = f"{place} names the target {unknown[0]}, which is not set: {there}."
                raise SetupError(message)

    def targets_of(self, about: Transition) -> tuple[str, ...]:
        """The targets of an alert."""
        own = self._rules.get(about.rule)
        if own is not None:
            return own
        matching = [route for route in self._routes if self._matches(route, about)]
        if not matching:
            return self._targets
        last = next((place for place, route in enumerate(matching) if not route.go_on), len(matching))
        return tuple(dict.fromkeys(target for route in matching[: last + 1] for target in route.targets))

    def refusal(self, target: str, about: Transition) -> str | None:
        """Why a target never gets an alert; None when it does."""
        targets = self.targets_of(about)
        return None if target in targets else f"it is routed to {', '.join(targets) or 'nobody'}"

    def hold(self, about: Transition, now: int) -> str | None:
        """Why a message about an alert's beginning waits now (ms), as a clause for people; None where it does not."""
        found = muting(self.mutes, now, about.rule, about.severity, about.group_id, self._owner(about))
        return None if found is None else f"{whole(found[0])} is muted by {found[0].made_by}: {found[0].reason}"

    def _owner(self, about: Transition) -> str | None:
        return None if about.group_id is None else owner_of(about.group_id, self._owners)

    def _matches(self, matchers: Matchers, about: Transition) -> bool:
        labels = dict(about.labels)
        return (
            (not matchers.severities or about.severity in matchers.severities)
            and _any(about.rule, matchers.rules)
            and _any(about.cluster, matchers.clusters)
            and _any(about.group_id, matchers.groups)
            and _any(self._owner(about) if matchers.owners else None, matchers.owners)
            and all(name in labels and fits(labels[name], pattern) for name, pattern in matchers.labels.items())
        )


def _any(name: str | None, patterns: Sequence[str]) -> bool:
    return not patterns or (name is not None and any(fits(name, pattern) for pattern in patterns))
