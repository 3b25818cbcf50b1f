"""What one check has seen, and what `evenkeel doctor` asks of a cluster beside the check at the start: its brokers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from streaming.config import KafkaSettings
from streaming.exceptions import EvenkeelError
from streaming.probe.deadline import Deadline
from streaming.probe.kafka.requests import Requests

CheckState = Literal["ok", "warn", "wrong"]
"""ok: nothing to do. warn: it works, but not as it should, or not for long. wrong: it does not work."""

# A broker that can be reached accepts a connection within milliseconds, across continents within a second.
_CONNECT_S: Final = 3.0

# A broker answers from memory.
_REQUESTS_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check, of `up`'s start or of the doctor, has seen.

    Attributes:
        area: What it belongs to: settings, cluster, lake, machine, alerts.
        what: What was checked.
        state: ok, warn or wrong.
        text: What was seen; for warn and wrong also what to do.
    """

    area: str
    what: str
    state: CheckState
    text: str


def tried(area: str, what: str, look: Callable[[], tuple[CheckState, str]]) -> CheckResult:
    """What a look at something has seen, as state and text; an error that says what to do is wrong."""
    try:
        state, text = look()
    except EvenkeelError as error:
        state, text = "wrong", str(error)
    return CheckResult(area, what, state, text)


def inspect_brokers(section: str, kafka: KafkaSettings, admin: Any) -> Iterator[CheckResult]:
    """Ask one cluster for its brokers, and try each address that they advertise.

    Args:
        section: Its section of the settings, `kafka` or `bus`.
        kafka: Its connection.
        admin: An open admin client.
    """
    answer = Requests(admin).ask_metadata([], Deadline.after(_REQUESTS_S))
    what, reached = f"{section}: brokers", True
    for broker in answer.brokers if not kafka.has_proxy else ():
        reason = refusal_of(broker.host, broker.port)
        if reason is not None:
            reached = False
            problem = (
                f"Broker {broker.node_id} says that it is at {broker.host}:{broker.port}, which cannot be reached from "
                f"here ({reason}): correct its advertised.listeners, or the network's way there."
            )
            yield CheckResult("cluster", what, "wrong", problem)
    if reached:
        yield CheckResult("cluster", what, "ok", f"{len(answer.brokers)} up")


def refusal_of(host: str, port: int) -> str | None:
    """Why an address takes no connection; None when it does."""
    try:
        socket.create_connection((host.strip("[]"), port), _CONNECT_S).close()
    except (OSError, UnicodeError, OverflowError) as error:
        return str(getattr(error, "strerror", None) or error).lower()
    return None
