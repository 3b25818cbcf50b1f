"""Exact recomputation of the assignors in Kafka's brokers, for consumer groups (KIP-848) and share groups (KIP-932).

from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server

topic = ServerTopic("AAAAAAAAAAAAAAAAAAAAKg", 3)
group = ServerGroup((ServerMember("a", ("t",)), ServerMember("b", ("t",))), {"t": topic})
assign_on_server("server-range", group, "4.0.1")  # {"a": {"AAAA...": range(0, 2)}, "b": {"AAAA...": range(2, 3)}}
"""

from __future__ import annotations

from assignors.brokers.model import ServerGroup, ServerMember, ServerTopic, Target, Uuid, uuid_of
from assignors.brokers.registry import assign_on_server, known_server_strategies, known_share_strategies
from assignors.hash_map import member_orders, names_in_hash_order

__all__ = [
    "ServerGroup",
    "ServerMember",
    "ServerTopic",
    "Target",
    "Uuid",
    "assign_on_server",
    "known_server_strategies",
    "known_share_strategies",
    "member_orders",
    "names_in_hash_order",
    "uuid_of",
]
