"""How well votes were collected, and what to ask next."""
