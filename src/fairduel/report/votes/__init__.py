"""Pages about recorded votes."""
