"""A profile as files: all of it as JSON, and a page."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_file, write_json
from bertsmith.recipes.profiling.profile import Profile
from bertsmith.recipes.run_record import versions
from bertsmith.reports.profile_report import profile_report

PROFILE, REPORT = "profile.json", "report.html"


def refuse_unfit_folder(folder: Path) -> None:
    """Raise an `InputError` where a profile could not be written, or would stand among something else."""
    if folder.exists() and not folder.is_dir():
        raise InputError("--out must be a folder", f"{folder}, which is none", "Choose another place.")
    others = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    others = [name for name in others if name not in (PROFILE, REPORT)]
    if others:
        raise InputError(
            "--out must be a new or empty folder, or one that holds an earlier profile",
            f"{folder}, which holds {others[0]}",
            "Choose another folder.",
        )


def write_profile(folder: Path, profile: Profile, settings: dict[str, Any]) -> None:
    """Write `profile.json` and `report.html`. Those of an earlier profile are replaced.

    Args:
        folder: where; made if it is not there.
        profile: what was found.
        settings: of the training whose step this is, as plain values.

    Raises:
        InputError: as `refuse_unfit_folder`, or if the disk is full.
    """
    refuse_unfit_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    values = asdict(profile) | {"settings": settings} | versions()
    write_json(folder / PROFILE, values)
    write_file(folder / REPORT, profile_report(folder.resolve().name, values))
