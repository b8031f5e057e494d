"""The linked program: modules, imports, classes, symbols, and the name index that narrows down searches."""
