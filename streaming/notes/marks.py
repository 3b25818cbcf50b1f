"""Marks: what somebody did outside of Kafka, such as a deploy; shown in charts and in messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LONGEST_TEXT: Final = 200
"""Characters of a mark's text: a line in a chart and in a message. Longer ones are refused, not cut."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark.

    Attributes:
        mark_id: Its id.
        cluster: The cluster.
        text: What was done.
        group_id: The group that it concerns; None for the whole cluster.
        made_by: User and host, or "api".
        time: When it was done, ms.
    """

    mark_id: str
    cluster: str
    text: str
    group_id: str | None
    made_by: str
    time: int
