"""Codes of requests and answers that we use (`RequestCode` and `ResponseCode` of 5.5.0; the same in 4.9.8)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Request(IntEnum):
    """What is asked. None of these changes anything, and none makes the asker a member of a group."""

    GET_CONSUMER_LIST_BY_GROUP = 38
    GET_ALL_CONSUMER_OFFSET = 43
    GET_BROKER_RUNTIME_INFO = 28
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    GET_CONSUME_STATS = 208
    GET_CONSUMER_RUNNING_INFO = 307
    GET_BROKER_CONSUME_STATS = 317
    GET_ALL_MESSAGE_REQUEST_MODE = 402


NAMES: Final = {int(request): request.name for request in Request}
"""Their name by number."""

SUCCESS: Final = 0
SYSTEM_ERROR: Final = 1
NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 16
TOPIC_NOT_EXIST: Final = 17
CONSUMER_NOT_ONLINE: Final = 206
CONSUME_MSG_TIMEOUT: Final = 207
