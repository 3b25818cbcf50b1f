"""The settings of the alerter: rules, targets, and the routes that say who gets which alert.

Alert rules and page share bounds: `thresholds` of the rules file, `:name` in its expressions. So what is red on the
page is what the alert fires on, and both change in one place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from streaming.config.forms import Pattern
from streaming.config.kafka import Section
from streaming.exceptions import SetupError
from streaming.places import own_file, shipped
from streaming.times import DAY_MS

SHIPPED_RULES = shipped("alerts.yaml")
"""The rules that come with Evenkeel."""


class Thresholds(BaseModel):
    """Bounds by name: those below, which the page reads as well, and those of the user's own rules.

    Attributes:
        imbalance: How much more uneven than it must be a group may be: `imbalance - imbalance_optimal`.
        silent_intervals: After so many of the probe's intervals without a round there is silence, ...
        silent_at_least_s: ... and not before so many seconds.
    """

    # Strict: a truth value is no number.
    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, float]

    imbalance: float = 0.5
    silent_intervals: float = 3.0
    silent_at_least_s: float = 20.0

    def silent_after_s(self, interval_ms: int | None) -> float:
        """Seconds without a new round after which there is silence."""
        return max(self.silent_intervals * (interval_ms or 0) / 1000, self.silent_at_least_s)

    def by_name(self) -> dict[str, float]:
        """All of them."""
        return self.model_dump()

    @classmethod
    def load(cls, file: Path | None = None) -> Thresholds:
        """Read the thresholds of the rules file; None finds it as the alerter does (`rules_file`).

        Raises:
            SetupError: The file cannot be read, or a threshold is no number.
        """
        return cls.of(read_rules_file(file := file or rules_file()).get("thresholds"), file)

    @classmethod
    def of(cls, given: object, file: Path) -> Thresholds:
        """Check what stands under `thresholds` in a file.

        Raises:
            SetupError: It is no list of names with numbers.
        """
        if given is None:
            return cls()
        try:
            return cls.model_validate(given)
        except ValidationError:
            raise _wrong(file, "thresholds must be names with numbers, like `imbalance: 0.5`") from None


def rules_file() -> Path:
    """The rules file where the settings name none: the user's own (`streaming/places.py`), or the shipped one.

    Raises:
        SetupError: Nobody may look for it.
    """
    try:
        return own_file("alerts.yaml") or SHIPPED_RULES
    except OSError as error:
        raise _wrong(Path("alerts.yaml"), f"it cannot be accessed ({error})") from None


def read_rules_file(file: Path) -> dict[str, Any]:
    """The content of a rules file.

    Raises:
        SetupError: It cannot be read, is not YAML, or holds something else than names with values.
    """
    import yaml  # noqa: PLC0415 - every process of Spark's imports this module, and none reads rules

    try:
        # In C where the package has it: in Python, reading takes longer than checking all rules does.
        loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
        content = yaml.load(file.read_text(encoding="utf-8"), loader)  # noqa: S506 - safe, both of them
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(file, f"it cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise _wrong(file, f"it is not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise _wrong(file, "it must contain one list called rules")
    return content


def _wrong(file: Path, reason: str) -> SetupError:
    return SetupError(f"{file}: {reason}. See docs/alerts.md for how to write a rule.")


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


_TARGET_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


class AlertSettings(Section):
    """The alerter.

    Attributes:
        rules: The rules; None takes conf/alerts.yaml, and the shipped ones where there is none.
        targets: Apprise URLs by a name of your own; secrets, so rather `targets_file` or the environment.
        targets_file: File with a line `name = URL` per target; empty lines and those that begin with "#" do not count.
        poll_ms: From one poll of the tables to the next.
        late_after_ms: A transition whose round is older than this when it is decided is late: delivered only if it
            is still true when the newest round is no older than this.
        look_back_ms: How far back the first start on a lake looks.
        start_grace_ms: An alerter reports silence only after it has waited so long itself: the job's own start takes
            half a minute.
        timeout_ms: A target that does not answer within this time has failed.
        longest_retry_ms: Failed deliveries are tried again after 1 s, 2 s, 4 s, ... and this at the most.
        give_up_after_ms: Deliveries are given up this long after the decision.
        trouble_exit_ms: An alerter that could not judge the tables for so long starts over, and opens all tables.
        digest_above: Up to so many alerts at once are a message each; beyond, those of one rule share a message.
        routes: Who gets which alert; without any every target gets every alert.
        resend_ms: How often a firing alert is sent again to an Alertmanager, which would end it otherwise.
    """

    rules: Path | None = None
    targets: dict[Annotated[str, Field(pattern=_TARGET_NAME)], SecretStr] = Field(default_factory=dict)
    targets_file: Path | None = None
    poll_ms: int = Field(default=2_000, ge=100)
    late_after_ms: int = Field(default=300_000, ge=1_000)
    look_back_ms: int = Field(default=3_600_000, ge=0)
    start_grace_ms: int = Field(default=120_000, ge=0)
    timeout_ms: int = Field(default=10_000, ge=100)
    longest_retry_ms: int = Field(default=60_000, ge=1_000)
    give_up_after_ms: int = Field(default=DAY_MS, ge=1_000)
    trouble_exit_ms: int = Field(default=600_000, ge=1_000)
    # Nobody reads more than a screen of messages one by one, and Telegram takes 20 a minute for a group, Discord 30.
    digest_above: int = Field(default=10, ge=1)
    routes: tuple[Route, ...] = ()
    # Alertmanager ends an alert at its `endsAt`, which is four times this ahead, as Prometheus sets it.
    resend_ms: int = Field(default=60_000, ge=100)

    def all_targets(self) -> dict[str, SecretStr]:
        """Targets of the settings and of the file, by name; the file wins.

        Raises:
            SetupError: The file cannot be read, or a line is no target; the line itself is not shown.
        """
        if self.targets_file is None:
            return dict(self.targets)
        try:
            lines = self.targets_file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            message = f"The targets of alerts cannot be read from {self.targets_file}: {error}."
            raise SetupError(message) from None
        found = dict(self.targets)
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            name, sign, url = (part.strip() for part in line.partition("="))
            if not sign or not url or not re.fullmatch(_TARGET_NAME, name):
                message = f"Line {number} of {self.targets_file} is not a target: it must read `name = URL`."
                raise SetupError(message)
            found[name] = SecretStr(url)
        return found
