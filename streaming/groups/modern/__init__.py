"""Groups assigned by the broker: consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071)."""
