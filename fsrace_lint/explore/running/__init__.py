"""Execution of a schedule: the processes, the tree that they work on, and what each of them must wait for."""
