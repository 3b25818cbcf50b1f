"""What is behind the source (`streaming/job/data_source.py`), on kafka-python.

It reads the offsets log, the probe's events and its rounds, a whole number of rounds per batch, and returns packed
inputs per group. Spark's driver plans a batch (`planner.py`), tasks read their shares of it (`read.py`), and what the
probe's events say of groups and topics is put together in `events.py`.
"""
