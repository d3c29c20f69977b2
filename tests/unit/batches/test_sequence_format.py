"""Framing ranges of tokens as the tokenizer frames text."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import PretrainingExamples
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.pretraining.data import refuse_unfit_examples
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import made_corpus, made_format, made_split, made_texts, made_tokenizer

ALGORITHMS = ("wordpiece", "bpe", "unigram")


def _refuse(sequence_format: SequenceFormat, objective: str) -> None:
    refuse_unfit_examples(sequence_format, objective=objective, sequences="document_sentences", masking=MaskingConfig())


def _rows(*ranges: tuple[int, int, int, int]) -> PretrainingExamples:
    columns = np.array(ranges, np.int64).T
    return PretrainingExamples(columns[0], columns[1], columns[2], columns[3], None)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_framed_sentence_is_what_the_tokenizer_makes_of_its_text(algorithm: str, tmp_path: Path) -> None:
    tokenizer = made_tokenizer(algorithm)
    texts = ["The old boat waited.", "Nobody opened the wooden window again.", "Rain fell."]
    split = made_corpus(tmp_path / "corpus", texts, algorithm=algorithm).split("train")
    bounds = split.sentence_starts.tolist()
    examples = _rows(*[(start, end, end, end) for start, end in pairwise(bounds)])
    framed = made_format(algorithm).assemble(split, examples, np.arange(len(texts)))
    shown = {tuple(framed.token_ids[start:end].tolist()) for start, end in pairwise(framed.sequence_starts.tolist())}
    expected = [tokenizer.encode(text) for text in texts]
    assert shown == {tuple(encoding.token_ids.tolist()) for encoding in expected}
    assert (framed.segment_ids == 0).all()
    assert sum(len(encoding) for encoding in expected) == len(framed.token_ids)
    assert framed.is_text.sum() == split.num_tokens


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_framed_pair_is_what_the_tokenizer_makes_of_two_texts(algorithm: str, tmp_path: Path) -> None:
    tokenizer = made_tokenizer(algorithm)
    first, second = "The old boat waited.", "Nobody opened the wooden window again."
    split = made_corpus(tmp_path / "corpus", [f"{first}\n{second}"], algorithm=algorithm).split("train")
    start, middle, end = split.sentence_starts.tolist()
    framed = made_format(algorithm).assemble(split, _rows((start, middle, middle, end)), np.array([0]))
    expected = tokenizer.encode(first, second)
    assert np.array_equal(framed.token_ids, expected.token_ids)
    assert np.array_equal(framed.segment_ids, expected.segment_ids)
    assert np.array_equal(framed.is_text, expected.special_tokens_mask == 0)


def test_bert_and_roberta_frame_pairs_differently() -> None:
    bert, roberta = made_format("wordpiece"), made_format("bpe")
    assert (bert.num_special(pairs=False), bert.num_special(pairs=True), bert.second_segment_id) == (2, 3, 1)
    assert (roberta.num_special(pairs=False), roberta.num_special(pairs=True), roberta.second_segment_id) == (2, 4, 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lengths_are_those_of_the_framed_sequences(algorithm: str, tmp_path: Path) -> None:
    split = made_corpus(tmp_path / "corpus", made_texts(5), algorithm=algorithm).split("train")
    examples = _rows((0, 7, 9, 12), (3, 4, 4, 4), (5, 20, 20, 31))
    sequence_format = made_format(algorithm)
    framed = sequence_format.assemble(split, examples, np.array([2, 0, 1]))
    assert np.array_equal(np.diff(framed.sequence_starts), sequence_format.lengths(examples)[[2, 0, 1]])
    assert framed.sequence_starts[-1] == len(framed.token_ids)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_separator_stands_where_a_sequence_goes_on_with_another_document(algorithm: str, tmp_path: Path) -> None:
    tokenizer, sequence_format = made_tokenizer(algorithm), made_format(algorithm)
    texts = ["The old boat waited.", "Nobody opened the window. Rain fell.", "Snow under the lamp."]
    split = made_corpus(tmp_path / "corpus", texts, algorithm=algorithm).split("train")
    bounds = split.sentence_starts[split.document_starts].tolist()
    documents = [split.tokens(start, end).tolist() for start, end in pairwise(bounds)]
    inner = np.array(bounds[1:-1])
    columns = np.array([(bounds[0], bounds[3]), (bounds[1], bounds[2]), (bounds[1], bounds[3]), (1, bounds[1] + 1)]).T
    examples = PretrainingExamples(columns[0], columns[1], columns[1], columns[1], None, inner)
    framed = sequence_format.assemble(split, examples, np.array([2, 0, 3, 1]))
    first, separator = [tokenizer.cls_id], [tokenizer.sep_id]
    one, two, three = documents
    expected = [
        [*first, *two, *separator, *three, *separator],
        [*first, *one, *separator, *two, *separator, *three, *separator],
        [*first, *one[1:], *separator, two[0], *separator],
        [*first, *two, *separator],
    ]
    found = [framed.token_ids[start:end].tolist() for start, end in pairwise(framed.sequence_starts.tolist())]
    assert found == expected
    assert (framed.segment_ids == 0).all()
    assert np.array_equal(framed.is_text, ~np.isin(framed.token_ids, list(tokenizer.special_ids)))
    assert np.array_equal(sequence_format.lengths(examples), [len(expected[number]) for number in (1, 3, 0, 2)])


def test_sentences_begin_where_they_do_in_the_text() -> None:
    split = made_split([[4, 3], [2, 5], [6]])
    # From the middle of the first sentence to the middle of the third; the last document; and a pair.
    framed = made_format().assemble(split, _rows((2, 8, 8, 8), (14, 20, 20, 20), (4, 7, 9, 14)), np.array([0, 1, 2]))
    shown = (framed.token_ids - 10)[framed.begins_sentence]
    assert shown.tolist() == [2, 4, 7, 14, 4, 9]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_word_crosses_a_special_token_or_a_sentence(algorithm: str, tmp_path: Path) -> None:
    sequence_format = made_format(algorithm)
    split = made_corpus(tmp_path / "corpus", ["Rainy rain. Nobody opened. (Snow) fell."], algorithm=algorithm).split(
        "train"
    )
    start, middle, _, end = split.sentence_starts.tolist()
    framed = sequence_format.assemble(
        split, _rows((start + 1, middle, middle, end), (start, end, end, end)), np.array([0, 1])
    )
    continues = sequence_format.continues(framed)
    assert continues.any()
    assert not continues[~framed.is_text].any()
    assert not continues[1:][~framed.is_text[:-1]].any()
    assert not continues[framed.begins_sentence].any()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_replacements_are_every_token_but_the_special_ones(algorithm: str) -> None:
    tokenizer = made_tokenizer(algorithm)
    random_ids = made_format(algorithm).random_ids
    assert not set(random_ids.tolist()) & tokenizer.special_ids
    assert len(random_ids) == tokenizer.vocab_size - len(tokenizer.special_ids)
    assert tokenizer.mask_id in tokenizer.special_ids


def test_a_tokenizer_without_a_mask_token_is_refused_where_masks_are_made(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n", encoding="utf-8")
    sequence_format = SequenceFormat.of(Tokenizer.from_folder(tmp_path))
    assert sequence_format.first_id == 2
    with pytest.raises(InputError, match="mask token"):
        _ = sequence_format.mask_id
    for objective in ("causal", "bilm"):
        _refuse(sequence_format, objective)
    for objective in ("mlm", "mlm+nsp"):
        with pytest.raises(InputError, match="mask token"):
            _refuse(sequence_format, objective)
