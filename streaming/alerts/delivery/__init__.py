"""From a transition to a message at each target: what waits, what is sent as one, and what became of it."""
