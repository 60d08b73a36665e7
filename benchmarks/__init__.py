"""How fast fairduel is: each figure beside a plain NumPy and SciPy twin, timed in the same process."""
