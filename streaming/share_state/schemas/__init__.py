"""Layouts of the records of `__share_group_state`, in the form of `streaming/offsets_log/codec/schemas`.

The text is our own, from KIP-932 and KIP-1226; tests hold it against the generated classes of Kafka 4.1 and 4.3.
"""
