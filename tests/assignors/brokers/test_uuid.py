"""Topic ids in Kafka's text form."""

from __future__ import annotations

import pytest

from assignors.brokers.exceptions import BadUuid
from assignors.brokers.uuid import uuid_of


def test_an_id_is_read_as_kafka_prints_it() -> None:
    found = uuid_of("AAECAwQFBgcICQoLDA0ODw")
    assert (found.most, found.least) == (0x0001020304050607, 0x08090A0B0C0D0E0F)
    assert uuid_of("AAECAwQFBgcICQoLDA0ODw==").text == found.text == "AAECAwQFBgcICQoLDA0ODw"


def test_the_halves_of_an_id_are_signed_as_java_s_longs() -> None:
    found = uuid_of("_____________________w")
    assert (found.most, found.least) == (-1, -1)


@pytest.mark.parametrize("text", ["", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcI!!!!CQoLDA0ODw", "AAECAwQFBgcICQoLDA0ODxA"])
def test_what_is_no_id_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadUuid, match="is not a UUID: give 16 bytes in URL-safe base64"):
        uuid_of(text)
