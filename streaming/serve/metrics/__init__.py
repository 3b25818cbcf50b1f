"""`/metrics`: our own names, and those of other exporters as modes."""
