"""What sentence-transformers keeps beside a model's weights: how its tokens become one vector, and how long a text is.

A folder of an embedder opens there as it is, and a folder from there opens here with the pooling it was saved with.
"""

import json
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_json
from bertsmith.model.config import HeadsConfig, ModelConfig, Pooling
from bertsmith.tokenization.tokenizer import Tokenizer

MODULES = "modules.json"
SENTENCES = "config_sentence_transformers.json"
TRANSFORMER = "sentence_bert_config.json"
POOLING = "1_Pooling/config.json"
SENTENCE_FILES = (MODULES, SENTENCES, TRANSFORMER, POOLING)
"""Everything that is written, and all that is read except what older programs called otherwise."""
_OLD_TRANSFORMERS = tuple(
    f"sentence_{name}_config.json" for name in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta")
)
_TYPES = "sentence_transformers.models."
"""Old and new versions know the modules by this name; the new ones have another of their own too."""
_MODES: dict[str, Pooling] = {"mean": "mean", "cls": "first", "max": "max"}
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class SentenceModules:
    """What a folder says of embeddings.

    Attributes:
        pooling: what is taken of a text's tokens.
        normalize: whether the vector gets length one.
        max_length: most tokens of a text; None where the tokenizer and the model alone say so.
        lowercase: whether text loses its capitals before it reaches the tokenizer.
        foreign: what of it nothing here computes, such as a further layer; None where everything is known. Its vectors
            would then be others than those it was trained for.
    """

    pooling: Pooling = "mean"
    normalize: bool = False
    max_length: int | None = None
    lowercase: bool = False
    foreign: str | None = None


