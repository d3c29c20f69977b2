"""The floor counts what a model multiplies, and nothing else."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bertsmith.batches.batch import Batch
from bertsmith.engine.rates import MachineRates
from bertsmith.kernels import library
from bertsmith.kernels.library import Kernels
from bertsmith.model import (
    Dropout,
    EncoderConfig,
    HeadsConfig,
    ModelConfig,
    PackedTokens,
    RotaryConfig,
    new_model,
    preset,
)
from bertsmith.model.build import meta_model, num_parameters
from bertsmith.model.like_size import elmo_of_like_size
from bertsmith.objectives.bidirectional_lstm import BidirectionalLanguageModel
from bertsmith.objectives.causal import CausalLanguageModel
from bertsmith.objectives.choice import Choice
from bertsmith.objectives.classification import Classification
from bertsmith.objectives.embedding import InBatchNegatives
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.report import Objective
from bertsmith.objectives.sentence_pairs import MaskedLanguageModelWithPairs
from bertsmith.objectives.tagging import Tagging
from bertsmith.planning.floor import StepWork, encoder_operations, head_operations, work_of_step
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.muon import orthogonal

LENGTH, SEQUENCES = 16, 3
LENGTHS = np.full(SEQUENCES, LENGTH)
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"family": "roberta", "pad_token_id": 1, "max_position_embeddings": 66, "type_vocab_size": 1},
    "albert": {"family": "albert", "embedding_size": 8, "num_hidden_groups": 1},
    "distilbert": {"family": "distilbert", "type_vocab_size": 0},
    "modern": {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig(global_every=1)},
}


@pytest.fixture(autouse=True)
def _torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernels multiply, torch does not count."""
    monkeypatch.setattr(library, "kernels", lambda: Kernels(None, "these tests go by torch alone"))


def _config(heads: HeadsConfig | None = None, **changes: Any) -> ModelConfig:
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 24, "max_position_embeddings": 64}
    return ModelConfig(encoder=EncoderConfig.parse(sizes | changes, where="a test"), heads=heads or HeadsConfig())


def _packed(lengths: np.ndarray = LENGTHS) -> PackedTokens:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.random.default_rng(0).integers(0, 50, starts[-1])
    return PackedTokens.build(ids, np.zeros_like(ids), starts)


def _batch(**more: Any) -> Batch:
    places = torch.arange(0, SEQUENCES * LENGTH, 7)
    return Batch(_packed(), places, places % 50, len(places), **more)


@torch.no_grad()
def _counted(run: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_multiplies_what_torch_counts(kind: str) -> None:
    # Attention by the book, all of whose products torch counts.
    model = new_model(_config(**KINDS[kind]), seed=0, attention="recording").eval()
    found = encoder_operations(model.config.encoder, LENGTHS)
    assert sum(found.values()) == _counted(lambda: model.encoder.packed(_packed()))
    assert ("embedding" in found) == (kind == "albert")


def test_an_elmo_multiplies_its_gates() -> None:
    model = new_model(elmo_of_like_size(_config()), seed=0).eval()
    width = model.config.encoder.embedding_width
    weights = sum(weight.numel() for name, weight in model.encoder.named_parameters() if ".weight_" in name)
    assert weights == 2 * 2 * 8 * width**2
    assert encoder_operations(model.config.encoder, LENGTHS) == {"recurrence": 2 * SEQUENCES * LENGTH * weights}


@pytest.mark.parametrize(
    "reach", [{"causal": True}, KINDS["modern"] | {"rotary": RotaryConfig(global_every=2, window=6)}]
)
def test_only_keys_that_a_query_sees_are_counted(reach: dict[str, Any]) -> None:
    config = _config(**reach).encoder
    lengths = np.array([1, 3, 4, 5, 16, 30])
    pairs = 0
    for layer in range(config.num_hidden_layers):
        for length in lengths:
            distance = np.arange(length)[None, :] - np.arange(length)[:, None]
            seen = distance <= 0 if config.causal else np.full_like(distance, True, dtype=bool)
            if config.rotary is not None and layer % config.rotary.global_every:
                seen &= np.abs(distance) <= 3
            pairs += int(seen.sum())
    linear = config.num_hidden_layers * 2 * int(lengths.sum()) * 4 * config.hidden_size**2
    assert encoder_operations(config, lengths)["attention"] == linear + 4 * config.hidden_size * pairs


@pytest.mark.parametrize(
    ("heads", "changes"),
    [
        (HeadsConfig(), {}),
        (HeadsConfig(mlm_head="linear"), {}),
        (HeadsConfig(mlm_head="linear", mlm_head_input="all_layers", tie_embeddings=False), {}),
        (HeadsConfig(), KINDS["albert"]),
    ],
)
def test_the_vocabulary_is_multiplied_at_the_selected_places_alone(heads: HeadsConfig, changes: dict[str, Any]) -> None:
    model = new_model(_config(heads, **changes), seed=0).eval()
    head, selected = model.masked_language_model, 7
    assert head is not None
    hidden = torch.zeros(selected, model.config.vocabulary_input_size)
    assert head_operations(model.config, LENGTHS, {"mlm": selected}) == _counted(lambda: head(hidden))


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "modern"])
@pytest.mark.parametrize("task", ["classify", "choose", "tag", "answer"])
def test_a_tasks_head_multiplies_what_torch_counts(family: str, task: str) -> None:
    labels = ("dry", "wet", "cold") if task in ("classify", "tag") else ()
    pools = (family == "bert" and task in ("classify", "choose")) or (family, task) == ("roberta", "choose")
    heads = HeadsConfig.parse(
        {"masked_language_model": False, "task": task, "labels": labels, "pooler": pools}, where="a test"
    )
    model = new_model(_config(heads, **KINDS[family]), seed=0).eval()
    hidden, packed = torch.zeros(SEQUENCES * LENGTH, 16), _packed()
    runs = {
        "classify": lambda: model.classify(hidden, packed),
        "choose": lambda: model.classify(hidden, packed),
        "tag": lambda: model.tag(hidden),
        "answer": lambda: model.answer_spans(hidden),
    }
    assert head_operations(model.config, LENGTHS, {task: 1}) == _counted(runs[task])


