"""From the description of a mechanism to its tree of links. Cost: O(bodies), vectorised."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.deformation import HeldNode, Modal, NodeMotion
from bellcrank.mechanism.joints import Joint, Weld
from bellcrank.mechanism.joints.derived_joints import TurnedJoint
from bellcrank.mechanism.law_probe import LawUse, probe_laws
from bellcrank.mechanism.machine_sizes import typical_length
from bellcrank.mechanism.mechanism import HERE, Connection, Mechanism
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose
from bellcrank.mechanism.turns import has_parameter, product
from bellcrank.scalar.graph import Number
from bellcrank.spatial import General, Matrix3, RigidInertia, Transform, Vector
from bellcrank.topology import link_frames as frames
from bellcrank.topology.carriers import bound_joints, link_inertias
from bellcrank.topology.loop_closures import add_loops
from bellcrank.topology.spanning_tree import Topology, spanning_tree
from bellcrank.topology.tree import Applied, Ints, LinkNumbers, Tree

__all__ = ["build_tree", "collector_paused"]


def build_tree(mechanism: Mechanism, *, merge_welds: bool = True, free_frames: bool = True,
               cut: Sequence[str] = (), keep: Sequence[str] = ()) -> Tree:
    """The spanning tree of links of a mechanism, with the closures of its loops; `cut` chooses which joints close,
    `keep` which shall not.

    `merge_welds` makes one link of bodies welded together; `free_frames` lets link frames be chosen to
    save operations (otherwise they lie at the inboard joints).
    """
    with collector_paused():
        uses = probe_laws(mechanism)
        keep = (*keep, *sorted(bound_joints(mechanism).difference(cut)))
        topology = spanning_tree(mechanism, cut, keep)
        return _Builder(mechanism, topology, merge_welds, free_frames, uses).tree()


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cyclic garbage collector: it would look at millions of objects for 10^5 joints and free none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Builder:
    """Works through arrays with one row per body (index 0 the ground) and one per link."""

    def __init__(self, mechanism: Mechanism, topology: Topology, merge_welds: bool, free_frames: bool,
                 uses: Mapping[str, LawUse]) -> None:
        self.mechanism, self.topology, self.uses = mechanism, topology, uses
        self.free_frames, self.length = free_frames, typical_length(mechanism)
        self.parametric = bool(mechanism.parameters)
        bodies = (mechanism.ground, *mechanism.bodies)
        self.nb = len(bodies)
        records = mechanism.joints
        self.inboard: list[Connection | None] = [records[j] if j >= 0 else None for j in topology.joint]
        kinds: list[Joint | None] = [
            None if r is None else Weld() if isinstance(r.joint, HeldNode) else _tree_joint(r, back)
            for r, back in zip(self.inboard, topology.backwards, strict=True)]
        # links: heads are bodies that are not welded to their parent
        self.heads = [0] + [b for b in topology.order if not (merge_welds and type(kinds[b]) is Weld)]
        link_of = [0] * self.nb
        for link, head in enumerate(self.heads):
            link_of[head] = link
        for b in topology.order:
            if merge_welds and type(kinds[b]) is Weld:
                link_of[b] = link_of[topology.parent[b]]
        self.link_of: Ints = np.array(link_of, dtype=np.int64)
        self.joints: list[Joint | None] = [kinds[h] for h in self.heads]
        self.parent: Ints = np.array([0] + [link_of[topology.parent[h]] for h in self.heads[1:]], dtype=np.int64)
        self.free = np.array([bool(j and j.has_free_frame) for j in self.joints])
        self.bodies = bodies
        self.inertias = link_inertias(mechanism)

    # -- poses in body frames -------------------------------------------------------------------
    def _poses(self, bodies: Sequence[int], outer: bool) -> tuple[Floats, Floats, dict[int, tuple[Number, ...]]]:
        """Rotations and positions of inboard joints on the parent's (`outer`) or the body's own side."""
        ends = [(self.inboard[b], self.topology.backwards[b]) for b in bodies]
        chosen = [r.parent_pose if outer != back else r.child_pose for r, back in ends if r is not None]
        if all(p is HERE for p in chosen):
            return np.tile(np.eye(3), (len(chosen), 1, 1)), np.zeros((len(chosen), 3)), {}
        turn = np.tile(np.eye(3), (len(chosen), 1, 1))
        turned = [i for i, (p, (r, _)) in enumerate(zip(chosen, ends, strict=True))
                  if p.rows is not IDENTITY_ROWS and not (self.parametric and _turned_by_parameters(r))]
        if turned:
            turn[turned] = self._gather([chosen[i].rows for i in turned], 9).reshape(-1, 3, 3)
        symbolic = {i: p.position for i, p in enumerate(chosen) if self.parametric and has_parameter(p.position)}
        return turn, self._gather([p.position for p in chosen], 3), symbolic

    def _weld_poses(self) -> None:
        """Pose of every body's frame in the frame of its link's head."""
        self.body_turn = np.tile(np.eye(3), (self.nb, 1, 1))
        self.body_shift = np.zeros((self.nb, 3))
        self.body_symbol: dict[int, tuple[Number, ...]] = {}
        welded = [b for b in self.topology.order if self.heads[self.link_of[b]] != b]
        if not welded:
            return
        outer = self._poses(welded, True)
        inner = self._poses(welded, False)
        for i, b in enumerate(welded):
            p = self.topology.parent[b]
            turn = outer[0][i] @ inner[0][i].T
            here = outer[2].get(i, tuple(outer[1][i].tolist()))
            there = inner[2].get(i, tuple(inner[1][i].tolist()))
            shift = _sub(here, _times(turn, there))
            base = self.body_symbol.get(p, tuple(self.body_shift[p].tolist()))
            shift = _add(_times(self.body_turn[p], shift), base)
            self.body_turn[b] = self.body_turn[p] @ turn
            self.body_shift[b] = [self.mechanism.default(x) for x in shift]
            if has_parameter(shift):
                self.body_symbol[b] = shift

    def _sides(self) -> frames.Sides:
        """Inboard joints of all links in canonical axes, in the frames of the two heads."""
        heads = self.heads[1:]
        outer_turn, outer_shift, outer_symbol = self._poses(heads, True)
        inner_turn, inner_shift, inner_symbol = self._poses(heads, False)
        align = _alignments([j for j in self.joints[1:] if j is not None])
        parents = np.array([self.topology.parent[h] for h in heads], dtype=np.int64)
        carrier = self.body_turn[parents]
        n = len(self.heads)
        sides = frames.Sides(np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)),
                             np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)))
        sides.outer_turn[1:] = carrier @ outer_turn @ align
        sides.outer_shift[1:] = np.einsum("nij,nj->ni", carrier, outer_shift) + self.body_shift[parents]
        sides.inner_turn[1:] = inner_turn @ align
        sides.inner_shift[1:] = inner_shift
        self.outer_symbol: dict[int, tuple[Number, ...]] = {}
        self.inner_symbol = {i + 1: p for i, p in inner_symbol.items()}
        for i, p in enumerate(parents.tolist()) if self.parametric else ():
            if i in outer_symbol or p in self.body_symbol:
                local = outer_symbol.get(i, tuple(outer_shift[i].tolist()))
                self.outer_symbol[i + 1] = _add(_times(self.body_turn[p], local),
                                                self.body_symbol.get(p, tuple(self.body_shift[p].tolist())))
        return sides

    def _main_children(self) -> Ints:
        """For every link, the child its frame should please: one with an axis, the largest subtree first."""
        n = len(self.heads)
        size = [1] * n
        parent = self.parent.tolist()
        for link in range(n - 1, 0, -1):
            size[parent[link]] += size[link]
        best, weight = [0] * n, [(False, 0)] * n
        free = self.free.tolist()
        for link in range(1, n):
            rank = (free[link], size[link])
            if rank > weight[parent[link]]:
                best[parent[link]], weight[parent[link]] = link, rank
        return np.array(best, dtype=np.int64)

    # -- assembly -------------------------------------------------------------------------------
    def tree(self) -> Tree:
        self._weld_poses()
        sides = self._sides()
        n = len(self.heads)
        fixed = np.zeros(n, dtype=bool)
        for link in self.inner_symbol:
            fixed[link] = True
        for link in self.outer_symbol:
            fixed[link] = fixed[self.parent[link]] = True
        main = self._main_children()
        usable = self.free if self.free_frames else np.zeros(n, dtype=bool)
        turn, slide, frame_turn, frame_shift = frames.link_frames(sides, self.parent, usable, fixed, main)
        if self.free_frames and main[0] and not fixed[main[0]]:  # the ground's frame is free altogether
            frame_turn[0], frame_shift[0] = sides.outer_turn[main[0]], sides.outer_shift[main[0]]
        self.frame_turn, self.frame_shift = frame_turn, frame_shift
        back = np.swapaxes(frame_turn[self.parent], -1, -2)
        place_turn = back @ sides.outer_turn
        place_shift = np.einsum("nij,nj->ni", back, sides.outer_shift - frame_shift[self.parent])
        if (frame_turn[0] == sides.outer_turn[main[0]]).all():  # exactly, not but for rounding
            place_turn[main[0]] = np.eye(3)
        symbolic_place = np.zeros(n, dtype=bool)
        if self.parametric:
            symbolic_place[:] = [link in self.outer_symbol or int(self.parent[link]) in self.inner_symbol
                                 for link in range(n)]
        kind, entries, shift, rest, along = frames.placements(place_turn, place_shift, usable & ~symbolic_place)
        constants = np.zeros((n, max([3, *(len(j.constants()) for j in self.joints if j is not None)])))
        own: dict[int, tuple[Number, ...]] = {}
        for link, joint in enumerate(self.joints):
            values = joint.constants() if joint is not None else ()
            if self.parametric and has_parameter(values):
                own[link] = values
            elif any(values):
                constants[link, :len(values)] = values
        constants[:, 0] += np.where(usable, turn + rest, 0.0)
        constants[:, 1] += np.where(usable, slide + along, 0.0)
        for column, size in enumerate((1.0, self.length, self.length)):  # an angle and a length where frames are free
            own_size = float(np.abs(constants[:, column]).max())
            constants[:, column] = frames.snap(constants[:, column], max(size, own_size))
        self._place_bodies()
        inertia = self._inertias()
        tree = self._assemble(kind, entries, shift, constants, inertia)
        tree = add_loops(tree, mechanism=self.mechanism, topology=self.topology, builder=self)
        self._add_symbolic(tree, own, symbolic_place)
        return tree

    def _place_bodies(self) -> None:
        """Body poses in link frames."""
        back = np.swapaxes(self.frame_turn[self.link_of], -1, -2)
        self.body_link_shift = np.einsum("nij,nj->ni", back, self.body_shift - self.frame_shift[self.link_of])
        self.body_link_turn = frames.snap(back @ self.body_turn)
        scale = max(1e-300, float(np.abs(self.body_link_shift).max()))
        self.body_link_shift = frames.snap(self.body_link_shift, scale)
        self.body_link_symbol: dict[int, tuple[Number, ...]] = {}
        for b in range(self.nb) if self.parametric else ():
            link = int(self.link_of[b])
            if b in self.body_symbol or link in self.inner_symbol:
                base = self.inner_symbol.get(link, tuple(self.frame_shift[link].tolist()))
                mine = self.body_symbol.get(b, tuple(self.body_shift[b].tolist()))
                self.body_link_symbol[b] = _times(self.frame_turn[link].T, _sub(mine, base))

    def _inertias(self) -> Floats:
        """Ten numbers per link about its frame's origin, parameters at their defaults."""
        self.inertia_symbol = {
            b for b, own in enumerate(self.inertias)
            if has_parameter((own.mass, *own.com, *own.inertia))} if self.parametric else set()
        mass, com, six = (self._gather([getattr(own, what) for own in self.inertias], width)
                          for what, width in (("mass", 1), ("com", 3), ("inertia", 6)))
        mass = mass[:, 0]
        about = six[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
        turn = self.body_link_turn
        centre = np.einsum("nij,nj->ni", turn, com) + self.body_link_shift
        second = turn @ about @ np.swapaxes(turn, -1, -2) + mass[:, None, None] * (
            (centre * centre).sum(-1)[:, None, None] * np.eye(3) - centre[:, :, None] * centre[:, None, :])
        ten = np.concatenate([mass[:, None], mass[:, None] * centre, second[:, 0, :], second[:, 1, 1:],
                              second[:, 2, 2:]], axis=1)
        total = np.zeros((len(self.heads), 10))
        np.add.at(total, self.link_of, ten)
        for part in (slice(1, 4), slice(4, 10)):
            size = np.abs(total[:, part]).max(-1, keepdims=True)
            total[:, part] = np.where(np.abs(total[:, part]) < 1e-16 * size, 0.0, total[:, part])
        total[0] = 0.0  # the ground carries what is welded to it
        return total + 0.0

    def _gather(self, values: Sequence[Any], width: int) -> Floats:
        """Numbers or tuples of numbers as an array (n, width), parameters at their defaults."""
        flat: Iterable[Number] = values if width == 1 else chain.from_iterable(values)
        if self.parametric:
            flat = map(self.mechanism.default, flat)
        return np.fromiter(flat, dtype=float, count=len(values) * width).reshape(-1, width)

    def _assemble(self, kind: Ints, entries: Floats, shift: Floats, constants: Floats, inertia: Floats) -> Tree:
        mechanism = self.mechanism
        records = [self.inboard[h] for h in self.heads]
        # q and u follow the order in which joints were added
        widths = np.array([(r.joint.nq, r.joint.nu) for r in mechanism.joints], dtype=np.int64)
        ends = np.cumsum(widths, axis=0)
        starts = np.concatenate([np.zeros((1, 2), dtype=np.int64), ends])
        inboard = np.array([self.topology.joint[h] for h in self.heads], dtype=np.int64)
        inboard[0] = 0
        q_start, u_start = starts[inboard, 0], starts[inboard, 1]
        for link, joint in enumerate(self.joints):
            if type(joint) is NodeMotion:  # it moves by the coordinates of its body
                q_start[link], u_start[link] = (start[self.parent[link]] for start in (q_start, u_start))
        nq, nu = (int(x) for x in ends[-1])
        members: list[tuple[int, ...]] = [(h,) for h in self.heads]
        if self.nb > len(self.heads):
            gathered: list[list[int]] = [[] for _ in self.heads]
            for b, link in enumerate(self.link_of.tolist()):
                gathered[link].append(b)
            members = [(h, *(b for b in part if b != h)) for h, part in zip(self.heads, gathered, strict=True)]
        self.starts = starts.tolist()
        return Tree(
            name=mechanism.name, link_names=tuple(self.bodies[h].name for h in self.heads), parent=self.parent,
            joints=tuple(self.joints), joint_names=tuple(r.name if r else "" for r in records),
            prescribed=tuple(r.prescribed if r else None for r in records),
            q_start=q_start, u_start=u_start, nq=nq, nu=nu,
            placement_kind=kind, placement_turn=entries, placement_shift=shift, joint_constants=constants,
            inertia=inertia, symbolic={}, body_names=tuple(b.name for b in self.bodies), body_link=self.link_of,
            body_turn=self.body_link_turn, body_shift=self.body_link_shift,
            body_shift_symbolic=self.body_link_symbol, members=tuple(members),
            ground_turn=self.frame_turn[0], ground_shift=self.frame_shift[0],
            gravity=mechanism.gravity, applied=self._applied(), parameters=dict(mechanism.parameters),
            frames={f.name: f for f in mechanism.frames},
            joint_order=tuple(r.name for r in mechanism.joints if r.name not in {c.weld for c in mechanism.carriers}),
            length=self.length,
            backwards=frozenset(k for k, h in enumerate(self.heads) if k and self.topology.backwards[h]))

    def frame_on_link(self, body: int, pose: Pose, align: Floats) -> tuple[int, Floats, tuple[Number, ...]]:
        """A frame given on a body, as its link, its axes and its origin in the link's frame."""
        turn = self.body_link_turn[body]
        at = _times(turn, pose.position)
        base = self.body_link_symbol.get(body, tuple(self.body_link_shift[body].tolist()))
        shift = _add(at, base)
        if not has_parameter(shift):
            shift = tuple(frames.snap(np.array(shift, dtype=float), self.length).tolist())
        axes = np.full((3, 3), np.nan) if has_parameter(pose.rows) else frames.snap(turn @ pose.rotation @ align)
        return int(self.link_of[body]), axes, shift

    def axes_on_link(self, body: int, pose: Pose, align: Floats) -> tuple[Number, ...]:
        """The axes of a frame in the link's, by rows, if they are parameters."""
        if not has_parameter(pose.rows):
            return ()
        columns = [_times(self.body_link_turn[body], pose.rows[i::3]) for i in range(3)]  # on the link
        return tuple(x for row in zip(*columns, strict=True) for x in _times(align.T, row))

    def _body_transform(self, b: int) -> Transform:
        turn, shift = self.body_link_turn[b].tolist(), self.body_link_shift[b].tolist()
        return Transform(General(Matrix3(*(Vector(*row) for row in turn))),
                         Vector(*self.body_link_symbol.get(b, shift)))

    def _applied(self) -> dict[int, tuple[Applied, ...]]:
        found: dict[int, tuple[Applied, ...]] = {}
        for w in self.mechanism.wrenches:
            link = int(self.link_of[w.body])
            if link == 0 or w.law is not None:
                continue
            pose = self._body_transform(w.body)
            axes = pose if w.axes == "body" else None
            found[link] = (*found.get(link, ()), Applied(w.moment, w.force, pose.point(Vector(*w.at)), axes, w.name))
        return found

    def _add_symbolic(self, tree: Tree, own: dict[int, tuple[Number, ...]], symbolic_place: Floats) -> None:
        """Numbers that depend on parameters, as expressions."""
        links = set(own) | {int(self.link_of[b]) for b in self.inertia_symbol | set(self.body_link_symbol)}
        links |= set(np.flatnonzero(symbolic_place).tolist())
        for link in sorted(links - {0}):
            plain = tree.numbers(link)
            placement = plain.placement
            if symbolic_place[link]:
                p = int(self.parent[link])
                here = self.outer_symbol.get(link)
                if here is None:
                    here = tuple(self._outer_default(link))
                base = self.inner_symbol.get(p, tuple(self.frame_shift[p].tolist()))
                local = _times(self.frame_turn[p].T, _sub(here, base))
                placement = Transform(placement.rotation, Vector(*local))
            inertia = RigidInertia.zero()
            for b in tree.members[link]:
                inertia = inertia + self._body_transform(b).rigid(self.inertias[b].rigid())
            origins = tuple(self._body_transform(b).translation for b in tree.members[link])
            constants = plain.joint
            if link in own:  # the frame's turn and slide come first, then the joint's own numbers
                constants = tuple(a + b for a, b in zip(constants, own[link], strict=True))
            tree.symbolic[link] = LinkNumbers(placement, constants, inertia, origins)

    def _outer_default(self, link: int) -> list[float]:
        _, shift, _ = self._poses([self.heads[link]], True)
        p = self.topology.parent[self.heads[link]]
        return [float(x) for x in self.body_turn[p] @ shift[0] + self.body_shift[p]]


def _turned_by_parameters(record: Connection | None) -> bool:
    return record is not None and (record.parent_pose.parametric or record.child_pose.parametric)


def _tree_joint(record: Connection, backwards: bool) -> Joint:
    """A joint as its outboard body sees it; turns of its frames that depend on parameters are among its numbers."""
    joint = _reversed(record) if backwards else record.joint
    if not _turned_by_parameters(record):
        return joint
    poses = (record.child_pose, record.parent_pose) if backwards else (record.parent_pose, record.child_pose)
    align = joint.alignment().ravel().tolist()
    return TurnedJoint(joint, *(product(pose.rows, align) for pose in poses))


def _reversed(record: Connection) -> Joint:
    """A joint that was given from the body towards its parent."""
    if isinstance(record.joint, (Modal, NodeMotion)):
        raise ModelError(f"the flexible body {record.name.partition('.')[0]!r} is carried by its node: its frame must "
                         "be on the side of the ground. Carry the body itself, write its modes with the frame held at "
                         "that node, or let the frame float, by bellcrank.Free() between the ground and the body")
    return record.joint.reversed()


def _alignments(joints: Sequence[Joint]) -> Floats:
    """Alignment matrices of many joints, shape (n, 3, 3); equal joints are asked once."""
    from bellcrank.mechanism.joints.joint import frame_with_z

    out = np.tile(np.eye(3), (len(joints), 1, 1))
    axial = [i for i, j in enumerate(joints) if j.has_free_frame]
    if axial:
        axes = chain.from_iterable(joints[i].axis for i in axial)  # type: ignore[attr-defined]
        out[axial] = frame_with_z(np.fromiter(axes, dtype=float, count=3 * len(axial)).reshape(-1, 3))
    for i, j in enumerate(joints):
        if not j.has_free_frame:
            out[i] = j.alignment()
    return out


def _times(turn: Floats, v: Sequence[Number]) -> tuple[Number, ...]:
    rows = turn.tolist()
    return tuple(r[0] * v[0] + r[1] * v[1] + r[2] * v[2] for r in rows)


def _add(a: Sequence[Number], b: Sequence[Number]) -> tuple[Number, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _sub(a: Sequence[Number], b: Sequence[Number]) -> tuple[Number, ...]:
    return tuple(x - y for x, y in zip(a, b, strict=True))


