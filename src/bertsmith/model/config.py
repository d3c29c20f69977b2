"""What a model is: an encoder and the heads on it."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from bertsmith.foundation.config import Config
from bertsmith.model.encoder_config import Count, EncoderConfig, Family, Rate

TaskName = Literal["classify", "multilabel", "regress", "choose", "tag", "answer", "embed"]
TaskHead = Literal["classifier", "token_classifier", "spans"]
Pooling = Literal["mean", "first", "max"]
Share = Annotated[float, Field(ge=0.0, le=1.0)]

_TASK_HEADS: dict[TaskName, TaskHead] = {
    "classify": "classifier",
    "multilabel": "classifier",
    "regress": "classifier",
    "choose": "classifier",
    "tag": "token_classifier",
    "answer": "spans",
}
"""The part of a model that holds a task's weights; an embedder has none beside its encoder's."""
_FEWEST_LABELS: dict[TaskName, int] = {"classify": 2, "multilabel": 1, "tag": 1}
_UNDECIDED_THRESHOLD = 0.5
_UNNAMED_OUTPUTS: dict[TaskName, int] = {"regress": 1, "choose": 1, "answer": 2}


class AnsweringHead(Config):
    """How a model that answers questions was trained to read them, and when it does not answer."""

    overlap: Annotated[int, Field(ge=0)] | None = None
    """Tokens that two windows of a text share; None: by the length of a window."""
    max_question: Count | None = None
    """Tokens of a question that are seen; None: by the length of a window."""
    max_answer: Count = 30
    """Most tokens of an answer."""
    unanswerable: bool = False
    """Whether it was trained on questions without an answer too; else it always answers."""
    no_answer_threshold: Share | None = None
    """It does not answer where the probability of no answer exceeds this; None: 0.5, until validation has decided."""
    scorer: str = "squad"
    """Whose scorer says when its answers are right."""

    @property
    def threshold(self) -> float | None:
        """Probability of no answer above which none is given; None where it always answers."""
        if not self.unanswerable:
            return None
        return _UNDECIDED_THRESHOLD if self.no_answer_threshold is None else self.no_answer_threshold


class HeadsConfig(Config):
    """Which heads stand on the encoder, and how the one over the vocabulary is built."""

    masked_language_model: bool = True
    mlm_head: Literal["transform", "linear"] = "transform"
    """transform: dense, activation, norm, then the vocabulary, as published. linear: the vocabulary at once."""
    mlm_head_input: Literal["last", "all_layers"] = "last"
    """all_layers: the outputs of all layers side by side, [tokens, num_layers x hidden]."""
    tie_embeddings: bool = True
    """Whether the vocabulary projection is the token embedding itself."""
    pooler: bool = False
    next_sentence: bool = False
    sentence_order: bool = False
    task: TaskName | None = None
    """What the model was fine-tuned for. With labels and without a task it is classify."""
    labels: tuple[str, ...] = ()
    """Names of the outputs in their order, where a task has names: classes of texts, or of words."""
    thresholds: tuple[Share, ...] = ()
    """Multilabel: from which score on each label counts as given; none: 0.5 for all."""
    value_scale: tuple[float, float] | None = None
    """Regress, while it is trained: mean and spread that turn the head's output into a value. None: it is the value."""
    value_spread: Annotated[float, Field(gt=0.0)] | None = None
    """Regress, once it is trained: spread of the training values, in whose squares the loss is counted. None: 1."""
    answering: AnsweringHead | None = None
    """Answer: how it was trained; None where that is not known."""
    classifier_dropout: Rate = 0.1
    """Before the task's last projection."""
    classifier_input: Literal["first", "mean"] = "first"
    """What a classifier reads of a sequence: its first token, or the mean of its tokens."""
    windows: bool = False
    """Whether a text that is longer than a sequence is read in overlapping windows, whose scores are averaged."""
    pairs: bool | None = None
    """Whether the texts that it was trained on are pairs; None where that is not known, or the task decides."""
    pooling: Pooling = "mean"
    """What an embedding is made of: the mean of a sequence's tokens, its first, or the largest value of each column."""
    normalize: bool = False
    """Whether an embedding has length one."""

    @model_validator(mode="before")
    @classmethod
    def _labels_alone_classify(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("labels") and values.get("task") is None:
            return values | {"task": "classify"}
        return values

    @model_validator(mode="after")
    def _parts_fit(self) -> "HeadsConfig":
        for name in ("next_sentence", "sentence_order"):
            if getattr(self, name) and not self.pooler:
                raise ValueError(f"{name} reads the pooler's output, so pooler must be true with it")
        return self

    @model_validator(mode="after")
    def _names_fit_the_task(self) -> "HeadsConfig":
        labels, fewest = self.labels, _FEWEST_LABELS.get(self.task, 0) if self.task else 0
        if labels and not fewest:
            raise ValueError(f"labels must be left out of task {self.task}, and they are {', '.join(labels)}")
        if len(set(labels)) != len(labels) or len(labels) < fewest:
            least = ("", "one", "two")[fewest]
            raise ValueError(
                f"labels must be {least} at least and differ for task {self.task}, and they are "
                f"{', '.join(labels) or 'none'}"
            )
        if self.thresholds and self.task != "multilabel":
            raise ValueError("thresholds belong to task multilabel, and to it alone")
        if self.answering is not None and self.task != "answer":
            raise ValueError("answering belongs to task answer, and to it alone")
        for name in ("value_scale", "value_spread"):
            if getattr(self, name) is not None and self.task != "regress":
                raise ValueError(f"{name} belongs to task regress, and to it alone")
        if self.value_scale is not None and not self.value_scale[1] > 0:
            raise ValueError(f"value_scale must have a spread above 0, and it is {self.value_scale[1]}")
        if self.thresholds and len(self.thresholds) != len(labels):
            raise ValueError(
                f"thresholds must be one for each label, and they are {len(self.thresholds)} for {len(labels)}"
            )
        return self

    @property
    def task_head(self) -> TaskHead | None:
        """The model's part that holds the task's own weights; None for none, as in an embedder."""
        return _TASK_HEADS.get(self.task) if self.task else None

    @property
    def num_outputs(self) -> int:
        """Scores that the task's head gives for a sequence or a token; 0 without such a head."""
        return len(self.labels) or (_UNNAMED_OUTPUTS.get(self.task, 0) if self.task else 0)


def has_labels(task: object) -> bool:
    """Whether the outputs of a task have names."""
    return isinstance(task, str) and task in _FEWEST_LABELS


def reads_pooler(family: Family, task: TaskName | None) -> bool:
    """Whether a task's head reads the encoder's pooler and has no layer of its own before its projection.

    The published classes of BERT and ALBERT do so for whole texts, and RoBERTa's for choices alone.
    """
    if family == "roberta":
        return task == "choose"
    return family in ("bert", "albert") and (task is None or _TASK_HEADS.get(task) == "classifier")


class ModelConfig(Config):
    """An encoder and its heads."""

    encoder: EncoderConfig
    heads: HeadsConfig = HeadsConfig()

    @model_validator(mode="after")
    def _heads_fit_the_encoder(self) -> "ModelConfig":
        encoder, heads = self.encoder, self.heads
        if heads.task_head == "classifier" and self.uses_pooler and not heads.pooler:
            raise ValueError(
                f"task {heads.task} needs the pooler in family {encoder.family}, so pooler must be true with it"
            )
        wide = heads.mlm_head == "linear" and encoder.embedding_width != self.vocabulary_input_size
        if heads.masked_language_model and heads.tie_embeddings and wide:
            raise ValueError(
                "tie_embeddings must be false where a linear head reads what is wider than the embedding, and "
                f"{self.vocabulary_input_size} is not {encoder.embedding_width}"
            )
        linear = (heads.mlm_head, heads.mlm_head_input) == ("linear", "last")
        if heads.masked_language_model and encoder.family == "elmo" and not linear:
            raise ValueError("mlm_head must be linear and mlm_head_input last in family elmo")
        return self

    @property
    def vocabulary_input_size(self) -> int:
        """Width of what the vocabulary head reads: of one direction in an ELMo, whose head serves both."""
        encoder = self.encoder
        if encoder.family == "elmo":
            return encoder.embedding_width
        layers = encoder.num_hidden_layers if self.heads.mlm_head_input == "all_layers" else 1
        return layers * encoder.hidden_size

    @property
    def uses_pooler(self) -> bool:
        """Whether a classifier of whole texts reads the encoder's pooler, and has no layer of its own."""
        return reads_pooler(self.encoder.family, self.heads.task)
