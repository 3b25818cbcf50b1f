"""The pure core: what is known of one group, and what follows from its next events.

No Spark, no Kafka client, no clock: time comes in the events.
"""
