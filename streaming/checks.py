"""The line in which one check, of `up`'s start or of the doctor, says what it has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckState = Literal["ok", "warn", "wrong"]
"""ok: nothing to do. warn: it works, but not as it should, or not for long. wrong: it does not work."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one check has seen.

    Attributes:
        area: What it belongs to: settings, cluster, lake, machine, alerts.
        what: What was looked at.
        state: ok, warn or wrong.
        text: What was seen; for warn and wrong also what to do.
    """

    area: str
    what: str
    state: CheckState
    text: str
