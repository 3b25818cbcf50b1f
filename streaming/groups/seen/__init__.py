"""Groups that are only seen in rounds: what has changed since the last look, in the form that the log would give it."""
