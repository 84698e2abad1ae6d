"""Packs the plotly.js of the report page, from the npm package that package-lock.json pins.

npm ci && python scripts/pack_plotly.py
"""

import shutil
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "node_modules" / "plotly.js-cartesian-dist-min"
TARGET = ROOT / "src" / "bmpaudit" / "report" / "plotly"


def main() -> None:
    """Deflates the library, as the page holds it, and copies its licence."""
    script = (SOURCE / "plotly-cartesian.min.js").read_bytes()
    (TARGET / "plotly-cartesian.min.js.zlib").write_bytes(zlib.compress(script, 9))
    shutil.copyfile(SOURCE / "LICENSE", TARGET / "LICENSE")


if __name__ == "__main__":
    main()
