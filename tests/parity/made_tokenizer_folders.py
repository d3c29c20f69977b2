"""Tokenizer folders of other families, as their own programs write them, over a little text in many scripts."""

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, pre_tokenizers, trainers

TEXTS = [
    *(["the quick brown fox jumps over the lazy dog and sleeps, reading walking talking played"] * 3),
    "glad😊 to see you ❤️ ok, São Paulo and 東京 x. naïve café, don't stop (now) [here] <there>!",
    "كِتَابٌ جميل كـتـاب قديم، مدرسة الكتاب. 한국어 문장 하나와 한국 사람. Москва и Йошкар-Ола, ещё раз.",
    "≠ = + नमस्ते दुनिया שָׁלוֹם abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 / : . - _ ' \"",
] * 3


def settle(folder: Path, model_type: str, files: dict[str, Any]) -> Path:
    """Write the JSON files around a vocabulary."""
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def write_roberta(folder: Path, **files: Any) -> Path:
    library = LibraryTokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    library.train_from_iterator(TEXTS, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    library.model.save(str(folder))
    return settle(folder, "roberta", {f"{name}.json": content for name, content in files.items()})


def write_bert(folder: Path, *, model_type: str = "bert", names: str = "[{}]", **files: Any) -> Path:
    special = [names.format(name) for name in ("PAD", "UNK", "CLS", "SEP", "MASK")]
    characters = sorted({character for text in TEXTS for character in text + text.lower() if not character.isspace()})
    words = ["quick", "walk", "##ing", "##ed", "naive", "naïve", "한국", "##어", "كتاب", "東京"]
    pieces = [*special, *characters, *(f"##{character}" for character in characters), *words]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(pieces)) + "\n", encoding="utf-8")
    return settle(folder, model_type, {f"{name}.json": content for name, content in files.items()})


def write_sentencepiece(folder: Path, name: str, model_type: str, **files: Any) -> Path:
    """ALBERT's model holds its control tokens, and brackets as symbols of their own; the others keep <s> and </s>."""
    own: dict[str, Any] = {}
    if model_type == "albert":
        own = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
        own["user_defined_symbols"] = ["(", ")", "-"]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=written,
        model_type="unigram",
        vocab_size=190,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **own,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(written.getvalue())
    return settle(folder, model_type, {f"{name}.json": content for name, content in files.items()})


_LSTRIPPED = {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}
FOLDERS = {
    "roberta": lambda folder: write_roberta(folder, special_tokens_map={"mask_token": _LSTRIPPED}),
    "roberta-spaced": lambda folder: write_roberta(folder, tokenizer_config={"add_prefix_space": True}),
    "roberta-with-words": lambda folder: write_roberta(
        folder, added_tokens={"zzword": 360, "<e1>": 361}, special_tokens_map={"additional_special_tokens": ["<e1>"]}
    ),
    "albert": lambda folder: write_sentencepiece(folder, "spiece.model", "albert"),
    "albert-cased": lambda folder: write_sentencepiece(
        folder, "spiece.model", "albert", tokenizer_config={"do_lower_case": False, "keep_accents": True}
    ),
    "xlm-roberta": lambda folder: write_sentencepiece(folder, "sentencepiece.bpe.model", "xlm-roberta"),
    "camembert": lambda folder: write_sentencepiece(folder, "sentencepiece.bpe.model", "camembert"),
    "camembert-by-class": lambda folder: write_sentencepiece(
        folder, "sentencepiece.bpe.model", "roberta", tokenizer_config={"tokenizer_class": "CamembertTokenizerFast"}
    ),
    "bert-uncased": write_bert,
    "bert-cased": lambda folder: write_bert(folder, tokenizer_config={"do_lower_case": False, "model_max_length": 64}),
    "bert-korean": lambda folder: write_bert(folder, tokenizer_config={"strip_accents": False}),
    "bert-whole-han": lambda folder: write_bert(folder, tokenizer_config={"tokenize_chinese_chars": False}),
    "distilbert": lambda folder: write_bert(
        folder, model_type="distilbert", tokenizer_config={"tokenizer_class": "DistilBertTokenizer"}
    ),
    "bert-other-names": lambda folder: write_bert(
        folder,
        names="<{}>",
        special_tokens_map={f"{role}_token": f"<{role.upper()}>" for role in ("pad", "unk", "cls", "sep", "mask")},
    ),
    "bert-declared": lambda folder: write_bert(
        folder,
        tokenizer_config={
            "tokenizer_class": "BertTokenizer",
            "added_tokens_decoder": {
                "0": {"content": "[PAD]", "special": True, "normalized": False},
                "4": {"content": "[MASK]", "special": True, "normalized": False, "lstrip": True},
            },
        },
    ),
}
"""By name, what writes each folder."""
