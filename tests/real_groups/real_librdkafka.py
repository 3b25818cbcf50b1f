"""Runs librdkafka's consumers as `member_program.py` says."""

from __future__ import annotations

import confluent_kafka

from tests.real_groups.member_program import Tell, serve


def _subscribe(consumer: confluent_kafka.Consumer, topics: list[str], tell: Tell) -> None:
    consumer.subscribe(
        topics,
        on_assign=lambda _, places: tell("assigned", places),
        on_revoke=lambda _, places: tell("revoked", places),
        on_lost=lambda _, places: tell("lost", places),
    )


if __name__ == "__main__":
    serve(lambda settings: confluent_kafka.Consumer(dict(settings)), _subscribe, lambda consumer: consumer.poll(0.1))
