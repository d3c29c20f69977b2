"""A little text in many scripts, and tokenizers trained on it."""

from bertsmith.tokenization import Tokenizer, TokenizerConfig, train_tokenizer

_STEMS = ["walk", "talk", "play", "stay", "look", "read", "lead", "sing", "ring", "كتب", "درس", "한국", "사람", "дом"]
_ENDINGS = ["", "ing", "ed", "er", "s", "ات", "ов", "이"]
INFLECTED = [" ".join(f"{stem}{ending}" for stem in _STEMS) for ending in _ENDINGS for _ in range(3)]
SENTENCES = [
    *INFLECTED,
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "glad😊 to see you ❤️ ok, São Paulo and 東京 x.",
    "hacía frío; naïve café, don't stop (now) [here] <there>!",
    "كِتَابٌ جميل كـتـاب قديم، مدرسة الكتاب.",
    "한국어 문장 하나와 한국 사람.",
    "Москва и Йошкар-Ола, ещё раз.",
    "👨‍👩‍👧 family 🇩🇪 flag 👍🏽 thumb mask sep cls MASK SEP s pad unk",
    "≠ = + नमस्ते दुनिया שָׁלוֹם עולם abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 / : . - _",
]
SIZES = {"wordpiece": 330, "bpe": 400, "unigram": 185}


def trained(algorithm: str, **switches: bool | int) -> Tokenizer:
    config = TokenizerConfig.model_validate({"algorithm": algorithm, "vocab_size": SIZES[algorithm], **switches})
    return train_tokenizer(lambda: SENTENCES, config)
