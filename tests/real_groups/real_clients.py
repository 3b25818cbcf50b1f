"""The clients whose programs the tests build: releases, strategies, settings of their groups, and how they run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.real_groups.programs import confluent_program, go_program, node_program, rust_program

__all__ = ["PROGRAMS", "Program"]

_NO_OWN: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Program:
    """One client.

    Attributes:
        release: Its release, as pinned.
        strategies: Its strategies; empty stands for its default.
        command: Builds the program; returns its command.
        static: Whether it has static members.
        groups: What differs between the groups of a strategy, as fields of `Joins`: one group for each.
    """

    release: str
    strategies: Sequence[str]
    command: Callable[[], Sequence[str]]
    static: bool = True
    groups: Sequence[Mapping[str, Any]] = (_NO_OWN, _NO_OWN)


_SARAMA = "1.61.1"
_RACK = {"rack": "a"}

PROGRAMS = {
    "sarama": Program(
        _SARAMA,
        ("range", "roundrobin", "sticky"),
        partial(go_program, "sarama"),
        groups=tuple({"own": {"version": version}} for version in ("4.1.0", "2.8.0", "2.3.0")),
    ),
    # With an older `Version` its members never join.
    "sarama-cooperative": Program(
        _SARAMA,
        ("cooperative-sticky",),
        partial(go_program, "sarama"),
        groups=tuple({"own": {"version": version}} for version in ("4.1.0", "2.4.0")),
    ),
    # Its sticky strategies read a member's user data as their own, so they do not work with the setting.
    "sarama-user-data": Program(
        _SARAMA,
        ("range", "roundrobin"),
        partial(go_program, "sarama"),
        groups=tuple({"own": {"version": "2.8.0", "user.data": data}} for data in ("", "000102fe")),
    ),
    "franz-go": Program(
        "1.22.3",
        ("", "range", "roundrobin", "sticky", "cooperative-sticky"),
        partial(go_program, "franzgo"),
        groups=(_NO_OWN, _RACK),
    ),
    "kafka-go": Program("0.4.51", ("", "range", "roundrobin"), partial(go_program, "kafkago"), static=False),
    "kafkajs": Program("2.2.4", ("",), partial(node_program, "kafkajs"), static=False),
    "platformatic": Program("2.12.1", ("", "cooperative-sticky"), partial(node_program, "platformatic")),
    "confluent-javascript": Program("1.10.1", ("", "range", "cooperative-sticky"), confluent_program),
    "aiokafka": Program(
        "0.14.0",
        ("", "range", "roundrobin", "sticky"),
        lambda: [sys.executable, "-m", "tests.real_groups.real_aiokafka"],
    ),
    "krafka": Program(
        "0.28.1", ("", "range", "roundrobin", "cooperative-sticky"), rust_program, groups=(_NO_OWN, _RACK)
    ),
}
