"""`report.html` of an evaluation on rows: scores, each class, what was confused, the worst errors."""

from html import escape
from typing import Any

from bertsmith.reports.finetune_report import evaluation_sections
from bertsmith.reports.page import figures, page, table
from bertsmith.reports.scores import score_text, score_title


def evaluation_report(
    model: str,
    source: str,
    evaluation: dict[str, Any],
    *,
    num_errors: int,
    errors_file: str,
    picture: str | None = None,
) -> str:
    """The page.

    Args:
        model: the model's folder.
        source: what it was evaluated on.
        evaluation: what was found.
        num_errors: how many errors there are; the page may show fewer.
        errors_file: where all of them stand.
        picture: SVG of what was taken for what.
    """
    scores = {score_title(key): score_text(key, value) for key, value in evaluation.items() if isinstance(value, float)}
    sections = evaluation_sections(evaluation)
    if picture is not None:
        sections["What was taken for what"] = picture[picture.index("<svg") :]
    shown = len(evaluation.get("worst_errors", ()))
    if shown < num_errors:
        more = f"The {shown} worst of {num_errors:,}; all of them stand in {errors_file}."
        sections["Worst errors"] = f"<p>{escape(more)}</p>{sections['Worst errors']}"
    notes = evaluation.get("notes", ())
    return page(
        f"Evaluation of {model}",
        f"On {source}",
        {
            "Result": figures(scores | {"rows": f"{evaluation['rows']:,}"}),
            **sections,
            "Data": table(
                {"model": model, "rows": source, **{f"note {number}": note for number, note in enumerate(notes, 1)}}
            ),
        },
        kind="evaluation",
    )
