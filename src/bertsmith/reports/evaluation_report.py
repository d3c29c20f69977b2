"""`report.html` of an evaluation on rows: scores, each class, what was confused, the worst errors."""

from typing import Any

from bertsmith.reports.finetune_report import evaluation_sections
from bertsmith.reports.page import figures, page, table
from bertsmith.reports.scores import score_text, score_title


def evaluation_report(
    name: str, source: str, evaluation: dict[str, Any], *, picture: str | None = None, notes: tuple[str, ...] = ()
) -> str:
    """The page.

    Args:
        name: the model's.
        source: what it was evaluated on.
        evaluation: what was found.
        picture: SVG of what was taken for what.
        notes: what stands out in the rows.
    """
    scores = {score_title(key): score_text(key, value) for key, value in evaluation.items() if isinstance(value, float)}
    sections = evaluation_sections(evaluation)
    if picture is not None:
        sections["What was taken for what"] = picture[picture.index("<svg") :]
    return page(
        name,
        f"Evaluated on {source}",
        {
            "Result": figures(scores | {"rows": f"{evaluation['rows']:,}"}),
            **sections,
            "Data": table({"rows": source, **{f"note {number}": note for number, note in enumerate(notes, 1)}}),
        },
    )
