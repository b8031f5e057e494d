"""A background process that keeps projects in memory, to check a few files quickly.

`wire` defines the protocol, `client` sends requests, and `process` answers them. No client depends on an
answer: without an answer in time, the client runs the check itself.
"""
