"""Folders with bare vocabularies: what their settings mean, and which of them are refused."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import pre_tokenizers

from bertsmith.foundation import errors
from bertsmith.tokenization import Tokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "walk", "##ing", "한", "##국", "café", "cafe", "a", "b"]
BYTES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġa"]


def bert(folder: Path, pieces: list[str] = PIECES, **files: Any) -> Path:
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return with_files(folder, **files)


def roberta(folder: Path, pieces: list[str] = BYTES, merges: str = "#version: 0.2\nĠ a\n", **files: Any) -> Path:
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text(merges, encoding="utf-8")
    return with_files(folder, **files)


def with_files(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_korean_pieces_are_found_where_accents_are_kept(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_folder(bert(tmp_path, tokenizer_config={"strip_accents": False}))
    for text in ("한국", "Walking 한국 walk"):
        assert tokenizer.unk_id not in tokenizer.piece_ids([text])[0]
    assert tokenizer.tokens(tokenizer.piece_ids(["Café"])[0]) == ["café"]


def test_special_tokens_go_by_the_names_that_the_folder_gives_them(tmp_path: Path) -> None:
    names = {
        "cls_token": "<s>",
        "sep_token": {"content": "</s>", "lstrip": False},
        "unk_token": "?",
        "mask_token": None,
    }
    pieces = ["<s>", "</s>", "?", "[MASK]", "<pad>", "a"]
    tokenizer = Tokenizer.from_folder(bert(tmp_path, pieces, special_tokens_map=names))
    assert tokenizer.encode("a b", "a").token_ids.tolist() == [0, 5, 2, 1, 5, 1]
    assert (tokenizer.cls_id, tokenizer.sep_id, tokenizer.unk_id, tokenizer.pad_id) == (0, 1, 2, 4)
    assert tokenizer.mask_token is None


def test_a_vocabulary_with_robertas_names_needs_no_settings(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_folder(bert(tmp_path, ["<s>", "</s>", "<unk>", "<mask>", "a"]))
    assert tokenizer.encode("a").token_ids.tolist() == [0, 4, 1]
    assert tokenizer.mask_id == 3


def test_a_bert_vocabulary_in_the_folder_of_an_albert_is_opened(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_folder(bert(tmp_path, config={"model_type": "albert"}, tokenizer_config={}))
    assert tokenizer.tokens(tokenizer.encode("Walking").token_ids) == ["[CLS]", "walk", "##ing", "[SEP]"]


def test_words_that_a_folder_added_keep_their_ids(tmp_path: Path) -> None:
    added = {"zzz": len(PIECES), "[E1]": len(PIECES) + 1}
    for number, files in enumerate(
        (
            {"added_tokens": added, "special_tokens_map": {"additional_special_tokens": ["[E1]"]}},
            {
                "tokenizer_config": {
                    "added_tokens_decoder": {
                        str(len(PIECES)): {"content": "zzz", "special": False},
                        str(len(PIECES) + 1): {"content": "[E1]", "special": True},
                    },
                    "additional_special_tokens": ["[E1]"],
                }
            },
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        tokenizer = Tokenizer.from_folder(bert(folder, **files))
        assert tokenizer.vocab_size == len(PIECES) + 2
        assert tokenizer.piece_ids(["a zzz"]) == [[11, len(PIECES)]]
        assert tokenizer.special_ids == {0, 1, 2, 3, 4, len(PIECES) + 1}


def test_added_words_with_a_gap_before_them_are_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match="without a gap"):
        Tokenizer.from_folder(bert(tmp_path, added_tokens={"zzz": 40}))


@pytest.mark.parametrize("spaced", [False, True])
def test_robertas_files_give_its_layout_and_its_mask(tmp_path: Path, spaced: bool) -> None:
    tokenizer = Tokenizer.from_folder(roberta(tmp_path, tokenizer_config={"add_prefix_space": spaced}))
    a, spaced_a = BYTES.index("a"), BYTES.index("Ġa")
    first = spaced_a if spaced else a
    assert tokenizer.encode("a a", "a").token_ids.tolist() == [0, first, spaced_a, 2, 2, first, 2]
    assert tokenizer.encode("a a", "a").segment_ids.tolist() == [0] * 7
    masked = tokenizer.encode("a <mask> a", mask_is_special=True)
    assert masked.token_ids.tolist() == [0, first, 4, spaced_a, 2]
    assert tokenizer.has_word_bounds
    assert Tokenizer.from_folder(tmp_path / "vocab.json").fingerprint == tokenizer.fingerprint


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"tokenizer_config": {"tokenizer_class": "BertJapaneseTokenizer"}}, "tokenizer_class=BertJapaneseTokenizer"),
        ({"tokenizer_config": {"tokenizer_class": "AlbertTokenizer"}}, "read as the tokenizer of bert"),
        ({"config": {"model_type": "mpnet"}}, "model_type=mpnet"),
        ({"tokenizer_config": {"do_lower_case": "no"}}, "do_lower_case in tokenizer_config.json must be true or false"),
        ({"tokenizer_config": {"cls_token": "<start>"}}, "must hold <start>"),
        ({"tokenizer_config": {"sep_token": None}}, "must hold the sep token"),
        ({"added_tokens": {"zzz": "last"}}, "must have ids and names"),
        ({"tokenizer_config": {"added_tokens_decoder": {"1": "zzz"}}}, "must have ids and names"),
        ({"config": []}, "config.json must hold a JSON object"),
    ],
)
def test_a_bert_vocabulary_with_settings_that_do_not_fit_is_refused(
    tmp_path: Path, files: dict[str, Any], rule: str
) -> None:
    with pytest.raises(errors.InputError, match=rule):
        Tokenizer.from_folder(bert(tmp_path, **files))


def test_bpe_codes_beside_a_vocabulary_are_another_kind(tmp_path: Path) -> None:
    (bert(tmp_path) / "bpe.codes").write_text("a b 1\n")
    with pytest.raises(errors.InputError, match=r"bpe\.codes beside it"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("pieces", "merges", "rule"),
    [
        (BYTES, "a\n", "pairs of pieces"),
        (BYTES, "a b\n", "pairs of pieces"),
        ([*BYTES, "東京", "東", "京"], "東 京\n", "must be of byte-level BPE"),
        ([*BYTES, "b</w>", "ab</w>"], "a b</w>\n", "must be of byte-level BPE"),
        (BYTES[1:], "Ġ a\n", r"must hold <s> or \[CLS\]"),
    ],
)
def test_merges_that_are_damaged_or_of_another_kind_are_refused(
    tmp_path: Path, pieces: list[str], merges: str, rule: str
) -> None:
    with pytest.raises(errors.InputError, match=rule):
        Tokenizer.from_folder(roberta(tmp_path, pieces, merges))


def test_a_vocabulary_of_bytes_without_merges_is_refused(tmp_path: Path) -> None:
    (roberta(tmp_path) / "merges.txt").unlink()
    with pytest.raises(errors.InputError, match=r"vocab\.json needs merges\.txt"):
        Tokenizer.from_folder(tmp_path)


def test_without_the_packages_a_sentencepiece_model_names_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(errors.InputError, match=r'pip install "bertsmith\[sentencepiece\]"'):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("name", ["spiece.model", "sentencepiece.bpe.model"])
@pytest.mark.parametrize("content", [b"", b"not a model", b"\x0a\xff"])
def test_a_damaged_sentencepiece_model_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(errors.InputError, match="must hold a SentencePiece model"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("model_type", ["t5", "xlnet", "bert"])
def test_a_sentencepiece_model_of_a_family_that_numbers_pieces_another_way_is_refused(
    tmp_path: Path, model_type: str
) -> None:
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(errors.InputError, match=f"model_type={model_type}"):
        Tokenizer.from_folder(with_files(tmp_path, config={"model_type": model_type}))
