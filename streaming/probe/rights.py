"""This client's rights on topics, as the brokers tell them (KIP-430)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.admin import ACLOperation
from kafka.protocol.metadata import MetadataRequest

_OPERATIONS = {operation.value for operation in ACLOperation}


def topic_rights(admin: Any, names: Iterable[str]) -> Mapping[str, set[Any]] | None:
    """This client's rights on topics; a topic that does not exist is missing, one it may not see has no rights.

    None from brokers before 2.3, where only an attempt shows it.
    """
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        min_version=4,
    )
    answer = admin._manager.run(admin._manager.send, request)  # noqa: SLF001  (as clients.py does, and why)
    if answer.API_VERSION < 8:
        return None
    return {
        topic.name: {ACLOperation(right) for right in topic.authorized_operations or () if right in _OPERATIONS}
        for topic in answer.topics
        if topic.error_code in (0, 29)
    }
