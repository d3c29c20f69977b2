"""Tokenizer folders in the Hugging Face layout: what is read, what is written."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_file, write_json
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.pipeline import ROLES, build_layout
from bertsmith.tokenization.summary import TrainingSummary

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
SPECIALS = "special_tokens_map.json"
VOCABULARY = "vocab.txt"
_OURS = "bertsmith"
# Names used where a folder does not say: BERT's, then RoBERTa's and ALBERT's.
_USUAL = {
    "unk": ("[UNK]", "<unk>"),
    "sep": ("[SEP]", "</s>"),
    "pad": ("[PAD]", "<pad>"),
    "cls": ("[CLS]", "<s>"),
    "mask": ("[MASK]", "<mask>"),
}
# What `transformers` reads besides the special tokens, and a folder keeps when it is loaded and saved again.
_KEPT = ("model_input_names", "padding_side", "truncation_side", "clean_up_tokenization_spaces")
_LONGEST = 10**9  # `transformers` writes a huge number where no length is known.
_MAKE = "Point to a folder with tokenizer.json or vocab.txt, or train one with `bertsmith tokenizer train`."


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
    """Read a tokenizer folder, a tokenizer.json or a vocab.txt.

    Raises:
        InputError: if there is no tokenizer at `path`, or one of its files is damaged.
    """
    folder = path if path.is_dir() else path.parent
    settings = _read_json(folder / SETTINGS)
    if path.is_file():
        library = _from_vocabulary(path, settings) if path.suffix == ".txt" else _from_json(path)
    elif (path / TOKENIZER).is_file():
        library = _from_json(path / TOKENIZER)
    elif (path / VOCABULARY).is_file():
        library = _from_vocabulary(path / VOCABULARY, settings)
    else:
        raise InputError(f"A tokenizer folder holds {TOKENIZER} or {VOCABULARY}", f"{path} without them", _MAKE)
    library.no_truncation()
    library.no_padding()
    length = settings.get("model_max_length")
    ours = settings.get(_OURS)
    ours = ours if isinstance(ours, dict) else {}
    where = str(folder / SETTINGS)
    return TokenizerParts(
        library=library,
        special_tokens=_special_tokens(library, {**_read_json(folder / SPECIALS), **settings}),
        model_max_length=int(length) if isinstance(length, int | float) and 0 < length < _LONGEST else None,
        config=TokenizerConfig.parse(ours["config"], where=where) if "config" in ours else None,
        summary=TrainingSummary.parse(ours["training"], where=where) if "training" in ours else None,
        settings={key: settings[key] for key in _KEPT if key in settings},
    )


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


def _from_vocabulary(path: Path, settings: dict[str, Any]) -> LibraryTokenizer:
    """BERT's own tokenizer over a bare list of pieces."""
    try:
        pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} must hold one piece a line in UTF-8", f"{path} ({error})", _MAKE) from error
    vocabulary = {piece.rstrip("\r"): number for number, piece in enumerate(pieces)}
    names = {role: _name(settings.get(f"{role}_token")) or _USUAL[role][0] for role in ROLES}
    for role in ("unk", "cls", "sep"):
        if names[role] not in vocabulary:
            raise InputError(f"{path.name} must hold {names[role]}", f"{len(vocabulary)} pieces without it", _MAKE)
    library = LibraryTokenizer(models.WordPiece(vocabulary, unk_token=names["unk"]))
    library.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(prefix="##")
    library.add_special_tokens([names[role] for role in ROLES if names[role] in vocabulary])
    cls, sep = names["cls"], names["sep"]
    library.post_processor = build_layout((cls, vocabulary[cls]), (sep, vocabulary[sep]), doubled=False)
    return library


def _special_tokens(library: LibraryTokenizer, named: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for role in ROLES:
        key = f"{role}_token"
        # A folder that says null has no such token; one that says nothing may have a usual one.
        candidates = (_name(named[key]),) if key in named else _USUAL[role]
        for token in candidates:
            if token is not None and library.token_to_id(token) is not None:
                found[role] = token
                break
    return found


def _name(value: Any) -> str | None:
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else None


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(
            f"{path.name} must hold JSON", f"{path} ({error})", "The file is damaged: get it anew."
        ) from error
    if not isinstance(value, dict):
        raise InputError(f"{path.name} must hold a JSON object", path, "The file is damaged: get it anew.")
    return value
