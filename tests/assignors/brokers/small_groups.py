"""Small groups of a broker's assignor, with topics t and u."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server


def topic_id(number: int) -> str:
    return urlsafe_b64encode(number.to_bytes(16, "big")).rstrip(b"=").decode()


T, U = topic_id(1), topic_id(2)


def group(members: dict[str, Any], **counts: int) -> ServerGroup:
    """Members as {id: names} or {id: (names, {topic id: partitions})}; topics t and u with ids T and U."""
    made = []
    for member_id, told in members.items():
        names, target = told if isinstance(told, tuple) else (told, {})
        made.append(ServerMember(member_id, tuple(names.split()), tuple(target.items())))
    return ServerGroup(
        tuple(made), {name: ServerTopic({"t": T, "u": U}[name], count) for name, count in counts.items()}
    )


def assigned(strategy: str, of: ServerGroup, release: str | None = None) -> dict[str, dict[str, list[int]]]:
    return {
        member_id: {name: sorted(partitions) for name, partitions in topics.items()}
        for member_id, topics in assign_on_server(strategy, of, release).items()
    }
