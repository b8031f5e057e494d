"""The call graph: callers and callees, summaries, entry states, and evidence of concurrency."""
