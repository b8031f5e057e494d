"""Static values of expressions: resolution through bindings, calls, containers, and types."""
