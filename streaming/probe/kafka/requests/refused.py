"""What an error code in an answer means: that there is no answer, or that the round must be abandoned."""

from __future__ import annotations

from enum import Enum
from typing import Any

from kafka.errors import for_code

from streaming.probe.exceptions import RoundAbandonedError

OK = 0
GROUP_FORBIDDEN = 30
TOPIC_FORBIDDEN = 29
CLUSTER_FORBIDDEN = 31
_TOPIC_UNKNOWN, _TOPIC_INVALID, _GROUP_UNKNOWN = 3, 17, 69


class Refused(Enum):
    """Why an answer is missing."""

    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"


def refusal_of_topic(answer: Any) -> Refused | None:
    """Why a topic's metadata are missing; None when they are there.

    Raises:
        RoundAbandonedError: For a temporary reason.
    """
    if answer.error_code == TOPIC_FORBIDDEN:
        return Refused.FORBIDDEN
    if answer.error_code in (_TOPIC_UNKNOWN, _TOPIC_INVALID):
        return Refused.UNKNOWN
    demand(answer.error_code, f"topic {answer.name!r} has no metadata")
    return None


def refusal_of_group(answer: Any, group: str) -> Refused | None:
    """Why a coordinator does not answer for a group; None when it does.

    Raises:
        RoundAbandonedError: For a temporary reason.
    """
    if answer.error_code in (GROUP_FORBIDDEN, TOPIC_FORBIDDEN):
        return Refused.FORBIDDEN
    if answer.error_code == _GROUP_UNKNOWN:
        return Refused.UNKNOWN
    demand(answer.error_code, f"the coordinator of group {group!r} refused to describe it")
    return None


def demand(error_code: int, what: str) -> None:
    """Abandon the round unless there was no error."""
    if error_code != OK:
        message = f"{what} ({for_code(error_code).__name__})"
        raise RoundAbandonedError(message)
