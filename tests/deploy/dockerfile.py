"""The Dockerfile of `conf/deploy`, read as far as its tests need it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

DOCKERFILE = Path(__file__).resolve().parents[2] / "conf" / "deploy" / "Dockerfile"


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined.

    Attributes:
        name: In capitals.
        text: What follows.
        stage: Number of its stage, from 0.
    """

    name: str
    text: str
    stage: int


def instructions() -> list[Instruction]:
    """All of them, in their order."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    found: list[Instruction] = []
    stage = -1
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, text = line.split(maxsplit=1)
            stage += name == "FROM"
            found.append(Instruction(name, text.strip(), stage))
    return found


def of_image(name: str) -> list[str]:
    """The texts of the instructions of this name in the last stage, which becomes the image."""
    last = instructions()[-1].stage
    return [one.text for one in instructions() if one.stage == last and one.name == name]


def environment() -> dict[str, str]:
    """The variables of the image."""
    pairs = (pair.partition("=") for text in of_image("ENV") for pair in shlex.split(text))
    return {name: value for name, _, value in pairs}


def program(name: str) -> list[str]:
    """The program of ENTRYPOINT, CMD or HEALTHCHECK; a ValueError where it is left to a shell."""
    [text] = of_image(name)
    return list(json.loads(text[text.index("[") :]))
