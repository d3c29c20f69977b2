"""Folders: ours, Hugging Face's, bare vocabularies, and damaged ones."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import trained
from tokenizers import AddedToken, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as LibraryTokenizer

from bertsmith.foundation import errors
from bertsmith.tokenization import Tokenizer


def test_what_is_saved_is_loaded_alike(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.seeing(77).save(tmp_path / "one")
    loaded = Tokenizer.from_folder(tmp_path / "one")
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.config == tokenizer.config
    assert loaded.summary == tokenizer.summary
    assert loaded.model_max_length == 77
    assert (loaded.mask_id, loaded.pad_id, loaded.unk_id) == (tokenizer.mask_id, tokenizer.pad_id, tokenizer.unk_id)
    loaded.save(tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert (tmp_path / "two" / path.name).read_bytes() == path.read_bytes()


def test_the_folder_names_the_class_that_keeps_the_normaliser(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == "PreTrainedTokenizerFast"
    is_bpe = tokenizer.config is not None and tokenizer.config.algorithm == "bpe"
    assert ("token_type_ids" in settings["model_input_names"]) != is_bpe
    assert "model_max_length" not in settings
    assert Tokenizer.from_folder(tmp_path).model_max_length is None


def test_wordpiece_writes_its_pieces_in_the_order_of_their_ids(wordpiece: Tokenizer, tmp_path: Path) -> None:
    wordpiece.save(tmp_path)
    pieces = (tmp_path / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert pieces == wordpiece.tokens(range(wordpiece.vocab_size))


def test_a_tokenizer_crosses_to_another_process(tokenizer: Tokenizer) -> None:
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.fingerprint == tokenizer.fingerprint
    assert copy.encode("São 東京").token_ids.tolist() == tokenizer.encode("São 東京").token_ids.tolist()


def test_other_switches_give_another_fingerprint() -> None:
    assert trained("wordpiece").fingerprint == trained("wordpiece").fingerprint
    assert trained("wordpiece").fingerprint != trained("wordpiece", max_word_characters=99).fingerprint


_BERT_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "wor", "##ld", "cafe", "Café", "東", ","]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (None, ["hello", "wor", "##ld", ",", "cafe", "東"]),
        ({"do_lower_case": True}, ["hello", "wor", "##ld", ",", "cafe", "東"]),
        ({"do_lower_case": False, "model_max_length": 512}, ["[UNK]", "wor", "##ld", ",", "Café", "東"]),
    ],
)
def test_a_bare_vocabulary_is_read_as_berts_own(
    tmp_path: Path, settings: dict[str, Any] | None, expected: list[str]
) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(_BERT_PIECES) + "\n", encoding="utf-8")
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    for place in (tmp_path, tmp_path / "vocab.txt"):
        tokenizer = Tokenizer.from_folder(place)
        ids = tokenizer.encode("Hello world, Café東").token_ids
        assert tokenizer.tokens(ids) == ["[CLS]", *expected, "[SEP]"]
        assert tokenizer.model_max_length == (settings or {}).get("model_max_length")
        assert tokenizer.encode("[MASK]", mask_is_special=True).token_ids.tolist() == [2, 4, 3]
        assert tokenizer.config is None
    tokenizer.save(tmp_path / "again")
    assert Tokenizer.from_folder(tmp_path / "again").fingerprint == tokenizer.fingerprint


def test_a_vocabulary_without_an_unknown_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[CLS]\n[SEP]\na\n")
    with pytest.raises(errors.InputError, match=r"must hold \[UNK\]"):
        Tokenizer.from_folder(tmp_path)


def _roberta_like(folder: Path) -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *alphabet]
    library = LibraryTokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, []))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    library.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])
    folder.mkdir()
    library.save(str(folder / "tokenizer.json"))
    (folder / "special_tokens_map.json").write_text(json.dumps({"mask_token": {"content": "<mask>", "lstrip": True}}))
    return Tokenizer.from_folder(folder)


def test_byte_level_words_are_counted_without_the_whitespace_between(tmp_path: Path) -> None:
    tokenizer = _roberta_like(tmp_path / "roberta")
    text = "ab  é \n c"
    encoding = tokenizer.encode(text)
    inner = encoding.word_ids[1:-1].tolist()
    assert [word for word in inner if word >= 0] == [0, 0, 1, 1, 2]
    for (start, end), word in zip(encoding.offsets[1:-1].tolist(), inner, strict=True):
        assert (word == -1) == (text[start:end].strip() == "")
    assert tokenizer.encode("a <mask>", mask_is_special=True).token_ids.tolist()[2:] == [4, 2]
    assert tokenizer.encode("a", "b").segment_ids.tolist() == [0] * 6


def test_unigram_does_not_find_special_tokens_in_its_own_vocabulary(tmp_path: Path) -> None:
    pieces = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0)]
    pieces += [(piece, -3.0) for piece in ["▁", *"abMASKEPCLU[]<>unkpds"]]
    library = LibraryTokenizer(models.Unigram(list(dict(pieces).items()), unk_id=1))
    library.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()])
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    library.add_special_tokens([piece for piece, score in pieces if score == 0.0])
    library.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_folder(tmp_path)
    literal = tokenizer.encode("a [MASK][SEP] <unk>").token_ids.tolist()[1:-1]
    assert not set(literal) & tokenizer.special_ids
    assert "".join(tokenizer.tokens(literal)) == "▁a▁[MASK][SEP]▁<unk>"
    masked = tokenizer.encode("á [MASK] b[SEP]", mask_is_special=True)
    assert set(masked.token_ids.tolist()[1:-1]) & tokenizer.special_ids == {4}
    tokenizer.save(tmp_path / "again")
    assert Tokenizer.from_folder(tmp_path / "again").fingerprint == tokenizer.fingerprint


def test_added_words_are_honoured_as_whole_words_and_count_as_rows(tmp_path: Path) -> None:
    wordpiece = trained("wordpiece")
    wordpiece.save(tmp_path)
    library = LibraryTokenizer.from_file(str(tmp_path / "tokenizer.json"))
    library.add_tokens([AddedToken("rw", single_word=True, normalized=False)])
    library.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_folder(tmp_path)
    added = wordpiece.vocab_size
    assert tokenizer.vocab_size == added + 1
    assert tokenizer.piece_ids(["a rw b"])[0].count(added) == 1
    assert added not in tokenizer.piece_ids(["overwrite"])[0]
    encoding = tokenizer.encode("cafe\u0301 rw b")
    start, end = encoding.offsets[encoding.token_ids == added][0]
    assert "cafe\u0301 rw b"[start:end] == "rw"
    assert not tokenizer.continues_word[added]
    tokenizer.save(tmp_path / "again")
    assert Tokenizer.from_folder(tmp_path / "again").piece_ids(["a rw b"]) == tokenizer.piece_ids(["a rw b"])


def test_a_tokenizer_without_a_mask_loads_and_refuses_only_the_mask(tmp_path: Path) -> None:
    library = LibraryTokenizer(models.WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3}, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.mask_id is None
    assert tokenizer.mask_token is None
    assert tokenizer.encode("a a").token_ids.tolist() == [3, 3]
    assert tokenizer.encode("a", "a").sequence_ids.tolist() == [0, 1]
    with pytest.raises(errors.InputError, match="must have a mask token"):
        tokenizer.encode("a", mask_is_special=True)


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("tokenizer.json", b"{", "tokenizer.json must hold a tokenizer"),
        ("tokenizer.json", b"\xff\xfe", "tokenizer.json must hold a tokenizer"),
        ("tokenizer_config.json", b"[]", "must hold a JSON object"),
        ("tokenizer_config.json", b"{", "must hold JSON"),
        ("tokenizer_config.json", b'{"bertsmith": {"config": {"lowercas": true}}}', "Did you mean lowercase"),
    ],
)
def test_a_damaged_file_is_named(wordpiece: Tokenizer, tmp_path: Path, name: str, content: bytes, rule: str) -> None:
    wordpiece.save(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(errors.InputError, match=rule):
        Tokenizer.from_folder(tmp_path)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(errors.InputError, match=r"holds tokenizer\.json, vocab\.txt"):
            Tokenizer.from_folder(path)
