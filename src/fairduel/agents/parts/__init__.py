"""What agents are made of: a belief, a rule and a trust, and what they share."""