def test_heads_over_pairs_read_the_pooler() -> None:
    config = _config(HeadsConfig(pooler=True, next_sentence=True))
    alone = head_operations(config, LENGTHS, {"mlm": 7})
    assert head_operations(config, LENGTHS, {"mlm": 7, "nsp": 3}) - alone == 2 * 3 * (16 * 16 + 16 * 2)


@pytest.mark.parametrize(
    ("objective", "heads", "changes", "rows"),
    [
        (MaskedLanguageModel(), HeadsConfig(), {}, 7),
        (CausalLanguageModel(), HeadsConfig(), {"causal": True}, SEQUENCES * (LENGTH - 1)),
        (
            BidirectionalLanguageModel(),
            HeadsConfig(mlm_head="linear"),
            {"family": "elmo"},
            2 * SEQUENCES * (LENGTH - 1),
        ),
    ],
)
def test_each_language_model_projects_what_it_predicts(
    objective: Objective, heads: HeadsConfig, changes: dict[str, Any], rows: int
) -> None:
    if changes.get("family") == "elmo":
        changes = {"family": "elmo", "type_vocab_size": 0, "embedding_size": 8, "num_attention_heads": 1}
    model = meta_model(_config(heads, **changes))
    assert model.masked_language_model is not None
    width = model.masked_language_model.projection.shape[1]
    transform = 16 * 16 if heads.mlm_head == "transform" else 0
    found = work_of_step(model, [_batch()], objective, OptimizerConfig())
    assert found.operations["head_and_loss"] == 3 * 2 * rows * (transform + width * 50)


def test_a_step_goes_three_times_the_way_of_its_forward_pass_and_micro_batches_add_up() -> None:
    model = meta_model(_config())
    forward = encoder_operations(model.config.encoder, LENGTHS)
    for count in (1, 2):
        found = work_of_step(model, [_batch()] * count, MaskedLanguageModel(), OptimizerConfig()).operations
        assert found["attention"] == 3 * count * forward["attention"]
        assert found["feed_forward"] == 3 * count * forward["feed_forward"]


def test_a_frozen_encoder_goes_forward_alone_and_is_not_updated() -> None:
    heads = HeadsConfig(masked_language_model=False, pooler=True, labels=("dry", "wet"))
    model = meta_model(_config(heads))
    model.encoder.requires_grad_(False)
    batch = _batch(labels=torch.zeros(SEQUENCES, dtype=torch.int64))
    found = work_of_step(model, [batch], Classification(), OptimizerConfig())
    forward = encoder_operations(model.config.encoder, LENGTHS)
    assert {part: found.operations[part] for part in forward} == forward
    assert found.operations["head_and_loss"] == 2 * head_operations(model.config, LENGTHS, {"classify": SEQUENCES})
    assert found.optimizer_bytes == 7 * 4 * (16 * 16 + 16 + 16 * 2 + 2)


