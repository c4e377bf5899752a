"""The built-in machines with closed loops: do they close, and do they move as much as they should?

Nothing here uses the library's kinematics: joints are read from the description and moved by the exponentials
below, so a wrong geometry or a wrong convention of the examples shows.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank import examples
from bellcrank.mechanism.mechanism import Connection

Floats = npt.NDArray[np.float64]

#: degrees of freedom, of the defaults
EXPECTED_MOBILITY = {
    "four_bar": 1, "slider_crank": 1, "five_bar": 2, "redundant_five_bar": 2, "jansen": 1, "andrews": 1,
    "scissor_lift": 1, "bennett": 1, "bricard": 1, "quarter_car": 1, "double_wishbone": 3, "stewart": 6, "delta": 3,
    "ladder": 2, "rope_ladder": 12, "four_bar_chain": 4, "n_four_bars": 1, "linkage_quadruped": 18}

#: bodies and joints
COUNTS = {
    "four_bar": (3, 4), "slider_crank": (3, 4), "five_bar": (4, 5), "redundant_five_bar": (6, 8), "jansen": (7, 10),
    "andrews": (7, 10), "scissor_lift": (9, 13), "bennett": (3, 4), "bricard": (5, 6), "quarter_car": (5, 8),
    "double_wishbone": (6, 8), "stewart": (13, 18), "delta": (10, 15), "ladder": (9, 13), "rope_ladder": (12, 16),
    "four_bar_chain": (12, 16), "n_four_bars": (5, 7), "linkage_quadruped": (21, 25)}

#: constraints of all loops together that say nothing new: rows less rank
REDUNDANT = {
    "four_bar": 3, "slider_crank": 3, "five_bar": 3, "redundant_five_bar": 6, "jansen": 9, "andrews": 9,
    "scissor_lift": 12, "bennett": 3, "bricard": 1, "quarter_car": 0, "double_wishbone": 0, "stewart": 0, "delta": 0,
    "ladder": 8, "rope_ladder": 0, "four_bar_chain": 12, "n_four_bars": 6, "linkage_quadruped": 12}

#: joints that move the whole machine when driven
DRIVES = {
    "four_bar": ["A"], "slider_crank": ["crank"], "five_bar": ["leg1.1", "leg2.1"],
    "redundant_five_bar": ["leg1.1", "leg2.1"], "jansen": ["crank"], "andrews": ["O"], "scissor_lift": ["slide"],
    "bennett": ["hinge1"], "bricard": ["hinge1"], "quarter_car": ["arm"],
    "double_wishbone": ["lower_arm", "rack", "wheel"], "stewart": [f"leg{i}.slide" for i in range(1, 7)],
    "delta": [f"leg{i}.arm" for i in range(1, 4)], "ladder": ["arm0"],
    "four_bar_chain": [f"crank{i}" for i in range(1, 5)], "n_four_bars": ["arm0"],
    "linkage_quadruped": ["floating", *(f"{leg}_{joint}" for leg in ("FL", "FR", "HL", "HR")
                                        for joint in ("abduction", "hip", "crank"))]}

#: closed positions of the machines that are open at q = 0, from the reference solutions
ANGLES: dict[str, dict[str, float]] = {
    "four_bar": {"A": 0.5235987755982989, "B": -0.08225408972428526, "C": -2.2889728841449624,
                 "D": -1.2939644553188447 - math.pi},
    "five_bar": {"leg1.1": 0.5235987755982989, "leg1.2": 0.18094328460308903, "leg2.1": 0.5235987755982989,
                 "leg2.2": 1.6423431861928717, "tip": -1.4613999015897827},
    "redundant_five_bar": {
        "leg1.1": -0.3204902995670617, "leg1.2": 1.9823131728623846, "leg2.1": 3.6794178047978123,
        "leg2.2": -1.8063005635156963, "leg3.1": -0.5747278096033849, "leg3.2": -2.005995380755989,
        "tip2": -0.3204902995670617 + 1.9823131728623846 - 3.6794178047978123 + 1.8063005635156963,
        "tip3": -0.3204902995670617 + 1.9823131728623846 + 0.5747278096033849 + 2.005995380755989}}
#: rods of the published planar problems: no inertia about their own axis
SLENDER = ("four_bar", "five_bar", "redundant_five_bar", "n_four_bars")
MACHINES = sorted(EXPECTED_MOBILITY)
UNIT = np.eye(3)


# -- kinematics of our own: every joint is a product of turns and slides ------------------------------------------
def screws(record: Connection) -> list[tuple[Floats, Floats]]:
    """(turn axis, slide axis) of the joint's successive motions."""
    joint, none = record.joint, np.zeros(3)
    if isinstance(joint, bc.Revolute):
        return [(np.array(joint.axis), none)]
    if isinstance(joint, bc.Prismatic):
        return [(none, np.array(joint.axis))]
    if isinstance(joint, bc.Universal):
        return [(np.array(joint.axis1), none), (np.array(joint.axis2), none)]
    if isinstance(joint, bc.Spherical):
        return [(axis, none) for axis in UNIT]
    assert isinstance(joint, bc.Free), joint
    return [(none, axis) for axis in UNIT] + [(axis, none) for axis in UNIT]


