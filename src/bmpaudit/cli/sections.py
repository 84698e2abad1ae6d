"""Help texts with options under headings, for commands that have many."""

from __future__ import annotations

from typing import Any

import click
from click.types import OptionHelpExtra

FIRST = "Options"
SAMPLER = "Sampler"
MODEL = "Model and training"
VIEWS = "Views (what is released, and how it is queried)"
ATTACK = "Attack and decision"
ESTIMATION = "Estimation"
RUN = "Run"
HEADINGS = (FIRST, SAMPLER, MODEL, VIEWS, ATTACK, ESTIMATION, RUN)


class SectionOption(click.Option):
    """An option under a heading, whose default may be described in words.

    Args:
        section: One of `HEADINGS`.
        default_text: What help says of the default, where the default is no value of the option itself.
    """

    def __init__(self, *args: Any, section: str = FIRST, default_text: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section, self.default_text = section, default_text

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """The default and whether it is required; bounds are for the error message."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        if self.default_text:
            extra["default"] = self.default_text
        elif "default" in extra and type(self.default) is int:
            extra["default"] = f"{self.default:,}"
        return extra


class SectionedCommand(click.Command):
    """A command whose help lists the options under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options, one list for each heading."""
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                rows[getattr(parameter, "section", RUN)].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
