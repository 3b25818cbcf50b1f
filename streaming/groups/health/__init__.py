"""The state of a group in one row, and the findings that people are alerted on."""
