"""The outcome of a gate for a model card (Markdown) and for CI servers (JUnit XML)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import escape

from bmpaudit.auditing.gate_result import CheckedThreshold, GateResult

NOT_A_GUARANTEE = "Passing means that this attack found no more. It is no guarantee: a better attack may find more."

# What is not a character of XML 1.0.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_\[\]|~])")


def to_markdown(result: GateResult) -> str:
    """A few lines for a model card."""
    rows = [f"| {_shown(each.label)} | {each.outcome} | {_shown(each.explanation)} |" for each in result.thresholds]
    subject = _shown(f"{result.subject}; bmpaudit {result.bmpaudit}")
    return "\n".join(
        [
            f"**Membership inference: {result.outcome}** ({subject})",
            "",
            "| threshold | outcome | why |",
            "| --- | --- | --- |",
            *rows,
            "",
            NOT_A_GUARANTEE,
        ]
    )


def _shown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\1", escape(" ".join(text.split()), quote=False))


def to_junit(result: GateResult) -> str:
    """JUnit XML: a test case for each threshold. Exceeded is a failure; undecided is an error, so that it stops CI."""
    outcomes = [each.outcome for each in result.thresholds]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("exceeded")),
        "errors": str(outcomes.count("undecided")),
        "skipped": "0",
    }
    root = ET.Element("testsuites", {"name": "bmpaudit check", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _characters(result.subject), **counts})
    properties = ET.SubElement(suite, "properties")
    for name in ("outcome", "fingerprint", "bmpaudit"):
        ET.SubElement(properties, "property", {"name": name, "value": _characters(getattr(result, name))})
    for each in result.thresholds:
        _add_case(suite, result, each)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def _add_case(suite: ET.Element, result: GateResult, each: CheckedThreshold) -> None:
    explanation = _characters(each.explanation)
    case = ET.SubElement(suite, "testcase", {"classname": _characters(result.title), "name": each.label})
    if each.outcome == "passed":
        ET.SubElement(case, "system-out").text = explanation
    else:
        tag = "failure" if each.outcome == "exceeded" else "error"
        ET.SubElement(case, tag, {"type": each.outcome, "message": explanation}).text = explanation


def _characters(text: str) -> str:
    return _NO_XML.sub("?", text)
