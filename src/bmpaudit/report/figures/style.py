"""The common look of all pictures (sizes, fonts, colours), the moves they share, and how they become files."""

import io
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, ParamSpec

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from bmpaudit.estimation import Posterior
from bmpaudit.estimation.likelihood import upper_end
from bmpaudit.util.errors import InputError
from bmpaudit.util.files import atomic_write
from bmpaudit.util.values import Floats
from bmpaudit.util.words import count

Width = Literal["one", "two"]
"""How many columns of a two-column paper a picture spans."""

INCHES: dict[Width, float] = {"one": 3.35, "two": 6.9}
RASTERIZE_ABOVE = 5_000  # points of a cloud; as vectors more of them make a file slow to open

# Okabe and Ito's colours, which colour-blind readers can tell apart, in the order in which they are taken.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, VERMILLION, GREEN, *_, BLACK = SERIES
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
REFERENCE = "0.35"  # lines that are no data: a floor, a diagonal, a prior
DIAGONAL: dict[str, Any] = {"color": REFERENCE, "linewidth": 0.8, "linestyle": (0, (4, 3))}
PRIOR: dict[str, Any] = {"color": REFERENCE, "linewidth": 0.9, "linestyle": (0, (4, 2))}
FAINT = "0.6"

# Also names fonts that come with matplotlib, so that a picture looks the same wherever it is made.
LOOK = str(files("bmpaudit.report.figures") / "look.mplstyle")

EPSILON_LEFT = r"$\varepsilon_L$ [nats]"
EPSILON_RIGHT = r"$\varepsilon_R$ [nats]"
NODE_EPSILON_RIGHT = r"$\varepsilon_R$ implied for the node, $e_R$ [nats]"
PRIOR_POINTS = 20_001
NUISANCE_PARAMETERS = {
    "strength": r"attack strength $s$",
    "tau": r"correlation $\tau$ of trials of one hypothesis",
    "rho": r"correlation $\rho$ of trials of both hypotheses",
}

P = ParamSpec("P")


def look() -> AbstractContextManager[None]:
    """Within it matplotlib has our look, whatever the user's own settings; afterwards theirs again."""
    return matplotlib.style.context(["default", LOOK])


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Makes a function draw with our look, and finish everything that matplotlib would put off until later."""

    @wraps(draw)
    def styled_draw(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with look():
            figure = draw(*args, **kwargs)
            lay_out(figure)
            _fix_ticks(figure)
            lay_out(figure)
            figure.stale = False
        return figure

    return styled_draw


def lay_out(figure: Figure) -> None:
    """Makes room for all texts; matplotlib would do so each time it draws, in a drawing that it throws away."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def _fix_ticks(figure: Figure) -> None:
    """Keeps the ticks that the first layout chose.

    The layout is made with ticks for larger panels than those that come out of it; where these have longer labels, the
    panel's own would leave the figure.
    """
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "linear" and not isinstance(axis.get_major_locator(), FixedLocator):
                axis.set_major_locator(FixedLocator(list(axis.get_majorticklocs())))


def inches(width: Width) -> float:
    """How wide one or two columns are; anything else is refused."""
    if width not in INCHES:
        raise InputError(f"width must be {' or '.join(INCHES)}, got width={width!r}")
    return INCHES[width]


class PaperFigure(Figure):
    """A figure that a notebook displays though it was made without pyplot."""

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        with look():
            self.savefig(written, format="png", dpi="figure")
        return written.getvalue()


def new_figure(width: Width, height: float) -> Figure:
    """An empty figure, one or two columns wide."""
    return PaperFigure(figsize=(inches(width), height), layout="constrained")


def colour(number: int) -> str:
    """The colour of a series."""
    return SERIES[number % len(SERIES)]


