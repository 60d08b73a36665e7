"""Evidence about voters, stretches of votes and the ranking without them."""
