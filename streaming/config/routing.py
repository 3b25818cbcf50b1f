"""Settings of who gets which alert: routes.

They stand in `evenkeel.toml`, beside the targets and owners that they name; the `targets` of one rule may stand with
the rule in `alerts.yaml`. What they mean is decided in `streaming/alerts/routes.py`.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import Field

from streaming.config.kafka import Section
from streaming.config.patterns import Pattern

Severity = Literal["info", "warning", "critical"]

SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
"""From the least to the most severe."""


class Matchers(Section):
    """Which alerts something is about: all that is set must match; nothing set matches every alert.

    Attributes:
        rules: Patterns of rules, as in `Filters`.
        severities: Severities.
        owners: Patterns of teams under `[[owners]]`; an alert that nobody owns matches none.
        groups: Patterns of groups; an alert about the cluster matches none.
        clusters: Patterns of clusters.
        labels: Patterns by name of a label.
    """

    rules: tuple[Pattern, ...] = ()
    severities: tuple[Severity, ...] = ()
    owners: tuple[Pattern, ...] = ()
    groups: tuple[Pattern, ...] = ()
    clusters: tuple[Pattern, ...] = ()
    labels: dict[str, Pattern] = Field(default_factory=dict)


class Route(Matchers):
    """Where some alerts go. The first route that matches counts, and those after it only if it says `continue`.

    Attributes:
        targets: Names of targets; none sends these alerts to nobody.
        go_on: `continue` in the file: later routes count as well.
    """

    targets: tuple[str, ...]
    go_on: bool = Field(default=False, alias="continue")
