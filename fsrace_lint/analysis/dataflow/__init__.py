"""Flow-sensitive interpretation of one function: abstract states, transfer functions, sets of processes."""
