"""The page of an inference: one HTML file without a script, which opens offline and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files

from bmpaudit.auditing.infer_check import BehaviourCheck
from bmpaudit.auditing.inference import Inference, node_cells

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render_inference_page(inference: Inference, top: int) -> str:
    """The page, with the `top` most likely members; every text is escaped."""
    head, rows = node_cells(inference, top)
    sections = [
        _section(
            "summary",
            "In short",
            "".join(f'<p class="notice">{escape(warning)}</p>' for warning in inference.warnings)
            + f'<p class="verdict">{escape(inference.verdict)}</p>'
            + _table(*inference.named_cells(), num_texts=1)
            + "".join(f"<p>{escape(line)}</p>" for line in (*inference.findings(), f"{inference.setting}.")),
        ),
        _section(
            "check",
            "Does this model behave like the shadow models?",
            _check(inference.check)
            + '<p class="note">Deviation: distance from the median of the shadow models, in units of the distance from '
            "there to their 5 % or 95 % quantile. The largest one is ranked among those of the shadow models.</p>",
        ),
    ]
    if inference.score is not None:
        sections.append(
            _section("score", "Does it give away what the shadow models do?", _check(inference.score.standing))
        )
    sections.append(
        _section(
            "nodes",
            "Nodes",
            f"<p>The {len(rows):,} most likely members of {len(inference.table):,} nodes.</p>"
            + _table(head, rows, num_texts=2)
            + '<p class="note">Odds are posterior odds of membership, recalibrated on the shadow models: of nodes with '
            "odds of 99 : 1, 99 in 100 are members, on average over nodes and models.</p>",
        )
    )
    style = "".join(
        (files("bmpaudit.report") / "page_parts" / name).read_text(encoding="utf-8")
        for name in ("page.css", "compare.css")
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(inference.model)} – members of a released model</title>\n"
        f'<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n<body>\n'
        '<a class="skip" href="#summary">Skip to the answer</a>\n<header class="page-head">\n'
        f'<p class="kicker">Members of a released model</p>\n<h1 class="name">{escape(inference.model)}</h1>\n'
        f'<p id="subtitle">{escape(inference.title)}</p>\n</header>\n<main class="compared">\n'
        + "\n".join(sections)
        + f'\n<p class="note">bmpaudit {escape(version("bmpaudit"))}. This page makes no network requests and runs no '
        "scripts.</p>\n</main>\n</body>\n</html>\n"
    )


def _check(check: BehaviourCheck) -> str:
    answer = "Nothing speaks against it" if check.is_like_shadows else "No"
    rows = [
        [each.name, f"{each.value:.4g}", f"{each.low:.4g} to {each.high:.4g}", f"{each.deviation:.2f}"]
        for each in check.standings
    ]
    head = ["quantity", "this model", "98 % of the shadow models", "deviation"]
    return f"<p>{answer}: p = {check.p_value:.2g}.</p>{_table(head, rows, num_texts=1)}"


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}">\n<h2>{escape(title)}</h2>\n{content}\n</section>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], num_texts: int) -> str:
    kinds = ["name" if k == 0 else "text" if k < num_texts else "number" for k in range(len(head))]
    top = "".join(f'<th scope="col" class="{kind}">{escape(cell)}</th>' for cell, kind in zip(head, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{escape(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" role="region" aria-label="Table" tabindex="0">{table}</div>'