def exponential(turn: Floats, slide: Floats, q: float) -> Floats:
    result = np.eye(4)
    if turn.any():
        x, y, z = turn
        k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        result[:3, :3] += math.sin(q) * k + 2.0 * math.sin(q / 2) ** 2 * k @ k
    result[:3, 3] = q * slide
    return result


def matrix(pose: bc.Pose) -> Floats:
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = pose.rotation, np.array(pose.position, dtype=float)
    return result


@dataclass
class Machine:
    """A description with a spanning tree of its joints: (joint, forwards?) in the order of a walk from the ground."""

    description: bc.Mechanism
    walk: list[tuple[Connection, bool]]
    chords: list[Connection]
    columns: dict[str, slice]

    @property
    def size(self) -> int:
        return sum(r.joint.nu for r in self.description.joints)

    def across(self, record: Connection, q: Floats, parent: Floats) -> tuple[Floats, Floats]:
        """The child's pose, and the screws (w, v at the world's origin) of the joint's coordinates."""
        at, columns = parent @ matrix(record.parent_pose), []
        for (turn, slide), value in zip(screws(record), q[self.columns[record.name]], strict=True):
            w, v = at[:3, :3] @ turn, at[:3, :3] @ slide
            columns.append(np.concatenate([w, v + np.cross(at[:3, 3], w)]))
            at = at @ exponential(turn, slide, float(value))
        return at @ np.linalg.inv(matrix(record.child_pose)), np.array(columns).T

    def outward(self, q: Floats) -> tuple[dict[int, Floats], dict[int, Floats]]:
        """Poses of all bodies, and their screws per unit of each speed."""
        poses: dict[int, Floats] = {0: np.eye(4)}
        motion: dict[int, Floats] = {0: np.zeros((6, self.size))}
        for record, forwards in self.walk:
            if forwards:
                start, end = record.parent, record.child
                poses[end], columns = self.across(record, q, poses[start])
                sign = 1.0
            else:
                start, end = record.child, record.parent
                step, _ = self.across(record, q, np.eye(4))
                poses[end] = poses[start] @ np.linalg.inv(step)
                _, columns = self.across(record, q, poses[end])
                sign = -1.0
            motion[end] = motion[start].copy()
            motion[end][:, self.columns[record.name]] += sign * columns
        return poses, motion

    def closure(self, q: Floats) -> tuple[Floats, Floats]:
        """The gaps of all loops, six rows each, and their derivatives by q."""
        poses, motion = self.outward(q)
        gaps, rows = [], []
        for record in self.chords:
            there, columns = self.across(record, q, poses[record.parent])
            move = motion[record.parent] - motion[record.child]
            move[:, self.columns[record.name]] += columns
            gaps.append(gap(there @ np.linalg.inv(poses[record.child])))
            rows.append(move)
        return np.concatenate(gaps), np.concatenate(rows)

    def vector(self, values: Mapping[str, float | Sequence[float]]) -> Floats:
        q = np.zeros(self.size)
        for name, value in values.items():
            q[self.columns[name]] = value
        return q


def gap(motion: Floats) -> Floats:
    """Six numbers that vanish with the motion; for small ones, its screw."""
    r = motion[:3, :3]
    return np.concatenate([0.5 * np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]), motion[:3, 3]])


def read(description: bc.Mechanism) -> Machine:
    """Breadth first from the ground; joints that meet a body again close loops."""
    touching: dict[int, list[Connection]] = {}
    columns, size = {}, 0
    for record in description.joints:
        columns[record.name] = slice(size, size + record.joint.nu)
        size += record.joint.nu
        for body in (record.parent, record.child):
            touching.setdefault(body, []).append(record)
    seen, used, walk, queue = {0}, set(), [], deque([0])
    while queue:
        body = queue.popleft()
        for record in touching[body]:
            forwards = record.parent == body
            other = record.child if forwards else record.parent
            if other not in seen:
                seen.add(other)
                used.add(record.name)
                walk.append((record, forwards))
                queue.append(other)
    assert len(seen) == len(description.bodies) + 1, "not connected to the ground"
    return Machine(description, walk, [r for r in description.joints if r.name not in used], columns)


