"""Layouts of the records of `__consumer_offsets`, one file a record type; the notation stands in `schema.py`.

Written from `reference/kafka.md` 2.2 and 2.3 (KIP-848, KIP-932, KIP-1071), and held against the generated classes of
Kafka 3.3 to 4.4 by the tests. A new broker release is a new file here, or a line more in one.
"""
