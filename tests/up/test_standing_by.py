"""What the live view says of a probe that stands by."""

from __future__ import annotations

from pathlib import Path

from streaming.up.standing_by import StandingBy

_HEAD = "2026-11-25 13:00:00,000 INFO streaming.probe: "
_SENTENCE = "Standing by: probe p0 makes the rounds of cluster 'prod'. This one takes over when that one ends."


def test_a_probe_that_stands_by_is_shown_until_it_makes_rounds_or_starts_again(tmp_path: Path) -> None:
    log = tmp_path / "probe.log"
    log.write_text(f"{_HEAD}{_SENTENCE}\n")
    told = StandingBy(tmp_path)
    told.look()
    assert told.sentence is None  # of an earlier run
    seen = []
    for said in (_SENTENCE, "Topic t was created.", f"Still {_SENTENCE.lower()}", "Took over the rounds of 'prod'."):
        with log.open("a") as file:
            file.write(f"{_HEAD}{said}\n")
        told.look()
        seen.append(told.sentence)
    assert seen == [_SENTENCE, _SENTENCE, _SENTENCE, None]
    with log.open("a") as file:
        file.write(f"{_HEAD}{_SENTENCE}\n{_HEAD}Watching cluster 'prod' at x.\n")
    told.look()
    assert told.sentence is None
    told.close()


def test_the_other_programs_say_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "alerter.log").write_text("")
    told = StandingBy(tmp_path)
    with (tmp_path / "alerter.log").open("a") as file:
        file.write(f"{_HEAD}{_SENTENCE}\n")
    told.look()
    assert told.sentence is None
    told.close()
