"""Which schedules are run: all that can differ, those with few interruptions, random ones, simpler ones."""
