"""Charts as values: what the browser draws, a sentence for who cannot see it, and the same as a table. Pure."""
