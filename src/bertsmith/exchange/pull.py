"""Fetching a model from the Hub into its cache, and making sure that it is what the Hub says it is."""

import glob
import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.hf_api import ModelInfo, RepoSibling

from bertsmith.exchange.hub_errors import FETCH_ONCE, Fetching, HubSilent, hub_errors
from bertsmith.folders.model_folder import CARD, CONFIG
from bertsmith.folders.sentence_transformers import SENTENCE_FILES
from bertsmith.folders.tensors import HEADS, WEIGHTS, shards_of
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import sha256

BESIDE_WEIGHTS = (
    *(CONFIG, CARD, HEADS),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "bpe.codes", "spiece.model", "sentencepiece.bpe.model"),
    *SENTENCE_FILES,
)
"""What is read of a model beside its weights; a file among these that is of another model does harm."""
_OLD_WEIGHTS = "pytorch_model.bin"
_INDEX = ".index.json"
_ANSWER_SECONDS = 30.0
_MOST_SHOWN = 6


@dataclass(frozen=True)
class Pulled:
    """A model of the Hub, on this disk.

    Attributes:
        folder: the files, in the Hugging Face layout. They belong to the cache and must not be changed.
        commit: which state of the model it is.
        notes: what a person should know of how it came.
    """

    folder: Path
    commit: str
    notes: tuple[str, ...]


def pull(name: str, *, revision: str | None = None, cache: Path | None = None, offline: bool = False) -> Pulled:
    """Fetch a model: its config, its tokenizer and one kind of weights, safetensors where there are any.

    The token is the library's own: `HF_TOKEN` or what `hf auth login` stored; so are `HF_ENDPOINT` and
    `HF_HUB_OFFLINE`. Every file is compared with the sum that the Hub tells, also what was in the cache before.

    Args:
        name: `owner/name`.
        revision: a branch, a tag or a commit; the main branch where not given.
        cache: folder of the cache; the library's where not given.
        offline: take what is in the cache and ask nobody.

    Raises:
        InputError: if the model, its revision or the network is not there, it is closed to the token, the disk is
            full, or a file is not what it should be. Nothing damaged stays in the cache.
    """
    if offline or constants.HF_HUB_OFFLINE:
        return _from_cache(name, revision, cache)
    try:
        with hub_errors(name, _fetching(cache)):
            info = HfApi().model_info(name, revision=revision, files_metadata=True, timeout=_ANSWER_SECONDS)
    except HubSilent as silent:
        return _from_cache_instead(name, revision, cache, silent)
    there = _There(name, revision, cache, info)
    wanted = chosen_files(there.siblings, name)
    folder = there.fetch(wanted)
    if (index := _index_among(wanted)) is not None:
        shards = shards_of(folder / index)
        if lost := [shard for shard in shards if shard not in there.siblings]:
            raise InputError(
                "Every shard that the index names must be there",
                f"{name} without {', '.join(lost[:_MOST_SHOWN])}",
                "Look at its page on the Hub.",
            )
        there.fetch(shards)
    return Pulled(folder, folder.name, ())


def _fetching(cache: Path | None) -> Fetching:
    return Fetching(Path(constants.HF_HUB_CACHE) if cache is None else cache)


@dataclass(frozen=True)
class _There:
    """A state of a model on the Hub."""

    name: str
    revision: str | None
    cache: Path | None
    info: ModelInfo

    @property
    def siblings(self) -> dict[str, RepoSibling]:
        """Its files by name."""
        return {sibling.rfilename: sibling for sibling in self.info.siblings or ()}

    def fetch(self, files: list[str]) -> Path:
        """Bring files into the cache and compare them with their sums; returns the folder in which they lie."""
        with hub_errors(self.name, _fetching(self.cache)):
            patterns = [glob.escape(file) for file in files]
            found = snapshot_download(self.name, revision=self.revision, cache_dir=self.cache, allow_patterns=patterns)
        folder = Path(found)
        _refuse_moved(self.name, folder, self.info)
        _refuse_altered(self.name, folder, [self.siblings[file] for file in files])
        return folder


def chosen_files(names: Collection[str], model: str) -> list[str]:
    """Which files of a model are needed: of weights in shards the index, which names the shards.

    Raises:
        InputError: if there is no config, or there are no weights that can be read.
    """
    kept = [name for name in BESIDE_WEIGHTS if name in names]
    weights = (WEIGHTS, f"{WEIGHTS}{_INDEX}", _OLD_WEIGHTS, f"{_OLD_WEIGHTS}{_INDEX}")
    found = next((name for name in weights if name in names), None)
    if found is not None and CONFIG in kept:
        return [*kept, found]
    shown = sorted(names)
    raise InputError(
        f"A model on the Hub must hold {CONFIG} and weights as safetensors or of PyTorch",
        f"{model} with {', '.join(shown[:_MOST_SHOWN]) or 'no file'}{' …' if len(shown) > _MOST_SHOWN else ''}",
        "Is it a model of another kind? Look at its page on the Hub.",
    )


def _from_cache(name: str, revision: str | None, cache: Path | None) -> Pulled:
    with hub_errors(name, _fetching(cache)):
        folder = Path(
            snapshot_download(name, revision=revision, cache_dir=cache, local_files_only=True, allow_patterns=[CONFIG])
        )
    names = sorted(path.name for path in folder.iterdir())
    try:
        index = _index_among(chosen_files(names, name))
        whole = index is None or set(shards_of(folder / index)) <= set(names)
    except InputError:
        whole = False
    if not whole:
        raise InputError("Offline, a model must be in the cache", f"{name} with {', '.join(names)} alone", FETCH_ONCE)
    return Pulled(folder, folder.name, ())


def _index_among(files: list[str]) -> str | None:
    return next((file for file in files if file.endswith(_INDEX)), None)


def _from_cache_instead(name: str, revision: str | None, cache: Path | None, silent: HubSilent) -> Pulled:
    try:
        found = _from_cache(name, revision, cache)
    except InputError:
        raise silent from None
    return Pulled(found.folder, found.commit, (f"taken from the cache, for there was no answer: {silent.received}",))


def _refuse_moved(name: str, folder: Path, info: ModelInfo) -> None:
    if folder.name != info.sha:
        raise InputError(
            "A model must not change while it is fetched",
            f"{name}, which went from {info.sha} to {folder.name}",
            "Give the same command again.",
        )


def _refuse_altered(name: str, folder: Path, siblings: list[RepoSibling]) -> None:
    """Compare each file with the sum that the Hub tells; the library compares sizes only."""
    faults: list[str] = []
    for sibling in siblings:
        path = folder / sibling.rfilename
        expected = sibling.lfs.sha256 if sibling.lfs is not None else sibling.blob_id
        found = sha256(path) if sibling.lfs is not None else _git_sum(path)
        if expected is not None and found != expected:
            faults.append(f"{sibling.rfilename} with {found[:16]}… for {expected[:16]}…")
            path.resolve().unlink()
            path.unlink(missing_ok=True)
    if faults:
        raise InputError(
            "A file must have the sum that the Hub tells",
            f"{name}: {', '.join(faults)}",
            "It was taken out of the cache. Give the same command again to fetch it anew.",
        )


def _git_sum(path: Path) -> str:
    """The name that git gives to a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
