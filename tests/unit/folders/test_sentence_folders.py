"""What sentence-transformers keeps beside a model: written, read, and what nothing here computes."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_folders import from_elsewhere, small_config, task_heads, varied_model

from bertsmith.exchange.pull import chosen_files
from bertsmith.folders.model_folder import read_model, read_tokenizer, write_model
from bertsmith.folders.sentence_transformers import (
    SENTENCE_FILES,
    SentenceModules,
    read_sentence_modules,
    refuse_foreign_modules,
)
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig
from bertsmith.model.config import Pooling
from bertsmith.tokenization import Tokenizer, TokenizerConfig, train_tokenizer

KINDS = "sentence_transformers.models."


def _embedder(folder: Path, tokenizer: Tokenizer, pooling: Pooling = "mean", *, normalize: bool = False) -> Path:
    heads = task_heads("bert", "embed", pooling=pooling, normalize=normalize)
    write_model(folder, varied_model(small_config(heads)), tokenizer)
    return folder


def _change(folder: Path, name: str, value: Any) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def _modules(*kinds: str) -> list[dict[str, Any]]:
    return [
        {"idx": at, "name": str(at), "path": f"{at}_{kind}" if at else "", "type": f"{KINDS}{kind}"}
        for at, kind in enumerate(kinds)
    ]


def _heads(folder: Path) -> HeadsConfig:
    return read_model(folder).model.config.heads


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
@pytest.mark.parametrize("normalize", [False, True])
def test_an_embedder_is_told_by_those_files_alone(
    tmp_path: Path, tokenizer: Tokenizer, pooling: Pooling, normalize: bool
) -> None:
    folder = _embedder(tmp_path, tokenizer, pooling, normalize=normalize)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.json")} >= set(SENTENCE_FILES)
    assert read_sentence_modules(folder) == SentenceModules(pooling=pooling, normalize=normalize)
    from_elsewhere(folder)
    heads = _heads(folder)
    assert (heads.task, heads.pooling, heads.normalize) == ("embed", pooling, normalize)


@pytest.mark.parametrize(
    "heads", [HeadsConfig(), HeadsConfig(masked_language_model=False), task_heads("bert", "classify")]
)
def test_other_models_have_none_of_them(tmp_path: Path, tokenizer: Tokenizer, heads: HeadsConfig) -> None:
    write_model(tmp_path, varied_model(small_config(heads)), tokenizer)
    assert not [name for name in SENTENCE_FILES if (tmp_path / name).exists()]
    assert read_sentence_modules(tmp_path) is None


@pytest.mark.parametrize(
    ("told", "pooling"),
    [
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode": ["max"]}, "max"),
        ({"embedding_dimension": 12, "pooling_mode": "mean", "include_prompt": True}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"word_embedding_dimension": 12}, "mean"),
    ],
)
def test_another_programs_pooling_counts_over_our_own(
    tmp_path: Path, tokenizer: Tokenizer, told: dict[str, Any], pooling: Pooling
) -> None:
    folder = _embedder(tmp_path, tokenizer, "mean", normalize=True)
    _change(folder, "1_Pooling/config.json", told)
    _change(folder, "modules.json", _modules("Transformer", "Pooling"))
    heads = _heads(folder)
    assert (heads.pooling, heads.normalize) == (pooling, False)


def test_new_names_of_modules_are_known(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = _embedder(tmp_path, tokenizer, "first")
    names = ("base.modules.transformer.Transformer", "sentence_transformer.modules.pooling.Pooling")
    entries = [
        {"idx": at, "path": path, "type": f"sentence_transformers.{name}"}
        for at, (path, name) in enumerate(zip(("", "1_Pooling"), names, strict=True))
    ]
    _change(folder, "modules.json", entries)
    assert _heads(folder).pooling == "first"


def test_its_length_counts_over_the_tokenizers(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = _embedder(tmp_path, tokenizer)
    assert read_tokenizer(folder, vocab_size=40).model_max_length == 24
    _change(folder, "sentence_bert_config.json", {"max_seq_length": 16, "do_lower_case": False})
    assert read_tokenizer(folder, vocab_size=40).model_max_length == 16
    (folder / "sentence_bert_config.json").rename(folder / "sentence_roberta_config.json")
    shorter = read_tokenizer(folder, vocab_size=40)
    assert shorter.model_max_length == 16
    # It stays where the folder is written anew.
    (tmp_path / "again").mkdir()
    again = tmp_path / "again"
    write_model(again, read_model(folder).model, shorter)
    assert read_tokenizer(again, vocab_size=40).model_max_length == 16


def test_the_oldest_layout_keeps_the_model_below(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = tmp_path / "0_Transformer"
    folder.mkdir()
    write_model(folder, varied_model(small_config(HeadsConfig(masked_language_model=False))), tokenizer)
    assert _heads(folder).task is None
    entries = _modules("Transformer", "Pooling")
    entries[0]["path"] = "0_Transformer"
    _change(tmp_path, "modules.json", entries)
    (tmp_path / "1_Pooling").mkdir()
    _change(tmp_path, "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    heads = _heads(folder)
    assert (heads.task, heads.pooling) == ("embed", "first")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("modules.json", _modules("Transformer", "Pooling", "Dense", "Normalize"), "its modules Dense"),
        ("modules.json", _modules("StaticEmbedding"), "its modules StaticEmbedding"),
        ("modules.json", _modules("Transformer"), "its modules Transformer"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "its pooling lasttoken"),
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "max"]}, r"its pooling mean \+ max"),
        ("1_Pooling/config.json", {"pooling_mode_mean_sqrt_len_tokens": True}, "its pooling mean_sqrt_len_tokens"),
        (
            "config_sentence_transformers.json",
            {"prompts": {"query": "query: "}, "default_prompt_name": "query"},
            "“query: ” before every text",
        ),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "its kind SparseEncoder"),
    ],
)
def test_what_nothing_here_computes_is_refused_and_the_encoder_still_opens(
    tmp_path: Path, tokenizer: Tokenizer, name: str, value: Any, told: str
) -> None:
    write_model(tmp_path, varied_model(small_config(HeadsConfig(masked_language_model=False))), tokenizer)
    (tmp_path / "1_Pooling").mkdir()
    _change(tmp_path, "modules.json", _modules("Transformer", "Pooling"))
    _change(tmp_path, "1_Pooling/config.json", {"pooling_mode": "mean"})
    assert _heads(tmp_path).task == "embed"
    refuse_foreign_modules(tmp_path, tokenizer)
    _change(tmp_path, name, value)
    with pytest.raises(InputError, match=f"pool tokens by mean, first or max.*{told}"):
        refuse_foreign_modules(tmp_path, tokenizer)
    read = read_model(tmp_path)
    assert read.model.config.heads.task is None
    assert any("read as its encoder alone" in note for note in read.notes)


def test_lowering_capitals_is_refused_where_the_tokenizer_keeps_them(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = _embedder(tmp_path, tokenizer)
    _change(folder, "sentence_bert_config.json", {"do_lower_case": True})
    texts = ["the Cat saw a Dog"] * 3
    kept, lowered = (
        train_tokenizer(lambda: texts, TokenizerConfig(vocab_size=24, lowercase=lowercase))
        for lowercase in (False, True)
    )
    refuse_foreign_modules(folder, lowered)
    with pytest.raises(InputError, match="do_lower_case"):
        refuse_foreign_modules(folder, kept)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("modules.json", "no json", "modules.json must be JSON"),
        ("modules.json", {"a": 1}, "must list modules"),
        ("modules.json", [{"idx": 0}], "must list modules"),
        ("modules.json", [{"path": "../..", "type": "Transformer"}], "inside its own alone"),
        ("modules.json", [{"path": "/etc", "type": "Transformer"}], "inside its own alone"),
        ("1_Pooling/config.json", "[]", "must be a JSON object"),
        ("sentence_bert_config.json", {"max_seq_length": "long"}, "max_seq_length must be a number"),
    ],
)
def test_damaged_files_are_told(tmp_path: Path, tokenizer: Tokenizer, name: str, value: Any, told: str) -> None:
    folder = _embedder(tmp_path, tokenizer)
    _change(folder, name, value)
    with pytest.raises(InputError, match=told):
        read_model(folder)


def test_a_missing_pooling_is_told(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = _embedder(tmp_path, tokenizer)
    (folder / "1_Pooling" / "config.json").unlink()
    with pytest.raises(InputError, match=r"must hold what its modules\.json names"):
        read_model(folder)


def test_a_head_of_another_task_counts_over_left_over_modules(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_model(tmp_path, varied_model(small_config(task_heads("bert", "classify"))), tokenizer)
    (tmp_path / "1_Pooling").mkdir()
    _change(tmp_path, "modules.json", _modules("Transformer", "Pooling"))
    _change(tmp_path, "1_Pooling/config.json", {"pooling_mode": "mean"})
    assert _heads(tmp_path).task == "classify"


def test_they_are_fetched_with_a_model_of_the_hub() -> None:
    others = ("2_Dense/model.safetensors", "onnx/model.onnx")
    chosen = chosen_files(["config.json", "model.safetensors", *SENTENCE_FILES, *others], "owner/name")
    assert set(SENTENCE_FILES) < set(chosen)
    assert not set(others) & set(chosen)
