"""Simulation: single runs, parallel runs, and storage of their results."""

from fairduel.simulation.cell import Cell, Run
from fairduel.simulation.parallel import compile_agents, run_cells
from fairduel.simulation.play import Player, Streams, Trace, play
from fairduel.simulation.storage import Storage, Store, count_missing, missing_seeds, write_parquet

__all__ = [
    "Cell",
    "Player",
    "Run",
    "Storage",
    "Store",
    "Streams",
    "Trace",
    "compile_agents",
    "count_missing",
    "missing_seeds",
    "play",
    "run_cells",
    "write_parquet",
]