def write_sentence_modules(folder: Path, config: ModelConfig) -> None:
    """Write what sentence-transformers reads of an embedder; nothing for an ELMo, which no program opens there.

    How long a text may be is left to the tokenizer's own `model_max_length`.
    """
    heads = config.heads
    if config.encoder.family == "elmo":
        return
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), *([("2_Normalize", "Normalize")] * heads.normalize)]
    entries = [
        {"idx": number, "name": str(number), "path": path, "type": f"{_TYPES}{kind}"}
        for number, (path, kind) in enumerate(modules)
    ]
    flags = {flag: _MODES.get(mode) == heads.pooling for flag, mode in _FLAGS.items()}
    (folder / POOLING).parent.mkdir(exist_ok=True)
    write_json(folder / MODULES, entries)
    write_json(folder / POOLING, {"word_embedding_dimension": config.encoder.hidden_size, **flags})
    write_json(folder / TRANSFORMER, {"do_lower_case": False})
    write_json(
        folder / SENTENCES,
        {
            "model_type": "SentenceTransformer",
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )


def read_sentence_modules(folder: Path) -> SentenceModules | None:
    """What a model folder says of embeddings; None where sentence-transformers did not write it, nor we for it.

    The oldest folders keep the model in a folder of its own below; given that one, what stands above it is read.

    Raises:
        InputError: if a file is damaged or missing, or leads out of the folder.
    """
    root, entries = folder, _modules(folder / MODULES)
    if entries is None:
        root, entries = folder.parent, _modules(folder.parent / MODULES)
        if not entries or entries[0][1] != folder.name:
            return None
    kinds = [kind for kind, _ in entries]
    told = _transformer(root / entries[0][1]) if entries else {}
    common = {"max_length": _length(told, root), "lowercase": told.get("do_lower_case") is True}
    if kinds[:2] != ["Transformer", "Pooling"] or set(kinds[2:]) - {"Normalize"}:
        unknown = sorted(set(kinds) - {"Transformer", "Pooling", "Normalize"})
        return SentenceModules(**common, foreign=f"its modules {', '.join(unknown or kinds)}")
    mode = _mode(_object(root / entries[1][1] / "config.json"))
    foreign = None if mode in _MODES else f"its pooling {mode}"
    return SentenceModules(
        **common,
        pooling=_MODES.get(mode, "mean"),
        normalize="Normalize" in kinds,
        foreign=foreign or _foreign_settings(root),
    )


def embedding_heads(heads: HeadsConfig, modules: SentenceModules | None) -> HeadsConfig:
    """Heads with what sentence-transformers' files say: they count over our own, which another program leaves behind.

    Where a model has a head of another task, or nothing here computes what they say, they are passed over.
    """
    if modules is None or modules.foreign is not None or heads.task_head is not None:
        return heads
    return heads.model_copy(update={"task": "embed", "pooling": modules.pooling, "normalize": modules.normalize})


def refuse_foreign_modules(folder: Path, tokenizer: Tokenizer) -> None:
    """Raise an `InputError` if a folder's embeddings are made in a way that nothing here computes.

    Its encoder alone can be opened all the same; its vectors would silently be others.
    """
    modules = read_sentence_modules(folder)
    if modules is None:
        return
    foreign = modules.foreign
    if foreign is None and modules.lowercase and tokenizer.normalize("A") == "A":
        foreign = "its do_lower_case, which its tokenizer does not know"
    if foreign is not None:
        raise InputError(
            "An embedder from sentence-transformers must pool tokens by mean, first or max, and may normalize",
            f"{folder} with {foreign}",
            "Use sentence-transformers for it, or train an embedder on its encoder: bertsmith finetune embed.",
        )


def _modules(path: Path) -> list[tuple[str, str]] | None:
    """Kind and folder of each module in their order; None where there is no list of them."""
    if not path.is_file():
        return None
    entries = _json(path)
    try:
        found = [(str(entry["type"]).rsplit(".", 1)[-1], str(entry["path"])) for entry in entries]
    except (TypeError, KeyError):
        raise InputError(
            f"{MODULES} must list modules, each with its type and path", path, "Fetch or write the file anew."
        ) from None
    if outside := [place for _, place in found if not _lies_within(place)]:
        raise InputError(
            f"{MODULES} must name folders inside its own alone", f"{outside[0]!r} in {path}", "Do not use this folder."
        )
    return found


def _lies_within(place: str) -> bool:
    path = PureWindowsPath(place)
    return not path.anchor and ".." not in path.parts


def _transformer(folder: Path) -> dict[str, Any]:
    found = next((folder / name for name in (TRANSFORMER, *_OLD_TRANSFORMERS) if (folder / name).is_file()), None)
    return {} if found is None else _object(found)


def _length(told: dict[str, Any], root: Path) -> int | None:
    length = told.get("max_seq_length")
    if length is None or (isinstance(length, int) and length > 0):
        return length
    raise InputError("max_seq_length must be a number of tokens", f"{length!r} in {root}", "Mend the file.")


def _mode(pooling: dict[str, Any]) -> str:
    """The name of the pooling; of several that are put side by side, all names."""
    told = pooling.get("pooling_mode")
    if told is None:
        told = [mode for flag, mode in _FLAGS.items() if pooling.get(flag)] or ["mean"]
    return told if isinstance(told, str) else " + ".join(map(str, told))


def _foreign_settings(root: Path) -> str | None:
    """What a folder's general settings ask for that nothing here does."""
    if not (root / SENTENCES).is_file():
        return None
    settings = _object(root / SENTENCES)
    if (kind := settings.get("model_type", "SentenceTransformer")) != "SentenceTransformer":
        return f"its kind {kind}"
    prompts = settings.get("prompts") or {}
    prompt = prompts.get(settings.get("default_prompt_name")) if isinstance(prompts, dict) else None
    return f"“{prompt}” before every text" if prompt else None


def _object(path: Path) -> dict[str, Any]:
    values = _json(path)
    if not isinstance(values, dict):
        raise InputError(f"{path.name} must be a JSON object", path, "Fetch or write the file anew.")
    return values


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            "A folder of sentence-transformers must hold what its modules.json names",
            f"none at {path}",
            "Fetch it again.",
        ) from None
    except ValueError:
        raise InputError(f"{path.name} must be JSON", path, "Fetch or write the file anew.") from None
