"""A four-bar linkage: assemble it, ask what it is, drive it, look at its reactions; then a ladder of 1000 cells."""

from __future__ import annotations

import time

import numpy as np

import bellcrank as bc

m = bc.Mechanism("four-bar", gravity=(0, -9.81, 0))
crank = m.add_body("crank", bc.Inertia.rod(1.5, (0, 0, 0), (0.3, 0, 0)))
coupler = m.add_body("coupler", bc.Inertia.rod(5.0, (0, 0, 0), (1.0, 0, 0)))
rocker = m.add_body("rocker", bc.Inertia.rod(3.0, (0, 0, 0), (0.6, 0, 0)))
m.add_joint("A", bc.Revolute("z"), m.ground, crank)
m.add_joint("B", bc.Revolute("z"), crank, coupler, parent_pose=bc.Pose((0.3, 0, 0)))
m.add_joint("C", bc.Revolute("z"), coupler, rocker, parent_pose=bc.Pose((1.0, 0, 0)))
m.add_joint("D", bc.Revolute("z"), rocker, m.ground, parent_pose=bc.Pose((0.6, 0, 0)), child_pose=bc.Pose((1.0, 0, 0)))

linkage = bc.compile(m, actuated=["A"])
print(bc.analyze.explain(linkage), "\n")

state = linkage.assemble(q={"A": np.pi / 2}, u={"A": 2.0})
print("loop error        ", np.abs(linkage.loop_error(state)).max(), "m")
print("free accelerations", linkage.forward_dynamics(state))
udot = linkage.consistent_acceleration(state, {"A": 3.0})
print("crank torque for 3 rad/s^2", linkage.inverse_dynamics(state, udot)[0], "N m")
print("force in pin D    ", linkage.reactions(state)["D"][3:], "N\n")

ladder = bc.compile(bc.load("ladder", cells=1000))
closed = ladder.assemble(q={"arm0": [0.6, 0.4]}, u={"arm0": [-0.5, 1.0]})
call = ladder.bind("forward_dynamics", closed.q, closed.u, np.zeros(ladder.nu))
call()
start = time.perf_counter()
for _ in range(100):
    call()
micro = (time.perf_counter() - start) / 100 * 1e6
print(f"ladder of {ladder.nu} speeds and {len(ladder.loops)} loops, {ladder.dof} degrees of freedom: {micro:.0f} µs")
