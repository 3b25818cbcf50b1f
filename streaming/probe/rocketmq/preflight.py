"""Checks before the start: do name servers and brokers answer, and may this client ask what the probe asks?

Nothing is written, created or joined.
"""

from __future__ import annotations

from collections.abc import Iterator

from streaming.config import NO_BUS, RocketMQSettings, Settings
from streaming.exceptions import SetupError
from streaming.probe.rocketmq import parts
from streaming.probe.rocketmq.run import open_client
from streaming.records import REFUSED, TIMEOUT
from streaming.rocketmq import Client, Question, Request, answers

_CHECK_S = 5.0
"""A server that is well answers within milliseconds."""

_NOBODY = "evenkeel-preflight"
"""A group that need not exist: rights are checked before its existence."""


def cluster_problems(settings: Settings) -> Iterator[str]:
    """What a person must fix before RocketMQ's groups can be watched: a sentence each."""
    given = settings.rocketmq
    assert given is not None  # noqa: S101  (the caller's choice of this check)
    if settings.bus is None:
        yield NO_BUS
        return
    try:
        client = open_client(given)
    except SetupError as error:
        yield str(error)
        return
    with client:
        yield from _problems(client, given)


def _problems(client: Client, given: RocketMQSettings) -> Iterator[str]:
    questions = [Question(address, Request.GET_BROKER_CLUSTER_INFO) for address in given.addresses]
    brokers: dict[str, str] = {}
    reasons = []
    for address, answer in zip(given.addresses, client.ask(questions, _CHECK_S), strict=True):
        how, reason, info = parts.outcome(answer, answers.ClusterInfo)
        if info is None:
            reasons.append(f"{address}: {reason or how}")
        else:
            brokers |= {
                at: name for name, data in info.brokerAddrTable.items() for at in data.brokerAddrs.values() if at
            }
    if len(reasons) == len(given.addresses):
        yield (
            f"No name server of the RocketMQ cluster answers ({'; '.join(reasons)}): correct rocketmq.name_servers, or "
            "start them (with TLS or access control, docs/rocketmq.md)."
        )
        return
    if not brokers:
        yield (
            f"The name servers {', '.join(given.addresses)} know no broker: correct rocketmq.name_servers, or let the "
            "brokers register with them."
        )
        return
    found = []
    code = Request.GET_CONSUMER_CONNECTION_LIST
    asked = [Question(address, code, {"consumerGroup": _NOBODY}) for address in sorted(brokers)]
    for question, answer in zip(asked, client.ask(asked, _CHECK_S), strict=True):
        how, reason, _ = parts.outcome(answer, answers.ConsumerConnection)
        if how == REFUSED:
            who = "This client" if given.access_key is None else f"User {given.access_key!r}"
            yield (
                f"{who} may not ask broker {question.address} about groups ({reason}): correct rocketmq.access_key and "
                "its secret, or grant the rights of docs/rocketmq.md."
            )
            return
        if how != TIMEOUT:
            found.append(question.address)
    if not found:
        reason = parts.outcome(client.ask(asked[:1], _CHECK_S)[0], answers.ConsumerConnection)[1]
        yield (
            f"None of the {len(brokers)} brokers can be reached from here ({asked[0].address}: {reason}): they must be "
            "reachable under the addresses that they give the name servers (brokerIP1)."
        )
