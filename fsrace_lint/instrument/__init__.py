"""What a process's filesystem calls are, what each reads and changes, and how they are intercepted."""
