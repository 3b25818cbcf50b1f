"""Group health: the state of a group in one row, with the findings that people are alerted on."""
