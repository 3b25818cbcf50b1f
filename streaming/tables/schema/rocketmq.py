"""What only RocketMQ has: each broker's own list of a group's members."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    BOOLEAN,
    BROKER_CLIENTS,
    CLUSTER,
    GROUP,
    HEARTBEAT,
    INT,
    LONG,
    ROUND,
    ROUND_DATE,
    ROUND_TIME,
    SOURCE,
    STRING,
    STRINGS,
    Column,
    Table,
)

BROKER_MEMBERS: Final = Table(
    "broker_members",
    "One row per broker address and group whenever that broker's list of the group's clients changes, at a heartbeat, and when it is no longer asked (RocketMQ)",
    (
        CLUSTER,
        GROUP,
        Column("broker", STRING, "Broker name"),
        Column("broker_id", LONG, "0 for the master"),
        Column("address", STRING, "Address that was asked"),
        SOURCE,
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("ended", BOOLEAN, "The broker is not asked about the group any more, or the group is gone"),
        Column(
            "answer",
            STRING,
            "ok; none (it has no client of the group); timeout, refused, error, not_asked: then the list is not known",
        ),
        Column("reason", STRING, "What it said instead of an answer; NULL when it answered"),
        Column("connections", INT, "Length of its list; NULL when not known"),
        Column(
            "clients",
            BROKER_CLIENTS,
            "Its list, sorted by client id: one entry per connection, so a client id that two processes use is there twice; up to 2,000 of them. Address, language and version where it tells them. NULL when not known",
        ),
        Column(
            "missing",
            STRINGS,
            "Members on other brokers' lists that subscribe to a topic of this broker, and are not on its list: clients that ask it decide without them. NULL when not known",
        ),
        Column("duplicated", STRINGS, "Client ids that are on its list more than once; NULL when not known"),
        Column(
            "consume_type", STRING, "push, pull or pop, as the last heartbeat of a member said it; NULL when not told"
        ),
        Column("message_model", STRING, "CLUSTERING or BROADCASTING, likewise"),
        Column("consume_from", STRING, "consumeFromWhere, likewise"),
        Column(
            "subscription",
            STRINGS,
            "Topics of the last heartbeat, which need not be any other member's; NULL when not told",
        ),
        Column("broker_version", STRING, "The broker's version; NULL when not told"),
        Column(
            "consume_enabled",
            BOOLEAN,
            "consumeEnable of the group: false stops all its members; NULL when not told",
        ),
    ),
    key=("cluster", "group_id", "address"),
    newest_by=("round",),
    keep_days=35,
    time="round_time",
    of_rounds=True,
    repeats=HEARTBEAT,
    every_batch=True,
    closes=True,
)
