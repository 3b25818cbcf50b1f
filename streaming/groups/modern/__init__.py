"""Groups that the broker assigns: consumer (KIP-848), share and streams groups, record by record."""
