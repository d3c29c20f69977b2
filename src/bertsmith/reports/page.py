"""What every report is made of: one self-contained page. No script, font or picture comes from anywhere else."""

from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b667a; --line: #d9dee7; --card: #fff; --page: #f5f6f9;
  --train: #3566d6; --validation: #d2571b; --reference: #7a8396; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #9aa5b8; --line: #333b4a; --card: #1b202b;
  --page: #12151c; --train: #7ea4ff; --validation: #ff9a66; --reference: #8a94a8; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 0 0 .75rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.25rem;
  margin-top: 1rem; overflow-x: auto; }
p.lead { color: var(--soft); margin: 0; } table { border-collapse: collapse; }
td, th { text-align: start; padding: .25rem 1rem .25rem 0; vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 500; } dl.figures { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 0; }
dl.figures dt { color: var(--soft); font-size: .85rem; } dl.figures dd { margin: 0; font-size: 1.35rem; }
li { unicode-bidi: plaintext; text-align: start; margin: .2rem 0; } ul { list-style: none; margin: 0; padding: 0; }
svg { max-width: 100%; height: auto; } .legend { color: var(--soft); font-size: .9rem; }
""".strip()


def page(name: str, lead: str, sections: Mapping[str, str], *, kind: str = "run") -> str:
    """A page.

    Args:
        name: the run's name, or another heading.
        lead: one line about it.
        sections: HTML by heading.
        kind: what the page is about, for its title.
    """
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(name)}: bertsmith {kind}</title><style>{_STYLE}</style></head><body><main>",
            f"<h1>{escape(name)}</h1>",
            f'<p class="lead">{escape(lead)}</p>',
            *(f"<section><h2>{escape(heading)}</h2>{body}</section>" for heading, body in sections.items()),
            "</main></body></html>\n",
        ]
    )


def figures(values: Mapping[str, str]) -> str:
    """A few numbers, large."""
    items = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in values.items())
    return f'<dl class="figures">{items}</dl>'


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted key; what is not set is left out."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = value
    return found


def table(values: dict[str, Any]) -> str:
    """Names and values, a row each."""
    rows = "".join(
        f"<tr><th>{escape(str(key))}</th><td>{escape(_shown(value))}</td></tr>" for key, value in values.items()
    )
    return f"<table>{rows}</table>"


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case list():
            return ", ".join(str(item) for item in value)
        case _:
            return str(value)
