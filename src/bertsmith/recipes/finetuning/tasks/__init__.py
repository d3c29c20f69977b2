"""The downstream tasks, by name."""

from bertsmith.recipes.finetuning.task import Task
from bertsmith.recipes.finetuning.tasks.answer import Answer
from bertsmith.recipes.finetuning.tasks.choose import Choose
from bertsmith.recipes.finetuning.tasks.classify import Classify
from bertsmith.recipes.finetuning.tasks.embed import Embed
from bertsmith.recipes.finetuning.tasks.multilabel import Multilabel
from bertsmith.recipes.finetuning.tasks.regress import Regress
from bertsmith.recipes.finetuning.tasks.tag import Tag

_ALL: tuple[Task, ...] = (Classify(), Regress(), Multilabel(), Tag(), Answer(), Choose(), Embed())
TASKS: dict[str, Task] = {task.name: task for task in _ALL}
