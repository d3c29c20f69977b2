"""Words that get a piece of their own at the end of a vocabulary, for text of another domain.

An added word is found only where it stands whole: no letter, mark or digit before it or behind it. It is cut out of
the text before the algorithm sees it, so every other word keeps its pieces. In BPE and Unigram a word takes the space
before it along, as its old pieces did; its entry then begins with an invisible mark, since the same letters without a
space may be a piece already.
"""

import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tokenizers import AddedToken, normalizers
from tokenizers import Tokenizer as LibraryTokenizer

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.folder import TokenizerParts
from bertsmith.tokenization.pieces import WORD_MARK, space_mark

_JOINERS = "\u200c\u200d"
_MAX_NAMED = 5


def is_word(text: str) -> bool:
    """Whether a text is letters, their marks, digits, and joiners between them: what can be added as a word."""
    kinds = [unicodedata.category(character) for character in text]
    return (
        bool(text)
        and kinds[0][0] in "LN"
        and text[-1] not in _JOINERS
        and all(
            kind[0] in "LM" or kind == "Nd" or character in _JOINERS
            for kind, character in zip(kinds, text, strict=True)
        )
    )


@dataclass(frozen=True)
class AddedWords:
    """The words that were added to a tokenizer.

    Attributes:
        library: the tokenizer.
        ids: the words' ids, in the order of the ids.
        mark: what pieces have in place of the space before a word; None in WordPiece, or where no word was added.
    """

    library: LibraryTokenizer
    ids: dict[str, int]
    mark: str | None

    @classmethod
    def of(cls, library: LibraryTokenizer) -> "AddedWords":
        """Those of a tokenizer, few or none."""
        added = sorted(library.get_added_tokens_decoder().items())
        ids = {
            token.content.removeprefix(WORD_MARK): number
            for number, token in added
            if token.single_word and not token.special
        }
        return cls(library, ids, space_mark(library) if ids else None)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids, each added word among them with a space before it unless it stands first."""
        if self.mark is None:
            return self.library.decode(list(token_ids), skip_special_tokens=False)
        words = {number: word for word, number in self.ids.items()}
        text = ""
        for is_added, run in itertools.groupby(token_ids, key=words.__contains__):
            if is_added:
                text = " ".join([*([text] if text else []), *(words[number] for number in run)])
                continue
            numbers = list(run)
            part = self.library.decode(numbers, skip_special_tokens=False)
            # Decoders drop the space that a text seems to begin with.
            begins = text and (self.library.id_to_token(numbers[0]) or "").startswith(self.mark)
            text += f" {part}" if begins and not part.startswith(" ") else part
        return text


def with_words(parts: TokenizerParts, words: Sequence[str], *, first_id: int) -> TokenizerParts:
    """A tokenizer with more entries, which has the words as whole pieces.

    Args:
        parts: the tokenizer, which stays as it is.
        words: what to add, from `normal_words`, none of which is one piece already.
        first_id: the id of the first word; the others follow in the order given.

    Raises:
        InputError: if a word has an entry already.
    """
    library = LibraryTokenizer.from_str(parts.library.to_str())
    mark = space_mark(library)
    prefix = "" if mark is None else WORD_MARK
    if mark is not None:
        _hide_mark(library)
    entries = [
        AddedToken(prefix + word, single_word=True, lstrip=mark is not None, normalized=True, special=False)
        for word in words
    ]
    library.add_tokens(entries)
    taken = [
        word
        for number, (word, entry) in enumerate(zip(words, entries, strict=True))
        if library.token_to_id(entry.content) != first_id + number
    ]
    if taken:
        raise InputError("A word to add must have no entry yet", _named(taken), "Leave these words out.")
    return replace(parts, library=library)


def normal_words(library: LibraryTokenizer, words: Sequence[str]) -> list[str]:
    """Words to add, as the tokenizer's normaliser has them.

    Raises:
        InputError: if one is no single word to the tokenizer, or comes twice.
    """
    normalize = library.normalizer.normalize_str if library.normalizer is not None else str
    normal = [normalize(word) for word in words]
    broken = [word for word, found in zip(words, normal, strict=True) if not (is_word(word) and is_word(found))]
    if broken:
        raise InputError(
            "A word to add must be letters and digits, and stay so when the tokenizer normalises it",
            _named(broken),
            "Leave these out, or give the words they are made of.",
        )
    seen: set[str] = set()
    twice = [word for word, found in zip(words, normal, strict=True) if found in seen or seen.add(found)]
    if twice:
        raise InputError("Words to add must differ after normalisation", f"{_named(twice)} twice", "Give each once.")
    return normal


def refuse_whole(words: Sequence[str], pieces: Sequence[Sequence[int]], unk_id: int | None) -> None:
    """Raise an `InputError` where a word to add is one piece already, and not the unknown one.

    Args:
        words: what to add.
        pieces: the ids that each is cut into now.
        unk_id: the unknown piece.
    """
    whole = [word for word, ids in zip(words, pieces, strict=True) if len(ids) == 1 and ids[0] != unk_id]
    if whole:
        raise InputError("A word to add must be more than one piece", _named(whole), "Leave it out.")


def _hide_mark(library: LibraryTokenizer) -> None:
    """Let the mark vanish when an entry is made ready to be found in text."""
    if library.normalizer is None:
        library.normalizer = normalizers.Replace(WORD_MARK, "")
    elif library.normalizer.normalize_str(f"a{WORD_MARK}a") != library.normalizer.normalize_str("aa"):
        library.normalizer = normalizers.Sequence([library.normalizer, normalizers.Replace(WORD_MARK, "")])


def _named(words: Iterable[str]) -> str:
    first = list(words)
    more = f" and {len(first) - _MAX_NAMED} more" if len(first) > _MAX_NAMED else ""
    return ", ".join(first[:_MAX_NAMED]) + more
