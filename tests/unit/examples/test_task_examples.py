"""Rows as tokens: what is kept of long ones, and how many were cut."""

import numpy as np
import pytest

from bertsmith.examples.task_examples import kept_windows, text_examples
from bertsmith.foundation.errors import InputError
from made_corpora import made_texts, made_tokenizer

TOKENIZER = made_tokenizer()
NOTHING = np.empty(0, np.int64)
SHORT, LONG = "The old boat.", " ".join(["river harbour garden winter"] * 6)


def test_examples_are_the_tokenizers_own_sequences() -> None:
    texts: list[str | tuple[str, str]] = [*made_texts(5), (SHORT, LONG)]
    examples = text_examples(texts, NOTHING, TOKENIZER, max_length=1000)
    assert len(examples) == len(texts)
    assert examples.num_cut == 0
    for number, encoding in enumerate(TOKENIZER.encode_batch(texts)):
        here = slice(*examples.sequence_starts[number : number + 2])
        assert examples.token_ids[here].tolist() == encoding.token_ids.tolist()
        assert examples.segment_ids[here].tolist() == encoding.segment_ids.tolist()
    assert examples.lengths.tolist() == [len(encoding) for encoding in TOKENIZER.encode_batch(texts)]


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe"])
@pytest.mark.parametrize("pair", [(LONG, LONG), (SHORT, LONG), (LONG, SHORT), (SHORT, SHORT)])
def test_the_head_is_what_the_tokenizer_itself_keeps(algorithm: str, pair: tuple[str, str]) -> None:
    tokenizer = made_tokenizer(algorithm)
    for item in (*pair, pair):
        whole = tokenizer.encode_batch([item])[0]
        for max_length in range(7, len(whole) + 2):
            kept = whole.token_ids[kept_windows(whole, max_length)[0]]
            assert kept.tolist() == tokenizer.encode_batch([item], max_length)[0].token_ids.tolist()


@pytest.mark.parametrize("item", [LONG, (SHORT, LONG)])
def test_the_tail_keeps_the_end_of_each_text_and_all_special_tokens(item: str | tuple[str, str]) -> None:
    whole = TOKENIZER.encode_batch([item])[0]
    head, tail = (kept_windows(whole, 12, part)[0] for part in ("head", "tail"))
    assert len(tail) == len(head) == 12
    special = np.flatnonzero(whole.sequence_ids < 0)
    assert set(special.tolist()) <= set(tail.tolist())
    for number in (0, 1):
        places = np.flatnonzero(whole.sequence_ids == number).tolist()
        ours = [place for place in tail.tolist() if place in places]
        assert ours == places[len(places) - len(ours) :]
        assert len(ours) == len([place for place in head.tolist() if place in places])


def test_cut_sequences_are_counted_and_those_that_just_fit_are_not() -> None:
    just_fits = len(TOKENIZER.encode(SHORT))
    examples = text_examples([SHORT, LONG, SHORT, LONG], NOTHING, TOKENIZER, max_length=just_fits)
    assert examples.num_cut == 2
    assert examples.lengths.tolist() == [just_fits] * 4


def test_a_length_without_room_for_text_is_refused() -> None:
    with pytest.raises(InputError, match="--max-length must leave room for text beside 2"):
        text_examples([LONG], NOTHING, TOKENIZER, max_length=2)


def test_special_tokens_that_stand_in_the_text_stay_text() -> None:
    examples = text_examples(["The [SEP] old [CLS] boat"], NOTHING, TOKENIZER, max_length=64)
    ids = examples.token_ids.tolist()
    assert ids.count(TOKENIZER.sep_id) == ids.count(TOKENIZER.cls_id) == 1


def test_windows_each_have_their_rows_target_and_nothing_is_cut() -> None:
    examples = text_examples([SHORT, LONG, SHORT], np.array([7, 8, 9]), TOKENIZER, max_length=12, long_texts="windows")
    assert examples.num_cut == 0
    assert examples.rows.tolist() == [0, *[1] * (len(examples) - 2), 2]
    assert len(examples) > 4
    assert examples.targets.tolist() == [7, *[8] * (len(examples) - 2), 9]
    assert examples.lengths.max() == 12
