"""The formats in which pictures are written."""

from __future__ import annotations

from bmpaudit.errors import InputError

PICTURE_FORMATS = ("png", "pdf", "svg")
DEFAULT_PICTURES = "png,pdf"
NO_PICTURES = "none"


def picture_formats(pictures: str) -> tuple[str, ...]:
    """The formats that somebody asks for, each once.

    Raises:
        InputError: if one of them is unknown.

    >>> picture_formats("svg, png"), picture_formats("none")
    (('png', 'svg'), ())
    """
    names = {name.strip() for name in pictures.lower().split(",")}
    if names == {NO_PICTURES}:
        return ()
    if not names <= set(PICTURE_FORMATS):
        known = f"{', '.join(PICTURE_FORMATS)} (several separated by commas) or {NO_PICTURES}"
        raise InputError(f"pictures must be {known}, got pictures={pictures!r}")
    return tuple(name for name in PICTURE_FORMATS if name in names)
