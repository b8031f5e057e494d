"""The schedules to run: all that can differ, those with few preemptions, random ones, and simpler ones."""
