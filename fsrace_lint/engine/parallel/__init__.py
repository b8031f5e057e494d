"""Worker processes, the CPUs and memory that a run uses, and progress observers."""
