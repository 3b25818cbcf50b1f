"""What a member tells of itself: its heartbeat, and its answer to request 307, as the Java client writes them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from assignors.rocketmq import MessageQueue

_CLASSES: Final = {
    "AVG": "AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": "AllocateMessageQueueAveragelyByCircle",
    "CONFIG": "AllocateMessageQueueByConfig",
    "CONSISTENT_HASH": "AllocateMessageQueueConsistentHash",
    "MACHINE_ROOM": "AllocateMessageQueueByMachineRoom",
}
_PACKAGE: Final = "org.apache.rocketmq.client.consumer.rebalance."


@dataclass(frozen=True, slots=True)
class MemberProfile:
    """A member at one moment.

    Attributes:
        client_id: Its id.
        group: Its group.
        model: "CLUSTERING" or "BROADCASTING".
        orderly: What it says of itself, as is the language.
        language: "JAVA", "GO", ...
        strategy: Name of its strategy.
        started: When it started, ms.
        subscribed: When it last changed its subscriptions, ms.
        topics: What it subscribes to.
    """

    client_id: str
    group: str
    model: str
    orderly: bool
    language: str
    strategy: str
    started: int
    subscribed: int
    topics: tuple[str, ...]


def heartbeat(about: MemberProfile) -> bytes:
    """`HeartbeatData`."""
    group = {
        "groupName": about.group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": about.model,
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "subscriptionDataSet": _subscriptions(about),
        "unitMode": False,
    }
    data = {"clientID": about.client_id, "consumerDataSet": [group], "producerDataSet": []}
    return json.dumps(data).encode()


def _subscriptions(about: MemberProfile) -> list[dict[str, Any]]:
    return [
        {
            "classFilterMode": False,
            "codeSet": [],
            "expressionType": "TAG",
            "subString": "*",
            "subVersion": about.subscribed,
            "tagsSet": [],
            "topic": topic,
        }
        for topic in about.topics
    ]


def running_info(about: MemberProfile, held: Iterable[MessageQueue], offsets: Mapping[MessageQueue, int]) -> bytes:
    """`ConsumerRunningInfo` as fastjson writes it, with queues as keys."""
    now = int(time.time() * 1000)
    queues = []
    for queue in sorted(held):
        key = {"brokerName": queue.broker, "queueId": queue.queue, "topic": queue.topic}
        told = {
            "cachedMsgCount": 0,
            "cachedMsgMaxOffset": 0,
            "cachedMsgMinOffset": 0,
            "cachedMsgSizeInMiB": 0,
            "commitOffset": offsets.get(queue, -1),
            "droped": False,
            "lastConsumeTimestamp": now,
            "lastLockTimestamp": now,
            "lastPullTimestamp": now,
            "locked": True,
            "transactionMsgCount": 0,
            "transactionMsgMaxOffset": 0,
            "transactionMsgMinOffset": 0,
            "tryUnlockTimes": 0,
        }
        queues.append(f"{json.dumps(key)}:{json.dumps(told)}")
    name = about.strategy.removeprefix("MACHINE_ROOM_NEARBY-")
    nearby = about.strategy != name
    kind = _PACKAGE + ("AllocateMachineRoomNearby" if nearby else _CLASSES[name])
    properties = {
        "PROP_CLIENT_VERSION": "V5_3_3",
        "PROP_CONSUMEORDERLY": str(about.orderly).lower(),
        "PROP_CONSUMER_START_TIMESTAMP": str(about.started),
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "allocateMessageQueueStrategy": f"{kind}@{hash(about) & 0xFFFFFFF:x}",
        "clientRebalance": "true",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "consumerGroup": about.group,
        "messageModel": about.model,
    }
    if about.language == "GO":
        del properties["allocateMessageQueueStrategy"]
    rest = {"properties": properties, "statusTable": {}, "subscriptionSet": _subscriptions(about)}
    told_rest = json.dumps(rest)[1:-1]
    return f'{{"mqTable":{{{",".join(queues)}}},"mqPopTable":{{}},{told_rest},"userConsumerInfo":{{}}}}'.encode()
