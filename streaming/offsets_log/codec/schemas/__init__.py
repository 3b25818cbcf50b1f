"""Layouts of the records of `__consumer_offsets`, one file a key and one a value; `layouts.py` reads them.

The form is that of Kafka's message definitions, the text is our own: from KIP-848, KIP-932 and KIP-1071, held against
the generated classes of Kafka 3.3 to 4.4 by the tests. A new broker release is a new file here, or a line more in one.
"""
