"""What the stage keeps of what goes wrong on it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from streaming.demo.stage import Stage

pytestmark = pytest.mark.kafka


def test_a_member_whose_thread_dies_is_a_failure_of_the_play(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(bootstrap, tmp_path)
    monkeypatch.setattr(threading, "excepthook", stage.thread_died)

    def lose_its_broker() -> None:
        raise OSError("connection lost")  # noqa: EM101

    member = threading.Thread(target=lose_its_broker, name="billing-1")
    member.start()
    member.join()
    stage.close()

    assert stage.failures == ["The thread billing-1 died: OSError('connection lost')"]
    written = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text("utf-8").splitlines()]
    assert [(of["what"], of["error"]) for of in written if "error" in of] == [("failed", "OSError('connection lost')")]
