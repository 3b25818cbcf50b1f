"""Decoded keys are remembered up to a limit, and those beyond it are decoded all the same."""

from __future__ import annotations

import pytest

from streaming.offsets_log import GroupKey
from streaming.offsets_log.codec import keys as decoded_keys
from streaming.offsets_log.codec.keys import DecodedKeys
from tests.offsets_log.written import group_key


@pytest.mark.parametrize("limit", [("_KEPT", 10), ("_BYTES_KEPT", 400)])
def test_of_ever_new_keys_a_few_are_remembered_and_each_is_read_all_the_same(
    limit: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded_keys, *limit)
    keys = DecodedKeys()
    for n in range(100):
        # Keys of 40 bytes: a group each.
        assert keys.of(group_key(f"{n:036}")) == GroupKey(f"{n:036}")
        assert len(keys._keys) <= 10


def test_a_key_that_comes_again_is_not_decoded_again() -> None:
    keys = DecodedKeys()
    assert keys.of(group_key("g")) is keys.of(group_key("g"))
