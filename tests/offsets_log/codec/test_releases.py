"""Every record type of every release, against Kafka's own classes of that release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from streaming.offsets_log import RECORD_TYPES, decode_line
from tests.offsets_log.real_records import RELEASES as GOLDEN
from tests.offsets_log.schema_fields import fields_of, only_tags_of
from tests.oracle import record_releases
from tests.oracle.record_releases import EARLY_ACCESS, NEWEST, RELEASES, layouts, random_records

# The golden ones are among the first 6,000.
RECORDS = 6_000
RECORDS_OF_A_LONG_RUN = 20_000

# Types that no release's classes can write: 18 was never released.
UNRELEASED = {18}


@pytest.fixture(scope="module")
def written() -> list[dict[str, Any]]:
    return list(random_records(record_releases.SEED, RECORDS))


def printed(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": RECORD_TYPES[record["key_type"]].name,
        "key_type": record["key_type"],
        "value_version": record["value_version"],
        "key": record["key"],
        "value": record["value"],
    }


@pytest.mark.parametrize("release", RELEASES)
def test_golden_records_of_a_release_are_printed_as_its_classes_printed_them(release: str) -> None:
    records = [record for record in GOLDEN if record["release"] == release]
    assert records
    for record in records:
        assert decode_line({"key": record["hex_key"], "value": record["hex_value"]}) == printed(record)


def test_the_golden_records_hold_every_type_and_version_of_the_schemas() -> None:
    held = {(record["key_type"], record["value_version"]) for record in GOLDEN}
    assert held == {
        (key_type, version)
        for key_type, schema in RECORD_TYPES.items()
        if schema.versions is not None
        for version in range(schema.versions[0], schema.versions[1] + 1)
    }


@pytest.mark.nightly
@pytest.mark.java
def test_the_golden_records_are_what_the_classes_write_today(written: list[dict[str, Any]]) -> None:
    assert record_releases.golden(written) == GOLDEN


@pytest.mark.java
def test_random_records_of_every_release_are_printed_as_its_own_classes_print_them(
    written: list[dict[str, Any]],
) -> None:
    compared = compare(written)
    assert {key_type for _, key_type in compared} == set(RECORD_TYPES) - UNRELEASED
    assert {release for release, _ in compared} == set(RELEASES)


@pytest.mark.java
@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.parametrize("seed", range(50))
def test_a_million_random_records_are_printed_as_the_classes_of_their_release_print_them(seed: int) -> None:
    assert sum(compare(random_records(seed, RECORDS_OF_A_LONG_RUN)).values()) > RECORDS_OF_A_LONG_RUN * 0.9


def compare(records: Iterable[dict[str, Any]]) -> Counter[tuple[str, int]]:
    compared: Counter[tuple[str, int]] = Counter()
    for record in records:
        name = (record["release"], record["key_type"])
        if name not in EARLY_ACCESS:
            assert decode_line({"key": record["hex_key"], "value": record["hex_value"]}) == printed(record), record
            compared[name] += 1
    return compared


@pytest.mark.java
def test_layouts_of_early_access_are_refused_but_for_the_rare_one_that_reads_by_accident(
    written: list[dict[str, Any]],
) -> None:
    # The bytes do not distinguish the layouts. Real records are not ambiguous: their error codes are 0.
    early = [record for record in written if (record["release"], record["key_type"]) in EARLY_ACCESS]
    assert {(record["release"], record["key_type"]) for record in early} == EARLY_ACCESS
    answers = [decode_line({"key": record["hex_key"], "value": record["hex_value"]}) for record in early]
    read = [answer for answer in answers if "error" not in answer]
    assert len(read) <= len(early) / 200
    assert all(answer["error"].startswith("value: ") for answer in answers if "error" in answer)


@pytest.mark.java
def test_the_schema_files_say_what_the_classes_of_every_release_say() -> None:
    seen: dict[tuple[str, int], set[int]] = {}
    for layout in layouts():
        release, key_type, version = layout["release"], layout["key_type"], layout["version"]
        schema = RECORD_TYPES[key_type]
        if layout["message"].endswith("Key"):
            assert layout["fields"] == fields_of(schema, schema.key, 0), layout
            continue
        seen.setdefault((release, key_type), set()).add(version)
        if (release, key_type) in EARLY_ACCESS:
            assert layout["fields"] != fields_of(schema, schema.value, version)
            continue
        ours = fields_of(schema, schema.value, version)
        # Earlier releases may lack tagged fields; the newest may not.
        assert layout["fields"] == (ours if release == NEWEST else only_tags_of(layout["fields"], ours)), layout
    for (release, key_type), versions in seen.items():
        first, last = RECORD_TYPES[key_type].versions or (0, -1)
        if release == NEWEST:
            assert versions == set(range(first, last + 1))
    assert {key_type for _, key_type in seen} == set(RECORD_TYPES) - UNRELEASED
