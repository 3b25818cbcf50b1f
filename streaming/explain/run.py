"""`evenkeel explain`: the newest verdict on a group, or that on one generation, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.console import Console

from assignors import Strategy
from assignors.explain import PartitionId
from streaming.exceptions import SetupError
from streaming.explain.in_words import VerdictInWords, verdicts_in_words
from streaming.tables import LakeReader, with_parameters
from streaming.terminal import say, visible

# The newest verdict in each cluster and topic, or the newest on a generation or a decision; the worst topic first, and
# topics of retries behind the others. A topic is NULL for Kafka, whose groups decide on all at once. For Spark, too.
VERDICT = """
SELECT cluster, group_id, topic, decision, record_time, generation, strategy, expected_strategy, verdict, basis,
  own_verdict, reason, matching_library, nearest_library, nearest_differing, drifted_count, drifted_partitions, inputs,
  (SELECT max(c.protocol_type) FROM rebalance_churn AS c
   WHERE c.cluster = known.cluster AND c.group_id = known.group_id AND c.decision = known.decision) AS protocol_type
FROM (
  SELECT *, row_number() OVER (PARTITION BY cluster, topic ORDER BY round DESC, decision DESC) AS age
  FROM drift
  WHERE group_id = :group_id AND (:cluster IS NULL OR cluster = :cluster)
    AND (:generation IS NULL OR generation = :generation) AND (:decision IS NULL OR decision = :decision)
) AS known
WHERE age = 1
ORDER BY cluster, decision DESC,
  CASE verdict WHEN 'drifted' THEN 0 WHEN 'unverified' THEN 1 WHEN 'identical' THEN 2 ELSE 3 END,
  CASE WHEN substring(topic, 1, 7) = '%RETRY%' THEN 1 ELSE 0 END, topic
"""

# `max_by` would pass over decisions whose generation is NULL, and tell that of an older one.
_NEWEST = """
SELECT arg_max_null(generation, decision) AS generation, max(decision) AS decision FROM rebalance_churn
WHERE group_id = $group_id AND cluster = $cluster
"""

_KNOWN = """
SELECT count(*) AS n FROM group_health WHERE group_id = $group_id AND ($cluster IS NULL OR cluster = $cluster)
"""


def print_explanation(
    lake: str,
    console: Console,
    group: str,
    generation: int | None = None,
    partition: PartitionId | None = None,
    cluster: str | None = None,
    custom: Mapping[str, Strategy] | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Print why a group's assignment should be as it is, and for drift what is different.

    Args:
        lake: Folder or URI.
        console: Where to print.
        group: The group's id.
        generation: Its generation or epoch; None for the newest with a verdict.
        partition: Only this partition, as people type it.
        cluster: The cluster, by its name in the tables; None if only one has such a group.
        custom: Users' own strategies by name.
        as_json: Print one line of JSON, or one a topic where a group decides topic by topic: the verdict's inputs as a
            line of `evenkeel assign`, with `explanation`.

    Raises:
        SetupError: There is no such verdict, several clusters have such a group, or the verdict has no such partition.
        LakeUnreadableError: A table cannot be read.
    """
    reader = LakeReader(lake)
    asked = {"group_id": group, "cluster": cluster}
    found = reader.rows(with_parameters(VERDICT, "${}".format), {**asked, "generation": generation, "decision": None})
    if not found:
        raise SetupError(_missing(reader, asked, lake, generation))
    clusters = sorted({row["cluster"] for row in found})
    if len(clusters) > 1:
        listed = ", ".join(map(visible, clusters))
        message = f"Several clusters have a group {visible(group)}: name one with --cluster ({listed})."
        raise SetupError(message)
    for row, told in verdicts_in_words(found, partition, custom):
        if as_json:
            console.out(json.dumps(told.json(row), default=_iso), highlight=False)
        else:
            _print(console, row, told)
    newest = reader.rows(_NEWEST, {"group_id": group, "cluster": found[0]["cluster"]})[0]
    is_old = newest["decision"] is not None and newest["decision"] > found[0]["decision"]
    if generation is None and is_old and not as_json:
        say(
            console,
            f"  A newer decision, {_generation(newest['generation'])}number {newest['decision']}, has no verdict yet.",
        )


def _print(console: Console, row: Mapping[str, Any], told: VerdictInWords) -> None:
    topic = "" if row["topic"] is None else f"topic {visible(row['topic'])}, "
    # A record may carry any number as its time; what is no time is NULL in the tables.
    time = "an unknown time" if row["record_time"] is None else f"{row['record_time']:%Y-%m-%d %H:%M:%S} UTC"
    decision = f"{_generation(row['generation'])}decision {row['decision']} of {time}"
    say(console, f"{visible(row['group_id'])} ({visible(row['cluster'])}), {topic}{decision}", "bold")
    for sentence in told.sentences:
        say(console, f"  {sentence}")
    if told.drift:
        say(console, "What is different", "bold")
        for sentence in told.drift:
            say(console, f"  {sentence}")


def _generation(generation: int | None) -> str:
    """The generation in a list of what names a decision; nothing where only rounds have seen it."""
    if generation is None:
        return ""
    return f"generation {generation}, "


def _missing(reader: LakeReader, asked: Mapping[str, Any], lake: str, generation: int | None) -> str:
    group = visible(asked["group_id"])
    if not reader.rows(_KNOWN, asked)[0]["n"]:
        where = "" if asked["cluster"] is None else f" of the cluster {visible(asked['cluster'])}"
        return (
            f"The lake {lake} has no group {group}{where}: look the name up on the page (`evenkeel serve`), or name "
            "another lake with --lake."
        )
    if generation is None:
        return f"There is no verdict on {group} yet: a round must close after its decision. Ask again in a minute."
    return f"There is no verdict on generation {generation} of {group}: it is older than the tables, or never was."


def _iso(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(type(value).__name__)
