"""The bounds that alert rules and page share: `thresholds` of the rules file, `:name` in its expressions.

So what is red on the page is what the alert fires on, and both change in one place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from streaming.exceptions import SetupError
from streaming.places import own_file, shipped

SHIPPED_RULES = shipped("alerts.yaml")
"""The rules that come with Evenkeel."""


class Thresholds(BaseModel):
    """Bounds by name: those below, which the page reads as well, and those of the user's own rules.

    Attributes:
        imbalance: How much more uneven than it must be a group may be: `imbalance - imbalance_optimal`.
        silent_intervals: After so many of the probe's intervals without a round there is silence, ...
        silent_at_least_s: ... and not before so many seconds.
    """

    # (Strict: a truth value is no number.)
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
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(file, f"it cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise _wrong(file, f"it is not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise _wrong(file, "it must contain one list called rules")
    return content


def _wrong(file: Path, reason: str) -> SetupError:
    return SetupError(f"{file}: {reason}. See docs/alerts.md for how to write a rule.")
