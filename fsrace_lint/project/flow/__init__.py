"""One function's code, followed: every call, and what must have happened to reach it."""