def stroke(number: int) -> dict[str, Any]:
    """Colour and dashes of a series' line; it is solid, until the colours begin again."""
    return {"color": colour(number), "linestyle": DASHES[number // len(SERIES) % len(DASHES)]}


def prior_density(posterior: Posterior, low: float, x: Floats) -> Floats:
    """The prior of ε at x, normalised to what lies above `low`."""
    grid = np.linspace(low, upper_end(posterior.prior, low), PRIOR_POINTS)
    grid[0] += 1e-9 * (grid[-1] - low)  # a hair inside: a prior may begin where the support does
    log_density = posterior.prior(grid)
    highest = float(log_density.max())
    mass = float(np.trapezoid(np.exp(log_density - highest), grid))
    density: Floats = np.exp(posterior.prior(np.maximum(x, grid[0])) - highest) / mass
    return density


def parameter_label(posterior: Posterior, name: str) -> str:
    """The label of an axis that shows a parameter of a posterior."""
    for parameter in posterior.definition.parameters:
        if parameter.name == name:
            return f"${parameter.latex}$ [nats]"
    return NUISANCE_PARAMETERS.get(name, plain(name))


def plain(text: object, most: int = 36) -> str:
    r"""Text from the user, of which no part becomes a formula, cut if it is too long.

    >>> plain("US$ and A$"), plain("a" * 50, most=5)
    ('US\\$ and A\\$', 'aaaa…')
    """
    one_line = " ".join(str(text).split())
    cut = one_line if len(one_line) <= most else one_line[: most - 1] + "…"
    return cut.replace("$", r"\$")


def legend_above(figure: Figure, handles: Sequence[Artist], labels: Sequence[str] | None = None) -> None:
    """A legend above all panels, in as many columns as fit; the figure grows by its height.

    The labels are those of the handles if none are given.
    """
    labels = [str(handle.get_label()) for handle in handles] if labels is None else labels
    for columns in range(len(labels), 0, -1):
        legend = figure.legend(handles, labels, loc="outside upper center", ncols=columns)
        box = legend.get_window_extent()
        if box.width <= 0.99 * figure.bbox.width or columns == 1:
            across, up = figure.get_size_inches()
            figure.set_size_inches(across, up + box.height / figure.dpi)
            return
        legend.remove()


def note(axes: Axes, text: str) -> None:
    """A remark in small print at the upper right, just above the panel."""
    place: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (0, 2), "textcoords": "offset points"}
    axes.annotate(text, (1, 1), **place, fontsize=7, ha="right")


def note_left_out(axes: Axes, is_finite: npt.ArrayLike) -> None:
    """A remark on nodes that a picture leaves out."""
    note(axes, f"not shown: {count(int(np.count_nonzero(np.logical_not(is_finite))), 'node')} without a finite value")


def limits(values: npt.ArrayLike, share: float = 0.04) -> tuple[float, float]:
    """Ends of an axis that shows all finite values, with a margin; some room also where all are the same."""
    given = np.asarray(values, dtype=np.float64).ravel()
    finite = given[np.isfinite(given)]
    if not finite.size:
        raise InputError("there must be at least one finite value to draw")
    low, high = float(finite.min()), float(finite.max())
    margin = share * (high - low) or 0.05 * max(abs(high), 1.0)
    return low - margin, high + margin


def spread(count: int) -> Floats:
    """Places in [-1, 1) for points that would lie on each other, evenly and without chance."""
    golden = 0.6180339887498949
    return 2 * (np.arange(count, dtype=np.float64) * golden % 1) - 1


def vector(name: str, values: npt.ArrayLike, length: int | None = None) -> Floats:
    """Values as an array of one dimension, of this length if one is asked for."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size or (length is not None and len(array) != length):
        wanted = "(n,), n at least 1" if length is None else f"({length},)"
        raise InputError(f"{name} must have shape {wanted}, got {array.shape}")
    return array


# Without a date the same figure gives the same bytes.
METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


def render(figure: Figure, formats: Collection[str], *, transparent: bool = False) -> dict[str, bytes]:
    """A picture in each format (`png`, `pdf`, `svg`); the same figure gives the same bytes."""
    files = {}
    with look():
        if figure.stale:  # changed since it was laid out
            lay_out(figure)
        engine = figure.get_layout_engine()
        figure.set_layout_engine(None)  # else every format would be laid out again
        try:
            for name in formats:
                written = io.BytesIO()
                figure.savefig(written, format=name, metadata=METADATA[name], transparent=transparent)
                files[name] = written.getvalue()
        finally:
            figure.set_layout_engine(engine)
            figure.stale = False
    return files


def save_figure(figure: Figure, path_without_suffix: str | Path) -> None:
    """Writes `<path>.pdf` and `<path>.png`, both whole or none; the path must not have one of these suffixes itself."""
    base = Path(path_without_suffix)
    if base.suffix in (".pdf", ".png"):
        raise InputError(f"path_without_suffix must not end in .pdf or .png, got {base}")
    with ExitStack() as both:
        for suffix, content in render(figure, ("pdf", "png")).items():
            both.enter_context(atomic_write(base.with_name(f"{base.name}.{suffix}"))).write_bytes(content)
