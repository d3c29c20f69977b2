"""Small labelled tables, and an encoder to fine-tune, made from a seed."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.files import new_folder
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from made_corpora import WORDS, made_model, made_tokenizer

_SIGNS = {"dry": "bread", "wet": "rain", "cold": "snow"}
_OTHER_WORDS = tuple(word for word in WORDS if word not in _SIGNS.values())


def made_rows(
    counts: Mapping[str, int], *, words: tuple[int, int] = (3, 12), seed: int = 0, pairs: bool = False
) -> list[dict[str, Any]]:
    """Rows that one word tells apart: in the text, or in the second text of a pair."""
    stream = random.Random(seed)
    labels = [label for label, count in counts.items() for _ in range(count)]
    stream.shuffle(labels)
    rows: list[dict[str, Any]] = []
    for number, label in enumerate(labels):
        texts = [stream.choices(_OTHER_WORDS, k=stream.randint(*words)) for _ in range(2)]
        texts[pairs].insert(stream.randint(0, len(texts[pairs])), _SIGNS[label])
        joined = [f"{' '.join(text)} {stream.choice(_OTHER_WORDS)} {number}" for text in texts]
        if pairs:
            rows.append({"sentence1": joined[0], "sentence2": joined[1], "label": label})
        else:
            rows.append({"text": joined[0], "label": label})
    return rows


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Rows as a .csv, .tsv or .jsonl file."""
    if path.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        lines = [delimiter.join(map(str, values)) for values in ([*rows[0]], *(row.values() for row in rows))]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def made_encoder(folder: Path, *, positions: int = 64, pairs: bool = False) -> Path:
    """The folder of a masked language model with fresh weights; with `pairs`, of one with a pooler."""
    tokenizer = made_tokenizer()
    model: Model = made_model(tokenizer.vocab_size, positions=positions, pairs=pairs)
    with new_folder(folder, seal={"kind": "model"}) as temporary:
        write_model(temporary, model, tokenizer)
    return folder


def made_classifier(labels: tuple[str, ...], *, positions: int = 64, dropout: float = 0.0, seed: int = 0) -> Model:
    """A classifier with fresh weights that are spread widely, so that its scores differ visibly."""
    encoder = made_model(made_tokenizer().vocab_size, positions=positions, dropout=dropout, spread=0.3).config.encoder
    heads = HeadsConfig(masked_language_model=False, pooler=True, labels=labels, classifier_dropout=dropout)
    return new_model(ModelConfig(encoder=encoder, heads=heads), seed=seed)
