"""Tokenizer folders in the Hugging Face layout: what is read, what is written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_file, write_json
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.folder_settings import SETTINGS, FolderSettings
from bertsmith.tokenization.pipeline import ROLES
from bertsmith.tokenization.sentencepiece_file import from_sentencepiece
from bertsmith.tokenization.summary import TrainingSummary
from bertsmith.tokenization.vocabulary_files import from_merges, from_pieces

TOKENIZER = "tokenizer.json"
VOCABULARY = "vocab.txt"
_BYTE_VOCABULARY = "vocab.json"
_MERGES = "merges.txt"
_BPE_CODES = "bpe.codes"
# The file of a SentencePiece model, and the family that it is taken for where the folder does not say.
_SENTENCEPIECE = {"spiece.model": "albert", "sentencepiece.bpe.model": "xlm-roberta"}
_SENTENCEPIECE_FAMILIES = ("albert", "xlm-roberta", "camembert")
_OURS = "bertsmith"
# What `transformers` reads besides the special tokens, and a folder keeps when it is loaded and saved again.
_KEPT = ("model_input_names", "padding_side", "truncation_side", "clean_up_tokenization_spaces")
_LONGEST = 10**9  # `transformers` writes a huge number where no length is known.
_MAKE = "Point to a tokenizer's folder, or train one with `bertsmith tokenizer train`."


@dataclass(frozen=True)
class TokenizerParts:
    """A tokenizer as it lies in a folder.

    Attributes:
        library: the library's tokenizer, without truncation or padding of its own.
        special_tokens: the token of each role in `ROLES` that there is.
        model_max_length: the longest input in tokens, where the folder says so.
        config: how it was trained, where it was trained here.
        summary: what its training found, where it was trained here.
        settings: further entries for tokenizer_config.json.
    """

    library: LibraryTokenizer
    special_tokens: dict[str, str]
    model_max_length: int | None
    config: TokenizerConfig | None
    summary: TrainingSummary | None
    settings: dict[str, Any]


def read_folder(path: Path) -> TokenizerParts:
    """Read a tokenizer folder, or a vocabulary file of one; where there is a tokenizer.json it is the one that counts.

    Raises:
        InputError: if there is no tokenizer at `path`, one of its files is damaged, or it is of a kind that needs its
            own program.
    """
    folder = path if path.is_dir() else path.parent
    settings = FolderSettings.read(folder)
    library = _read_library(path, settings)
    library.no_truncation()
    library.no_padding()
    said = settings.settings
    length = said.get("model_max_length")
    ours = said.get(_OURS)
    ours = ours if isinstance(ours, dict) else {}
    where = str(folder / SETTINGS)
    return TokenizerParts(
        library=library,
        special_tokens=settings.roles(library.get_vocab(with_added_tokens=True)),
        model_max_length=int(length) if isinstance(length, int | float) and 0 < length < _LONGEST else None,
        config=TokenizerConfig.parse(ours["config"], where=where) if "config" in ours else None,
        summary=TrainingSummary.parse(ours["training"], where=where) if "training" in ours else None,
        settings={key: said[key] for key in _KEPT if key in said},
    )


def _read_library(path: Path, settings: FolderSettings) -> LibraryTokenizer:
    if path.is_dir():
        names = (TOKENIZER, VOCABULARY, _BYTE_VOCABULARY, *_SENTENCEPIECE)
        file = next((path / name for name in names if (path / name).is_file()), path)
    else:
        file = path
    if not file.is_file():
        named = f"{TOKENIZER}, {VOCABULARY}, {_BYTE_VOCABULARY} with {_MERGES}, or {' or '.join(_SENTENCEPIECE)}"
        raise InputError(f"A tokenizer folder holds {named}", f"{path} without them", _MAKE)
    if file.suffix == ".txt":
        if (file.parent / _BPE_CODES).is_file():
            raise InputError(
                f"{file.name} is read as the tokenizer of bert", f"{_BPE_CODES} beside it", "Save its tokenizer.json."
            )
        settings = settings.of_family(file.name, ("bert",))
        library = from_pieces(file, settings)
        settings.declare(library)
    elif file.name == _BYTE_VOCABULARY:
        if not (file.parent / _MERGES).is_file():
            raise InputError(f"{file.name} needs {_MERGES} beside it", file.parent, "Get both files.")
        settings = settings.of_family(file.name, ("roberta",))
        library = from_merges(file, file.parent / _MERGES, settings)
        settings.declare(library)
    elif file.suffix == ".model":
        default = _SENTENCEPIECE.get(file.name, "albert")
        settings = settings.of_family(file.name, _SENTENCEPIECE_FAMILIES, default)
        library, controls = from_sentencepiece(file, settings)
        settings.declare(library, controls)
    else:
        library = _from_json(file)
    return library


def write_folder(folder: Path, parts: TokenizerParts) -> None:
    """Write the tokenizer's files into `folder`, which is made where it is missing.

    Raises:
        InputError: if the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / TOKENIZER, parts.library.to_str(pretty=True) + "\n")
    ours: dict[str, Any] = {}
    if parts.config is not None:
        ours["config"] = parts.config.model_dump()
    if parts.summary is not None:
        ours["training"] = parts.summary.model_dump()
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": _input_names(parts.library),
        "clean_up_tokenization_spaces": False,
        **parts.settings,
        **{f"{role}_token": parts.special_tokens[role] for role in ROLES if role in parts.special_tokens},
    }
    if parts.model_max_length is not None:
        settings["model_max_length"] = parts.model_max_length
    if ours:
        settings[_OURS] = ours
    write_json(folder / SETTINGS, settings)
    _write_vocabulary(folder / VOCABULARY, parts.library)


def _write_vocabulary(path: Path, library: LibraryTokenizer) -> None:
    vocabulary = library.get_vocab(with_added_tokens=False)
    ordered = sorted(vocabulary, key=vocabulary.__getitem__)
    # A line's number is the piece's id, so a vocabulary with gaps has no such file.
    gapless = all(vocabulary[piece] == number for number, piece in enumerate(ordered))
    if isinstance(library.model, models.WordPiece) and gapless:
        write_file(path, "".join(f"{piece}\n" for piece in ordered))
    else:
        path.unlink(missing_ok=True)


def _input_names(library: LibraryTokenizer) -> list[str]:
    # Segments differ only where the layout gives the second text its own.
    tells_apart = 1 in library.encode("a", "a").type_ids
    return ["input_ids", *(["token_type_ids"] if tells_apart else []), "attention_mask"]


def _from_json(path: Path) -> LibraryTokenizer:
    try:
        return LibraryTokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # The library raises bare exceptions.
        raise InputError(f"{path.name} must hold a tokenizer", f"{path} ({error})", _MAKE) from error
