"""One table: what to do next with its files, rows read and written again, and the commits that replace files."""
