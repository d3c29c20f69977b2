"""The model card: `README.md` of a model folder."""

from typing import Any

from bertsmith.folders.formats import published_class
from bertsmith.model.config import ModelConfig

_PIPELINES = {"bert": "fill-mask", "gpt": "text-generation", "elmo": "feature-extraction"}
_TITLES = {"bert": "A BERT encoder", "gpt": "A causal language model (GPT)", "elmo": "An ELMo of LSTMs"}


def model_card(config: ModelConfig, *, objective: str, max_length: int, record: dict[str, Any]) -> str:
    """What a stranger must know of a pre-trained model, as Markdown with the Hub's front matter.

    Args:
        config: the model.
        objective: what it was trained to do.
        max_length: tokens of a training sequence.
        record: what the run wrote down: sizes, versions, the last validation.
    """
    encoder, heads = config.encoder, config.heads
    metrics = record.get("metrics", {})
    kind = "elmo" if encoder.family == "elmo" else "gpt" if encoder.causal else "bert"
    lines = [
        "---",
        f"library_name: {'bertsmith' if kind == 'elmo' else 'transformers'}",
        f"pipeline_tag: {_PIPELINES[kind]}",
        f"tags: [{kind}, bertsmith]",
        "---",
        "",
        f"# {_TITLES[kind]}, pre-trained from raw text",
        "",
        f"{encoder.num_hidden_layers} layers, hidden size {encoder.hidden_size}, "
        f"{'' if kind == 'elmo' else f'{encoder.num_attention_heads} heads, '}"
        f"{encoder.vocab_size:,} pieces, sequences of at most {max_length} tokens. Objective: {objective}.",
        "",
        "| | |",
        "|---|---|",
        f"| training text | {record.get('train_tokens', 0):,} tokens "
        f"in {record.get('train_documents', 0):,} documents |",
        f"| trained on | {record['tokens']:,} tokens in {record['steps']:,} steps |",
        *(f"| {name} | {value:.4f} |" for name, value in metrics.items() if isinstance(value, float)),
    ]
    if (context_free := record.get("context_free_loss")) is not None:
        lines.append(f"| loss of guessing by frequency alone | {context_free:.4f} |")
    published = published_class(config) is not None
    lines += ["", "## Use", "", "```python", *_usage(kind, published), "```", ""]
    if kind == "elmo":
        lines += ["No class in transformers computes this model; its weights have bertsmith's own names.", ""]
    elif not published:
        lines += [
            f"Its head over the vocabulary (`{heads.mlm_head}`, reading `{heads.mlm_head_input}`) has no class in "
            "transformers. So `config.json` names the encoder alone, and the head lies in "
            "`bertsmith_heads.safetensors`, where bertsmith finds it.",
            "",
        ]
    lines += [
        "## Limits",
        "",
        "It knows the text it was trained on and nothing else, errors and prejudices of that text included.",
        "",
    ]
    return "\n".join(lines)


def _usage(kind: str, published: bool) -> list[str]:
    if kind == "gpt":
        return ["import bertsmith", 'bertsmith.generate("PATH", "How a text begins")']
    if kind == "elmo":
        return [
            "import bertsmith",
            'bertsmith.finetune("classify", "train.csv", model="PATH", out="my-classifier")',
        ]
    if published:
        return [
            "from transformers import pipeline",
            'fill = pipeline("fill-mask", model="PATH")',
            'fill("A text with a [MASK] in it.")',
        ]
    return ["import bertsmith", 'fill = bertsmith.load("PATH")', 'fill("A text with a [MASK] in it.")']
