"""What liars can do to a vote file, and what it costs them."""
