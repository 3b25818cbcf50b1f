"""A recorded cluster in place of a real one (`record.py` records)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from streaming.rocketmq import Client, Frame, Malformed, Question, decode_frame


class Recorded(Client):
    """Answers from a recording. Its numbers are those of the questions, which are sent server by server."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        recorded: dict[int, Frame] = {}
        for line in path.read_text(encoding="ascii").splitlines():
            frame = decode_frame(bytes.fromhex(json.loads(line)["bytes"]))
            assert not isinstance(frame, Malformed)
            # Rounds have also asked for request modes (402) and brokers' releases (28).
            if not (frame.body or b"").startswith((b'{"messageRequestModeMap"', b'{"table"')):
                recorded[frame.opaque] = frame
        self._frames = dict(enumerate([recorded[number] for number in sorted(recorded)], start=1))
        self._next = 0

    def ask(self, questions: Sequence[Question], seconds: float) -> list[Frame]:  # type: ignore[override]
        assert seconds > 0
        servers = list(dict.fromkeys(question.address for question in questions))
        order = sorted(range(len(questions)), key=lambda index: servers.index(questions[index].address))
        numbers = {index: self._next + place for place, index in enumerate(order, start=1)}
        self._next += len(questions)
        return [self._frames[numbers[index]] for index in range(len(questions))]