@cache
def machine(name: str) -> Machine:
    return read(examples.load(name))


def closed(name: str) -> Floats:
    """The documented closed position."""
    return machine(name).vector(ANGLES.get(name, {}))


def settle(m: Machine, q: Floats, held: str | None = None) -> Floats:
    """Close the loops, with one joint held if asked.

    Gauss-Newton with a damping that vanishes with the gap: redundant rows do no harm.
    """
    free = np.delete(np.arange(m.size), m.columns[held] if held else [])
    for _ in range(200):
        gaps, rows = m.closure(q)
        size = float(np.linalg.norm(gaps))
        if size < 1e-13:
            return q
        damped = np.concatenate([rows[:, free], size * np.eye(len(free))])
        q = q.copy()
        q[free] -= np.linalg.lstsq(damped, np.concatenate([gaps, np.zeros(len(free))]), rcond=None)[0]
    raise AssertionError(f"the loops do not close: a gap of {size:.1e} is left")


def generic(name: str) -> Floats:
    """A closed position some way off the documented one: along a random motion, and with some noise."""
    m, rng = machine(name), np.random.default_rng(7)
    _, rows = m.closure(closed(name))
    free = np.linalg.svd(rows)[2][rank(rows):]
    slides = np.array([slide.any() for r in m.description.joints for _, slide in screws(r)])
    away = 0.3 * free.T @ rng.choice([-1.0, 1.0], len(free)) + 0.03 * rng.normal(size=m.size)
    return settle(m, closed(name) + away * np.where(slides, 0.3, 1.0))


def rank(rows: Floats) -> int:
    """The rank, which must not be in doubt."""
    values = np.linalg.svd(rows, compute_uv=False)
    count = int((values > 1e-8 * values[0]).sum())
    assert values[count - 1] > 1e-5 * values[0], f"nearly singular: {values}"
    assert count == len(values) or values[count] < 1e-11 * values[0]
    return count


# -- tests --------------------------------------------------------------------------------------------------------
def test_all_are_here() -> None:
    with_loops = {n for n in examples.names() if len(examples.load(n).joints) > len(examples.load(n).bodies)}
    assert with_loops == set(MACHINES) == set(COUNTS) == set(REDUNDANT)


@pytest.mark.parametrize("name", MACHINES)
def test_counts(name: str) -> None:
    description = machine(name).description
    assert (len(description.bodies), len(description.joints)) == COUNTS[name]
    assert len(machine(name).chords) == COUNTS[name][1] - COUNTS[name][0]


@pytest.mark.parametrize("name", MACHINES)
def test_bodies_are_real(name: str) -> None:
    for body in machine(name).description.bodies:
        xx, xy, xz, yy, yz, zz = (float(v) for v in body.inertia.inertia)
        moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert body.inertia.mass > 0.0 and body.inertia.problem() is None
        assert moments[1] > 0.0
        assert moments[0] > 1e-6 * moments[2] or name in SLENDER, f"{body.name} can spin without inertia"


@pytest.mark.parametrize("name", MACHINES)
def test_loops_close(name: str) -> None:
    gaps, _ = machine(name).closure(closed(name))
    assert np.abs(gaps).max() < (2e-15 if name not in ANGLES else 5e-15)


@pytest.mark.parametrize("name", MACHINES)
def test_derivatives(name: str) -> None:
    """The screws are the derivatives of the gaps."""
    m, step = machine(name), 1e-5
    q = generic(name)
    numbers = np.stack([(m.closure(q + d)[0] - m.closure(q - d)[0]) / (2 * step) for d in step * np.eye(m.size)], -1)
    assert np.abs(numbers - m.closure(q)[1]).max() < 1e-8


@pytest.mark.parametrize("name", MACHINES)
def test_mobility(name: str) -> None:
    m, q = machine(name), generic(name)
    assert np.abs(q - closed(name)).max() > 0.03
    _, rows = m.closure(q)
    assert m.size - rank(rows) == EXPECTED_MOBILITY[name]
    assert len(rows) - rank(rows) == REDUNDANT[name]
    # the documented position is not a singular one
    assert m.size - rank(m.closure(closed(name))[1]) == EXPECTED_MOBILITY[name]


@pytest.mark.parametrize("name", sorted(DRIVES))
def test_drives(name: str) -> None:
    """Holding the joints to drive holds everything, and there are no more of them than freedoms."""
    m, q = machine(name), generic(name)
    driven = np.concatenate([np.arange(m.size)[m.columns[joint]] for joint in DRIVES[name]])
    assert len(driven) == EXPECTED_MOBILITY[name]
    assert rank(np.delete(m.closure(q)[1], driven, axis=1)) == m.size - len(driven)


