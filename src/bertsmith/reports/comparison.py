"""`comparison.md`: the reference page's table of BERT, GPT and ELMo, each row with what was measured beside it."""

from collections.abc import Sequence
from typing import Any

KINDS = ("bert", "gpt", "elmo")
WAYS = {"finetuned": "fine-tuned", "frozen": "frozen features", "prompt": "by prompt"}
"""How the downstream task is done: the name in the values, and for people."""

_Values = dict[str, Any]
_NEVER = "no"


def comparison_page(values: _Values) -> str:
    """The page.

    Args:
        values: what `comparison.json` holds.
    """
    models = [values["models"][kind] for kind in KINDS]
    corpus = values["corpus"]
    lines = [
        "# BERT, GPT and ELMo on the same text",
        "",
        f"Text: {', '.join(_cell(source) for source in values['sources'])}: {corpus['train_tokens']:,} tokens to train "
        f"on, {corpus['validation_tokens']:,} to validate on, one vocabulary of {corpus['vocab_size']:,} pieces.",
        _budget(models),
        "",
        "## The documents' table, measured",
        "",
        *_table(["", *(part for model in models for part in (model["name"], "measured"))], _document_rows(models)),
        "",
        *_numbers(models),
        *_task(values["task"], models),
        *_writing(models[1]["writing"]),
        *_reading(models),
        "![losses, scores and directions](comparison.png)",
        "",
    ]
    return "\n".join(lines)


def _numbers(models: Sequence[_Values]) -> list[str]:
    return [
        "## In numbers",
        "",
        *_table(["", *(model["name"] for model in models)], _number_rows(models)),
        "",
        "Losses of training are each of its own objective and do not compare. The perplexity does in part: it is of "
        f"the same {models[0]['prediction']['scored_tokens']:,} validation tokens. The GPT's is of each token given "
        "all before it. The ELMo's is the mean of both directions. BERT's is a pseudo-perplexity: each token masked by "
        "itself and guessed from all others, which is easier.",
        "",
    ]


def _task(task: _Values, models: Sequence[_Values]) -> list[str]:
    mix = ", ".join(f"{weight:.2f}" for weight in models[2]["frozen"]["layer_weights"])
    return [
        "## A downstream task",
        "",
        f"Task: {_cell(task['description'])}. {len(task['labels'])} labels ({_shortened(task['labels'])}), "
        f"{task['train_texts']:,} texts to learn from, {task['test_texts']:,} to be judged by. "
        f"Always naming the commonest label: {task['commonest_share']:.1%}.",
        "",
        *_table(["accuracy", *(model["name"] for model in models)], _score_rows(models)),
        "",
        "Fine-tuned: a classifier on the encoder, all weights trained; BERT's reads the first token, the others' the "
        "mean of all. Frozen features: the encoder left as it is, a linear classifier over a learned mix of its layers "
        f"(ELMo's mix, from the embedding up: {mix}). By prompt: nothing trained, the label whose words the GPT finds "
        f"likeliest in “{_cell(models[1]['prompt']['template'])}”.",
        "",
    ]


def _writing(writing: _Values) -> list[str]:
    return [
        "## What the GPT writes",
        "",
        f"Prompt: “{_cell(writing['prompt'])}”. Drawn at temperature {writing['temperature']:g} from the "
        f"{writing['top_k']} likeliest tokens.",
        "",
        f"> {_cell(writing['text'])}",
        "",
        "BERT and ELMo do not write: BERT fills gaps and must be told where they are and how many tokens they hold, "
        "and of an ELMo both directions are used, one of which has read what is yet to be written.",
        "",
    ]


def _reading(models: Sequence[_Values]) -> list[str]:
    heading = ["", "a later token moves an earlier vector", "an earlier token moves a later vector"]
    return [
        "## Which way they read",
        "",
        f"Sentence: “{' '.join(_cell(token) for token in models[0]['direction']['tokens'])}”. Each token in turn was "
        "replaced by another, and every vector looked at: the largest movement, as a share of a vector's length.",
        "",
        *_table(heading, _reach_rows(models)),
        "",
    ]


def _budget(models: Sequence[_Values]) -> str:
    steps = {model["steps"] for model in models}
    sees_pairs = models[0]["objective"] != "mlm"
    if len(steps) == 1 and not sees_pairs:
        return f"Each was trained for {steps.pop():,} steps over the same sequences."
    if len(steps) == 1:
        return (
            f"Each was trained for {steps.pop():,} steps of about as many tokens: GPT and ELMo over the same "
            "sequences, BERT over pairs made of the same text."
        )
    return "Each was trained for the same time, so the numbers of steps and tokens differ."


def _document_rows(models: Sequence[_Values]) -> list[list[str]]:
    measured = {
        "Architecture": _architecture,
        "Direction": _direction,
        "Pre-training": _pretraining,
        "Fine-tuning": _use,
        "Context window": _context,
    }
    documents = {
        "Architecture": ("Encoder only", "Decoder only", "BiLSTM"),
        "Direction": ("Bidirectional", "Left-to-right", "Bidirectional"),
        "Pre-training": ("MLM + NSP", "Language modeling", "Language modeling"),
        "Fine-tuning": ("Add task head", "Prompting", "Feature extraction"),
        "Context window": ("512 tokens", "Variable", "Variable"),
        "Best for": ("Understanding", "Generation", "Feature extraction"),
    }
    rows: list[list[str]] = []
    for feature, texts in documents.items():
        look = measured.get(feature)
        cells = [_best_for(models, model) if look is None else look(model) for model in models]
        rows.append([feature, *(part for pair in zip(texts, cells, strict=True) for part in pair)])
    return rows


