"""What a start sees of a checkpoint on a real S3 server, and that it does not start where the server is silent."""

from __future__ import annotations

import json

import pytest

from streaming.config import JobSettings, Settings
from streaming.exceptions import SetupError
from streaming.job.checkpoint import CheckpointUnreachableError, clear_torn_start, is_empty, refuse_lost, standing_of
from streaming.job.rebuild import Rebuild, read_plan, write_plan
from streaming.tables import file_system
from tests.faulty_store import NOTHING, RESET, FaultyStore
from tests.object_store import ObjectStore

pytestmark = pytest.mark.xdist_group("object_store")

_OFFSETS = {"log": {}, "events": {}, "rounds": 2, "round": 7, "time": 1_000, "elapsed": 0}


def _put(checkpoint: str, name: str, text: str) -> None:
    with file_system(checkpoint).open_output_stream(name, buffer_size=4096) as stream:
        stream.write(text.encode())


@pytest.fixture
def checkpoint(s3: str) -> str:
    """As Spark leaves it after batch 0, in the middle of batch 1."""
    place = f"{s3}/a team/checkpoint"
    assert is_empty(place)
    assert standing_of(place) is None
    _put(place, "metadata", json.dumps({"id": "the-query"}))
    for number in (0, 1):
        _put(place, f"offsets/{number}", f"v1\n{{}}\n{json.dumps(_OFFSETS)}")
        _put(place, f"offsets/.{number}.crc", "x")
    _put(place, "commits/0", "v1\n{}")
    return place


def test_it_says_how_far_the_query_is(checkpoint: str) -> None:
    assert not is_empty(checkpoint)
    standing = standing_of(checkpoint)
    assert standing is not None
    assert (standing.query, standing.planned, standing.offsets) == ("the-query", 1, _OFFSETS)


def test_what_a_start_killed_in_the_first_batch_has_left_is_deleted(s3: str, object_store: ObjectStore) -> None:
    _put(f"{s3}/c", "offsets/.0.5c7f6a52-5f64-4f5e-8a0a-0f8f8d2d1c11.TID7.tmp", "v1")
    clear_torn_start(f"{s3}/c")
    assert object_store.objects(f"{s3}/c") == []


def test_a_broken_file_of_it_is_told(checkpoint: str) -> None:
    _put(checkpoint, "offsets/1", "")
    with pytest.raises(SetupError, match=r"broken \(offsets/1 is empty\)"):
        standing_of(checkpoint)


def test_the_plan_of_a_rebuild_is_kept_in_it(checkpoint: str) -> None:
    assert read_plan(checkpoint) is None
    plan = Rebuild(1, 2, 3, {"lag": 1}, ("drift",), {})
    write_plan(checkpoint, plan)
    assert read_plan(checkpoint) == plan


def test_nothing_starts_while_its_store_does_not_answer(
    checkpoint: str, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without its plan a rebuild would write rows twice, and without a look a lost checkpoint would be started over.
    settings = Settings(lake=checkpoint.replace("checkpoint", "lake"), job=JobSettings(checkpoint=checkpoint))
    with FaultyStore(object_store.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.fail(RESET)
        for look in (is_empty, read_plan):
            with pytest.raises(CheckpointUnreachableError, match=r"^The checkpoint s3://\S+ team/\S+ cannot be read: "):
                look(checkpoint)
        proxy.fail(NOTHING)
        refuse_lost(settings, checkpoint + "-new", is_rebuilt=False)
