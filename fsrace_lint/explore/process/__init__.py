"""What runs in the processes of a scenario: their filesystem calls stop, and wait to be let through."""
