"""Modules, imports, classes and symbols: name resolution across the files of a project."""
