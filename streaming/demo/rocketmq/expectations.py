"""What the tables must say of the stories of the RocketMQ demo, and nothing else: findings, verdicts, alerts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from streaming.demo.rocketmq.stories import STORIES, RocketMQStory
from streaming.tables import LakeReader

__all__ = ["check_rocketmq_stories"]

_VERDICTS = {"price-board": "not_applicable", "billing": "identical", "emails-lost-way": "identical"}
"""The newest verdict on each group whose owners are right."""

_OF_START = frozenset({"silence"})
"""On a slow machine rounds are there before the job is: until it has caught up, the cluster is silent."""


def check_rocketmq_stories(reader: LakeReader) -> list[str]:
    """Run all checks; one sentence for everything that is missing or too much."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in reader.rows("SELECT DISTINCT group_id, unnest(findings).finding AS finding FROM group_health"):
        found[row["group_id"]].add(row["finding"])
    fired: dict[str, set[str]] = defaultdict(set)
    for row in reader.rows("SELECT DISTINCT group_id, rule FROM alerts WHERE state = 'firing'"):
        fired[row["group_id"] or ""].add(row["rule"])
    missing = [
        f"story {story.number}: {sentence}"
        for story in STORIES
        for sentence in _check(reader, story, found[story.group], fired[story.group])
    ]
    known = {story.group for story in STORIES} | {""}
    missing += [f"alerts of {group}, which is in no story: {sorted(fired[group])}" for group in fired.keys() - known]
    if others := fired[""] - _OF_START:
        missing.append(f"alerts of the cluster: {', '.join(sorted(others))}")
    if broken := reader.rows("SELECT reason FROM quarantine"):
        missing.append(f"records that could not be read: {broken[0]['reason']}")
    return missing


def _check(reader: LakeReader, story: RocketMQStory, found: set[str], fired: set[str]) -> Iterator[str]:
    if lacking := story.found - found:
        yield f"{story.group} never had the findings {', '.join(sorted(lacking))}"
    if others := found - story.found - story.possible:
        yield f"{story.group} should not have had the findings {', '.join(sorted(others))}"
    if lacking := story.alerts - fired:
        yield f"the alerts {', '.join(sorted(lacking))} of {story.group} never fired"
    if others := fired - story.alerts - story.possible_alerts:
        yield f"the alerts {', '.join(sorted(others))} of {story.group} should not have fired"
    rows = reader.rows("SELECT verdict, findings FROM group_health_current WHERE group_id = ?", [story.group])
    if not rows:
        yield f"group_health has no row of {story.group}"
    wanted = _VERDICTS.get(story.group)
    for now in rows:
        if wanted is not None and (now["verdict"] != wanted or now["findings"]):
            yield f"{story.group} should end {wanted}, without a finding: it is {now['verdict']}: {now['findings']}"
    listed = reader.rows("SELECT DISTINCT broker FROM broker_members_current WHERE group_id = ?", [story.group])
    if unlisted := set(story.brokers) - {row["broker"] for row in listed}:
        yield f"broker_members has no list of {', '.join(sorted(unlisted))} for {story.group}"
