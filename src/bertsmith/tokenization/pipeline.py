"""The parts around the vocabulary, built from the config: normaliser, words, special tokens, layout of pairs, decoder.

The three algorithms see the same words: whitespace parts them, punctuation and symbols stand alone, an emoji is a word.
Whitespace is dealt with among the pre-tokenizers, so that every step of the normaliser acts within one cluster of
characters; offsets rest on that.
"""

from dataclasses import dataclass

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as LibraryTokenizer

from bertsmith.tokenization.config import Algorithm, TokenizerConfig
from bertsmith.tokenization.pieces import SPACE_MARK

ROLES = ("unk", "sep", "pad", "cls", "mask")
"""The special tokens a BERT knows, as `transformers` names them before `_token`."""

# Invisible: controls, soft hyphen, direction marks, joiners of no effect, byte order mark, variation selectors, tags,
# and the stand-in for bytes that could not be read.
_INVISIBLE = (
    r"[\x{0}-\x{8}\x{E}-\x{1B}\x{7F}-\x{84}\x{86}-\x{9F}\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}"
    r"\x{180B}-\x{180F}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}"
    r"\x{FFF9}-\x{FFFD}\x{E0000}-\x{E0FFF}]"
)
# Python parts words at the four separators too; a zero-width space is an invitation to break.
_OTHER_SPACE = r"[\x{1C}-\x{1F}\x{200B}]"
# A joiner matters between letters or within an emoji sequence, and is nothing at all elsewhere.
_JOINABLE = r"\p{L}\p{M}\p{N}\p{Extended_Pictographic}\x{1F3FB}-\x{1F3FF}"
_IDLE_JOINER = rf"[\x{{200C}}\x{{200D}}](?:(?<![{_JOINABLE}].)|(?![{_JOINABLE}]))"
_ACCENTS = (
    r"(?<=[\p{Latin}\p{Greek}\p{Cyrillic}])[\x{300}-\x{36F}\x{483}-\x{489}\x{1AB0}-\x{1AFF}\x{1DC0}-\x{1DFF}"
    r"\x{2DE0}-\x{2DFF}\x{A66F}-\x{A672}\x{A674}-\x{A67D}\x{A69E}\x{A69F}\x{FE20}-\x{FE2F}]+"
)
_VOWEL_MARKS = (
    r"[\x{591}-\x{5BD}\x{5BF}\x{5C1}\x{5C2}\x{5C4}\x{5C5}\x{5C7}\x{610}-\x{61A}\x{64B}-\x{65F}\x{670}"
    r"\x{6D6}-\x{6DC}\x{6DF}-\x{6E4}\x{6E7}\x{6E8}\x{6EA}-\x{6ED}\x{8CA}-\x{8E1}\x{8E3}-\x{8FF}]"
)
_TATWEEL = "\u0640"
_EMOJI = (
    r"(?:\p{Regional_Indicator}{2}|\p{Extended_Pictographic}[\x{1F3FB}-\x{1F3FF}]?"
    r"(?:\x{200D}\p{Extended_Pictographic}[\x{1F3FB}-\x{1F3FF}]?)*)"
)
PATTERNS_WITHIN_WORDS = frozenset({_INVISIBLE, _OTHER_SPACE, _IDLE_JOINER, _ACCENTS, _VOWEL_MARKS})
"""Patterns of the normaliser, none of which tells a space on either side from the end of the text."""


@dataclass(frozen=True)
class SpecialTokens:
    """The five special tokens of an algorithm's published model, in the order of their ids."""

    ordered: tuple[str, ...]
    by_role: dict[str, str]


