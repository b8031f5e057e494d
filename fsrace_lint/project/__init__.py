"""Link: what the facts of all files mean together."""
