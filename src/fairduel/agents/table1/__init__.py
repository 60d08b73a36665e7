"""Agents that the paper's Table 1 compares and that nobody needs otherwise."""
