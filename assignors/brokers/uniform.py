"""The broker's `uniform`, its default: one algorithm for equal subscriptions, another for different ones.

Follows `org.apache.kafka.coordinator.group.assignor.UniformAssignor`.
"""

from __future__ import annotations

from assignors.assignment import Assignment
from assignors.brokers.model import ServerGroup
from assignors.brokers.uniform_heterogeneous import deal_and_balance
from assignors.brokers.uniform_homogeneous import keep_and_fill, keep_and_fill_giving_extras_back
from assignors.brokers.uniform_sticky import deal_and_move

__all__ = ["uniform_before_4_0", "uniform_before_4_0_1", "uniform_since_4_0_1"]


def uniform_before_4_0(group: ServerGroup) -> Assignment:
    """Releases 3.8 and 3.9."""
    if not group.members:
        return {}
    return keep_and_fill(group) if group.homogeneous else deal_and_move(group)


def uniform_before_4_0_1(group: ServerGroup) -> Assignment:
    """Release 4.0.0."""
    if not group.members:
        return {}
    return keep_and_fill(group) if group.homogeneous else deal_and_balance(group)


def uniform_since_4_0_1(group: ServerGroup) -> Assignment:
    """Release 4.0.1 and later."""
    if not group.members:
        return {}
    return keep_and_fill_giving_extras_back(group) if group.homogeneous else deal_and_balance(group)
