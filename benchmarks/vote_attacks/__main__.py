"""Rankings of recorded votes under attack, ours and seven rivals: ``python -m benchmarks.vote_attacks``.

Adds false votes to simulated files whose true order is known, and ranks them with every model. Prints who is ahead,
then Kendall's τ with the true order and the places that the attackers' target gains, and writes the tables to
``--out``. Interrupt it at any time: what is finished is kept, and rerunning resumes. A full run takes about a
quarter of an hour of one core, ``--quick`` a minute.
"""

import sys
from collections.abc import Sequence

from benchmarks import running
from benchmarks.vote_attacks import attacks
from benchmarks.vote_attacks.tables import TABLES, conclusions
from fairduel.cli import output
from fairduel.errors import FairduelError

_QUICK_RUNS = 2
_OPTIONAL = ("spectral", "tastes", "abilities", "reliability", "am-elo", "crowd-bt", "places, plain", "places, ours")
"""Columns that a narrow terminal may leave out, the least useful first."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = running.command_line(
        "benchmarks.vote_attacks", __doc__ or "", runs=20, unit="files per population and attack"
    )
    options = parser.parse_args(arguments)
    shares, runs = (attacks.SHARES[1:2], _QUICK_RUNS) if options.quick else (attacks.SHARES, options.runs)
    found = running.run_with_progress(attacks.works(shares), runs, options, title="Attacks", unit="files")
    cells = attacks.compare(found)
    output.say(*conclusions(cells))
    for name, table in TABLES.items():
        filled, file = table(cells), options.out / f"{name}.csv"
        output.print_table(filled, text=["population", "attack"], optional=_OPTIONAL, file=file)
        running.write_table(filled, file)
        if options.docs and table is TABLES["vote-attacks"]:
            running.write_table(filled, running.DOCS / file.name)


if __name__ == "__main__":
    try:
        main()
    except FairduelError as error:
        sys.exit(f"error: {error}")