@pytest.mark.parametrize("name", ["bennett", "bricard"])
def test_paradoxical_linkages_go_far(name: str) -> None:
    """Driven by small steps through a radian: the freedom is finite, not of the first order only."""
    m, q = machine(name), closed(name)
    for _ in range(20):
        _, rows = m.closure(q)
        along = np.linalg.svd(rows)[2][-1]
        q = settle(m, q + 0.05 * along / along[0])
    assert q[0] > 0.9
    assert m.size - rank(m.closure(q)[1]) == 1


@pytest.mark.parametrize(("name", "option", "mobility"), [
    ("ladder", "cells", lambda n: 2), ("rope_ladder", "rungs", lambda n: 3 * n),
    ("four_bar_chain", "cells", lambda n: n), ("scissor_lift", "stages", lambda n: 1)])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_any_number_of_cells(name: str, option: str, mobility: Callable[[int], int], count: int) -> None:
    m = read(examples.load(name, **{option: count}))
    gaps, rows = m.closure(np.zeros(m.size))
    assert np.abs(gaps).max() < 1e-14
    assert m.size - rank(rows) == mobility(count)


def test_options() -> None:
    assert len(examples.load("ladder", cells=0).bodies) == 1
    with pytest.raises(bc.ModelError, match="at least 1"):
        examples.load("rope_ladder", rungs=0)
    with pytest.raises(bc.ModelError, match="no option 'cell'; it takes cells"):
        examples.load("ladder", cell=3)
    with pytest.raises(bc.ModelError, match="it takes none"):
        examples.load("four_bar", cells=3)


def test_ladder_angles() -> None:
    """All arms parallel, at the reference's initial position."""
    m = machine("ladder")
    q = m.vector({f"arm{i}": (0.6, 0.4) for i in range(5)} | {f"inner{i}": -0.4 for i in range(1, 5)}
                 | {f"outer{i}": 0.4 for i in range(1, 5)})
    assert np.abs(m.closure(q)[0]).max() < 2e-15


def test_quarter_car_at_full_bump() -> None:
    """The reference's angles with the wheel 5 cm up; ball joints at the outer ends may have any angles."""
    m = machine("quarter_car")
    w, x, y, z = 0.9985940235601068, -0.05267579392663197, -0.000377985038990439, 0.005924016504536158
    knuckle = (math.atan2(2 * (w * x - y * z), 1 - 2 * (x * x + y * y)), math.asin(2 * (x * z + w * y)),
               math.atan2(2 * (w * z - x * y), 1 - 2 * (y * y + z * z)))
    q = m.vector({"arm": -0.12930036652171667, "knuckle": knuckle,
                  "upper_link_front": (0.18491574696193644, 0.00028127504025782414),
                  "upper_link_rear": (0.1917910881213406, 6.918060532158237e-05),
                  "tie_rod": (0.14164419160497807, -0.0033918609535245037)})
    assert sorted(r.name for r in m.chords) == ["tie_rod_ball", "upper_link_front_ball", "upper_link_rear_ball"]
    poses, _ = m.outward(q)
    for r in m.chords:
        apart = poses[r.parent] @ matrix(r.parent_pose) - poses[r.child] @ matrix(r.child_pose)
        assert np.abs(apart[:3, 3]).max() < 1e-13


def test_jansen_walks() -> None:
    """The toe goes once round and is flat on the ground for a good part of the turn."""
    m, q, toe = machine("jansen"), closed("jansen"), []
    frame = next(f for f in m.description.frames if f.name == "toe")
    for angle in np.linspace(0.0, 2 * math.pi, 73):
        q[m.columns["crank"]] = angle
        q = settle(m, q, held="crank")
        toe.append((m.outward(q)[0][frame.body] @ matrix(frame.pose))[:2, 3])
    path = np.array(toe)
    assert np.abs(path[0] - path[-1]).max() < 1e-10
    low = path[path[:, 1] < path[:, 1].min() + 0.02]
    assert np.ptp(low[:, 0]) > 0.35 and np.ptp(path[:, 1]) > 0.15


def test_andrews_has_the_published_lengths() -> None:
    description = examples.load("andrews")
    at = {r.name: np.array(r.parent_pose.position, dtype=float) for r in description.joints}
    for first, second, length in (("O", "F", 0.007), ("F", "E3", 0.028), ("B", "E3", 0.035), ("G", "E4", 0.02),
                                  ("H", "E6", 0.02), ("A5", "G", 0.04), ("A7", "H", 0.04)):
        assert np.linalg.norm(at[first] - at[second]) == pytest.approx(length, abs=1e-16)
