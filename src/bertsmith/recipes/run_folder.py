"""The folder of a run: what ran, whether it can go on, whether it is done."""

import contextlib
import json
import os
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import tomli_w

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, remove_leftovers, write_file
from bertsmith.recipes.results import Run
from bertsmith.recipes.settings import read_settings

_RUN = "run.toml"
_OWN = (
    *(_RUN, "log.jsonl", "report.html", "evaluation.json", "tokenizer", "corpus", "checkpoints", "model"),
    *(f"comparison.{suffix}" for suffix in ("json", "md", "png", "svg")),
)
"""What runs and comparisons write into their folder."""
_FREE = ("runtime",)
"""Settings that a resume may change, but for the precision in which the run began."""
_KINDS = {"objective": "a pre-training", "train": "a fine-tuning", "bert_objective": "a comparison"}
"""A setting that is always written down in a run of each kind, and in no other."""


@runtime_checkable
class RunConfig(Protocol):
    """What decides a run."""

    @property
    def written(self) -> dict[str, Any]:
        """Plain values from which the same run can be begun again."""
        ...


class RunFolder:
    """A run's folder, new or begun earlier by the same settings.

    Args:
        path: the folder.
        config: what is to run.

    Raises:
        InputError: if the folder holds another run, or anything else.
    """

    def __init__(self, path: Path, config: RunConfig) -> None:
        self.path = path
        self._config = config
        if path.exists() and not path.is_dir():
            raise InputError("--out must be a folder", f"{path}, which is a file", "Choose another place.")
        if holds_run(path):
            self._refuse_another_run()
            remove_leftovers(path)
        elif path.is_dir() and any(not entry.name.startswith(".partial-") for entry in path.iterdir()):
            raise InputError(
                "--out must be a new or empty folder, or one that holds the same run",
                f"{path}, which holds something else",
                "Choose another folder.",
            )

    @property
    def tokenizer(self) -> Path:
        """Where the run's tokenizer stands."""
        return self.path / "tokenizer"

    @property
    def corpus(self) -> Path:
        """Where the run's corpus stands."""
        return self.path / "corpus"

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints stand."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """Where the finished model stands."""
        return self.path / "model"

    @property
    def log(self) -> Path:
        """The log."""
        return self.path / "log.jsonl"

    @property
    def report(self) -> Path:
        """The report."""
        return self.path / "report.html"

    @property
    def evaluation(self) -> Path:
        """What the last validation of a fine-tuning found in detail."""
        return self.path / "evaluation.json"

    @property
    def is_finished(self) -> bool:
        """Whether the run has left its model."""
        return (self.model / MANIFEST).is_file()

    @property
    def has_checkpoint(self) -> bool:
        """Whether the run has a checkpoint to go on from."""
        return any(self.checkpoints.glob("step-*"))

    def record(self) -> dict[str, Any]:
        """What was decided or found while the run began; empty before."""
        return record_of(self.path)

    def finished(self, *, already: bool = True) -> Run:
        """What the finished run has left.

        Args:
            already: whether it was finished before this call of its recipe.
        """
        record = self.record()
        has_evaluation = self.evaluation.is_file()
        return Run(
            folder=self.path,
            model_folder=self.model,
            steps=record["steps"],
            tokens=record["tokens"],
            metrics=record["metrics"],
            context_free_loss=record.get("context_free_loss"),
            already_finished=already,
            evaluation=json.loads(self.evaluation.read_text(encoding="utf-8")) if has_evaluation else {},
            spread=record.get("spread", {}),
        )

    def write(self, record: dict[str, Any]) -> None:
        """Write `run.toml`: the settings and the record. A run can be begun from it again."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_file(self.path / _RUN, tomli_w.dumps(self._config.written | {"record": record}))

    @contextlib.contextmanager
    def absent_if_refused(self) -> Iterator[None]:
        """Where the block refuses its input, the folder is empty, if it did not hold this run already.

        So the command can be mended and given again. A run that has a checkpoint or a finished seed stays, and so does
        the folder, which whoever made it removes.
        """
        is_new = not holds_run(self.path)
        try:
            yield
        except InputError:
            if is_new and not any(any(self.path.rglob(kept)) for kept in ("checkpoints/step-*", f"model/{MANIFEST}")):
                with contextlib.suppress(OSError):
                    _empty(self.path)
            raise

    def _refuse_another_run(self) -> None:
        before = read_settings(self.path / _RUN)
        _refuse_another_kind("--out must be a new folder, or one that holds the same run", self.path, self._config)
        before, now = _leaves(before), _leaves(self._config.written)
        different = [
            f"{key} was {before.get(key, 'not set')} and is now {now.get(key, 'not set')}"
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key) and key.split(".")[0] not in _FREE
        ]
        asked = now.get("runtime.precision", "auto")
        began_in = self.record().get("precision", asked)
        if asked not in ("auto", began_in):
            different.append(f"runtime.precision was {began_in} and is now {asked}")
        if different:
            raise InputError(
                "--out holds a run with other settings, and a run goes on only with its own",
                "; ".join(different[:5]),
                "Give the same command to go on, choose another folder, or begin anew with --restart.",
            )


def record_of(path: Path) -> dict[str, Any]:
    """What was decided or found while the run of a folder began; empty where it holds none."""
    file = path / _RUN
    return tomllib.loads(file.read_text(encoding="utf-8")).get("record", {}) if file.is_file() else {}


def holds_run(path: Path) -> bool:
    """Whether a folder is that of a run, begun or finished."""
    return (path / _RUN).is_file()


def is_file_of_run(path: Path) -> bool:
    """Whether a run's folder holds a file, or will hold it, as the run's own."""
    return path.name in _OWN and holds_run(path.parent)


def remove_earlier(path: Path, config: RunConfig, inputs: Iterable[str | Path | None]) -> None:
    """Remove the run that a folder holds, so that another of its kind can begin there.

    Args:
        path: the folder, which stays: whoever has locked it holds it still.
        config: what is to run.
        inputs: what that is made from: files and folders by their names, None and names of nothing among them.

    Raises:
        InputError: if the folder holds a run of another kind, or something that the new run is made from.
    """
    _refuse_another_kind("--restart removes only an earlier run of the same kind", path, config)
    needed = [str(given) for given in inputs if given is not None and _lies_in(path, Path(given))]
    if needed:
        raise InputError(
            "--restart must not remove what the run is made from",
            f"--out {path}, which holds {', '.join(needed)}",
            "Choose another folder.",
        )
    _empty(path)


def _empty(folder: Path) -> None:
    # The settings go last: what an interruption leaves is still known as a run.
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == _RUN):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _refuse_another_kind(rule: str, path: Path, config: RunConfig) -> None:
    held, wanted = (_kind(values) for values in (read_settings(path / _RUN), config.written))
    if held != wanted:
        raise InputError(rule, f"{path}, which holds {held}, for {wanted}", "Choose another folder.")


def _kind(settings: dict[str, Any]) -> str:
    return next((kind for mark, kind in _KINDS.items() if mark in settings), "something else")


def _lies_in(folder: Path, given: Path) -> bool:
    """Whether a file or folder is `folder` or lies in it, by its own name or that of what a link leads to."""
    if not given.exists():
        return False
    ways = (Path(os.path.abspath(given)), given.resolve())
    return any(place.exists() and place.samefile(folder) for way in ways for place in (way, *way.parents))


def _leaves(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            leaves |= _leaves(value, f"{prefix}{key}.")
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves
