"""Which processes see a test come out true."""
