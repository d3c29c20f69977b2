"""Labelling the words of texts."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.folders.model_folder import read_model, read_tokenizer, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder
from bertsmith.inference.tag import TagPrediction, TagPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import Model, ModelConfig, PackedTokens, new_model
from bertsmith.objectives.tagging import tag_logits
from bertsmith.text.words import word_spans
from made_corpora import made_model, made_texts, made_tokenizer
from made_sentences import ENTITY_LABELS, made_tagger
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")
POSITIONS = 64
PREDICTOR = TagPredictor(TorchEngine(made_tagger(positions=POSITIONS), CPU), made_tokenizer())
LONG = " ".join(["The old river carried Catherine's small boat to Oslo."] * 25)


def _only(label: str) -> Model:
    """A tagger that takes every word for the same."""
    model = copy.deepcopy(made_tagger())
    assert model.token_classifier is not None
    with torch.no_grad():
        model.token_classifier.output.weight.zero_()
        model.token_classifier.output.bias.zero_()
        model.token_classifier.output.bias[ENTITY_LABELS.index(label)] = 5.0
    return model


@torch.no_grad()
def _by_the_book(words: list[str]) -> list[tuple[str, float]]:
    """Label and probability of each word, by way of the tokenizer's own encoding of the text."""
    encoding = made_tokenizer().encode(" ".join(words))
    packed = PackedTokens.build(encoding.token_ids, encoding.segment_ids, np.array([0, len(encoding)]))
    rows = torch.softmax(tag_logits(made_tagger(positions=POSITIONS).eval(), packed), -1)
    found: list[tuple[str, float]] = []
    start = 0
    for word in words:
        token = int(np.flatnonzero((encoding.sequence_ids == 0) & (encoding.offsets[:, 0] == start))[0])
        found.append((ENTITY_LABELS[int(rows[token].argmax())], float(rows[token].max())))
        start += len(word) + 1
    return found


def _texts_of(found: TagPrediction) -> list[str]:
    return [one.word for one in found.words]


def test_every_word_has_the_label_that_the_model_gives_its_first_piece() -> None:
    words = ["The", "old", "Catherine", "carried", "bread", "and", "letter"]
    (found,) = PREDICTOR([words])
    for one, (label, score) in zip(found.words, _by_the_book(words), strict=True):
        assert one.label == label
        assert one.score == pytest.approx(score, abs=1e-5)
    assert _texts_of(found) == words
    assert found.text == " ".join(words)


def test_a_text_is_cut_into_words_by_our_own_rule_and_a_list_is_taken_as_it_is() -> None:
    text = "  Catherine's boat, in the U.S. harbour…"
    (found,) = PREDICTOR([text])
    assert _texts_of(found) == ["Catherine", "'s", "boat", ",", "in", "the", "U.S.", "harbour", "…"]
    assert found.text == text
    as_list = PREDICTOR([_texts_of(found)])[0]
    assert [(one.label, one.score) for one in as_list.words] == [(one.label, one.score) for one in found.words]
    (kept,) = PREDICTOR([["Catherine's", "U.S. harbour"]])
    assert _texts_of(kept) == ["Catherine's", "U.S. harbour"]


def test_arabic_words_keep_their_clitics() -> None:
    (found,) = PREDICTOR(["وقال محمدٌ، وبالقلم"])
    assert _texts_of(found) == ["وقال", "محمدٌ", "،", "وبالقلم"]


def test_entities_stand_where_their_offsets_say() -> None:
    text = "Ann 😊 O'Brien, in São Paulo"
    (found,) = TagPredictor(TorchEngine(_only("B-PER"), CPU), made_tokenizer())([text])
    assert [one.text for one in found.entities] == ["Ann", "😊", "O'Brien", ",", "in", "São", "Paulo"]
    (joined,) = TagPredictor(TorchEngine(_only("I-LOC"), CPU), made_tokenizer())([text])
    (entity,) = joined.entities
    assert (entity.label, entity.text, entity.start, entity.end) == ("LOC", text, 0, len(text))
    for one in (*found.entities, *joined.entities):
        assert text[one.start : one.end] == one.text
    assert entity.score == pytest.approx(np.mean([one.score for one in joined.words]))
    assert TagPredictor(TorchEngine(_only("O"), CPU), made_tokenizer())([text])[0].entities == ()


def test_values_are_those_of_the_interface() -> None:
    (found,) = TagPredictor(TorchEngine(_only("B-LOC"), CPU), made_tokenizer())([["Oslo", "x"]])
    score = found.words[0].score
    assert found.values == {
        "text": "Oslo x",
        "words": [{"word": "Oslo", "label": "B-LOC", "score": score}, {"word": "x", "label": "B-LOC", "score": score}],
        "entities": [
            {"label": "LOC", "text": "Oslo", "start": 0, "end": 4, "score": score},
            {"label": "LOC", "text": "x", "start": 5, "end": 6, "score": score},
        ],
        "cut": False,
    }


def test_words_that_the_tokenizer_does_not_see_shift_no_label() -> None:
    predictor = TagPredictor(TorchEngine(_only("B-PER"), CPU), made_tokenizer())
    (found,) = predictor([["Ann", "\n", "\u200b", "Acme"]])
    assert [one.label for one in found.words] == ["B-PER", "O", "O", "B-PER"]
    assert [one.score for one in found.words][1:3] == [0.0, 0.0]
    assert [(one.text, one.start, one.end) for one in found.entities] == [("Ann", 0, 3), ("Acme", 8, 12)]
    (seen,) = PREDICTOR([["boat", "Oslo"]])
    (beside,) = PREDICTOR([["boat", "\u200b", "Oslo"]])
    assert [beside.words[0].score, beside.words[2].score] == [seen.words[0].score, seen.words[1].score]
    assert [one.label for one in predictor([["\u200b", " "]])[0].words] == ["O", "O"]
    assert predictor(["\u200b"])[0].values == {"text": "\u200b", "words": [], "entities": [], "cut": False}


