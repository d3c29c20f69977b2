"""Which examples and masks a run gets."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.corpus.corpus import Corpus
from bertsmith.examples.masking import MaskingConfig
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.pretraining.data import PretrainingData, pretraining_data, refuse_unfit_examples
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.training.config import TrainingConfig
from made_corpora import made_corpus, made_format, made_texts, made_tokenizer

FORMAT = made_format()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return made_corpus(tmp_path_factory.mktemp("made") / "corpus", made_texts(120), held_out=0.2)


def _data(corpus: Corpus, objective: str = "mlm", **values: Any) -> PretrainingData:
    masking = MaskingConfig.parse(values.pop("masking", {}), where="a test")
    training = TrainingConfig(batch_tokens=600, micro_batch_tokens=600)
    return pretraining_data(
        corpus, FORMAT, objective=objective, max_length=48, masking=masking, training=training, **values
    )


def _shown(data: PretrainingData) -> list[list[int]]:
    return [batch.packed.token_ids.tolist() for batch in data.validation_batches(10**9)]


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp", "mlm+sop"])
def test_validation_hides_fifteen_percent_of_single_tokens_whatever_the_run_does(
    corpus: Corpus, objective: str
) -> None:
    plain = _shown(_data(corpus, objective))
    for masking in (
        {"mask_rate": 0.4, "unit": "span", "fate": "unit"},
        {"duplicates": 2, "unit": "whole_word"},
        {"mask_rate": 0.3, "final_mask_rate": 0.15},
    ):
        assert _shown(_data(corpus, objective, masking=masking)) == plain


def test_pairs_are_told_of_and_single_sequences_are_not(corpus: Corpus) -> None:
    assert _data(corpus).pair_facts == {}
    assert 0.3 < _data(corpus, "mlm+nsp").pair_facts["nsp_negative_share"] < 0.7
    facts = _data(corpus, "mlm+sop").pair_facts
    assert facts.keys() == {"sop_swapped_share", "sop_left_out"}
    assert 0.3 < facts["sop_swapped_share"] < 0.7
    assert facts["sop_left_out"] > 0


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop"])
def test_with_static_masks_pairs_come_again_in_turn(corpus: Corpus, objective: str) -> None:
    static = _data(corpus, objective, masking={"duplicates": 2}).train
    drawn = _data(corpus, objective).train

    def starts(loader: Any, epoch: int) -> list[int]:
        return loader.examples(epoch).second_starts.tolist()

    assert starts(static, 0) == starts(static, 2) == starts(drawn, 0)
    assert starts(static, 1) == starts(static, 3) == starts(drawn, 1)
    assert len({str(starts(drawn, epoch)) for epoch in range(4)}) == 4


def test_full_sentences_are_fewer_and_fuller_and_hold_the_same_text(corpus: Corpus) -> None:
    alone, across = _data(corpus).train, _data(corpus, sequences="full_sentences").train
    assert len(across.examples(0)) < len(alone.examples(0))
    assert across.examples(0).text_lengths.sum() == alone.examples(0).text_lengths.sum()
    separators = 0
    for step in range(across.batches_per_epoch):
        for batch in across.micro_batches(step):
            lengths = np.diff(batch.packed.sequence_starts.numpy())
            assert lengths.max() <= 48
            inside = (batch.packed.token_ids[: batch.packed.num_tokens] == FORMAT.separator_id).sum()
            separators += int(inside) - len(lengths)
    assert separators > 20


def test_a_tokenizer_without_word_bounds_masks_no_words(corpus: Corpus) -> None:
    without = replace(FORMAT, has_word_bounds=False)
    for unit in ("whole_word", "ngram", "span"):
        masking = MaskingConfig.parse({"unit": unit}, where="a test")
        with pytest.raises(InputError, match=rf"masking.unit={unit}.*where words begin.*masking.unit=token"):
            refuse_unfit_examples(without, objective="mlm", sequences="document_sentences", masking=masking)
        refuse_unfit_examples(FORMAT, objective="mlm", sequences="document_sentences", masking=masking)
        refuse_unfit_examples(None, objective="mlm", sequences="document_sentences", masking=masking)
    refuse_unfit_examples(without, objective="mlm", sequences="document_sentences", masking=MaskingConfig())


def test_a_tokenizer_folder_without_word_bounds_is_refused_before_work_begins(tmp_path: Path) -> None:
    folder = tmp_path / "tokenizer"
    made_tokenizer("bpe").save(folder)
    values = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    values["pre_tokenizer"] = None
    (folder / "tokenizer.json").write_text(json.dumps(values), encoding="utf-8")
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(made_texts(20)), encoding="utf-8")
    options = {"sources": (str(text),), "tokenizer_folder": str(folder), "masking": {"unit": "whole_word"}}
    with pytest.raises(InputError, match="tells where words begin"):
        pretrain_run(PretrainConfig.parse(options, where="a test"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"objective": "causal", "masking": {"mask_rate": 0.3}}, "objective that masks"),
        ({"objective": "mlm+nsp", "sequences": "full_sentences"}, "objective of single sequences"),
        ({"objective": "mlm+sop", "sequences": "full_sentences"}, "objective of single sequences"),
    ],
)
def test_settings_that_do_not_fit_the_objective_are_refused_before_work_begins(
    values: dict[str, Any], told: str, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(made_texts(20)), encoding="utf-8")
    config = PretrainConfig.parse({"sources": (str(text),), **values}, where="a test")
    with pytest.raises(InputError, match=told):
        pretrain_run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()
