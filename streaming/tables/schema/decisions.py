"""What decisions of groups leave: the rebalance, its verdict, its members, what other strategies would have done."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    ASSIGNED,
    BINARY,
    BOOLEAN,
    CAUSES,
    CLUSTER,
    DAILY,
    DATE,
    DECISION,
    DOUBLE,
    DRIFTED,
    GROUP,
    INCARNATION,
    INT,
    LOG_PARTITION,
    LONG,
    OF_DECISION,
    RECORD_TIME,
    REPEAT,
    REPLACED,
    SOURCE,
    STRING,
    STRINGS,
    TASKS,
    TIMESTAMP,
    VERDICT_ROUND,
    Column,
    Table,
)

REBALANCE_CHURN: Final = Table(
    "rebalance_churn",
    "One row per decision of a group, and a further revision whenever more of its cost becomes known",
    (
        *OF_DECISION,
        Column("revision", INT, "1 for the row written with the record; later revisions know more of its cost"),
        Column(
            "kind",
            STRING,
            "rebalance, became_empty, static_replacement (no rebalance), created, migration (first decision after the group changed its protocol)",
        ),
        INCARNATION,
        Column(
            "generation",
            INT,
            "Generation; where the broker assigns (KIP-848), the target's epoch. NULL for RocketMQ, and for classic groups where source is admin",
        ),
        Column("previous_generation", INT, "Previous generation of the same incarnation; NULL when not known"),
        Column(
            "generations_skipped",
            INT,
            "Generations without a record (the leader never synced), or epochs without a target; where source is admin, epochs between two looks. NULL when not known",
        ),
        Column(
            "follows",
            LONG,
            "The decision that this one completes: the first half of a cooperative rebalance, or a migration that left partitions pending; NULL otherwise",
        ),
        Column("protocol_type", STRING, "Protocol type: consumer, connect, ..."),
        Column(
            "strategy",
            STRING,
            "Selected protocol, or the server assignor that members ask for; NULL when the group is empty, or members ask for none",
        ),
        Column("leader", STRING, "Member id of the leader; NULL when the group is empty, and where the broker assigns"),
        Column("members", INT, "Number of members"),
        Column(
            "partitions",
            INT,
            "Assigned partitions, active tasks, or connectors with their tasks, as far as the assignments can be read",
        ),
        Column(
            "joined", STRINGS, "Ids of members that were not in the previous generation; NULL when that is not known"
        ),
        Column("left", STRINGS, "Ids of members that were in the previous generation and are gone"),
        Column("replaced", REPLACED, "Static members that came back under another member id"),
        Column(
            "partitions_moved",
            INT,
            "Partitions, tasks or connectors that went from one owner to another; where the broker assigns, between the previous target and this one; in a share group how often a member lost what another got. NULL when one is not known",
        ),
        Column(
            "partitions_moved_optimal",
            INT,
            "Fewest moves that could have balanced the group. NULL where not computed (verdicts.md), and in the first half of a cooperative rebalance",
        ),
        Column(
            "partitions_pending_handover",
            INT,
            "Partitions, tasks or connectors given up and not yet handed over (cooperative rebalances and migrations); they count as moves in the row that completes this one",
        ),
        Column(
            "join_completed_time",
            TIMESTAMP,
            "Time when all members had joined (currentStateTimestamp); NULL when not recorded",
        ),
        Column(
            "unassigned_partition_seconds_min",
            DOUBLE,
            "Lower bound of the time without an owner, summed over partitions (verdicts.md says what proves it). NULL when there is none, and where the broker assigns until every member has reached the target",
        ),
        Column(
            "unassigned_partition_seconds_max",
            DOUBLE,
            "Upper bound of the same. NULL while proofs are awaited, and where there is none",
        ),
        Column(
            "causes",
            CAUSES,
            "What changed since the previous decision, with its evidence (causes.md): member_joined, member_left, member_silent, member_gone, static_replacement, subscription_changed, partitions_changed, strategy_changed, settings_changed, handover, migration, rejoined, coordinator_moved, for RocketMQ also broker_down, broker_up, name_server_differs, member_lists_changed, settled, and unknown. count: members concerned, the first of them in members, or topics where topic is NULL; before and after: partitions, strategies, leader epochs, brokers. Empty for created",
        ),
        Column(
            "rebalance_protocol",
            STRING,
            "How members rebalanced: eager (they give up everything before they join), cooperative (they reported what they kept), consumer (KIP-848). NULL where it is not certain, and without a rebalance",
        ),
        Column(
            "partitions_stopped_unmoved",
            INT,
            "Partitions that kept their owner and were not read during an eager rebalance. 0 for cooperative and consumer; NULL where the protocol or the owners before are not known",
        ),
        Column(
            "decided_time_min",
            TIMESTAMP,
            "Where source is not log: made after this time, that of the last round that did not show it, UTC; others may have been made since then. NULL for source log, where no round had looked before, and where its clock was ahead",
        ),
        Column(
            "decided_time_max",
            TIMESTAMP,
            "Likewise: made before this time, when the round that showed it was closed, UTC. NULL for source log",
        ),
    ),
    key=("cluster", "group_id", "decision"),
    newest_by=("revision",),
    keep_days=400,
    time="record_time",
    every_batch=True,
)

DRIFT: Final = Table(
    "drift",
    "One row per verdict on a decision",
    (
        *OF_DECISION,
        Column("topic", STRING, "Topic, where a group decides topic by topic (RocketMQ); NULL for Kafka"),
        INCARNATION,
        Column("generation", INT, "Generation; NULL when not known (source admin), and for RocketMQ"),
        *VERDICT_ROUND,
        Column("strategy", STRING, "Strategy that the group runs; NULL when it is empty"),
        Column("expected_strategy", STRING, "Strategy that the settings name for the group; NULL when they name none"),
        Column(
            "strategy_mismatch", BOOLEAN, "The group runs another strategy than expected; NULL when either is not known"
        ),
        Column("verdict", STRING, "identical, drifted, unverified, not_applicable"),
        Column("reason", STRING, "Why the verdict is what it is; NULL for identical"),
        Column(
            "matching_library",
            STRING,
            "Client library or broker, with the first release of its era, that gives this assignment; NULL when none does",
        ),
        Column("candidates", INT, "Candidates (library, release) that were computed"),
        Column("drifted_count", INT, "Length of drifted_partitions"),
        Column(
            "drifted_partitions",
            DRIFTED,
            "Partitions whose owner is not the expected one, by the configured strategy where basis is configured; broker as in lag, NULL for Kafka. Of streams groups and Connect, tasks: topic is the subtopology, or the connector. kind one of: misplaced, unassigned, doubly_assigned, not_subscribed, standby_beside_active, not_in_topology",
        ),
        Column(
            "inputs",
            BINARY,
            "What the strategy was given, as a line of evenkeel assign (JSON, compressed with zlib), for the candidate that fits, else the nearest, or the configured strategy (basis configured). NULL when no strategy was asked, and beyond 1 MiB, or 64 KiB compressed",
        ),
        Column(
            "configuration_version",
            STRING,
            "Fingerprint of the settings for strategies and clients, as the round told them; NULL when they say nothing of the group",
        ),
        Column(
            "basis",
            STRING,
            "What drifted rests on: invariant (two owners, or one that no client of the strategy gives), promise (of the strategy's name), configured (the settings name another strategy), declared (none of the clients known to run gives this); NULL for any other verdict",
        ),
        Column(
            "own_verdict", STRING, "Verdict on the strategy that the group runs: verdict, unless basis is configured"
        ),
        Column(
            "nearest_library",
            STRING,
            "Client library, in the form of matching_library, whose result comes nearest; NULL when one matches, or none could be computed",
        ),
        Column("nearest_differing", INT, "Partitions that it gives another owner; NULL when nearest_library is"),
    ),
    key=("cluster", "group_id", "topic"),
    newest_by=("round", "decision"),
    keep_days=400,
    time="round_time",
    with_group=True,
    every_batch=True,
    unique_by=("cluster", "group_id", "topic", "decision", "configuration_version"),
)

MEMBERS: Final = Table(
    "members",
    "One row per member of a decision, repeated once a day while it stands, and a closing row when the member has left",
    (
        CLUSTER,
        GROUP,
        DECISION,
        Column("member_id", STRING, "Member id"),
        SOURCE,
        LOG_PARTITION,
        RECORD_TIME,
        Column(
            "event_date", DATE, "Day of record_time, or of the round that repeated the row, UTC; partitions the table"
        ),
        Column("ended", BOOLEAN, "The member has left; the row has the offset and time of the record that shows it"),
        INCARNATION,
        Column(
            "generation",
            INT,
            "Newest generation that the member was in; NULL when not known (source admin), and for RocketMQ",
        ),
        Column("group_instance_id", STRING, "group.instance.id; NULL for a dynamic member"),
        Column("client_id", STRING, "Client id"),
        Column("client_host", STRING, "Host as the broker recorded it; the URL of a Connect worker"),
        Column("rack", STRING, "client.rack; NULL when none"),
        Column(
            "leader", BOOLEAN, "Whether it led this generation; NULL when not known (source admin), and for RocketMQ"
        ),
        Column("subscription", STRINGS, "Subscribed topics; NULL when they cannot be read"),
        Column(
            "partition_count",
            INT,
            "Assigned partitions, active tasks, or connectors with their tasks; NULL when they cannot be read",
        ),
        Column(
            "partitions",
            ASSIGNED,
            "Assigned partitions by topic, those that active tasks read, or tasks by connector (-1 is the connector); broker as in lag, NULL for Kafka. NULL when they cannot be read",
        ),
        Column("undecodable", STRING, "Why subscription or assignment cannot be read; NULL when they can"),
        Column(
            "session_timeout_ms",
            INT,
            "Session timeout of a classic member, ms; NULL where the broker sets it (KIP-848)",
        ),
        Column(
            "rebalance_timeout_ms",
            INT,
            "Rebalance timeout, ms: a consumer's max.poll.interval.ms; NULL when the record has none",
        ),
        REPEAT,
        Column(
            "tasks",
            TASKS,
            "Streams groups: the tasks of the member's target; kind one of: active, standby, warmup; a task is the partition of that number of each topic of its subtopology. NULL for other groups, and when the target is not known",
        ),
    ),
    key=("cluster", "group_id", "member_id"),
    newest_by=("decision", "repeat"),
    keep_days=90,
    time="event_date",
    repeats=DAILY,
    every_batch=True,
    closes=True,
    with_cluster=True,
    unique_by=("cluster", "group_id", "member_id", "decision", "ended", "repeat"),
)

WHAT_IF: Final = Table(
    "what_if",
    "One row per strategy and decision with a verdict: how balanced it would have left the group, and with how many moves; none for the first half of a cooperative rebalance",
    (
        *OF_DECISION,
        INCARNATION,
        Column(
            "generation",
            INT,
            "Generation, or epoch of the target assignment; NULL when not known (source admin), and for RocketMQ",
        ),
        *VERDICT_ROUND,
        Column(
            "strategy",
            STRING,
            "range, roundrobin, sticky, cooperative-sticky, or the group's own; where the broker assigns (KIP-848), uniform, range",
        ),
        Column(
            "runs",
            BOOLEAN,
            "Whether the group runs it; NULL when not known, as where the broker assigns and no member asks for an assignor",
        ),
        Column(
            "library",
            STRING,
            "Client library or broker, with the first release of its era: the one that matches the group's assignment; for other strategies that client's newest, Java's or the broker's. NULL when not computed",
        ),
        Column(
            "partitions_moved",
            INT,
            "Partitions that would have gone from one owner to another by the end of the rebalance; NULL with a reason",
        ),
        Column(
            "partitions_moved_optimal",
            INT,
            "Fewest moves with which any assignment could have balanced the group; NULL where not computed",
        ),
        Column(
            "imbalance",
            DOUBLE,
            "max / mean - 1 of partitions per member; NULL with a reason, or when there is nothing to assign",
        ),
        Column("imbalance_optimal", DOUBLE, "Lowest imbalance that any assignment could have; NULL where not computed"),
        Column("reason", STRING, "Why partitions_moved, or imbalance too, is NULL; NULL when neither is"),
        Column(
            "load_imbalance",
            DOUBLE,
            "max / mean - 1 of the records produced per second by member, by the newest window of the rates that had ended; NULL where a rate is not known, and without records",
        ),
        Column("configured", BOOLEAN, "Whether the settings name it for the group; NULL when they name none"),
    ),
    key=("cluster", "group_id", "strategy"),
    newest_by=("round", "decision"),
    keep_days=90,
    time="round_time",
    with_group=True,
    every_batch=True,
    unique_by=("cluster", "group_id", "decision", "strategy", "configured"),
)
