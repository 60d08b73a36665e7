"""How few false votes would change a result: found by search, and proven."""
