"""Rounds against RocketMQ: every name server and every broker is asked, no group is joined."""

from __future__ import annotations

from streaming.probe.rocketmq.run import RocketMQProbe, cluster_problems

__all__ = ["RocketMQProbe", "cluster_problems"]
