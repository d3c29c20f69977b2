"""An evaluation as files: all of it as JSON, a report, a picture of what was taken for what, and every error."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, write_file, write_json
from bertsmith.pictures.comparison import can_draw
from bertsmith.pictures.confusion import FILES, draw_confusion
from bertsmith.recipes.results import Report
from bertsmith.recipes.separated_rows import separated_row
from bertsmith.reports.evaluation_report import evaluation_report

EVALUATION, REPORT, ERRORS = "evaluation.json", "report.html", "errors.tsv"
_ERROR_COLUMNS = ("place", "text", "pair", "label", "predicted", "score")


def refuse_unfit_folder(folder: Path, source: Path) -> None:
    """Raise an `InputError` where an evaluation on `source` could not be written, or would take the place of it or of
    something else."""
    if folder.exists() and not folder.is_dir():
        raise InputError("--out must be a folder", f"{folder}, which is none", "Choose another place.")
    for name in ("run.toml", MANIFEST, "config.json"):
        if (folder / name).exists():
            raise InputError(
                "--out must be a folder for evaluations alone",
                f"{folder}, which holds {name}",
                "Choose a new folder, for example one inside it.",
            )
    theirs = [name for name in (EVALUATION, REPORT, ERRORS, *FILES) if os.path.lexists(folder / name)]
    if theirs and not _is_of_evaluation(folder / EVALUATION):
        raise InputError(
            "--out replaces the files of an earlier evaluation alone",
            f"{folder}, which holds {theirs[0]}, and no evaluation wrote that",
            "Choose another folder.",
        )
    if source.exists() and any(place.exists() and place.samefile(source) for place in map(folder.joinpath, theirs)):
        raise InputError(
            "--out must not replace the file that is evaluated", f"{source}, for {folder}", "Choose another folder."
        )


def write_evaluation(folder: Path, report: Report, *, notify: Callable[[str], object]) -> None:
    """Write `evaluation.json`, and of an evaluation on rows also `report.html`, `confusion.png` and `.svg` where there
    are classes, and `errors.tsv` with every error, of which the others hold the worst. Files of an earlier evaluation
    are replaced, and those that this one has none of are removed.

    Args:
        folder: where; made if it is not there.
        report: what was found.
        notify: is told in a line what could not be drawn.

    Raises:
        InputError: as `refuse_unfit_folder`, or if the disk is full.
    """
    refuse_unfit_folder(folder, report.source)
    folder.mkdir(parents=True, exist_ok=True)
    found = report.metrics
    for name in (REPORT, ERRORS, *FILES):
        (folder / name).unlink(missing_ok=True)
    write_json(folder / EVALUATION, {"folder": str(report.folder), "source": str(report.source)} | found)
    if "rows" not in found:
        return
    picture = _picture(folder, found, notify)
    page = evaluation_report(
        str(report.folder),
        str(report.source),
        found,
        num_errors=len(report.errors),
        errors_file=ERRORS,
        picture=picture,
    )
    write_file(folder / REPORT, page)
    write_file(folder / ERRORS, _errors(report.errors))


def _is_of_evaluation(path: Path) -> bool:
    """Whether a file is what `write_evaluation` writes of all that was found."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and {"folder", "source"} <= found.keys()


def _picture(folder: Path, found: dict[str, Any], notify: Callable[[str], object]) -> str | None:
    """The SVG; None where there is nothing to draw, or nothing to draw it with."""
    if "confusion" not in found:
        return None
    if not can_draw():
        notify("no picture of what was taken for what: matplotlib is not installed (pip install 'bertsmith[pictures]')")
        return None
    draw_confusion(found["labels"], np.array(found["confusion"], np.int64), folder, notify=notify)
    return (folder / FILES[1]).read_text(encoding="utf-8")


def _errors(errors: Sequence[dict[str, Any]]) -> str:
    rows = [_ERROR_COLUMNS, *([error.get(name, "") for name in _ERROR_COLUMNS] for error in errors)]
    return "".join(separated_row(row, "\t") for row in rows)
