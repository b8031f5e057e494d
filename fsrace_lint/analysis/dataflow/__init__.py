"""Flow-sensitive interpretation of one function: abstract states, transfer functions, and process sets."""
