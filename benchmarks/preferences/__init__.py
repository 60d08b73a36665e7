"""Reward models learned from votes of whom some are lies: ours next to rivals. ``python -m benchmarks.preferences``."""
