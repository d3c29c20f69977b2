"""What a comparison is made of, as one frozen config."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from bertsmith.examples.table_config import TableConfig
from bertsmith.foundation.config import Config
from bertsmith.inference.prompting import LABEL, TEXT
from bertsmith.recipes.settings import RuntimeConfig
from bertsmith.text.documents import TextConfig
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.training.config import LengthConfig, Positive

Count = Annotated[int, Field(ge=1)]


class CompareTask(Config):
    """The downstream task."""

    labels: str | None = None
    """A table of labelled texts; where none is given, the task is made out of the corpus."""
    table: TableConfig = TableConfig()
    template: str = f"{TEXT} {LABEL}"
    """How the GPT is prompted: the label whose words fit best behind the text is its answer."""
    most_train_texts: Count = 2000
    most_test_texts: Count = 1000
    epochs: Positive | None = None
    """Passes over the training texts in fine-tuning; where not given, as many as the comparison's minutes allow, or as
    `finetune` makes by itself."""

    @model_validator(mode="after")
    def _template_has_places(self) -> "CompareTask":
        if TEXT not in self.template or not self.template.endswith(LABEL):
            raise ValueError(f"template must hold {TEXT} and end with {LABEL}")
        return self


class CompareConfig(Config):
    """Everything that decides a comparison."""

    sources: tuple[str, ...]
    model: str = "bert-toy"
    """A BERT preset or config.json: the sizes of BERT and GPT. The ELMo has as many parameters."""
    bert_objective: Literal["mlm", "mlm+nsp"] = "mlm"
    max_length: Annotated[int, Field(ge=8)] = 128
    """Most tokens of a sequence, and the positions of BERT and GPT."""
    batch_tokens: Count = 4096
    learning_rate: Positive = 1e-3
    length: LengthConfig = LengthConfig()
    """Of each model's training: steps or passes over the text. Minutes are for the whole comparison."""
    tokenizer_folder: str | None = None
    tokenizer: TokenizerConfig = TokenizerConfig()
    text: TextConfig = TextConfig()
    task: CompareTask = CompareTask()
    prompt: str | None = None
    """What the GPT writes on from; the beginning of a validation sentence where not given."""
    seed: int = 0
    runtime: RuntimeConfig = RuntimeConfig()

    @property
    def written(self) -> dict[str, Any]:
        """Plain values from which the same comparison can be begun again; a size that the text decides is left out."""
        values = self.model_dump(mode="json", exclude_none=True)
        if "vocab_size" not in self.tokenizer.model_fields_set:
            del values["tokenizer"]["vocab_size"]
        return values
