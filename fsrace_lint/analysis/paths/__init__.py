"""Abstract paths: normal forms, which processes share them, and on which storage they are."""
