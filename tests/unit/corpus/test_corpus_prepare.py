"""Preparing: the same bytes however it is done, a split that never lies, and nothing written where it must not be."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from bertsmith.corpus import blocks
from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.corpus.manifest import describe_sources
from bertsmith.corpus.prepare import CorpusConfig, prepare_corpus
from bertsmith.corpus.verify import verify_corpus
from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.text.documents import Document
from bertsmith.text.sentences import split_sentences
from bertsmith.tokenization.tokenizer import Tokenizer

ALONE = CorpusConfig(workers=1)


def _document(text: str) -> Document:
    return Document(text=text, source="made.txt")


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _documents_of(split: Split) -> list[list[list[int]]]:
    return [
        [
            split.tokens(int(split.sentence_starts[number]), int(split.sentence_starts[number + 1])).tolist()
            for number in range(int(split.document_starts[document]), int(split.document_starts[document + 1]))
        ]
        for document in range(split.num_documents)
    ]


def _expected(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    return tokenizer.piece_ids(split_sentences(text))


def test_the_bytes_are_the_same_for_one_two_and_three_workers(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_CHARACTERS", 2_000)
    prepared = [
        prepare_corpus(documents, tokenizer, tmp_path / str(workers), CorpusConfig(workers=workers))
        for workers in (1, 2, 3)
    ]
    assert prepared[0].split("train").num_documents > 40
    contents = [_contents(corpus.folder) for corpus in prepared]
    assert contents[0] == contents[1] == contents[2]
    assert len({corpus.fingerprint for corpus in prepared}) == 1
    assert verify_corpus(prepared[1].folder) == []


def test_the_bytes_do_not_depend_on_where_blocks_end(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prepare_corpus(documents, tokenizer, tmp_path / "whole", ALONE)
    monkeypatch.setattr(blocks, "BLOCK_CHARACTERS", 1)
    single = prepare_corpus(documents, tokenizer, tmp_path / "single", ALONE)
    assert _contents(whole.folder) == _contents(single.folder)


def test_statistics_count_what_was_written(tmp_path: Path, tokenizer: Tokenizer) -> None:
    texts = ["The cat saw a dog. It went home.", "Rain fell é.", "   ", "A dog by the river. Home. Dark."]
    corpus = prepare_corpus(
        map(_document, texts), tokenizer, tmp_path / "out", CorpusConfig(workers=1, validation_fraction=0)
    )
    train = corpus.manifest.train
    expected = [_expected(tokenizer, text) for text in texts if text.strip()]
    sentences = [sentence for document in expected for sentence in document]
    assert _documents_of(corpus.split("train")) == expected
    assert train.documents == 3
    assert train.sentences == len(sentences)
    assert train.tokens == sum(map(len, sentences))
    assert train.longest_sentence == max(map(len, sentences))
    assert train.one_sentence_documents == sum(len(document) == 1 for document in expected)
    assert train.unknown_tokens == sum(sentence.count(tokenizer.unk_id) for sentence in sentences)
    assert train.unknown_tokens > 0
    kept = [sentence for text in texts for sentence in split_sentences(text)]
    assert train.characters == sum(map(len, kept))
    assert train.bytes == sum(len(sentence.encode()) for sentence in kept) == train.characters + 1


def test_documents_without_a_token_are_dropped_and_counted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    texts = ["", "The cat went home.", " \n ", "A dog fell.", ""]
    corpus = prepare_corpus(map(_document, texts), tokenizer, tmp_path / "out", ALONE)
    assert corpus.manifest.dropped_documents == 3
    assert _documents_of(corpus.split("train")) == [_expected(tokenizer, texts[1])]
    assert _documents_of(corpus.split("validation")) == [_expected(tokenizer, texts[3])]


def test_a_sentence_without_a_token_is_left_out(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "split_sentences", lambda text: ["", "The cat.", "", "Rain fell.", ""])
    corpus = prepare_corpus([_document("any")], tokenizer, tmp_path / "out", CorpusConfig(validation_fraction=0))
    assert _documents_of(corpus.split("train")) == [tokenizer.piece_ids(["The cat.", "Rain fell."])]


def test_copies_of_a_document_fall_on_the_same_side(tmp_path: Path, tokenizer: Tokenizer) -> None:
    texts = [f"The cat saw {number} old dogs. Rain fell on {number * 7} roofs." for number in range(40)] * 3
    corpus = prepare_corpus(
        map(_document, texts), tokenizer, tmp_path / "out", CorpusConfig(workers=1, validation_fraction=0.4)
    )
    sides = [{str(document) for document in _documents_of(corpus.split(name))} for name in ("train", "validation")]
    assert not sides[0] & sides[1]
    assert [corpus.split(name).num_documents for name in ("train", "validation")] == [3 * len(side) for side in sides]
    assert 8 <= len(sides[1]) <= 24


def test_another_seed_holds_out_other_documents(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    held_out = [
        _documents_of(
            prepare_corpus(
                documents,
                tokenizer,
                tmp_path / str(seed),
                CorpusConfig(workers=1, seed=seed, validation_fraction=0.3),
            ).split("validation")
        )
        for seed in (0, 1)
    ]
    assert held_out[0] != held_out[1]


@pytest.mark.parametrize("fraction", [1e-9, 0.999999])
@pytest.mark.parametrize("block_characters", [1, 1_000_000])
def test_two_different_documents_put_one_on_each_side(
    tmp_path: Path, tokenizer: Tokenizer, fraction: float, block_characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_CHARACTERS", block_characters)
    first, second = "The cat went home.", "A dog fell."
    corpus = prepare_corpus(
        map(_document, [first, first, second, first, second]),
        tokenizer,
        tmp_path / "out",
        CorpusConfig(workers=1, validation_fraction=fraction),
    )
    assert _documents_of(corpus.split("train")) == [_expected(tokenizer, first)] * 3
    assert _documents_of(corpus.split("validation")) == [_expected(tokenizer, second)] * 2
    assert corpus.manifest.held_out == "documents"


@pytest.mark.parametrize(("fraction", "held_out"), [(0.001, 1), (0.5, 2), (0.99, 3)])
def test_one_document_holds_out_its_last_sentences(
    tmp_path: Path, tokenizer: Tokenizer, fraction: float, held_out: int
) -> None:
    text = "The cat saw a dog. It went home. Rain fell. The roof was old."
    expected = _expected(tokenizer, text)
    assert len(expected) == 4
    corpus = prepare_corpus(
        [_document(text)], tokenizer, tmp_path / "out", CorpusConfig(workers=1, validation_fraction=fraction)
    )
    assert _documents_of(corpus.split("train")) == [expected[:-held_out]]
    assert _documents_of(corpus.split("validation")) == [expected[-held_out:]]
    assert corpus.manifest.held_out == "last_sentences"
    assert any("one document" in warning for warning in corpus.warnings)


@pytest.mark.parametrize("texts", [["The cat went home."], ["The cat went home. Rain fell."] * 3])
def test_nothing_is_held_out_where_it_would_be_a_lie(tmp_path: Path, tokenizer: Tokenizer, texts: list[str]) -> None:
    corpus = prepare_corpus(map(_document, texts), tokenizer, tmp_path / "out", ALONE)
    assert corpus.split("train").num_documents == len(texts)
    assert corpus.split("validation").num_documents == 0
    assert corpus.split("validation").tokens(0, 0).tolist() == []
    assert corpus.manifest.held_out == "nothing"
    assert corpus.manifest.context_free_loss is None
    assert any("held out" in warning for warning in corpus.warnings)
    assert verify_corpus(corpus.folder) == []


def test_a_fraction_of_zero_trains_on_everything(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    corpus = prepare_corpus(documents, tokenizer, tmp_path / "out", CorpusConfig(workers=1, validation_fraction=0))
    assert corpus.split("train").num_documents == len(documents)
    assert corpus.warnings == []


def test_a_percentage_is_refused_with_the_fraction_that_was_meant() -> None:
    with pytest.raises(InputError, match=r"validation_fraction: must lie in \[0, 1\); did you mean 0.05\?"):
        CorpusConfig.parse({"validation_fraction": 5}, where="the command line")


@pytest.mark.parametrize("fraction", [-0.1, 1.0, math.nan, math.inf])
def test_a_fraction_outside_its_range_is_refused(fraction: float) -> None:
    with pytest.raises(InputError, match="must lie in"):
        CorpusConfig.parse({"validation_fraction": fraction}, where="the command line")


def test_the_losses_that_know_no_context_are_those_of_the_counts(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    corpus = prepare_corpus(documents, tokenizer, tmp_path / "out", ALONE)
    train, validation = (corpus.split(name) for name in ("train", "validation"))
    counts = train.token_counts
    assert counts.tolist() == np.bincount(train.tokens(0, train.num_tokens), minlength=len(counts)).tolist()
    assert len(counts) == tokenizer.vocab_size
    shares = [count / train.num_tokens for count in counts.tolist()]
    entropy = -sum(share * math.log(share) for share in shares if share)
    smoothed = [(count + 1) / (train.num_tokens + tokenizer.vocab_size) for count in counts.tolist()]
    held_out = validation.tokens(0, validation.num_tokens).tolist()
    loss = -sum(math.log(smoothed[token]) for token in held_out) / len(held_out)
    assert corpus.manifest.train_entropy == pytest.approx(entropy, abs=1e-6)
    assert corpus.manifest.context_free_loss == pytest.approx(loss, abs=1e-6)


def test_documents_of_one_sentence_are_warned_about(tmp_path: Path, tokenizer: Tokenizer) -> None:
    texts = [f"The cat saw {number} dogs." for number in range(5)]
    corpus = prepare_corpus(map(_document, texts), tokenizer, tmp_path / "out", ALONE)
    assert any("Is there a blank line after each sentence?" in warning for warning in corpus.warnings)


def test_more_than_a_hundredth_of_unknown_tokens_is_warned_about(tmp_path: Path, tokenizer: Tokenizer) -> None:
    known = "The cat saw a dog. Rain fell."
    strange = "漢字 かな. Rain fell."
    some = prepare_corpus(map(_document, [known, strange]), tokenizer, tmp_path / "some", ALONE)
    none = prepare_corpus(map(_document, [known, known + " Home."]), tokenizer, tmp_path / "none", ALONE)
    assert any("unknown to the tokenizer" in warning for warning in some.warnings)
    assert not any("unknown" in warning for warning in none.warnings)


def test_a_validation_split_far_larger_than_asked_is_warned_about(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    few = prepare_corpus(documents[:2], tokenizer, tmp_path / "few", ALONE)
    many = prepare_corpus(documents, tokenizer, tmp_path / "many", CorpusConfig(workers=1, validation_fraction=0.2))
    assert any("of the tokens, though 5% of the documents" in warning for warning in few.warnings)
    assert many.warnings == []


def _with_vocabulary(folder: Path, size: int) -> Tokenizer:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(size - 5))]
    model = tokenizers.models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    whole = tokenizers.Tokenizer(model)
    whole.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    whole.add_special_tokens(words[:5])
    folder.mkdir()
    whole.save(str(folder / "tokenizer.json"))
    return Tokenizer.from_folder(folder)


@pytest.mark.parametrize(("size", "width", "name"), [(65_536, 2, "uint16"), (65_537, 4, "uint32")])
def test_token_files_are_as_narrow_as_the_vocabulary_allows(tmp_path: Path, size: int, width: int, name: str) -> None:
    tokenizer = _with_vocabulary(tmp_path / "tokenizer", size)
    last = f"w{size - 6}"
    corpus = prepare_corpus(map(_document, [f"w0 {last}", "w1"]), tokenizer, tmp_path / "out", CorpusConfig(workers=1))
    assert corpus.manifest.token_dtype == name
    assert corpus.split("train").tokens(0, 2).tolist() == [5, size - 1]
    stored = (corpus.folder / "train" / "tokens-00000.bin").read_bytes()
    assert stored == (5).to_bytes(width, "little") + (size - 1).to_bytes(width, "little")


@pytest.mark.parametrize("texts", [[], ["", "  \n"]])
def test_nothing_to_tokenize_is_an_error_that_leaves_nothing(
    tmp_path: Path, tokenizer: Tokenizer, texts: list[str]
) -> None:
    with pytest.raises(InputError, match="There must be text to tokenize"):
        prepare_corpus(map(_document, texts), tokenizer, tmp_path / "out", ALONE)
    assert list(tmp_path.iterdir()) == []


def test_a_fault_in_the_stream_of_documents_leaves_nothing(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_CHARACTERS", 1_000)

    def broken() -> Iterator[Document]:
        yield from documents
        raise InputError("Text must be UTF-8", "a bad byte", "Convert the file.")

    for workers in (1, 2):
        with pytest.raises(InputError, match="Text must be UTF-8"):
            prepare_corpus(broken(), tokenizer, tmp_path / "out", CorpusConfig(workers=workers))
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_else_is_not_touched(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("years of work")
    for name in ("folder", "file"):
        with pytest.raises(InputError, match="holds something else"):
            prepare_corpus(documents, tokenizer, tmp_path / name, ALONE)
    assert set(_contents(tmp_path)) == {"folder/thesis.txt", "file"}


def test_an_empty_folder_is_filled(tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]) -> None:
    (tmp_path / "out").mkdir()
    prepare_corpus(documents, tokenizer, tmp_path / "out", ALONE)
    assert Corpus.open(tmp_path / "out").split("train").num_documents > 0


class _Reading(Config):
    layout: str


def test_the_same_work_is_recognised_and_any_other_refused(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    source = tmp_path / "made.txt"
    source.write_text("\n\n".join(document.text for document in documents))
    out = tmp_path / "out"
    sources, reading = describe_sources([source]), _Reading(layout="blank_line")
    first = prepare_corpus(documents, tokenizer, out, ALONE, sources=sources, reading=reading)
    before = _contents(out)

    def never() -> Iterator[Document]:
        raise AssertionError("documents were read again")
        yield

    same = prepare_corpus(never(), tokenizer, out, CorpusConfig(workers=2), sources=sources, reading=reading)
    assert same.fingerprint == first.fingerprint

    def again(config: CorpusConfig = ALONE, **changed: object) -> None:
        arguments = {"sources": sources, "reading": reading, **changed}
        prepare_corpus(never(), tokenizer, out, config, **arguments)

    with pytest.raises(InputError, match=r"differs in: seed. Choose another folder"):
        again(CorpusConfig(seed=1))
    with pytest.raises(InputError, match="differs in: reading"):
        again(reading=_Reading(layout="line"))
    with pytest.raises(InputError, match="differs in: texts"):
        again(sources=())
    source.write_text("other text")
    with pytest.raises(InputError, match="differs in: texts"):
        again(sources=describe_sources([source]))
    assert _contents(out) == before


def test_progress_tells_the_bytes_that_are_done(
    tmp_path: Path, tokenizer: Tokenizer, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_CHARACTERS", 2_000)
    told: list[int] = []
    corpus = prepare_corpus(documents, tokenizer, tmp_path / "out", ALONE, on_progress=told.append)
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == corpus.manifest.train.bytes + corpus.manifest.validation.bytes


def test_sources_are_told_by_path_size_and_sum(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    (source,) = describe_sources([tmp_path / "a.txt"])
    assert source.path == (tmp_path / "a.txt").as_posix()
    assert source.bytes == 3
    assert source.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


if sys.platform == "linux":  # The other systems refuse such names.

    def test_a_source_whose_name_is_no_utf8_is_told_in_a_manifest_that_can_be_written(
        tmp_path: Path, tokenizer: Tokenizer, documents: list[Document]
    ) -> None:
        path = tmp_path / "caf\udce9.txt"
        path.write_text("text")
        corpus = prepare_corpus(documents, tokenizer, tmp_path / "out", ALONE, sources=describe_sources([path]))
        assert corpus.manifest.sources[0].path.endswith("caf?.txt")


def test_half_a_surrogate_pair_does_not_stop_the_work(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = prepare_corpus(
        map(_document, ["The cat \ud83d went home.", "A dog fell."]), tokenizer, tmp_path / "out", ALONE
    )
    assert corpus.split("train").num_documents == 1
