"""What the callers of a function bring, up to where the program starts."""
