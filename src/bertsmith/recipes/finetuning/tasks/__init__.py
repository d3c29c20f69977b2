"""The downstream tasks, by name."""

from bertsmith.recipes.finetuning.task import Task
from bertsmith.recipes.finetuning.tasks.classify import Classify
from bertsmith.recipes.finetuning.tasks.embed import Embed

TASKS: dict[str, Task] = {task.name: task for task in (Classify(), Embed())}
