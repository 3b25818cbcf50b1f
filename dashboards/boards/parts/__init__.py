"""What several boards show: lists, filters, the matrix, spans of time. Not boards themselves."""
