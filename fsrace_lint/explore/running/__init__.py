"""What carries a schedule out: processes, the tree they work on, and what each of them must wait for."""
