"""What is done to the filesystem, and what is known of it."""
