"""The lines of docs/tools.md for assign and what-if, answered unchanged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assignors.jsonl import assign_line, what_if_line

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tools.md").read_text("utf-8")
EXAMPLES = re.findall(r"^    \$ echo '(.*)' \| evenkeel (assign|what-if)\n    (.*)$", PAGE, re.MULTILINE)


def test_there_are_examples_of_every_kind() -> None:
    assert [command for _, command, _ in EXAMPLES] == ["assign", "assign", "assign", "what-if"]


@pytest.mark.parametrize(("line", "command", "answer"), EXAMPLES)
def test_an_example_is_answered_as_the_page_says(line: str, command: str, answer: str) -> None:
    question: Any = msgspec.json.decode(line)

    told = assign_line(question) if command == "assign" else what_if_line(question)

    assert msgspec.json.encode(told).decode() == answer
