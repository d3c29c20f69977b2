"""Tokenizers out of bare vocabularies: BERT's vocab.txt, and RoBERTa's vocab.json with merges.txt."""

import json
from pathlib import Path

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.folder_settings import FolderSettings
from bertsmith.tokenization.pipeline import build_layout

_DAMAGED = "The file is damaged, or of another kind of tokenizer: get it anew, or a tokenizer.json in its place."
_WORD_END = "</w>"


def from_pieces(path: Path, settings: FolderSettings) -> LibraryTokenizer:
    """BERT's own tokenizer over a list of pieces, one a line.

    Raises:
        InputError: if the file cannot be read or lacks a token that the layout needs.
    """
    try:
        pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} must hold one piece a line in UTF-8", f"{path} ({error})", _DAMAGED) from error
    vocabulary = {piece.rstrip("\r"): number for number, piece in enumerate(pieces)}
    names = settings.needed(path, vocabulary, ("unk", "cls", "sep"))
    lowercase, accents = settings.flag("do_lower_case", default=True), settings.settings.get("strip_accents")
    library = LibraryTokenizer(models.WordPiece(vocabulary, unk_token=names["unk"]))
    library.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.flag("tokenize_chinese_chars", default=True),
        # Left open, accents go where case goes.
        strip_accents=accents if accents is None else settings.flag("strip_accents", default=lowercase),
        lowercase=lowercase,
    )
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece(prefix="##")
    cls, sep = ((names[role], vocabulary[names[role]]) for role in ("cls", "sep"))
    library.post_processor = build_layout(cls, sep, doubled=False)
    return library


def from_merges(vocabulary_path: Path, merges_path: Path, settings: FolderSettings) -> LibraryTokenizer:
    """RoBERTa's byte-level BPE.

    Raises:
        InputError: if a file is damaged, is not byte-level, or lacks a token that the layout needs.
    """
    try:
        vocabulary = json.loads(vocabulary_path.read_text(encoding="utf-8"))
        lines = merges_path.read_text(encoding="utf-8").split("\n")
        merges = [_merge(line) for line in lines if line.strip() and not line.startswith("#version")]
        model = models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False)
    except Exception as error:  # The library raises bare exceptions.
        rule = f"{vocabulary_path.name} and {merges_path.name} must hold pieces with their numbers, and pairs of pieces"
        raise InputError(rule, f"{vocabulary_path.parent} ({error})", _DAMAGED) from error
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    if not alphabet.issuperset("".join(left + right for left, right in merges)) or any(
        right.endswith(_WORD_END) for _, right in merges
    ):
        raise InputError(
            f"{merges_path.name} must be of byte-level BPE, as RoBERTa's is", f"{merges_path} of another kind", _DAMAGED
        )
    names = settings.needed(vocabulary_path, vocabulary, ("cls", "sep"))
    spaced = settings.flag("add_prefix_space", default=False)
    library = LibraryTokenizer(model)
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    library.decoder = decoders.ByteLevel()
    cls, sep = ((names[role], vocabulary[names[role]]) for role in ("cls", "sep"))
    library.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=spaced)
    return library


def _merge(line: str) -> tuple[str, str]:
    left, right = line.split(" ")
    return left, right
