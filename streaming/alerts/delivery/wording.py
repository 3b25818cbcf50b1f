"""What a message adds to its alert: where to look, what to do, what to type next. Pure."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

from streaming.alerts.transitions import Transition
from streaming.config import Owner, owner_of

# What the page shows around the moment of an alert: what led to it, and what came of it at first.
_BEFORE: Final = timedelta(minutes=45)
_AFTER: Final = timedelta(minutes=15)

# Names longer than this are a digest in the page's addresses (dashboards.format.key_of).
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
        at = datetime.fromtimestamp((about.since if about.round_time is None else about.round_time) / 1000, UTC)
        asked = {"cluster": about.cluster}
        path = ["alerts", about.rule]
        if about.group_id is not None:
            path = ["groups", _key_of(about.group_id)]
        if about.group_id is not None and about.rebalance is not None and self.tables.get(about.rule) == "drift":
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
        """What a person would type next, quoted for a POSIX shell (bash where a name has unprintable characters).

        None where there is nothing to type. Evenkeel never runs it.
        """
        if self.bootstrap is None:
            return None
        login = " --command-config client.properties" if self.has_login else ""
        to = f"--bootstrap-server {quoted(self.bootstrap)}{login}"
        if self.tables.get(about.rule) == "open_transactions":
            return f"kafka-transactions {to} list"
        if about.group_id is None or len(about.group_id) > _LONGEST_NAME:
            return None
        more = " --members --verbose" if dict(about.labels).get("about") in {"assignment", "balance"} else ""
        # An option's value that begins with a dash would be taken for the next option.
        sign = "=" if about.group_id[:1] == "-" else " "
        return f"kafka-consumer-groups {to} --describe{more} --group{sign}{quoted(about.group_id)}"


PLAIN: Final = Wording()


def quoted(text: str) -> str:
    """A text as one word of a shell, whatever it contains.

    `'...'` for printable text, as `shlex.quote`; else bash's `$'...'`, in which every byte that is not plain ASCII is
    an escape, so that the command is one line and nothing in it moves the cursor or changes the direction of text.
    """
    if text.isprintable():
        return shlex.quote(text)
    octets = text.encode("utf-8", "surrogatepass")
    plain = (chr(b) if 0x20 <= b < 0x7F and chr(b) not in "\\'" else f"\\x{b:02x}" for b in octets)
    return f"$'{''.join(plain)}'"


def _key_of(name: str) -> str:
    """A group's name in the page's addresses (dashboards.format.key_of)."""
    if len(name) <= _LINK_AT and name not in {".", ".."}:
        return name
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
