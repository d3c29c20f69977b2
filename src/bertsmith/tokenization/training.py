"""Training tokenizers, so that the same text gives the same files whatever the number of threads."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers, trainers

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.chunks import chunks, counted_words
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.cut_words import CutWords
from bertsmith.tokenization.folder import TokenizerParts
from bertsmith.tokenization.pipeline import SPECIAL_TOKENS, assemble, build_normalizer
from bertsmith.tokenization.summary import TrainingSummary
from bertsmith.tokenization.tokenizer import Tokenizer

_CONTINUES = "##"
# A vocabulary of single characters alone is of little use: beyond this share the rarest are left out, down to the
# second share, as long as they make up next to nothing of the text.
_FULL_ALPHABET_SHARE = 0.75
_CUT_ALPHABET_SHARE = 0.5
_MAX_LOST_SHARE = 0.01
# Sums over threads differ in the last digits; these are far above them, and far below what could change a cut.
_SCORE_DIGITS = 6
_PUT_BACK_STEP = 1e-4


class VocabularyTooLarge(InputError):
    """More pieces were asked for than the text gives, which is `num_pieces`."""

    def __init__(self, vocab_size: int, num_pieces: int) -> None:
        self.vocab_size = vocab_size
        self.num_pieces = num_pieces
        super().__init__(
            "vocab_size must not exceed what the text supports",
            f"vocab_size={vocab_size}, and the text gives {num_pieces} pieces",
            f"Use vocab_size={num_pieces} or less, or more text.",
        )

    def __reduce__(self) -> tuple[type["VocabularyTooLarge"], tuple[int, int]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self), (self.vocab_size, self.num_pieces)


class VocabularyTooSmall(InputError):
    """Fewer pieces were asked for than the algorithm cannot do without."""


def train_tokenizer(texts: Callable[[], Iterable[str]], config: TokenizerConfig) -> Tokenizer:
    """Train a tokenizer; its `summary` tells what was found.

    Args:
        texts: gives the texts anew each time it is called; they are streamed, never held all at once.
        config: what to train.

    Raises:
        InputError: if there is no text, or `vocab_size` is too small for the alphabet (`VocabularyTooSmall`) or larger
            than the text supports (`VocabularyTooLarge`).
    """
    cut = CutWords(config)
    alphabet = _read_alphabet(texts, config, cut)
    if config.algorithm == "wordpiece":
        library = _train_wordpiece(texts, config, alphabet, cut)
    elif config.algorithm == "bpe":
        library = _train_bpe(texts, config, cut)
    else:
        library = _train_unigram(texts, config, alphabet, cut)
    num_pieces = library.get_vocab_size()
    if num_pieces < config.vocab_size:
        raise VocabularyTooLarge(config.vocab_size, num_pieces)
    special = SPECIAL_TOKENS[config.algorithm]
    return Tokenizer(
        TokenizerParts(
            library=assemble(library, config),
            special_tokens=special.by_role,
            model_max_length=None,
            config=config,
            summary=alphabet.summary,
            settings={},
        )
    )


@dataclass(frozen=True)
class _Alphabet:
    """The characters that get a piece of their own, and the whole pieces that they need."""

    characters: list[str]
    continuing: list[str]
    left_out: list[str]
    summary: TrainingSummary


@dataclass
class _Counts:
    characters: Counter[str] = field(default_factory=Counter)
    continuing: set[str] = field(default_factory=set)


def _read_alphabet(texts: Callable[[], Iterable[str]], config: TokenizerConfig, cut: CutWords) -> _Alphabet:
    counts = _count(texts, config, cut)
    total = counts.characters.total()
    if not counts.characters:
        raise InputError(
            "There must be text to train a tokenizer on", "no characters but whitespace", "Give more text."
        )
    # Ties are broken by code point, so that the choice rests on the text alone.
    ranked = sorted(counts.characters, key=lambda character: (-counts.characters[character], character))
    kept = len(ranked) if config.algorithm == "bpe" else _num_kept(ranked, counts, config)
    lost = sum(counts.characters[character] for character in ranked[kept:])
    characters = sorted(ranked[:kept])
    return _Alphabet(
        characters=characters,
        continuing=[character for character in characters if character in counts.continuing],
        left_out=ranked[kept:],
        summary=TrainingSummary(
            num_characters=total,
            num_distinct_characters=len(ranked),
            num_characters_left_out=len(ranked) - kept,
            share_left_out=lost / total,
        ),
    )


def _count(texts: Callable[[], Iterable[str]], config: TokenizerConfig, cut: CutWords) -> _Counts:
    counts = _Counts()
    normalize = build_normalizer(config).normalize_str
    for words in counted_words(texts()):
        for word, times in words.items():
            # The parts of WordPiece hold the normalised characters themselves.
            normal = cut[word] if config.algorithm == "wordpiece" else normalize(word)
            for character in normal:
                counts.characters[character] += times
            if config.algorithm == "wordpiece":
                counts.continuing.update(*(part[1:] for part in normal.split(" ")))
    for character in [character for character in counts.characters if character.isspace()]:
        del counts.characters[character]
    return counts


def _num_kept(ranked: list[str], counts: _Counts, config: TokenizerConfig) -> int:
    room = config.vocab_size - len(SPECIAL_TOKENS[config.algorithm].ordered)
    if config.algorithm == "unigram":
        room -= 1  # The space mark is a piece of its own.
    needed = 0
    needed_for: list[int] = []
    for character in ranked:
        needed += 2 if character in counts.continuing else 1
        needed_for.append(needed)
    if needed <= room * _FULL_ALPHABET_SHARE:
        return len(ranked)
    kept = sum(size <= room * _CUT_ALPHABET_SHARE for size in needed_for)
    lost = sum(counts.characters[character] for character in ranked[kept:])
    if lost <= _MAX_LOST_SHARE * counts.characters.total():
        return kept
    if needed <= room:
        return len(ranked)
    raise VocabularyTooSmall(
        "vocab_size must hold the special tokens and the characters of the text",
        f"vocab_size={config.vocab_size} for {len(ranked)} different characters",
        f"Use vocab_size={needed + config.vocab_size - room} or more.",
    )


def _train_wordpiece(
    texts: Callable[[], Iterable[str]], config: TokenizerConfig, alphabet: _Alphabet, cut: CutWords
) -> LibraryTokenizer:
    special = list(SPECIAL_TOKENS["wordpiece"].ordered)
    # The library numbers continuing characters in the order of a hash table, and breaks ties by number. Pinned as
    # special tokens while training, they have their numbers beforehand.
    continuing = [_CONTINUES + character for character in alphabet.continuing]
    trainer = trainers.WordPieceTrainer(
        vocab_size=config.vocab_size,
        special_tokens=[*special, *continuing],
        initial_alphabet=alphabet.characters,
        limit_alphabet=len(alphabet.characters),
        continuing_subword_prefix=_CONTINUES,
        show_progress=False,
    )
    trained = _parted(models.WordPiece(unk_token="[UNK]"))
    trained.train_from_iterator(cut.texts(texts()), trainer)
    numbers = trained.get_vocab(with_added_tokens=False)
    first = [*special, *alphabet.characters, *continuing]
    held = set(first)
    merged = [piece for piece in sorted(numbers, key=numbers.__getitem__) if piece not in held]
    vocabulary = {piece: number for number, piece in enumerate([*first, *merged])}
    return LibraryTokenizer(
        models.WordPiece(
            vocabulary,
            unk_token="[UNK]",
            continuing_subword_prefix=_CONTINUES,
            max_input_chars_per_word=config.max_word_characters,
        )
    )


def _train_bpe(texts: Callable[[], Iterable[str]], config: TokenizerConfig, cut: CutWords) -> LibraryTokenizer:
    special = list(SPECIAL_TOKENS["bpe"].ordered)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    smallest = len(special) + len(alphabet)
    if config.vocab_size < smallest:
        raise VocabularyTooSmall(
            "vocab_size must hold the special tokens and the 256 bytes",
            f"vocab_size={config.vocab_size}",
            f"Use vocab_size={smallest} or more.",
        )
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    trained = _parted(models.BPE())
    trained.train_from_iterator(cut.texts(texts()), trainer)
    state = json.loads(trained.to_str())["model"]
    merges = [(left, right) for left, right in state["merges"]]
    return LibraryTokenizer(models.BPE(state["vocab"], merges))


def _train_unigram(
    texts: Callable[[], Iterable[str]], config: TokenizerConfig, alphabet: _Alphabet, cut: CutWords
) -> LibraryTokenizer:
    special = SPECIAL_TOKENS["unigram"]
    trainer = trainers.UnigramTrainer(
        vocab_size=config.vocab_size,
        special_tokens=list(special.ordered),
        initial_alphabet=alphabet.characters,
        unk_token=special.by_role["unk"],
        show_progress=False,
    )
    trained = _parted(models.Unigram())
    trained.train_from_iterator(cut.texts(_without(chunks(texts()), alphabet.left_out)), trainer)
    pieces = json.loads(trained.to_str())["model"]["vocab"]
    first = len(special.ordered)
    learned = [(piece, round(score, _SCORE_DIGITS)) for piece, score in _with_settled_ties(pieces[first:])]
    learned.sort(key=lambda scored: (-scored[1], scored[0]))
    unknown = special.ordered.index(special.by_role["unk"])
    return LibraryTokenizer(models.Unigram([(piece, 0.0) for piece in special.ordered] + learned, unk_id=unknown))


def _with_settled_ties(scored: list[list[Any]]) -> list[tuple[str, float]]:
    """Give out the scores of characters that were pruned and put back by code point.

    The library puts them back one step after the other above the lowest score, in the order of a hash table.
    """
    floor = min(score for _, score in scored)
    scores = {piece: float(score) for piece, score in scored}
    steps = {piece: (score - floor) / _PUT_BACK_STEP for piece, score in scored if len(piece) == 1}
    put_back = sorted(piece for piece, step in steps.items() if abs(step - round(step)) < 1e-6 and step <= len(steps))
    given = sorted((scores[piece] for piece in put_back), reverse=True)
    return list({**scores, **dict(zip(put_back, given, strict=True))}.items())


def _parted(model: models.Model) -> LibraryTokenizer:
    """A tokenizer to train on words that are cut already."""
    library = LibraryTokenizer(model)
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return library


def _without(texts: Iterable[str], left_out: list[str]) -> Iterable[str]:
    table = dict.fromkeys(map(ord, left_out), " ")
    return (text.translate(table) for text in texts) if table else texts
