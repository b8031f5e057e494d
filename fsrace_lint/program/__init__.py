"""The linked program: modules, imports, classes and symbols, and the index that says where to look closer."""
