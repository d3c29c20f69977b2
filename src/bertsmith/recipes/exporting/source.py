"""The model that is exported, with the predictor of its job."""

from dataclasses import dataclass
from pathlib import Path

from bertsmith.engine.device import Device
from bertsmith.exchange.onnx_export.build import exported_config
from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.folders.sentence_transformers import refuse_foreign_modules
from bertsmith.folders.tensors import weight_sums
from bertsmith.inference.engine import Engine, Job, job_of
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.onnx_engine import OnnxEngine, open_session
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model.config import ModelConfig
from bertsmith.model.heads import Model
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.recipes.judging import AnyPredictor
from bertsmith.recipes.predict import model_folder_of
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class ExportSource:
    """What is exported."""

    model: Model
    tokenizer: Tokenizer
    config: ModelConfig
    """Of what is exported: with one head."""
    weights: dict[str, str]
    """SHA-256 of the files that the model's weights lie in, by name."""

    @property
    def job(self) -> Job:
        """What the model is for."""
        return job_of(self.config)

    @property
    def exact(self) -> TorchEngine:
        """The model itself."""
        return TorchEngine(self.model, Device("cpu", "fp32"))

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence that predictors make."""
        return self.tokenizer.longest_sequence(self.config.encoder.num_positions)

    def graph(self, path: Path, precision: str) -> OnnxEngine:
        """A graph of the model, out of a file."""
        return OnnxEngine(open_session(path), self.config, precision)

    def predictor(self, engine: Engine) -> AnyPredictor:
        """A predictor of the job."""
        if self.job == "fill":
            return FillPredictor(engine, self.tokenizer)
        return TASKS[self.job].predictor(engine, self.tokenizer)


def open_export_source(folder: str | Path) -> ExportSource:
    """Open a model folder, or a finished run.

    Raises:
        InputError: if it is none, or its model is of a kind that is not exported.
    """
    path = model_folder_of(folder)
    model = read_model(path).model.eval()
    tokenizer = read_tokenizer(path, vocab_size=model.config.encoder.vocab_size)
    config = exported_config(model.config)
    if job_of(config) == "embed":
        refuse_foreign_modules(path, tokenizer)
    return ExportSource(model, tokenizer, config, weight_sums(path))
