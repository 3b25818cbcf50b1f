"""The settings of every process: their shapes, where they come from, the connection to Kafka, the thresholds."""

from __future__ import annotations

from streaming.config.alerts import (
    SEVERITIES,
    SHIPPED_RULES,
    AlertSettings,
    Route,
    Severity,
    Thresholds,
    read_rules_file,
    rules_file,
)
from streaming.config.fleet import FleetFile, checkpoint_of, environment_of, load_fleet, needs_s3a, secret_names
from streaming.config.forms import fits, host_and_port, span_ms
from streaming.config.kafka import KAFKA_SECRETS, KafkaSettings, secret_variable
from streaming.config.rocketmq import ROCKETMQ_SECRETS, RocketMQSettings, RocketMQStrategy, strategy_of
from streaming.config.settings import (
    BusFolder,
    Filters,
    GroupRules,
    JobSettings,
    OffsetsLog,
    Owner,
    ProbeSettings,
    ServeSettings,
    Settings,
    StrategyRule,
    Writer,
    load_settings,
    owner_of,
)
from streaming.config.sources import CHOSEN, cluster_variables

__all__ = [
    "CHOSEN",
    "KAFKA_SECRETS",
    "ROCKETMQ_SECRETS",
    "SEVERITIES",
    "SHIPPED_RULES",
    "AlertSettings",
    "BusFolder",
    "Filters",
    "FleetFile",
    "GroupRules",
    "JobSettings",
    "KafkaSettings",
    "OffsetsLog",
    "Owner",
    "ProbeSettings",
    "RocketMQSettings",
    "RocketMQStrategy",
    "Route",
    "ServeSettings",
    "Settings",
    "Severity",
    "StrategyRule",
    "Thresholds",
    "Writer",
    "checkpoint_of",
    "cluster_variables",
    "environment_of",
    "fits",
    "host_and_port",
    "load_fleet",
    "load_settings",
    "needs_s3a",
    "owner_of",
    "read_rules_file",
    "rules_file",
    "secret_names",
    "secret_variable",
    "span_ms",
    "strategy_of",
]
