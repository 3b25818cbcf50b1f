"""Runs librdkafka's consumers as `member_program.py` says."""

from __future__ import annotations

import confluent_kafka

from tests.real_groups.member_program import serve

if __name__ == "__main__":
    serve(lambda settings: confluent_kafka.Consumer(dict(settings)), lambda consumer: consumer.poll(0.1))
