"""An attack that watches the agent, with enough settings for a search to find the worst."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from fairduel.adversaries.adversary import AttackPlan, DuelSeen, StrongAdversary, by_sight
from fairduel.adversaries.strong import rank_of, target_rank
from fairduel.checks import at_least_zero, boolean, integer, share
from fairduel.core.compiling import compiled, inlined
from fairduel.errors import unknown_name

Favourite = Literal["random", "median", "second", "worst", "nobody"]
Misled = Literal["go on", "protect", "wait"]
_NOBODY = get_args(Favourite).index("nobody")
_GO_ON, _PROTECT, _WAIT = range(3)
# what the rule remembers
_BEGUN, _HEAVIEST, _USUAL_WIDTH, _UPSETS = range(4)
_RECENT = 0.05  # how fast the usual width follows


@inlined
def _take_note(plan: AttackPlan, seen: DuelSeen) -> None:
    """Remember what is compared with later duels, and whether the attack has begun."""
    settling, upsets, noted = plan.numbers[0], plan.numbers[2], plan.memory
    if seen.first != seen.second:
        noted[_HEAVIEST] = max(noted[_HEAVIEST], seen.weight)
        noted[_USUAL_WIDTH] += (_RECENT if noted[_USUAL_WIDTH] > 0.0 else 1.0) * (seen.width - noted[_USUAL_WIDTH])
    if not seen.settling < settling and noted[_UPSETS] >= upsets:
        noted[_BEGUN] = 1.0


@inlined
def _is_worth_a_flip(plan: AttackPlan, seen: DuelSeen) -> bool:
    """Whether the duel counts enough, is open enough, likely enough, and comes at a good moment."""
    settling, again, _, chance, weight, width, _, _, _, _, spare, _ = plan.numbers
    noted = plan.memory
    return (
        noted[_BEGUN] == 1.0
        and seen.first != seen.second
        and not (again and seen.settling < settling)
        and seen.probability > chance
        and seen.weight >= weight * noted[_HEAVIEST]
        and not seen.width < width * noted[_USUAL_WIDTH]
        and (spare == 0.0 or noted[_UPSETS] < spare)
    )


@inlined
def _suits(plan: AttackPlan, seen: DuelSeen) -> bool:
    """Whether the flip helps whom the attack favours."""
    favourite, drawn, misled, harm = int(plan.numbers[6]), plan.numbers[7], int(plan.numbers[8]), plan.numbers[9]
    loser = seen.second if seen.share == 1.0 else seen.first
    if seen.leader >= 0 and misled != _GO_ON:
        best, worst = np.max(seen.rewards), np.min(seen.rewards)
        if best - seen.rewards[seen.leader] > harm * (best - worst):
            return misled == _PROTECT and loser == seen.leader
    return favourite == _NOBODY or rank_of(seen.rewards, loser) == target_rank(favourite, drawn, seen.rewards)


@compiled
def at_a_good_moment(plan: AttackPlan, seen: DuelSeen, rng: np.random.Generator) -> bool:
    """Flip if the agent is where the attack wants it, the duel is worth it, and the coin falls so."""
    _take_note(plan, seen)
    flips = _is_worth_a_flip(plan, seen) and _suits(plan, seen) and rng.random() < plan.numbers[11]
    agreement = seen.lead * (0.5 - seen.share if flips else seen.share - 0.5)
    if agreement < 0.0:
        plan.memory[_UPSETS] += 1
    elif agreement > 0.0:
        plan.memory[_UPSETS] = 0
    return flips


@dataclass(kw_only=True, eq=False)
class Watching(StrongAdversary):
    """Watches the agent, waits for a good moment and flips what hurts most; its defaults flip as much as they can.

    ``fairduel attack`` searches for its worst settings. Conditions on what an agent does not show are met.

    Args:
        settling: It begins once the agent's leader is so near to being clearly ahead of all others: ½ is half-way, at 1
            the agent settles.
        again: Whether that must hold at each flip, or only once.
        upsets: It begins after this many outcomes in a row contradicted what the agent believed.
        chance: Flips only outcomes that had a higher probability than this.
        weight: Flips only duels that count at least this share of the most that one has counted.
        width: Flips only duels at least this many times as uncertain as the last ones.
        favourite: Flips only what this action lost, a rank as for the misleading attack; or ``"nobody"``.
        misled: What it does while the agent's leader is wrong: ``"go on"``; ``"protect"`` it, flipping only what it
            lost; or ``"wait"`` until it leads no more.
        harm: A leader is wrong if its loss exceeds this share of the worst action's.
        spare: After this many outcomes in a row that contradicted what the agent believed, it flips nothing until one
            agrees; 0 for never.
        pace: The probability of a flip where all of this holds.
    """

    settling: float = 0.0
    again: bool = False
    upsets: int = 0
    chance: float = 0.0
    weight: float = 0.0
    width: float = 0.0
    favourite: Favourite = "nobody"
    misled: Misled = "go on"
    harm: float = 0.0
    spare: int = 0
    pace: float = 1.0

    wants_flip = by_sight(at_a_good_moment)
    watches: ClassVar[bool] = True
    _remembered: ClassVar[int] = 4

    def __post_init__(self) -> None:
        self.settling = at_least_zero("settling", self.settling)
        self.again = boolean("again", self.again)
        self.upsets, self.spare = integer("upsets", self.upsets), integer("spare", self.spare)
        for name in ("chance", "weight", "harm", "pace"):
            setattr(self, name, share(name, getattr(self, name)))
        self.width = at_least_zero("width", self.width)
        for name, kind in (("favourite", Favourite), ("misled", Misled)):
            if getattr(self, name) not in get_args(kind):
                raise unknown_name(name, str(getattr(self, name)), get_args(kind))
        self._drawn = self.rng.random()
        super().__post_init__()

    def _numbers(self) -> tuple[float, ...]:
        favourite, misled = get_args(Favourite).index(self.favourite), get_args(Misled).index(self.misled)
        return (
            self.settling,
            self.again,
            self.upsets,
            self.chance,
            self.weight,
            self.width,
            favourite,
            self._drawn,
            misled,
            self.harm,
            self.spare,
            self.pace,
        )
