"""What a store has said, in one line that people can act on, without what it quotes."""

from __future__ import annotations

import pytest

from streaming.stores import cause_of, on_object_store

_TREE = "Kernel error -> Generic S3 error\n   \x1b[31m↳\x1b[0m Error performing GET http://h/b/k in 3.18s, "
_FORBIDDEN = "The operation lacked the necessary privileges to complete for path x\n status code\n 403 Forbidden\n"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (_TREE + "max_retries\n \x1b[31m↳\x1b[0m Connection refused (os error 111)\n", "the store does not answer"),
        (_TREE + "status code\n \x1b[31m↳\x1b[0m 503 Service Unavailable", "the store is down or overloaded (503)"),
        (
            _TREE + "503 Slow Down: <Error><Code>SlowDown</Code>",
            "the store is down or overloaded (SlowDown)",
        ),
        (
            _TREE + "400 Bad Request\n<?xml?><Error><Code>ExpiredToken</Code><Token-0>SECRET</Token-0></Error>",
            "the credentials have expired (ExpiredToken)",
        ),
        (
            _FORBIDDEN + "<?xml?><Error><Code>AccessDenied</Code><AWSAccessKeyId>SECRET</AWSAccessKeyId></Error>",
            "the store refuses the credentials (AccessDenied)",
        ),
        (
            "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 2 ms: 403 Forbidden",
            "neither the environment nor the machine has credentials",
        ),
        ("first\n  \x1b[31m↳\x1b[0m second\n\nDebug source:\nSECRET {\n", "first: second"),
        ("<?xml?><Error>SECRET", "OSError"),
        ("", "OSError"),
        ("x" * 10_000, "x" * 300),
    ],
)
def test_a_cause_is_one_line_without_the_body_of_the_answer(said: str, told: str) -> None:
    assert cause_of(OSError(said)) == told


@pytest.mark.parametrize(
    ("uri", "is_one"), [("lake", False), ("/a/b", False), ("file:///a", False), ("hdfs://h/a", False), ("S3://b", True)]
)
def test_which_lakes_are_on_an_object_store(uri: str, is_one: bool) -> None:
    assert on_object_store(uri) is is_one
