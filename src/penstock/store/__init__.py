"""The object store: few verbs, preconditions as values, one retry loop."""
