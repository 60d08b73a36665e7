"""Who operates the server: owners, operators, and observers of all studies."""

from fairduel.service.events.kinds import KeyAdded, KeysRevoked
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.lifecycle import OperatorAdded, OperatorRemoved
from fairduel.service.events.log import Json
from fairduel.service.events.state import Operator
from fairduel.service.keys import Holder, Role, Scope, key_hash, new_id, new_key
from fairduel.service.problems import Problem, not_found

MOST_OPERATORS = 1000


def ensure_operator(ledger: Ledger) -> str | None:
    """Return the key of a first owner if there is no operator yet."""
    return None if ledger.state.operators else add_operator(ledger, "Owner", "owner")["key"]


def replace_operator(ledger: Ledger) -> str:
    """Return a new key of the first owner, whose older keys stop working."""
    first = next((each for each in present(ledger) if each.role == "owner"), None)
    if first is None:
        return str(add_operator(ledger, "Owner", "owner")["key"])
    return replace_key(ledger, first.operator)


def present(ledger: Ledger) -> list[Operator]:
    """Return the operators that are not removed, the first first."""
    return [each for each in ledger.state.operators.values() if not each.is_removed]


def find_operator(ledger: Ledger, operator: str) -> Operator:
    """Return an operator who is not removed."""
    found = ledger.state.operators.get(operator)
    if found is None or found.is_removed:
        raise not_found("operator")
    return found


def add_operator(ledger: Ledger, name: str, role: Role) -> Json:
    """Add an operator; their key is returned only here."""
    here = present(ledger)
    if any(each.name.casefold() == name.casefold() for each in here):
        raise Problem(409, "name-taken", f"There is already an operator named {name}; choose another name.")
    if len(here) >= MOST_OPERATORS:
        raise Problem(409, "too-many", f"This server has {MOST_OPERATORS:,} operators; remove some first.")
    operator = new_id()
    ledger.append("", OperatorAdded(operator, name, role))
    return shown_operator(ledger.state.operators[operator]) | {"key": _add_key(ledger, operator, role)}


def replace_key(ledger: Ledger, operator: str) -> str:
    """Return a new key of an operator, whose older keys stop working: they are signed out everywhere."""
    found = find_operator(ledger, operator)
    ledger.append("", KeysRevoked(_scope(found.role), operator))
    return _add_key(ledger, operator, found.role)


def remove_operator(ledger: Ledger, operator: str) -> None:
    """Let an operator's keys work no longer; the last owner stays."""
    found = find_operator(ledger, operator)
    if found.role == "owner" and sum(each.role == "owner" for each in present(ledger)) == 1:
        raise Problem(409, "last-owner", "The last owner stays; add another owner first.")
    ledger.append("", OperatorRemoved(operator))


def name_of(ledger: Ledger, operator: str) -> str | None:
    """Return the name of an operator, perhaps removed since; None for the server itself."""
    found = ledger.state.operators.get(operator)
    return None if found is None else found.name


def shown_operator(found: Operator) -> Json:
    """Return an operator as owners see them."""
    return {"operator": found.operator, "name": found.name, "role": found.role, "added": found.added}


def _scope(role: Role) -> Scope:
    return "observer" if role == "observer" else "operator"


def _add_key(ledger: Ledger, operator: str, role: Role) -> str:
    holder = Holder(_scope(role), operator=operator)
    key = new_key(holder.scope)
    ledger.append("", KeyAdded(holder.scope, key_hash(key), operator=operator))
    return key
