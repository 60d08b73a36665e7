"""Commands whose help shows flags without a type."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


def _without_flag_types(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""  # typer shows <bool>
    return params


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, ``--help`` included."""
        return _without_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, ``--help`` included."""
        return _without_flag_types(super().get_params(ctx))
