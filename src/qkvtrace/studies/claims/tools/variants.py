"""The same training of another network."""

from dataclasses import replace
from typing import Any

from qkvtrace.settings import Recipe


def with_model(recipe: Recipe, **changed: Any) -> Recipe:
    """Settings of which some of the model's are changed; raises UserError if they do not fit."""
    return replace(recipe, model=replace(recipe.model, **changed))
