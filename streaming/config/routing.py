"""Settings of who gets which alert: routes.

They stand in `evenkeel.toml`, beside the targets and owners that they name. What they mean is decided in
`streaming/alerts/routes.py`.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import Field

from streaming.config.forms import Pattern
from streaming.config.kafka import Section

Severity = Literal["info", "warning", "critical"]

SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
"""From the least to the most severe."""


class Route(Section):
    """Where some alerts go: those that all that is set here matches. The first route that matches counts.

    Attributes:
        rules: Patterns of rules, as in `Filters`.
        severities: Severities.
        owners: Patterns of teams under `[[owners]]`; an alert that nobody owns matches none.
        groups: Patterns of groups; an alert about the cluster matches none.
        clusters: Patterns of clusters.
        labels: Patterns by name of a label.
        targets: Names of targets; none sends these alerts to nobody.
    """

    rules: tuple[Pattern, ...] = ()
    severities: tuple[Severity, ...] = ()
    owners: tuple[Pattern, ...] = ()
    groups: tuple[Pattern, ...] = ()
    clusters: tuple[Pattern, ...] = ()
    labels: dict[str, Pattern] = Field(default_factory=dict)
    targets: tuple[str, ...]
