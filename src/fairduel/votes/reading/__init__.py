"""Vote files of any shape, and item features, become votes."""
