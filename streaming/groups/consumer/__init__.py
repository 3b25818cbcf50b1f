"""Consumer groups (KIP-848), by the broker's assignors."""
