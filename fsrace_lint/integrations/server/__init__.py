"""The language server: what editors ask, answered from linked projects."""
