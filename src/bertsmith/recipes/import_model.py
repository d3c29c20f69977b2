"""Bringing a model in: from the Hub, a Hugging Face folder or an original TensorFlow checkpoint."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bertsmith import __version__
from bertsmith.exchange.card import imported_card, published_facts
from bertsmith.exchange.pull import pull
from bertsmith.exchange.reading import open_folder
from bertsmith.exchange.source import HubName, HuggingFaceFolder, TensorFlowFolder, find_source, from_home
from bertsmith.exchange.tensorflow_checkpoint import write_as_layout
from bertsmith.folders.model_folder import CARD, read_config, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import disk_room, new_folder, remove_leftovers, write_file


@dataclass(frozen=True)
class Imported:
    """A model that was brought in.

    Attributes:
        folder: its model folder.
        source: where it came from: a name on the Hub, or a folder's name.
        revision: the commit on the Hub; None for what came from a folder.
        family: its `model_type`.
        parameters: how many there are.
        vocab_size: rows of the embedding.
        notes: what a person should know of how it was read.
    """

    folder: Path
    source: str
    revision: str | None
    family: str
    parameters: int
    vocab_size: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Found:
    """A source as a folder in the Hugging Face layout."""

    folder: Path
    origin: dict[str, str]
    notes: tuple[str, ...] = ()


def import_model_run(
    source: str | Path,
    out: str | Path,
    *,
    revision: str | None = None,
    cache: str | Path | None = None,
    offline: bool = False,
) -> Imported:
    """Make a model folder out of a model from elsewhere.

    Args:
        source: `owner/name` on the Hub, a folder in the Hugging Face layout, or the folder of an original TensorFlow
            checkpoint of BERT or ALBERT.
        out: the model folder, new or empty.
        revision: branch, tag or commit on the Hub.
        cache: folder of the Hub's cache; the usual one where not given.
        offline: take what is in the cache and ask nobody.

    Raises:
        InputError: if the source cannot be fetched, read or understood. `out` is then as it was.
    """
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("--out must be a new or empty folder", folder, "Choose another folder.")
    remove_leftovers(folder.parent, folder.name)
    with _as_layout(source, folder, revision, cache, offline) as found:
        opened = open_folder(found.folder)
        notes = (*found.notes, *opened.notes)
        card = imported_card(
            opened.model.config,
            origin=found.origin,
            notes=notes,
            published=published_facts(found.folder),
        )
        with new_folder(folder, seal={"kind": "model", "imported": found.origin}) as temporary:
            write_model(temporary, opened.model, opened.tokenizer)
            write_file(temporary / CARD, card)
            family = str(read_config(temporary)["model_type"])
    return Imported(
        folder=folder,
        source=found.origin["source"],
        revision=found.origin.get("commit"),
        family=family,
        parameters=sum(parameter.numel() for parameter in opened.model.parameters()),
        vocab_size=opened.model.config.encoder.vocab_size,
        notes=notes,
    )


@contextlib.contextmanager
def _as_layout(
    source: str | Path, out: Path, revision: str | None, cache: str | Path | None, offline: bool
) -> Iterator[_Found]:
    origin = {"imported with": f"bertsmith {__version__}"}
    found = find_source(str(source))
    if revision is not None and not isinstance(found, HubName):
        raise InputError("--revision belongs to a name on the Hub", f"the folder {source}", "Leave it out.")
    match found:
        case HubName(name):
            where = None if cache is None else from_home(cache)
            pulled = pull(name, revision=revision, cache=where, offline=offline)
            origin |= {"source": name, "commit": pulled.commit}
            yield _Found(pulled.folder, origin, pulled.notes)
        case HuggingFaceFolder(path):
            yield _Found(path, {"source": path.resolve().name} | origin)
        case TensorFlowFolder(path):
            with disk_room(out.parent):
                out.parent.mkdir(parents=True, exist_ok=True)
                # Its name is that of a leftover, so that whatever a kill leaves goes with the next command.
                with tempfile.TemporaryDirectory(prefix=".partial-", suffix=f"-{out.name}", dir=out.parent) as scratch:
                    notes = write_as_layout(found, Path(scratch))
                    name = path.resolve().name
                    yield _Found(Path(scratch), {"source": name, "checkpoint": found.prefix} | origin, notes)
