"""Commands about live voting."""
