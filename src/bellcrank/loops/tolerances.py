"""The numbers that decide about loops: when they are closed, when constraints are dependent, how far a step goes.

`docs/explain/tolerances.md` says what they mean for users. Values of constraints and steps are shares of the machine's
size (`loops.sizes`): lengths by a length typical of it, angles and cosines by 1. Ranks and pivots are relative to the
largest of their kind.
"""

from __future__ import annotations

__all__ = ["AGREE", "BENT", "CLOSED", "CONTRACTION", "DENSE", "DRAWING", "DRIFTED", "EXACT", "FLIPPED", "LONGEST",
           "MOVED", "NEAREST", "OPEN", "RANK", "RANK_DAMPED", "ROUNDING", "SAME", "SHORT", "STRAIGHT", "STRIDE",
           "TINY", "TURNED", "WALKED", "WARNED"]

# -- closed, or not ----------------------------------------------------------------------------------
#: no better closing is looked for: what is left is rounding
ROUNDING = 1e-13
#: what rounding leaves open at best: no step is made to close it
EXACT = 2e-15
#: a search has found a closed position when no constraint is left open by more
CLOSED = 1e-9
#: a state that is more open is refused where a closed one is needed
OPEN = 1e-6
#: an axis that is off by more, in a position that closes, points the wrong way
FLIPPED = 1e-3
#: sum of squares of what closing joints' axes are off beyond which some point the wrong way, in a position that closes
TURNED = 1e-3
#: speeds held contradict each other if conditions still change at this rate, relative to the largest speed
DRIFTED = 1e-8
#: motions of independent speeds that change a condition by more than this part of its terms are none
MOVED = 1e-8
#: positions nearer to each other are the same branch
SAME = 1e-6

# -- drawings ----------------------------------------------------------------------------------------
#: redundant constraints that contradict each other by less, as a share of the machine's length [or rad], agree
AGREE = 1e-11
#: those that do so by less are dropped, unless `compile` is told otherwise
DRAWING = 1e-5
#: and with a warning if they do so by more than this
WARNED = 2e-6

# -- ranks -------------------------------------------------------------------------------------------
#: singular values below this, relative to the largest, are zero
RANK = 1e-9
#: the same inside damped steps, which weak directions do not spoil
RANK_DAMPED = 1e-11
#: problems with at most this many matrix entries are solved by dense singular values, larger ones by sparse factors
DENSE = 40_000

# -- steps to a closed position ----------------------------------------------------------------------
#: no joint moves farther in one step of the closer
STRIDE = 0.8
#: the smallest step to a closed position that is shorter than this is the nearest one but for its square
TINY = 1e-4
#: positions are the nearest ones to this part of how far they are from the guess
NEAREST = 1e-4
#: a step to the closed position that is shorter than this needs no comparison with others
SHORT = 0.3

# -- walks along a branch ----------------------------------------------------------------------------
#: Newton's steps must shrink at least so much from one to the next
CONTRACTION = 0.25
#: with contractions below this nothing bends enough to be mistaken
STRAIGHT = 0.05
#: what a joint may move in one step
LONGEST = 0.5
#: what Newton's first step should be at most, likewise
BENT = 0.1
#: positions on the way are good to this: Newton's method ends when the next step would be shorter
WALKED = 1e-8
