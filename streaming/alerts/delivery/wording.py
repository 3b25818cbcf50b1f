"""What a message adds to its alert: whose group it is, where to look, what to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import quote, urlencode

from streaming.alerts.transitions import Transition
from streaming.config import Owner, owner_of
from streaming.times import utc

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
        if about.group_id is None:
            return None
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

    def runbook(self, rule: str) -> str | None:
        """The rule's runbook."""
        return self.runbooks.get(rule)


PLAIN: Final = Wording()
