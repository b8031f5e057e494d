"""The language server, which answers requests of editors from linked projects."""