def _architecture(model: _Values) -> str:
    if model["family"] == "elmo":
        parts = f"{model['layers']} LSTM layers a direction, each {model['hidden_size'] // 2} wide"
    else:
        parts = f"{model['layers']} layers, {model['hidden_size']} wide, {model['heads']} heads"
    return f"{parts}: {model['parameters']:,} parameters"


def _direction(model: _Values) -> str:
    found = model["direction"]
    seen = {
        (True, True): "a change moves vectors before and behind it",
        (False, True): "a change moves vectors behind it alone",
        (True, False): "a change moves vectors before it alone",
        (False, False): "a change moves no other vector",
    }[found["sees_later"], found["sees_earlier"]]
    if "forward_half" not in found:
        return seen
    apart = not found["forward_half"]["sees_later"] and not found["backward_half"]["sees_earlier"]
    return f"{seen}; each half of a vector {'in its own direction alone' if apart else 'in both directions'}"


def _pretraining(model: _Values) -> str:
    losses = {name.removesuffix("_loss"): value for name, value in model["metrics"].items() if name.endswith("_loss")}
    shown = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
    return (
        f"objective {model['objective']}: validation loss {shown}; perplexity {model['prediction']['perplexity']:.1f}"
    )


def _use(model: _Values) -> str:
    scores = _scores(model)
    return ", ".join(f"{WAYS[way]} {score:.1%}" for way, score in scores.items() if score is not None)


def _context(model: _Values) -> str:
    found = model["context"]
    if found["longest"] is not None:
        return f"{found['longest']} tokens, the positions it has here"
    return f"no limit: {found['tried']:,} tokens read" if found["finite"] else f"fails at {found['tried']:,} tokens"


def _best_for(models: Sequence[_Values], model: _Values) -> str:
    """In what it is the best of the three here."""
    best: list[str] = []
    if model["prediction"]["perplexity"] == min(other["prediction"]["perplexity"] for other in models):
        best.append("guessing a token")
    for way, name in WAYS.items():
        scores = [score for other in models if (score := _scores(other)[way]) is not None]
        if len(scores) > 1 and _scores(model)[way] == max(scores):
            best.append(f"the task, {name}")
    if "writing" in model:
        best.append("writing: the only one that does")
    if model["tokens_per_second"] == max(other["tokens_per_second"] for other in models):
        best.append("speed of training")
    return "; ".join(best) or "nothing here"


def _scores(model: _Values) -> dict[str, float | None]:
    return {way: model[way]["accuracy"] if way in model else None for way in WAYS}


def scores_for_people(model: _Values) -> dict[str, float | None]:
    """Accuracy of a model by the way in which the task was done; None where it does not do it that way."""
    return {WAYS[way]: score for way, score in _scores(model).items()}


def _number_rows(models: Sequence[_Values]) -> list[list[str]]:
    rows = {
        "parameters": [f"{model['parameters']:,}" for model in models],
        "steps": [f"{model['steps']:,}" for model in models],
        "tokens trained on": [f"{model['tokens']:,}" for model in models],
        "tokens a second in training": [f"{model['tokens_per_second']:,.0f}" for model in models],
        "validation loss of its objective": [f"{model['metrics']['loss']:.4f}" for model in models],
        "perplexity": [f"{model['prediction']['perplexity']:.2f}" for model in models],
    }
    return [[name, *cells] for name, cells in rows.items()]


def _score_rows(models: Sequence[_Values]) -> list[list[str]]:
    return [
        [name, *("–" if (score := _scores(model)[way]) is None else f"{score:.1%}" for model in models)]
        for way, name in WAYS.items()
    ]


def _reach_rows(models: Sequence[_Values]) -> list[list[str]]:
    rows: list[list[str]] = []
    for model in models:
        found = {model["name"]: model["direction"]}
        for half in ("forward_half", "backward_half"):
            if half in model["direction"]:
                found[f"{model['name']}, {half.replace('_', ' ')}"] = model["direction"][half]
        rows += [
            [
                name,
                _moved(reach["later_to_earlier"], reach["sees_later"]),
                _moved(reach["earlier_to_later"], reach["sees_earlier"]),
            ]
            for name, reach in found.items()
        ]
    return rows


def _moved(largest: float, is_seen: bool) -> str:
    return f"yes, {largest:.3f}" if is_seen else _NEVER


def _shortened(labels: Sequence[str], most: int = 8) -> str:
    return ", ".join(_cell(label) for label in labels[:most]) + (" …" if len(labels) > most else "")


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heading)} |",
        f"|{'---|' * len(heading)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _cell(text: str) -> str:
    """Text of the data as plain text in Markdown: on one line, and nothing in it is markup."""
    flat = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in flat)
