"""Reports: one self-contained page each, with its figures and tables."""
