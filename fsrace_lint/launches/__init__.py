"""Launches: how a repository starts its programs, read from scripts and documents. Nothing is run.

`kinds` needs no parser, so a run that knows the launches loads none; `reading` loads all.
"""
