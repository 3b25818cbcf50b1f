"""What a message adds to its alert: where to look, what to do, what to type next. Pure."""

from __future__ import annotations

import shlex
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

# A command with a longer name fits on no line: the page is the better next step.
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Wording:
    """The settings that messages are made with.

    Attributes:
        owners: Teams and their groups.
        public_url: Where people reach the page, without a slash at its end; None writes no links.
        bootstrap: Brokers of the watched cluster, for the command; None writes none.
        has_login: The cluster needs a client's settings, which the command names as a file.
        tables: Table that a rule reads, by the rule's name.
        runbooks: URL of what to do, by the rule's name.
    """

    owners: Sequence[Owner] = ()
    public_url: str | None = None
    bootstrap: str | None = None
    has_login: bool = False
    tables: Mapping[str, str] = field(default_factory=dict)
    runbooks: Mapping[str, str] = field(default_factory=dict)

    def owner(self, about: Transition) -> str | None:
        """The team that owns the group; None for nobody."""
        return None if about.group_id is None else owner_of(about.group_id, self.owners)

    def link(self, about: Transition) -> str | None:
        """The page as of the alert: the decision that drifted, the group, or the rule."""
        if self.public_url is None:
            return None
        at = utc(about.at)
        asked = {"cluster": about.cluster}
        path = ["alerts", about.rule]
        if about.group_id is not None and len(about.group_id) <= _LINK_AT and about.group_id not in {".", ".."}:
            path = ["groups", about.group_id]
        if path[0] == "groups" and about.rebalance is not None and self.tables.get(about.rule) == "drift":
            path += ["decisions", str(about.rebalance)]
        else:
            asked |= {"from": f"{at - _BEFORE:%Y-%m-%dT%H:%MZ}", "to": f"{at + _AFTER:%Y-%m-%dT%H:%MZ}"}
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

    def command(self, about: Transition) -> str | None:
        """What a person would type next, quoted for a POSIX shell; Evenkeel never runs it.

        None where there is nothing to type, and for names that nobody can type.
        """
        if self.bootstrap is None:
            return None
        login = " --command-config client.properties" if self.has_login else ""
        to = f"--bootstrap-server {shlex.quote(self.bootstrap)}{login}"
        if self.tables.get(about.rule) == "open_transactions":
            return f"kafka-transactions {to} list"
        if about.group_id is None or len(about.group_id) > _LONGEST_NAME or not about.group_id.isprintable():
            return None
        more = " --members --verbose" if dict(about.labels).get("about") in {"assignment", "balance"} else ""
        # An option's value that begins with a dash would be taken for the next option.
        sign = "=" if about.group_id[:1] == "-" else " "
        return f"kafka-consumer-groups {to} --describe{more} --group{sign}{shlex.quote(about.group_id)}"


PLAIN: Final = Wording()
