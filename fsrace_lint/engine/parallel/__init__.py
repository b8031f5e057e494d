"""Forked workers, what a run may take of the machine, and who is told how far it is."""
