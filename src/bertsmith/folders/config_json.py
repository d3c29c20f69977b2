"""`config.json`: our config as the Hugging Face layout writes it, and back."""

from typing import Any

from bertsmith.folders.formats import Format, format_of, named_format, published_class
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import HeadsConfig, ModelConfig, TaskName, has_labels
from bertsmith.model.encoder_config import Dropout, EncoderConfig

OWN_SECTION = "bertsmith"
"""Key of `config.json` under which stands what the Hugging Face classes have no field for."""
PROBLEM_TYPES: dict[TaskName, str] = {
    "classify": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regress": "regression",
}
"""What a class of whole texts is used for, as its `problem_type` says."""


def architecture(config: ModelConfig) -> str | None:
    """The class that computes what this model computes; the plain encoder's where no class has such heads."""
    return published_class(config) or named_format(config).encoder_class or None


def to_json(config: ModelConfig) -> dict[str, Any]:
    """`config.json` for a model."""
    own, heads = named_format(config), config.heads
    name = architecture(config)
    values = {
        "architectures": [] if name is None else [name],
        "model_type": own.model_type,
        **own.write(config),
        "tie_word_embeddings": heads.tie_embeddings,
        "dtype": "float32",
        OWN_SECTION: {
            "heads": heads.model_dump(mode="json", exclude={"labels"}),
            "dropout": config.encoder.dropout.model_dump(),
        },
    }
    # One output without a name would be two in the reference, had it no name at all.
    if labels := ("LABEL_0",) if heads.task == "regress" else heads.labels:
        values["id2label"] = {str(number): label for number, label in enumerate(labels)}
        values["label2id"] = {label: number for number, label in enumerate(labels)}
    if heads.task in PROBLEM_TYPES:
        values["problem_type"] = PROBLEM_TYPES[heads.task]
    return values


def own_section(values: dict[str, Any], where: str) -> dict[str, Any]:
    """What bertsmith wrote for itself; empty in a `config.json` from elsewhere.

    Raises:
        InputError: if something else stands there, or in the place of its parts.
    """
    own = values.get(OWN_SECTION) or {}
    if not isinstance(own, dict):
        raise _no_object(OWN_SECTION, own, where)
    for part in ("heads", "dropout"):
        if not isinstance(own.get(part) or {}, dict):
            raise _no_object(f"{OWN_SECTION}.{part}", own[part], where)
    return own


def _no_object(key: str, found: object, where: str) -> InputError:
    return InputError(f"{key} must be an object", f"{found!r} in {where}", "Fetch or write the file anew.")


def written_heads(values: dict[str, Any], where: str) -> dict[str, Any]:
    """What bertsmith wrote of the heads, labels aside; empty in a `config.json` from elsewhere.

    Raises:
        InputError: if something else stands there.
    """
    own = own_section(values, where).get("heads") or {}
    if own and "task" not in own and values.get("problem_type") == PROBLEM_TYPES["classify"]:
        # Folders of the first versions name no task: what had labels was a classifier.
        return own | {"task": "classify"}
    return own


def written_config(values: dict[str, Any], where: str) -> ModelConfig | None:
    """A model's config out of `config.json` alone; None where bertsmith did not write the file.

    Raises:
        InputError: for what is not known here, or contradicts itself.
    """
    if not (own := written_heads(values, where)):
        return None
    named = values.get("id2label") or {}
    count = len(named) if isinstance(named, dict) else 0
    labels = labels_of(values, count, where) if has_labels(own.get("task")) else ()
    heads = HeadsConfig.parse({**own, "labels": labels}, where=where)
    return ModelConfig.parse({"encoder": encoder_from_json(values, where), "heads": heads}, where=where)


def labels_of(values: dict[str, Any], count: int, where: str) -> tuple[str, ...]:
    """Names of a head's outputs in their order; numbered where the file has no names of its own.

    Raises:
        InputError: if `id2label` names others than each of them.
    """
    named = values.get("id2label") or {}
    try:
        labels = {int(key): str(label) for key, label in named.items()}
    except (AttributeError, ValueError):
        labels = {-1: str(named)}
    if all(label == f"LABEL_{number}" for number, label in labels.items()):
        # What other programs write where nobody gave names, as many as they please.
        labels = {number: f"LABEL_{number}" for number in range(count)}
    if sorted(labels) != list(range(count)):
        raise InputError(
            "id2label must name the label of each output", f"{named!r} for {count} outputs in {where}", "Mend the file."
        )
    return tuple(labels[number] for number in range(count))


def encoder_from_json(values: dict[str, Any], where: str) -> EncoderConfig:
    """The encoder's config out of `config.json`, from here or from elsewhere.

    Raises:
        InputError: for a family, an activation or a kind of position that is not known here.
    """
    one: Format = format_of(values, where)
    fields = {"family": one.family, **one.read(values, where)}
    told = EncoderConfig.parse(fields | {"dropout": Dropout.parse(fields.get("dropout", {}), where=where)}, where=where)
    own = own_section(values, where).get("dropout")
    if not own:
        return told
    encoder = told.model_copy(update={"dropout": Dropout.parse(own, where=where)})
    rates = _dropout_entries(one, encoder)
    # Where somebody changed the family's own rates since, those count.
    return encoder if all(values.get(key, rate) == rate for key, rate in rates.items()) else told


def _dropout_entries(one: Format, encoder: EncoderConfig) -> dict[str, Any]:
    """The family's own entries of `config.json` that tell the encoder's dropout."""
    written = one.write(ModelConfig(encoder=encoder, heads=HeadsConfig(masked_language_model=False, mlm_head="linear")))
    return {key: value for key, value in written.items() if "dropout" in key and "classif" not in key}
