"""Reports: figures, tables and one self-contained page."""
