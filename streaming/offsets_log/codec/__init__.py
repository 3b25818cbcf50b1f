"""Decodes the bytes of `__consumer_offsets` to typed values, by layouts that are data (`schemas/`)."""
