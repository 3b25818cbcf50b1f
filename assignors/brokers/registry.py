"""The broker's assignors by name and release: consumer groups' and share groups'. A new one is a file and a line here.

`uniform`, the default, has one algorithm for equal subscriptions and another for different ones
(`org.apache.kafka.coordinator.group.assignor.UniformAssignor`). Eras begin with the release in which the protocol of a
type of group is production-ready: 4.0 for consumer groups, 4.2 for share groups. Previews are not recomputed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from assignors.assignment import Assignment
from assignors.brokers.model import ServerGroup
from assignors.brokers.range import cut_ranges
from assignors.brokers.simple import balance_shares
from assignors.brokers.uniform_heterogeneous import deal_and_balance
from assignors.brokers.uniform_homogeneous import keep_and_fill
from assignors.exceptions import UnknownStrategy
from assignors.strategy import Eras, Library, assign_as_of

_Recompute = Callable[[ServerGroup], Assignment]


def _uniform(of_equal: _Recompute, of_different: _Recompute) -> _Recompute:
    """Choose by the members' subscriptions."""

    def recompute(group: ServerGroup) -> Assignment:
        if not group.members:
            return {}
        if group.homogeneous:
            return of_equal(group)
        return of_different(group)

    return recompute


_OF_CONSUMER_GROUPS: dict[str, Eras[ServerGroup, Assignment]] = {
    "server-range": (((4, 0), cut_ranges),),
    "server-uniform": (
        ((4, 0, 1), _uniform(partial(keep_and_fill, gives_back=True), deal_and_balance)),
        ((4, 0), _uniform(partial(keep_and_fill, gives_back=False), deal_and_balance)),
    ),
}

_OF_SHARE_GROUPS: dict[str, Eras[ServerGroup, Assignment]] = {
    "server-simple": (((4, 2), balance_shares),),
}


def known_server_strategies() -> tuple[str, ...]:
    """Consumer groups' assignors by name, with the prefix "server-" to distinguish them from the clients'."""
    return tuple(_OF_CONSUMER_GROUPS)


def known_share_strategies() -> tuple[str, ...]:
    """As `known_server_strategies`, for share groups (KIP-932)."""
    return tuple(_OF_SHARE_GROUPS)


def assign_on_server(strategy: str, group: ServerGroup, release: Library | str | None = None) -> Assignment:
    """Recompute the target assignment that a group coordinator computed.

    Args:
        strategy: "server-uniform" or "server-range"; "server-simple" for a share group.
        group: Members with their previous targets, and topics, at the decision.
        release: The broker's release, as a value or as text ("4.0.1"); None means the newest.

    Returns:
        Partitions by topic id (as Kafka prints it) by member id; every member is included. Compare with `same`.

    Raises:
        UnknownStrategy: There is no such assignor.
        UnknownLibrary: The release cannot be parsed, or belongs to another library.
        CannotTell: The result cannot be recomputed exactly; `reason` says why. `TooMuchWork` if the work would exceed a
            limit (`assignors.context`).
        LeaderWouldFail: The assignor throws on this input, so it did not compute a target from it.
    """
    known = _OF_CONSUMER_GROUPS | _OF_SHARE_GROUPS
    eras = known.get(strategy)
    if eras is None:
        message = f"Server strategy {strategy!r} is not known: use one of {', '.join(known)}."
        raise UnknownStrategy(message)
    return assign_as_of(eras, group, release, strategy.removeprefix("server-"))
