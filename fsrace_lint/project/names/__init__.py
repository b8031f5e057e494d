"""What names mean: modules, things, values, calls."""
