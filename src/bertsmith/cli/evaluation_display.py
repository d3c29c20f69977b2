"""What an evaluation found, for people: each class, and the worst errors."""

from typing import Any

import typer

from bertsmith.cli.prediction_display import isolated, shortened_line
from bertsmith.text.shown import on_one_line

_MOST_ERRORS = 5
_MOST_CLASSES = 20


def show_details(evaluation: dict[str, Any]) -> None:
    """What there is beside the scores; not every task has each."""
    if evaluation.get("per_class"):
        _show_classes(evaluation["per_class"], evaluation.get("counted", "rows"))
    if evaluation.get("worst_errors"):
        _show_errors(evaluation["worst_errors"])


def _show_classes(per_class: dict[str, dict[str, Any]], counted: str) -> None:
    """Each class's scores; of many, those with the lowest F1."""
    shown = sorted(per_class, key=lambda name: per_class[name]["f1"])[:_MOST_CLASSES]
    shown = [name for name in per_class if name in shown]
    left_out = len(per_class) - len(shown)
    typer.echo("\neach class" + (f", the {len(shown)} lowest of {len(per_class)}" if left_out else ""))
    width = max(len(on_one_line(name)) for name in shown)
    for name in shown:
        found, told = per_class[name], on_one_line(name)
        typer.echo(
            f"  {isolated(told)}{' ' * (width - len(told))}  precision {found['precision']:6.1%}  "
            f"recall {found['recall']:6.1%}  F1 {found['f1']:6.1%}  {found['rows']:,} {counted}"
        )


def _show_errors(errors: list[dict[str, Any]]) -> None:
    """The worst errors, a line or two each."""
    typer.echo("\nworst errors")
    for error in errors[:_MOST_ERRORS]:
        label, predicted = (isolated(shortened_line(on_one_line(str(error[name])))) for name in ("label", "predicted"))
        score = f" ({error['score']:.0%})" if "score" in error else ""
        typer.echo(f"  {on_one_line(error['place'])}: {label} taken for {predicted}{score}")
        for name in ("text", "pair"):
            if name in error:
                typer.echo(f"      {isolated(shortened_line(error[name]))}")
