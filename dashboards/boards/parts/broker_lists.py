"""What each broker of RocketMQ says of a group's members, as values for its template.

A member asks one broker, chosen at random each time, and decides by its list: who is missing there, or listed twice, is
why members of one group decide differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Clock, Row

__all__ = ["broker_lists"]

_MOST_NAMES: Final = 20
"""More names of one list nobody reads in a cell of a table."""


def broker_lists(rows: Sequence[Row], clock: Clock) -> list[dict[str, Any]]:
    """Values of `broker_lists.html.j2`, from rows of broker_members.sql."""
    return [
        {
            "broker": row["broker"],
            "address": row["address"],
            "known": row["connections"] is not None,
            "connections": row["connections"],
            "answer": (row["answer"] or "").replace("_", " "),
            "reason": row["reason"] or "",
            "missing": _names(row["missing"]),
            "duplicated": _names(row["duplicated"]),
            "release": (row["broker_version"] or words.DASH).removeprefix("V").replace("_", "."),
            "clients": "\n".join(_client(client) for client in (row["clients"] or ())[:_MOST_NAMES]),
            "stopped": row["consume_enabled"] is False,
            "told": _told(row),
            "time": clock.time(row["round_time"]),
        }
        for row in rows
    ]


def _client(client: Row) -> str:
    """A connection of the list: client id, address, language and version, as far as the broker tells them."""
    known = (client["client_id"], client["address"], client["language"], client["version"])
    return words.cut(" ".join(filter(None, known)), 200)


def _told(row: Row) -> str:
    """What the last heartbeat of a member said of the group: how it consumes, from where, and which topics."""
    how = filter(None, (row["consume_type"], row["message_model"], row["consume_from"]))
    topics = _names(row["subscription"])
    return words.cut("; ".join(filter(None, (", ".join(how), topics))), 200)


def _names(names: Sequence[str] | None) -> str:
    found = names or ()
    more = f" and {len(found) - _MOST_NAMES:,} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more
