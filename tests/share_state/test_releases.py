"""Records of `__share_group_state`, against the generated classes of all releases after the early access."""

from __future__ import annotations

from collections import Counter

import pytest

from streaming.offsets_log import DecodedRecord
from streaming.offsets_log.codec.interpreter import key_layout, value_layout
from streaming.share_state import DECODER
from tests.examples import examples
from tests.offsets_log.schema_fields import fields_of, only_tags_of
from tests.oracle.record_releases import NEWEST, SHARE_RELEASES, random_share_records, share_layouts

pytestmark = pytest.mark.java


def test_the_schema_files_say_what_the_classes_of_every_release_say() -> None:
    seen = set()
    for layout in share_layouts():
        release, key_type, version = layout["release"], layout["key_type"], layout["version"]
        schema = DECODER.schemas[key_type]
        seen.add((release, key_type))
        if layout["message"].endswith("Key"):
            assert layout["fields"] == fields_of(schema, schema.key, 0), layout
        else:
            ours = fields_of(schema, schema.value, version)
            assert layout["fields"] == (ours if release == NEWEST else only_tags_of(layout["fields"], ours)), layout
            assert schema.versions == (0, 0)
    assert seen == {(release, key_type) for release in SHARE_RELEASES for key_type in (0, 1)}


@pytest.mark.nightly
def test_random_records_of_every_release_are_printed_as_its_own_classes_print_them() -> None:
    compared: Counter[str] = Counter()
    for record in random_share_records(932, examples(10_000)):
        schema = DECODER.schemas[record["key_type"]]
        decoded = DECODER.decode(bytes.fromhex(record["hex_key"]), bytes.fromhex(record["hex_value"]))
        assert isinstance(decoded, DecodedRecord), record
        assert decoded.name == schema.name
        assert key_layout(schema).printed(decoded.key) == record["key"], record
        assert value_layout(schema, 0).printed(decoded.value) == record["value"], record
        compared[record["release"]] += 1
    assert compared.keys() == set(SHARE_RELEASES)
