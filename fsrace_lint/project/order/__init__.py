"""Who waits for whom: sequences of acts and meetings, and what goes wrong with them."""
