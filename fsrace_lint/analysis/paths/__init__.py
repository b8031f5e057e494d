"""Abstract paths: normal forms, who shares them, and on which storage they lie."""
