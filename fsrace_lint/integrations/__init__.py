"""What other programs use: the language server, and the helpers copied into a project.

Each drives the pipeline as the command line does.
"""
