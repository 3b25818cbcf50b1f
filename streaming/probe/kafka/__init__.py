"""Rounds against Kafka: what a round asks of a cluster, what it saw, and the events that tell it."""
