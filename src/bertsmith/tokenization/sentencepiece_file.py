"""Tokenizers out of SentencePiece models: ALBERT's, XLM-RoBERTa's and CamemBERT's Unigram.

What SentencePiece writes is a protocol buffer. It is read with the definition that the `sentencepiece` package ships,
and the pieces go into the same library as every other tokenizer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as LibraryTokenizer

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.folder_settings import FolderSettings
from bertsmith.tokenization.pieces import SPACE_MARK
from bertsmith.tokenization.pipeline import build_layout

_UNIGRAM = 1
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4
_DAMAGED = "The file is damaged, or of another kind: get it anew, or a tokenizer.json in its place."
Scored = list[tuple[str, float]]


@dataclass(frozen=True)
class _Family:
    """How the published model of a family numbers the pieces of its file, and where it doubles the separator."""

    renumber: Callable[[Scored, FolderSettings], Scored]
    first_kinds: tuple[int, ...]
    doubled: bool


def _as_they_are(pieces: Scored, settings: FolderSettings) -> Scored:
    return pieces


def _as_xlm_roberta(pieces: Scored, settings: FolderSettings) -> Scored:
    # Fairseq numbered <s> <pad> </s> <unk> first, and the file begins with <unk> <s> </s>.
    first = [settings.name(role) for role in ("cls", "pad", "sep", "unk")]
    return [*((piece, 0.0) for piece in first), *pieces[3:], (settings.name("mask"), 0.0)]


def _as_camembert(pieces: Scored, settings: FolderSettings) -> Scored:
    # Fairseq's four, of which two went unused, and the file's own after its <unk>.
    first = [("<s>NOTUSED", 0.0), (settings.name("pad"), 0.0), ("</s>NOTUSED", 0.0), (settings.name("unk"), 0.0)]
    return [*first, ("<unk>NOTUSED", -100.0), *pieces[1:], (settings.name("mask"), 0.0)]


_FAMILIES = {
    "albert": _Family(_as_they_are, (), doubled=False),
    "xlm-roberta": _Family(_as_xlm_roberta, (_UNKNOWN, _CONTROL, _CONTROL), doubled=True),
    "camembert": _Family(_as_camembert, (_UNKNOWN, _CONTROL, _CONTROL), doubled=True),
}


def from_sentencepiece(path: Path, settings: FolderSettings) -> tuple[LibraryTokenizer, list[AddedToken]]:
    """The tokenizer of the folder's family over a SentencePiece model.

    Returns:
        the tokenizer, and the pieces that are found in text before all others: control tokens, and symbols that were
        set when the model was made.

    Raises:
        InputError: if the packages that read it are missing, or the file is damaged, holds another algorithm than
            Unigram, or lacks a token that the layout needs.
    """
    read = _read(path)
    family = _FAMILIES[settings.family]
    kinds = [piece.type for piece in read.pieces]
    if read.trainer_spec.model_type != _UNIGRAM or tuple(kinds[: len(family.first_kinds)]) != family.first_kinds:
        raise InputError(
            f"{path.name} of the family {settings.family} must hold a Unigram model with its first pieces in place",
            path,
            "Open the folder in the program that it was made for, and save its tokenizer.json.",
        )
    # A score is a float32, which nine digits tell; written with more, it would be read back as another.
    scored = family.renumber([(piece.piece, float(f"{piece.score:.9g}")) for piece in read.pieces], settings)
    numbers = {piece: number for number, (piece, _) in enumerate(scored)}
    names = settings.needed(path, numbers, ("unk", "cls", "sep"))
    library = LibraryTokenizer(models.Unigram(scored, unk_id=numbers[names["unk"]], byte_fallback=False))
    steps = _albert_steps(settings) if settings.family == "albert" else []
    if read.normalizer_spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(read.normalizer_spec.precompiled_charsmap))
    if steps:
        library.normalizer = steps[0] if len(steps) == 1 else normalizers.Sequence(steps)
    scheme = "always" if settings.flag("add_prefix_space", default=True) else "never"
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=SPACE_MARK, prepend_scheme=scheme),
        ]
    )
    library.decoder = decoders.Metaspace(replacement=SPACE_MARK, prepend_scheme=scheme)
    cls, sep = ((names[role], numbers[names[role]]) for role in ("cls", "sep"))
    library.post_processor = build_layout(cls, sep, doubled=family.doubled)
    set_apart = [
        AddedToken(piece.piece, normalized=False, special=piece.type == _CONTROL)
        for piece in read.pieces
        if piece.type in (_CONTROL, _USER_DEFINED)
    ]
    return library, set_apart


def _albert_steps(settings: FolderSettings) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not settings.flag("keep_accents", default=False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if settings.flag("do_lower_case", default=True):
        steps.append(normalizers.Lowercase())
    return steps


def _read(path: Path) -> Any:
    try:
        from sentencepiece import sentencepiece_model_pb2 as definition
    except ImportError as error:
        raise InputError(
            "SentencePiece models are read with the packages sentencepiece and protobuf",
            f"{path.name}, and {error.name or error} is not installed",
            'Install them: pip install "bertsmith[sentencepiece]"',
        ) from error
    read = definition.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]
    try:
        read.ParseFromString(path.read_bytes())
        intact = bool(read.pieces)
    except Exception as error:  # The error's class lies in a package that is optional.
        raise InputError(f"{path.name} must hold a SentencePiece model", f"{path} ({error})", _DAMAGED) from error
    if not intact:
        raise InputError(f"{path.name} must hold a SentencePiece model", f"{path} without pieces", _DAMAGED)
    return read
