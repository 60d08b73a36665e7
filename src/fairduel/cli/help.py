"""Commands whose help leaves out the types that newer versions of typer add: <bool> for flags, <path> for arguments."""

from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup


def _without_types(params: list[Any]) -> list[Any]:
    for param in params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""  # noqa: ARG005
        elif param.is_flag:
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose usage line and errors are plain: FILE, not {FILE}, and no "Value error, "."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        try:
            return super().parse_args(ctx, args)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters, ``--help`` included."""
        return _without_types(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return its parameters, ``--help`` included."""
        return _without_types(super().get_params(ctx))
