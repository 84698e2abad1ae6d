"""What can be said from nothing but a table of an attack's errors, whoever made it.

    python examples/from_counts.py [counts.csv]

The table has a row for each node (docs/attack.md): among `num_out` models without the node, the attack wrongly said
"member" `false_positives` times; among `num_in` models with it, it missed it `false_negatives` times.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import LowerBound
from bmpaudit.estimation.estimate import estimate
from bmpaudit.estimation.lower_bound import lower_bound
from bmpaudit.estimation.posterior import Posterior

TABLE = """\
node,num_out,num_in,false_positives,false_negatives,prior_prob
anna,750,250,20,60,0.25
ben,740,260,300,120,0.25
chris,760,240,5,200,0.25
"""


@dataclass(frozen=True)
class FromCounts:
    """What the table says.

    Attributes:
        posterior: ε_R, estimated under the paper's model of errors.
        proven: Lower bounds that hold without that model, if no model was in its own fit.
    """

    posterior: Posterior
    proven: LowerBound


def from_counts(path: str | Path) -> FromCounts:
    """Reads a table and says what follows."""
    counts = ErrorCounts.from_table(path)
    return FromCounts(estimate(counts, "bmp-r"), lower_bound(counts))


def main() -> None:
    """Runs the example, on a table of its own if none is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?")
    options = parser.parse_args()
    if options.table:
        found = from_counts(options.table)
    else:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "counts.csv"
            path.write_text(TABLE, encoding="utf-8")
            found = from_counts(path)
    print(found.posterior)
    print(found.proven)


if __name__ == "__main__":
    main()
