"""From votes to scores, ranks, ranges and probabilities of being best."""
