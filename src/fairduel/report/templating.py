"""Page templates, filled and escaped."""

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from fairduel.experiments.experiment import settings_text
from fairduel.report.tables import with_error, with_interval
from fairduel.simulation import versions


def render(template: str, **values: Any) -> str:
    """Fill a page template; every value is escaped."""
    environment = Environment(
        loader=PackageLoader("fairduel.report"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "with_error": with_error,
        "with_interval": with_interval,
        "settings_text": settings_text,
        "json": lambda value: json.dumps(value, default=str),
    }
    return environment.get_template(template).render(versions=versions(), **values)