def test_a_long_text_has_every_word_once_with_offsets_into_the_whole() -> None:
    (found,) = PREDICTOR([LONG])
    spans = word_spans(LONG)
    assert _texts_of(found) == [LONG[start:end] for start, end in spans]
    assert len(PREDICTOR.prepare([LONG])[0].windows) > 3
    assert not found.cut
    for one in found.entities:
        assert LONG[one.start : one.end] == one.text
    starts = [one.start for one in found.entities]
    assert starts == sorted(set(starts))


def test_an_entity_over_the_edge_of_a_window_is_one() -> None:
    (found,) = TagPredictor(TorchEngine(_only("I-PER"), CPU), made_tokenizer())([LONG])
    (entity,) = found.entities
    assert (entity.start, entity.end) == (0, len(LONG))


def test_a_word_is_judged_in_the_window_with_the_most_text_around_it() -> None:
    words = [word for text in made_texts(30) for word in text.split()][:150]
    (request,) = PREDICTOR.prepare([words])
    read: dict[int, int] = {}
    for number, numbers in enumerate(request.words):
        for word in numbers[numbers >= 0].tolist():
            assert word not in read
            read[word] = number
    assert sorted(read) == list(range(150))
    for number, numbers in enumerate(request.words):
        inside = np.flatnonzero(numbers >= 0)
        if number:  # Text stands before the first word that is read here, unless nothing was left to share.
            assert inside[0] > 5
        if number < len(request.words) - 1:
            assert len(numbers) - inside[-1] > 5


def test_a_prediction_depends_neither_on_neighbours_nor_on_order() -> None:
    texts = [*made_texts(20, sentences=(1, 6)), LONG]
    alone = [PREDICTOR([text])[0] for text in texts]
    together, backwards = PREDICTOR(texts), PREDICTOR(texts[::-1])[::-1]
    for one, *others in zip(alone, together, backwards, strict=True):
        for other in others:
            assert other.text == one.text
            scores = [word.score for word in one.words]
            assert [word.score for word in other.words] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("item", ["", " \n", []])
def test_a_blank_text_and_an_empty_list_are_refused_by_their_number(item: str | list[str]) -> None:
    with pytest.raises(InputError, match=r"text 2:"):
        PREDICTOR(["boat", item])


def test_what_is_no_text_is_refused() -> None:
    wrong: list[Any] = [7, ["boat", None]]
    for item in wrong:
        with pytest.raises(InputError, match=r"takes texts, or lists of words.*text 1: "):
            PREDICTOR([item])


def test_a_text_or_a_tuple_of_words_is_one_item() -> None:
    assert PREDICTOR("The boat.") == PREDICTOR(["The boat."])
    assert PREDICTOR(("The", "boat")) == PREDICTOR([["The", "boat"]])


def test_a_word_longer_than_the_model_takes_is_said() -> None:
    tokenizer = made_tokenizer("bpe")
    encoder = made_tagger().config.encoder.model_copy(update={"vocab_size": tokenizer.vocab_size})
    model = new_model(ModelConfig(encoder=encoder, heads=made_tagger().config.heads), seed=0)
    predictor = TagPredictor(TorchEngine(model, CPU), tokenizer)
    found, whole = predictor([["x" * 300, "boat"], ["boat"]])
    assert (found.cut, whole.cut) == (True, False)
    assert len(found.words) == 2


def test_labels_and_predictions_survive_a_folder(tmp_path: Path) -> None:
    labels = ("O", "Zebra", "B-b", "I-a", "10", "9")
    model = made_tagger(labels)
    with new_folder(tmp_path / "model", seal={"kind": "model"}) as temporary:
        write_model(temporary, model, made_tokenizer())
    read = read_model(tmp_path / "model").model
    again = TagPredictor(
        TorchEngine(read, CPU), read_tokenizer(tmp_path / "model", vocab_size=read.config.encoder.vocab_size)
    )
    assert again.labels == labels
    texts = made_texts(5)
    before = TagPredictor(TorchEngine(model, CPU), made_tokenizer())(texts)
    assert [one.values for one in again(texts)] == [one.values for one in before]
    assert {one.label for found in before for one in found.words} <= set(labels)


def test_plain_labels_make_no_entities() -> None:
    (found,) = TagPredictor(TorchEngine(made_tagger(("ADJ", "NOUN", "VERB")), CPU), made_tokenizer())(
        ["The old boat waited."]
    )
    assert found.entities == ()
    assert {one.label for one in found.words} <= {"ADJ", "NOUN", "VERB"}


def test_a_model_of_another_task_is_refused() -> None:
    with pytest.raises(InputError, match=r"tag needs a model that was trained for it.*bertsmith finetune tag"):
        TagPredictor(TorchEngine(made_model(made_tokenizer().vocab_size), CPU), made_tokenizer())
    with pytest.raises(InputError, match=r"Use: bertsmith classify"):
        TagPredictor(TorchEngine(made_classifier(("a", "b")), CPU), made_tokenizer())
