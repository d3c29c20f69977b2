"""Embedding texts: one vector each, whatever stands beside them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig, Model, ModelConfig, PackedTokens, new_model
from bertsmith.model.config import Pooling
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import made_model, made_texts, made_tokenizer
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")
POSITIONS = 512
LONG = " ".join(["The old river carried every small boat"] * 60)
SIZE = 16


def _model(pooling: Pooling = "mean", *, normalize: bool = False, positions: int = POSITIONS) -> Model:
    encoder = made_model(made_tokenizer().vocab_size, positions=positions, spread=0.3).config.encoder
    heads = HeadsConfig(masked_language_model=False, task="embed", pooling=pooling, normalize=normalize)
    return new_model(ModelConfig(encoder=encoder, heads=heads), seed=0)


def _embed(pooling: Pooling = "mean", *, normalize: bool = False) -> EmbedPredictor:
    return EmbedPredictor(TorchEngine(_model(pooling, normalize=normalize), CPU), made_tokenizer())


EMBED = _embed()


@torch.no_grad()
def _tokens(text: str) -> np.ndarray:
    encoding = made_tokenizer().encode(text)
    packed = PackedTokens.build(encoding.token_ids, encoding.segment_ids, np.array([0, len(encoding)]))
    return _model().eval().encoder.packed(packed).numpy()


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
def test_a_vector_is_pooled_from_all_tokens_of_the_text_special_ones_included(pooling: Pooling) -> None:
    tokens = _tokens("The old boat.")
    expected = {"mean": tokens.mean(0), "first": tokens[0], "max": tokens.max(0)}[pooling]
    (found,) = _embed(pooling)(["The old boat."])
    assert found.embedding == pytest.approx(expected, abs=1e-6)
    assert found.embedding.dtype == np.float32
    assert (found.text, found.cut) == ("The old boat.", False)
    (unit,) = _embed(pooling, normalize=True)(["The old boat."])
    assert unit.embedding == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


def test_a_vector_is_the_same_alone_and_beside_300_words() -> None:
    beside = " ".join(made_texts(40, sentences=(1, 3)))
    assert len(beside.split()) >= 300
    for predictor in (EMBED, _embed("max"), _embed("first")):
        alone = predictor.vectors(["Rain."])[0]
        assert predictor.vectors(["Rain.", beside])[0] == pytest.approx(alone, abs=1e-5)
        assert predictor.vectors([beside, "Rain."])[1] == pytest.approx(alone, abs=1e-5)


def test_vectors_do_not_depend_on_how_many_are_made_at_once() -> None:
    texts = made_texts(33, sentences=(1, 6))
    together = EMBED.vectors(texts)
    one_by_one = np.stack([EMBED.vectors([text])[0] for text in texts])
    assert together == pytest.approx(one_by_one, abs=1e-5)
    assert EMBED.vectors(texts[::-1])[::-1] == pytest.approx(together, abs=1e-5)


def test_an_empty_list_gives_a_matrix_without_rows() -> None:
    found = EMBED.vectors([])
    assert (found.shape, found.dtype) == ((0, SIZE), np.float32)
    assert EMBED([]) == []


@pytest.mark.parametrize("texts", [[""], ["  \n"], ["The boat.", ""]])
def test_a_blank_text_is_refused_by_its_number(texts: list[str]) -> None:
    for call in (EMBED, EMBED.vectors):
        with pytest.raises(InputError, match=rf"must not be blank.*text {len(texts)}:"):
            call(texts)


def test_a_single_string_is_one_text_also_if_it_is_blank() -> None:
    assert np.array_equal(EMBED("Rain.")[0].embedding, EMBED.vectors("Rain.")[0])
    with pytest.raises(InputError, match="blank"):
        EMBED("")


def test_a_text_whose_characters_all_vanish_has_a_finite_vector() -> None:
    found = EMBED.vectors(["\u200b", "😊", "[SEP] [CLS]", "\ud800 half a pair"])
    assert np.isfinite(found).all()


def test_a_pair_is_refused() -> None:
    with pytest.raises(InputError, match=r"stand alone.*text 2, a pair"):
        EMBED(["Rain.", ("Rain.", "Snow.")])


def test_plain_values_hold_the_vector_as_numbers() -> None:
    (found,) = EMBED(["Rain."])
    values = json.loads(json.dumps(found.values))
    assert list(values) == ["text", "embedding", "cut"]
    assert np.array_equal(np.array(values["embedding"], np.float32), found.embedding)
    assert (len(values["embedding"]), values["cut"]) == (SIZE, False)


@pytest.mark.parametrize("side", ["head", "tail"])
def test_a_long_text_is_cut_and_said(tmp_path: Path, side: str) -> None:
    made_tokenizer().seeing(16, "tail" if side == "tail" else "head").save(tmp_path)
    embed = EmbedPredictor(TorchEngine(_model(), CPU), Tokenizer.from_folder(tmp_path))
    assert embed.max_length == 16
    words = LONG.split()
    part = " ".join(words[-40:] if side == "tail" else words[:40])
    found, kept = embed([LONG, part])
    assert found.cut
    assert found.embedding == pytest.approx(kept.embedding, abs=1e-6)


def test_a_model_that_reads_windows_for_another_task_cuts_here() -> None:
    labelled = made_classifier(("a", "b"), positions=64)
    heads = labelled.config.heads.model_copy(update={"windows": True})
    model = new_model(ModelConfig(encoder=labelled.config.encoder, heads=heads), seed=0)
    (found,) = EmbedPredictor(TorchEngine(model, CPU), made_tokenizer())([LONG])
    assert found.cut


def test_any_encoder_embeds_by_the_mean_and_says_so() -> None:
    plain = EmbedPredictor(
        TorchEngine(made_model(made_tokenizer().vocab_size, positions=POSITIONS, spread=0.3), CPU), made_tokenizer()
    )
    assert plain.vectors(["The old boat."]).shape == (1, SIZE)
    (note,) = plain.notes
    assert "not to embed" in note
    assert "mean of its tokens" in note
    (note,) = EmbedPredictor(TorchEngine(made_classifier(("a", "b")), CPU), made_tokenizer()).notes
    assert "trained to classify" in note
    assert EMBED.notes == ()


def test_embedding_leaves_a_model_in_training_as_it_was() -> None:
    encoder = made_model(made_tokenizer().vocab_size, dropout=0.5).config.encoder
    heads = HeadsConfig(masked_language_model=False, task="embed")
    model = new_model(ModelConfig(encoder=encoder, heads=heads), seed=0).train()
    embed = EmbedPredictor(TorchEngine(model, CPU), made_tokenizer())
    assert np.array_equal(embed.vectors(["Rain."]), embed.vectors(["Rain."]))
    assert model.training
