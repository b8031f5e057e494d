"""Integrations with other programs: the language server, and the helpers copied into a project.

Each uses the pipeline as the command line does.
"""
