"""A lost state rebuilt: log and rounds are read again, and only what the tables do not have is written."""
