"""The commands, one a file, and what several of them share."""
