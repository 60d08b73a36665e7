"""Speed of fairduel, next to plain NumPy and SciPy baselines timed in the same process."""
