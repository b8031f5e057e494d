"""Writes a scenario of the race explorer for a finding: which function to call, and with what arguments."""
