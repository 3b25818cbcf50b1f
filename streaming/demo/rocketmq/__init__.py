"""A real RocketMQ cluster on this machine, members that speak its protocol, and ways to make groups go wrong."""

from __future__ import annotations

from streaming.demo.rocketmq.commands import CommandRefused, Commands
from streaming.demo.rocketmq.member import RocketMQMember
from streaming.demo.rocketmq.servers import EmbeddedRocketMQ, Server

__all__ = ["CommandRefused", "Commands", "EmbeddedRocketMQ", "RocketMQMember", "Server"]
