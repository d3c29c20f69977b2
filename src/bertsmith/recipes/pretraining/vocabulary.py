"""Whether a tokenizer gives the ids that a trained model knows."""

from collections.abc import Iterator

from bertsmith.folders.model_folder import refuse_larger_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.tokenizer import Tokenizer

_PROBE = (
    "The quick brown Fox isn't 3.14159 km/h away — “really”?  Two  spaces,\ta tab\nand a line.",
    "Crème brûlée, NAÏVE façade, e\u0301 and é, Straße, İstanbul, \ufb01ne, ①, ｆｕｌｌ, x²",
    "ذَهَبَ القِطُّ إلى البـــيت ١٢٣، שָׁלוֹם עולם; Привет, Ёлка; Ελλάδα",
    "日本語の文章。漢字 한국어 ไทย हिन्दी 🙂👩\u200d🔬 \u00a0\u00ad\u200b",
    "[CLS] [MASK] <s> <mask> </s> [unused1] ##ing",
    "long" * 40,
)
"""What tokenizers are known to treat in different ways."""
_PIECES_TOGETHER = 6
_MOST_SHOWN = 40


def words_beyond(own: Tokenizer, tokenizer: Tokenizer, *, num_embeddings: int) -> tuple[str, ...]:
    """The words that a tokenizer has beyond a trained model's own; none where it is that one.

    Equal sums tell that two tokenizers are one. Another program may have written the same one in other words; so where
    the sums differ, it counts what they do: each id must be the same piece, and a probe must become the same ids.

    Args:
        own: the tokenizer of the model's folder.
        tokenizer: that of the text.
        num_embeddings: how many ids the model knows.

    Raises:
        InputError: if it is another tokenizer, so that the ids of the text would mean other pieces to the model.
    """
    words = tokenizer.added_words[len(own.added_words) :]
    if tokenizer.vocab_size != own.vocab_size + len(words):
        words = ()
    if not words:
        refuse_larger_tokenizer(tokenizer, num_embeddings)
    difference = _difference(own, tokenizer, words)
    if difference is not None:
        raise InputError(
            "A trained model goes on only with its own tokenizer, or with that one and words added to it",
            f"another tokenizer: {difference}",
            "Prepare the text with the model's folder as --tokenizer, or name the text alone.",
        )
    return words


def _difference(own: Tokenizer, tokenizer: Tokenizer, words: tuple[str, ...]) -> str | None:
    """In what a tokenizer differs from the model's own with `words` added; None if in nothing."""
    if words:
        try:
            own = own.with_words(words)
        except InputError:
            return "its added words cannot be added to the model's own"
    if own.fingerprint == tokenizer.fingerprint:
        return None
    for number in range(max(own.vocab_size, tokenizer.vocab_size)):
        known, found = _piece(own, number), _piece(tokenizer, number)
        if known != found:
            return f"id {number} is {found} in it, and {known} in the model's"
    if own.mask_id != tokenizer.mask_id:
        return f"its mask has the id {tokenizer.mask_id}, and the model's {own.mask_id}"
    texts = [*_PROBE, *_texts_of_pieces(own)]
    for text, known, found in zip(texts, own.piece_ids(texts), tokenizer.piece_ids(texts), strict=True):
        if known != found:
            return f"“{text[:_MOST_SHOWN]}” has other ids in it than in the model's"
    if own.encode(_PROBE[0], _PROBE[1]).token_ids.tolist() != tokenizer.encode(*_PROBE[:2]).token_ids.tolist():
        return "a pair of texts has other ids in it than in the model's"
    return None


def _piece(tokenizer: Tokenizer, number: int) -> str:
    try:
        return f"“{tokenizer.token(number)}”"
    except InputError:
        return "nothing"


def _texts_of_pieces(tokenizer: Tokenizer) -> Iterator[str]:
    """Every piece, apart from the others and run together with its neighbours, for what is cut in which order."""
    pieces = [tokenizer.decode([number]) for number in range(tokenizer.vocab_size)]
    for start in range(0, len(pieces), _PIECES_TOGETHER):
        together = pieces[start : start + _PIECES_TOGETHER]
        yield f"{' '.join(together)} {''.join(together)}"
