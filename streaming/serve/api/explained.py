"""A verdict in words, as `evenkeel explain --json` prints it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dashboards import Site
from streaming.explain import NoSuchPartitionError, read_partition, verdicts_in_words
from streaming.serve.page import quoted


class ExplainFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of an explanation.

    Attributes:
        group: The group's id.
        cluster: The cluster, by its configured name.
        generation: A generation or epoch; None for the newest verdict.
        decision: Number of a decision; None for the newest.
        partition: Only this partition, as TOPIC/NUMBER. For RocketMQ the queues of this number on every broker; with
            TOPIC@BROKER as the topic, that one.
    """

    group: str
    cluster: str | None = None
    generation: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    decision: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    partition: str | None = None


class NoVerdictError(Exception):
    """There is no verdict, or more than one, or not of this partition; the text is a sentence.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def explained(site: Site, asked: ExplainFilter) -> dict[str, Any] | None:
    """The document; None while the verdict is still being read.

    It is of the worst topic where a group decides topic by topic (RocketMQ); then `other_topics` has the same of each
    of the others.

    Raises:
        PartitionError: `partition` is not of its form.
        NoVerdictError: There is no such verdict, several clusters have such a group, or the verdict has no such
            partition.
        EvenkeelError: The lake cannot be read.
    """
    place = None if asked.partition is None else read_partition(asked.partition)
    found = site.verdicts(asked.group, asked.cluster, asked.generation, asked.decision)
    if found is None:
        return None
    if not found:
        raise NoVerdictError(404, f"There is no such verdict on a group {quoted(asked.group)}.")
    if len({row["cluster"] for row in found}) > 1:
        raise NoVerdictError(400, f"Several clusters have a group {quoted(asked.group)}: add &cluster= and a name.")
    try:
        told = verdicts_in_words(found, place)
    except NoSuchPartitionError as error:
        raise NoVerdictError(404, str(error)) from None
    first, *others = [words.json(row) for row, words in told]
    if others:
        return {**first, "other_topics": others}
    return first
