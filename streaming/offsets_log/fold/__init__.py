"""Folds the records of a stretch of the offsets log into the inputs of the core."""