_BRACKETS = SpecialTokens(
    ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
)
SPECIAL_TOKENS: dict[Algorithm, SpecialTokens] = {
    "wordpiece": _BRACKETS,
    "bpe": SpecialTokens(
        ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
        {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"},
    ),
    "unigram": SpecialTokens(
        ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
        {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    ),
}


def build_normalizer(config: TokenizerConfig) -> normalizers.Normalizer:
    """The changes made to text before it is cut, in the one order in which they do not undo each other."""
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(Regex(_INVISIBLE), ""),
        normalizers.Replace(Regex(_OTHER_SPACE), " "),
    ]
    if config.algorithm == "unigram":  # The space mark is the algorithm's own; in text it is a mere symbol.
        steps.append(normalizers.Replace(SPACE_MARK, "_"))
    if config.strip_tatweel:
        steps.append(normalizers.Replace(_TATWEEL, ""))
    steps.append(normalizers.NFKC() if config.compatibility else normalizers.NFC())
    if config.strip_vowel_marks:
        steps.append(normalizers.Replace(Regex(_VOWEL_MARKS), ""))
    if config.lowercase:
        steps.append(normalizers.Lowercase())
    if config.strip_accents:
        steps += [normalizers.NFD(), normalizers.Replace(Regex(_ACCENTS), "")]
    if config.lowercase or config.strip_accents:
        steps.append(normalizers.NFC())
    steps.append(normalizers.Replace(Regex(_IDLE_JOINER), ""))
    return normalizers.Sequence(steps)


def build_pre_tokenizer(algorithm: Algorithm) -> pre_tokenizers.PreTokenizer:
    """The cut into words. BPE and Unigram mark a word after whitespace, or at the start, by a leading space."""
    parts: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.WhitespaceSplit()]
    if algorithm == "wordpiece":
        parts.append(pre_tokenizers.Split(Regex(_words(isolate_han=True)), "isolated"))
    else:
        mark = " " if algorithm == "bpe" else SPACE_MARK
        parts.append(pre_tokenizers.Metaspace(replacement=mark, prepend_scheme="always", split=False))
        parts.append(pre_tokenizers.Split(Regex(f"{mark}?{_words(isolate_han=False)}"), "isolated"))
    if algorithm == "bpe":
        parts.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    return pre_tokenizers.Sequence(parts)


def _words(*, isolate_han: bool) -> str:
    han = r"|\p{Han}" if isolate_han else ""
    apart = r"\s\p{P}\p{S}\p{Extended_Pictographic}" + (r"\p{Han}" if isolate_han else "")
    return rf"(?:{_EMOJI}|[\p{{P}}\p{{S}}]\p{{M}}*{han}|[^{apart}]+)"


def build_decoder(algorithm: Algorithm) -> decoders.Decoder:
    """The way from pieces back to text."""
    if algorithm == "wordpiece":
        return decoders.WordPiece(prefix="##", cleanup=True)
    if algorithm == "unigram":
        return decoders.Metaspace(replacement=SPACE_MARK, prepend_scheme="always")
    return decoders.Sequence([decoders.ByteLevel(), decoders.Strip(content=" ", left=1, right=0)])


def build_layout(cls: tuple[str, int], sep: tuple[str, int], *, doubled: bool) -> processors.PostProcessor:
    """Where control tokens stand around one text and around two.

    Args:
        cls: the token that opens, and its id.
        sep: the token that closes each text, and its id.
        doubled: RoBERTa's layout, with two separators between the texts and segment 0 throughout.
    """
    start, end = cls[0], sep[0]
    pair = f"{start}:0 $A:0 {end}:0 {end}:0 $B:0 {end}:0" if doubled else f"{start}:0 $A:0 {end}:0 $B:1 {end}:1"
    return processors.TemplateProcessing(single=f"{start}:0 $A:0 {end}:0", pair=pair, special_tokens=[cls, sep])


def assemble(library: LibraryTokenizer, config: TokenizerConfig) -> LibraryTokenizer:
    """Put the parts around a trained model, whose first five pieces are the special tokens."""
    special = SPECIAL_TOKENS[config.algorithm]
    library.normalizer = build_normalizer(config)
    library.pre_tokenizer = build_pre_tokenizer(config.algorithm)
    library.decoder = build_decoder(config.algorithm)
    # As in the published RoBERTa and ALBERT: the space before a mask belongs to the word that it hides.
    eats_space = config.algorithm != "wordpiece"
    library.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False, lstrip=eats_space and token == special.by_role["mask"])
            for token in special.ordered
        ]
    )
    ends = [(special.by_role[role], special.ordered.index(special.by_role[role])) for role in ("cls", "sep")]
    library.post_processor = build_layout(ends[0], ends[1], doubled=config.algorithm == "bpe")
    return library
