"""How commands look to typer: groups of options, and help without <bool> for flags and <path> for arguments."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup


def grouped(**fixed: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a command's parameters that are dataclasses be made of arguments and options: one for each field.

    Args:
        fixed: Values of fields that are not asked for.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Where:
    ...     port: int = 8000
    ...     folder: str = "votes"
    >>> @grouped(folder="here")
    ... def serve(where: Where, demo: bool = False) -> Where: return where
    >>> inspect.signature(serve), serve(port=1)
    (<Signature (demo: bool = False, port: int = 8000)>, Where(port=1, folder='here'))
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(command).parameters.values())
        groups: dict[str, Any] = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}
        fields = {name: inspect.signature(group).parameters for name, group in groups.items()}
        asked = [each for group in reversed(fields.values()) for each in group.values() if each.name not in fixed]
        parameters = [each for each in own if each.name not in groups] + asked
        parameters.sort(key=lambda each: each.default is not each.empty)

        @functools.wraps(command)
        def run(*given: Any, **named: Any) -> Any:
            values = fixed | dict(zip((each.name for each in parameters), given, strict=False)) | named
            made = {
                name: group(**{field: values.pop(field) for field in fields[name] if field in values})
                for name, group in groups.items()
            }
            return command(**made, **values)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorated


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