def test_what_has_no_weights_of_its_own_multiplies_nothing_in_its_head() -> None:
    model = meta_model(_config(HeadsConfig(masked_language_model=False, task="embed")))
    groups = torch.tensor([0, 2])
    found = work_of_step(model, [_batch(group_starts=groups)], InBatchNegatives(), OptimizerConfig())
    assert found.operations["head_and_loss"] == 0


@pytest.mark.parametrize(
    ("objective", "heads", "more"),
    [
        (
            MaskedLanguageModelWithPairs("nsp"),
            HeadsConfig(pooler=True, next_sentence=True),
            {"pair_labels": torch.zeros(3, dtype=torch.int64)},
        ),
        (
            Choice(),
            HeadsConfig(masked_language_model=False, pooler=True, task="choose"),
            {"group_starts": torch.tensor([0, 3])},
        ),
        (
            Tagging(),
            HeadsConfig(masked_language_model=False, task="tag", labels=("O", "B")),
            {"labels": torch.zeros(SEQUENCES * LENGTH, dtype=torch.int64)},
        ),
    ],
)
def test_every_objective_is_known(objective: Objective, heads: HeadsConfig, more: dict[str, Any]) -> None:
    found = work_of_step(meta_model(_config(heads)), [_batch(**more)], objective, OptimizerConfig())
    assert found.operations["head_and_loss"] > 0


def test_adam_moves_seven_numbers_a_weight() -> None:
    model = meta_model(_config())
    found = work_of_step(model, [_batch()], MaskedLanguageModel(), OptimizerConfig())
    assert (found.optimizer_bytes, found.optimizer_operations) == (7 * 4 * num_parameters(model), 0)


@pytest.mark.parametrize("kind", ["bert", "modern"])
def test_muon_moves_less_and_multiplies_what_torch_counts(kind: str) -> None:
    model = meta_model(_config(**KINDS[kind]))
    found = work_of_step(model, [_batch()], MaskedLanguageModel(), OptimizerConfig(matrices="muon"))
    of_muon = {name: weight for name, weight in model.named_parameters() if ".layers." in name and weight.ndim == 2}
    assert found.optimizer_bytes == 4 * (
        7 * num_parameters(model) - 2 * sum(weight.numel() for weight in of_muon.values())
    )
    parts = {".query_key_value.weight": 3, ".feed_forward.up.weight": 2 if kind == "modern" else 1}
    matrices = [
        torch.zeros(matrix.shape)
        for name, weight in of_muon.items()
        for matrix in weight.chunk(next((count for end, count in parts.items() if name.endswith(end)), 1))
    ]
    counted = [_counted(lambda matrix=matrix: orthogonal(matrix[None])) for matrix in matrices]
    assert found.optimizer_operations == sum(counted)


def test_seconds_are_work_over_rates() -> None:
    work = StepWork({"attention": 600, "head_and_loss": 300}, 100, 50)
    rates = MachineRates(operations_per_second=100.0, bf16_operations_per_second=200.0, bytes_per_second=10.0)
    assert work.seconds(rates) == {"attention": 6.0, "head_and_loss": 3.0, "optimizer": 10.25}


def test_the_floor_of_the_toy_is_what_was_published_of_it() -> None:
    """By hand: 32 sequences of 128 tokens, 19 of them selected, over 64,000 pieces."""
    config = preset("bert-toy", vocab_size=64_000, dropout=Dropout())
    model = meta_model(ModelConfig(encoder=config))
    lengths = np.full(32, 128)
    places = torch.arange(32 * 19)
    batch = Batch(_packed(lengths), places, places % 50, len(places))
    found = work_of_step(model, [batch], MaskedLanguageModel(), OptimizerConfig())
    encoder = 3 * 32 * 128 * 4 * (2 * 128 * (4 * 128 + 2 * 512) + 4 * 128 * 128)
    assert found.operations["attention"] + found.operations["feed_forward"] == encoder
    assert found.operations["head_and_loss"] == 3 * 32 * 19 * 2 * (128 * 128 + 128 * 64_000)
