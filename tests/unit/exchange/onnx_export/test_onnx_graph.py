"""The graph of a model: what it takes and gives, how its weights are kept, what is not exported."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from bertsmith.exchange.onnx_export.build import exported_config, model_graph
from bertsmith.exchange.onnx_export.graph import IR_VERSION, OPSET, Graph, save_graph
from bertsmith.foundation.errors import InputError
from bertsmith.inference.onnx_engine import OnnxEngine, open_session
from bertsmith.inference.running import TokenWindow
from bertsmith.model import EncoderConfig, HeadsConfig, Model, ModelConfig, new_model
from made_corpora import made_model, made_tokenizer
from made_language_models import made_elmo, made_gpt
from made_predictors import TASKS, made_task_model

VOCABULARY = made_tokenizer().vocab_size


def _axes(value: onnx.ValueInfoProto) -> list[str | int]:
    return [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]


def _albert(**heads: Any) -> Model:
    encoder = EncoderConfig(
        family="albert",
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
        embedding_size=8,
        num_hidden_groups=1,
        max_position_embeddings=32,
    )
    return new_model(ModelConfig(encoder=encoder, heads=HeadsConfig.parse(heads, where="a test")), seed=0)


@pytest.mark.parametrize(
    ("task", "outputs"),
    [
        ("classify", {"logits": ["batch", 2]}),
        ("regress", {"logits": ["batch", 1]}),
        ("choose", {"logits": ["batch", 1]}),
        ("tag", {"logits": ["batch", "sequence", 3]}),
        ("answer", {"start_logits": ["batch", "sequence"], "end_logits": ["batch", "sequence"]}),
        ("embed", {"last_hidden_state": ["batch", "sequence", 16], "sentence_embedding": ["batch", 16]}),
    ],
)
def test_inputs_and_outputs_have_names_and_open_axes(task: str, outputs: dict[str, Any]) -> None:
    graph = model_graph(made_task_model(task)).graph
    assert {one.name: _axes(one) for one in graph.input} == {
        name: ["batch", "sequence"] for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    assert {one.name: _axes(one) for one in graph.output} == outputs


def test_a_masked_language_model_scores_the_vocabulary_and_one_without_segments_takes_none() -> None:
    (logits,) = model_graph(made_model(VOCABULARY)).graph.output
    assert (logits.name, _axes(logits)) == ("logits", ["batch", "sequence", VOCABULARY])
    encoder = made_model(VOCABULARY).config.encoder.model_copy(update={"type_vocab_size": 1})
    graph = model_graph(new_model(ModelConfig(encoder=encoder), seed=0)).graph
    assert [one.name for one in graph.input] == ["input_ids", "attention_mask"]


def test_a_graph_is_valid_and_says_which_version_of_the_format_it_has() -> None:
    model = model_graph(made_task_model("classify"), version="1.2.3")
    onnx.checker.check_model(model, full_check=True)
    assert (model.ir_version, model.opset_import[0].version) == (IR_VERSION, OPSET)
    assert (model.producer_name, model.producer_version) == ("bertsmith", "1.2.3")


def test_what_is_tied_or_serves_several_times_is_kept_once() -> None:
    model = _albert()
    sizes = {one.name: int(np.prod(one.dims)) for one in model_graph(model).graph.initializer}
    matrices = {name: size for name, size in sizes.items() if name.endswith(".weight") and "norm" not in name}
    own = sum(weight.numel() for name, weight in model.state_dict().items() if weight.ndim == 2)
    assert sum(matrices.values()) == own
    apart = {one.name for one in model_graph(model, projection_apart=True).graph.initializer}
    assert apart - set(sizes) == {"vocabulary/projection.weight"}


def test_weights_too_large_for_one_file_lie_beside_it(tmp_path: Path) -> None:
    model = made_model(VOCABULARY)
    save_graph(model_graph(model), tmp_path / "whole.onnx")
    save_graph(model_graph(model), tmp_path / "parted.onnx", largest_file=1000)
    assert {file.name for file in tmp_path.iterdir()} == {"whole.onnx", "parted.onnx", "parted.onnx.data"}
    ids = np.arange(5, 12)
    window = TokenWindow(ids, np.zeros_like(ids))
    whole, parted = (
        OnnxEngine(open_session(tmp_path / name), model.config, "fp32").vocabulary([window], [[3]])[0]
        for name in ("whole.onnx", "parted.onnx")
    )
    np.testing.assert_array_equal(whole, parted)


def test_a_graph_keeps_a_weight_of_one_name_once_and_nothing_that_no_output_needs() -> None:
    graph = Graph()
    for _ in range(2):
        assert graph.weight("a", np.ones(3)) == "a"
        assert graph.integers(3, 1) == graph.integers(3, 1)
    graph.add("Neg", graph.weight("unused", np.ones(3)), name="nobody")
    graph.add("Reshape", "a", graph.integers(3, 1), name="b")
    output = onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [3, 1])
    made = graph.model([], [output], name="small", version="").graph
    assert [node.name for node in made.node] == ["b"]
    assert [weight.name for weight in made.initializer] == ["a", "integers/3_1"]


@pytest.mark.parametrize("task", TASKS)
def test_every_node_and_weight_of_a_graph_is_read(task: str) -> None:
    graph = model_graph(made_task_model(task)).graph
    read = {name for node in graph.node for name in node.input} | {one.name for one in graph.output}
    assert all(read.intersection(node.output) for node in graph.node)
    assert {weight.name for weight in graph.initializer} <= read


def test_an_exported_config_has_the_head_of_its_job_and_no_other() -> None:
    language = exported_config(made_model(VOCABULARY, pairs=True).config).heads
    assert language.masked_language_model
    assert not language.pooler
    assert not language.next_sentence
    classifier = exported_config(made_task_model("classify").config).heads
    assert (classifier.task, classifier.pooler, classifier.masked_language_model) == ("classify", True, False)


def test_models_that_no_predictor_would_run_are_refused() -> None:
    with pytest.raises(InputError, match=r"with attention.*an ELMo"):
        exported_config(made_elmo().config)
    with pytest.raises(InputError, match=r"causal language model.*bertsmith generate"):
        exported_config(made_gpt().config)
