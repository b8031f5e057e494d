"""tinytrain: a character-level language model trained with DistributedDataParallel."""
