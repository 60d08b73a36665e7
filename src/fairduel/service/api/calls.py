"""Run commands from coroutines."""

import asyncio
from typing import TypeVar

from fairduel.service.ledger import Command, outcome
from fairduel.service.problems import Problem
from fairduel.service.service import Service

Result = TypeVar("Result")


async def call(service: Service, command: Command[Result | Problem]) -> Result:
    """Run a command and wait until its events are on disk."""
    result = outcome(await asyncio.wrap_future(service.ledger.submit(command)))
    assert not isinstance(result, Problem)
    return result
