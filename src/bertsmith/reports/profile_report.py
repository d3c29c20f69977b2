"""`report.html` of a profile: where the time of a step goes, and how far it is above its floor."""

from collections.abc import Sequence
from html import escape
from typing import Any

from bertsmith.reports.bars import Bar, bar_chart
from bertsmith.reports.page import figures, flat, page, table
from bertsmith.reports.profile_words import floor_facts, milliseconds, part_title, profile_facts, profile_lead

_KINDS = (("forward", "--train"), ("backward", "--validation"), ("without direction", "--reference"))
_HEADINGS = ("part", "forward, ms", "backward, ms", "ms", "share", "floor, ms")


def profile_report(name: str, values: dict[str, Any]) -> str:
    """The page.

    Args:
        name: of the folder.
        values: what `profile.json` holds.
    """
    steps, floor = values["steps"], values["floor"]
    return page(
        name,
        profile_lead(values),
        {
            "A step": figures(
                {
                    "step": f"{milliseconds(steps['plain_ms'])} ms",
                    "tokens a second": f"{values['tokens_per_second']:,.0f}",
                    "floor": f"{milliseconds(floor['ms'])} ms",
                    "fraction of floor": f"{floor['fraction']:.2f}",
                }
            ),
            "Where its time goes": _chart(values["parts"]) + _parts(values["parts"], steps["watched_ms"]),
            "What was measured": table(profile_facts(values)),
            "What the floor is made of": table(floor_facts(values)),
            "Settings": table(flat(values["settings"])),
            "Versions": table(values["versions"]),
        },
    )


def _chart(parts: Sequence[dict[str, Any]]) -> str:
    bars = [
        Bar(
            part_title(part["part"]),
            (part["forward_ms"] or 0.0, part["backward_ms"] or 0.0, part["ms"] if part["forward_ms"] is None else 0.0),
            f"{milliseconds(part['ms'])} ms, {part['share']:.1%}",
            part["floor_ms"] or None,
        )
        for part in parts
    ]
    return bar_chart(bars, _KINDS, mark="floor: matrix products alone, and the optimizer's traffic", label="ms by part")


def _parts(parts: Sequence[dict[str, Any]], step_ms: float) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in _HEADINGS)
    rows = "".join(_row(part_title(part["part"]), part) for part in parts)
    total = {name: _sum(parts, name) for name in ("forward_ms", "backward_ms", "floor_ms")}
    return f"<table><tr>{head}</tr>{rows}{_row('together', total | {'ms': step_ms, 'share': 1.0})}</table>"


def _sum(parts: Sequence[dict[str, Any]], name: str) -> float:
    return sum(part[name] or 0.0 for part in parts)


def _row(name: str, part: dict[str, Any]) -> str:
    cells = [
        milliseconds(part["forward_ms"]),
        milliseconds(part["backward_ms"]),
        milliseconds(part["ms"]),
        f"{part['share']:.1%}",
        milliseconds(part["floor_ms"] or None),
    ]
    return f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
