"""Code in the processes of a scenario: their filesystem calls stop until the scheduler permits them."""
