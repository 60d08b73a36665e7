"""Commands about recorded votes."""
