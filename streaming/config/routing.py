"""Settings of who gets which alert, and when: routes, quiet hours, maintenance, reports.

They stand in `evenkeel.toml`, beside the targets and owners that they name; what belongs to one rule (`targets`,
`repeat_after`) may stand with the rule in `alerts.yaml`. What they mean is decided in `streaming/alerts/routing`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime, ConfigDict, Field, field_serializer, field_validator, model_validator

from streaming.config.kafka import Section
from streaming.config.patterns import compile_all
from streaming.config.spans import Days, Minute, Span, Zone, clock_text

Severity = Literal["info", "warning", "critical"]

_EVERY_DAY = frozenset(range(7))


class _Named(Section):
    # (Python's own words cannot be names of fields.)
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Matchers(_Named):
    """Which alerts something is about: all that is set must match; nothing set matches every alert.

    Attributes:
        rules: Patterns of rules, as in `Filters`.
        severities: Severities.
        owners: Patterns of teams under `[[owners]]`; an alert that nobody owns matches none.
        groups: Patterns of groups; an alert about the cluster matches none.
        clusters: Patterns of clusters.
        labels: Patterns by name of a label.
    """

    rules: tuple[str, ...] = ()
    severities: tuple[Severity, ...] = ()
    owners: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)

    @field_validator("rules", "owners", "groups", "clusters")
    @classmethod
    def _compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return compile_all(patterns)

    @field_validator("labels")
    @classmethod
    def _compile_values(cls, labels: dict[str, str]) -> dict[str, str]:
        compile_all(tuple(labels.values()))
        return labels


class Route(Matchers):
    """Where some alerts go. The first route that matches counts, and those after it only if it says `continue`.

    Attributes:
        targets: Names of targets; none sends these alerts to nobody.
        repeat_after: An alert that still fires is sent again after so long, ms; None for once.
        go_on: `continue` in the file: later routes count as well.
    """

    targets: tuple[str, ...]
    repeat_after: Span | None = None
    go_on: bool = Field(default=False, alias="continue")

    @field_validator("repeat_after")
    @classmethod
    def _not_too_often(cls, span: int | None) -> int | None:
        if span is not None and span < 60_000:
            message = "alerts are repeated once a minute at most"
            raise ValueError(message)
        return span


class Hours(_Named):
    """Hours of each week, in a time zone.

    Attributes:
        days: The days on which they begin.
        begin: `from` in the file: minute of the day.
        end: `to`: minute of the day at which they end, of the next day where it is not after `begin`.
        time_zone: Its name.
    """

    days: Days = _EVERY_DAY
    begin: Minute = Field(alias="from")
    end: Minute = Field(alias="to")
    time_zone: Zone = "UTC"


class QuietHours(Hours):
    """Hours in which targets are left in peace; what still fires at their end is sent then.

    Attributes:
        targets: Names of targets; empty for all.
        passes: Severities that are sent all the same.
    """

    targets: tuple[str, ...] = ()
    passes: tuple[Severity, ...] = ("critical",)


class Maintenance(Matchers):
    """A time in which some alerts are expected: nothing is sent before it is over. Weekly hours, or a single span.

    Attributes:
        reason: What is done then.
        begin: `from`: a moment with its offset from UTC, or a time of the day.
        end: `to`: the same.
        days: Days on which weekly hours begin.
        time_zone: Zone of weekly hours.
        passes: Severities that are sent all the same.
    """

    reason: str = "maintenance"
    begin: AwareDatetime | Minute = Field(alias="from")
    end: AwareDatetime | Minute = Field(alias="to")
    days: Days = _EVERY_DAY
    time_zone: Zone = "UTC"
    passes: tuple[Severity, ...] = ()

    @field_serializer("begin", "end")
    def _as_written(self, moment: datetime | int) -> str:
        return moment.isoformat() if isinstance(moment, datetime) else clock_text(moment)

    @model_validator(mode="after")
    def _one_kind(self) -> Maintenance:
        if isinstance(self.begin, datetime) != isinstance(self.end, datetime):
            message = "from and to must both be moments (2026-12-01T22:00:00+01:00), or both times of the day (22:00)"
            raise ValueError(message)
        if isinstance(self.begin, datetime) and isinstance(self.end, datetime) and not self.begin < self.end:
            message = "from must lie before to"
            raise ValueError(message)
        return self

    @property
    def once(self) -> tuple[int, int] | None:
        """First and last moment of a single span, ms; None for weekly hours."""
        if not isinstance(self.begin, datetime) or not isinstance(self.end, datetime):
            return None
        return _ms(self.begin), _ms(self.end)

    @property
    def weekly(self) -> Hours | None:
        """The weekly hours; None for a single span."""
        if isinstance(self.begin, datetime) or isinstance(self.end, datetime):
            return None
        return Hours.model_construct(days=self.days, begin=self.begin, end=self.end, time_zone=self.time_zone)


class Report(_Named):
    """A report of a day's or a week's alerts to a team.

    Attributes:
        targets: Names of targets; at least one.
        team: Team under `[[owners]]` whose groups it is about; "" for everything.
        every: A day or a week.
        at: Minute of the day at which it is made.
        day: For a weekly one, the day; Monday is 0.
        time_zone: Its zone.
    """

    targets: tuple[str, ...] = Field(min_length=1)
    team: str = ""
    every: Literal["day", "week"] = "day"
    at: Minute = 8 * 60
    day: Days = frozenset({0})
    time_zone: Zone = "UTC"

    @field_validator("day")
    @classmethod
    def _single(cls, days: frozenset[int]) -> frozenset[int]:
        if len(days) != 1:
            message = "a weekly report has one day"
            raise ValueError(message)
        return days


def _ms(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1000)
