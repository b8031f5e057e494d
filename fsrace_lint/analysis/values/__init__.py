"""Values of expressions without running them: resolution through bindings, calls, containers and types."""
