"""What the assignors of Kafka's brokers compute for groups of the consumer protocol (KIP-848), recomputed exactly.

from assignors.server import ServerGroup, ServerMember, ServerTopic, assign_on_server

topic = ServerTopic("AAAAAAAAAAAAAAAAAAAAKg", 3)
group = ServerGroup((ServerMember("a", ("t",)), ServerMember("b", ("t",))), {"t": topic})
assign_on_server("server-range", group, "4.0.1")  # {"a": {"AAAA...": range(0, 2)}, "b": {"AAAA...": range(2, 3)}}
"""

from __future__ import annotations

from assignors.server.exceptions import BadTarget, BadUuid
from assignors.server.hash_order import member_orders, names_in_hash_order
from assignors.server.model import ServerGroup, ServerMember, ServerTopic, Target
from assignors.server.registry import assign_on_server, known_server_strategies
from assignors.server.uuid import Uuid, uuid_of

__all__ = [
    "BadTarget",
    "BadUuid",
    "ServerGroup",
    "ServerMember",
    "ServerTopic",
    "Target",
    "Uuid",
    "assign_on_server",
    "known_server_strategies",
    "member_orders",
    "names_in_hash_order",
    "uuid_of",
]
