"""Layouts of the records of `__consumer_offsets`, one file per record type; `schema.py` explains the notation.

They follow the message schemas of Kafka's group coordinator (KIP-848, KIP-932 and KIP-1071 for the newer groups), and
the tests compare them with the generated classes of Kafka 3.3 to 4.4. A new broker release needs a new file here, or
another line in one.
"""
