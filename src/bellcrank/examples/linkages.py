"""Planar linkages. They lie in the x-y plane with pins along z; gravity acts along -y.

Modelled in space, each planar loop has three constraints more than it needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraints import RollingDisk
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Planar, Prismatic, Revolute, Spherical, Universal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number

__all__ = ["Point", "andrews", "bar", "cross", "direction", "double_wishbone", "five_bar", "four_bar", "jansen",
           "quarter_car", "redundant_five_bar", "scissor_lift", "slender", "slider_crank", "truss", "vee",
           "whipple_bicycle"]

# -- shapes and points that the built-in machines share ---------------------------------------------
Point = tuple[float, float, float]


def bar(mass: float, start: Sequence[float], end: Sequence[float], radius: float) -> Inertia:
    """A solid round bar between two points: unlike `Inertia.rod`, it has inertia about its own axis."""
    length = math.dist(start, end)
    return _round(mass, start, end, mass * radius**2 / 2.0, mass * (3.0 * radius**2 + length**2) / 12.0)


def slender(mass: float, start: Sequence[float], end: Sequence[float], along: float) -> Inertia:
    """A slender rod between two points with the given inertia `along` its axis [kg m^2]."""
    return _round(mass, start, end, along, mass * math.dist(start, end) ** 2 / 12.0)


def _round(mass: float, start: Sequence[float], end: Sequence[float], along: float, across: float) -> Inertia:
    x, y, z = direction(start, end)
    more = along - across
    return Inertia(mass, [0.5 * (a + b) for a, b in zip(start, end, strict=True)],
                   [[across + more * x * x, more * x * y, more * x * z],
                    [more * x * y, across + more * y * y, more * y * z],
                    [more * x * z, more * y * z, across + more * z * z]])


def truss(mass: float, corners: Sequence[Sequence[float]], radius: float) -> Inertia:
    """Bars around a polygon, welded at its corners; the mass is shared by length."""
    sides = [(a, b) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]
    around = math.fsum(math.dist(a, b) for a, b in sides)
    first, *others = (bar(mass * math.dist(a, b) / around, a, b, radius) for a, b in sides)
    return first.combined(*others)


def vee(mass: float, a: Sequence[float], b: Sequence[float], c: Sequence[float], radius: float) -> Inertia:
    """Two bars from `a` and from `b` to `c`, such as a wishbone."""
    first, second = math.dist(a, c), math.dist(b, c)
    return bar(mass * first / (first + second), a, c, radius).combined(
        bar(mass * second / (first + second), b, c, radius))


def direction(start: Sequence[float], end: Sequence[float]) -> Point:
    """The unit vector from one point to another."""
    length = math.dist(start, end)
    x, y, z = ((b - a) / length for a, b in zip(start, end, strict=True))
    return x, y, z


def cross(a: Sequence[float], b: Sequence[float]) -> Point:
    """The vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def meet(p: Sequence[float], from_p: float, q: Sequence[float], from_q: float) -> Point:
    """The point of the x-y plane at given distances from p and q, to the left of the way from p to q."""
    x, y, far = q[0] - p[0], q[1] - p[1], math.dist(p, q)
    along = (far**2 + from_p**2 - from_q**2) / (2.0 * far)
    if abs(along) >= from_p:
        raise ModelError(f"bars of {from_p:g} m and {from_q:g} m do not meet over a distance of {far:g} m")
    off = math.sqrt(from_p**2 - along**2)
    return p[0] + (along * x - off * y) / far, p[1] + (along * y + off * x) / far, 0.0


DOWN = (0.0, -9.81, 0.0)
PIN = Revolute("z")


def four_bar() -> Mechanism:
    """A crank, a coupler and a rocker of slender rods (Saha & Schiehlen, section VI.A). One degree of
    freedom: drive the crank "A".

    Angles are relative, zero with all rods along x: there the loop is open. It is closed for instance at
    A = 0.5235987755982989, B = -0.08225408972428526, C = -2.2889728841449624; D is always -(A + B + C).
    """
    m = Mechanism("four-bar", gravity=DOWN)
    crank = m.add_body("crank", Inertia.rod(1.5, (0, 0, 0), (0.3, 0, 0)))
    coupler = m.add_body("coupler", Inertia.rod(5.0, (0, 0, 0), (1.0, 0, 0)))
    rocker = m.add_body("rocker", Inertia.rod(3.0, (0, 0, 0), (0.6, 0, 0)))
    m.add_joint("A", PIN, m.ground, crank)
    m.add_joint("B", PIN, crank, coupler, Pose((0.3, 0, 0)))
    m.add_joint("C", PIN, coupler, rocker, Pose((1.0, 0, 0)))
    m.add_joint("D", PIN, rocker, m.ground, Pose((0.6, 0, 0)), Pose((1.0, 0, 0)))
    return m


def slider_crank() -> Mechanism:
    """Crank, connecting rod and piston, in the design position with the crank at 60 degrees. One degree of
    freedom: drive "crank" (an engine turned by hand) or "slide" (the gas force)."""
    m = Mechanism("slider-crank", gravity=DOWN)
    pin = (0.05 * math.cos(math.pi / 3), 0.05 * math.sin(math.pi / 3), 0.0)
    wrist = (pin[0] + math.sqrt(0.16**2 - pin[1] ** 2), 0.0, 0.0)
    shaft = Inertia.cylinder(3.0, 0.06, 0.03)
    crank = m.add_body("crank", shaft.combined(bar(0.4, (0, 0, 0), pin, 0.015)))
    rod = m.add_body("rod", bar(0.5, pin, wrist, 0.012))
    piston = m.add_body("piston", Inertia.cylinder(0.45, 0.04, 0.06, "x", wrist))
    m.add_joint("crank", PIN, m.ground, crank, at=(0, 0, 0))
    m.add_joint("big_end", PIN, crank, rod, at=pin)
    m.add_joint("slide", Prismatic("x"), m.ground, piston, at=wrist)
    m.add_joint("small_end", PIN, rod, piston, at=wrist)
    return m


def _leg(m: Mechanism, leg: int, base: tuple[float, float], lengths: tuple[float, float],
         masses: tuple[float, float]) -> None:
    """Two slender rods in series on the ground, along x at q = 0."""
    for k in (1, 2):
        m.add_body(f"link{leg}.{k}", Inertia.rod(masses[k - 1], (0, 0, 0), (lengths[k - 1], 0, 0)))
    m.add_joint(f"leg{leg}.1", PIN, m.ground, f"link{leg}.1", Pose((*base, 0)))
    m.add_joint(f"leg{leg}.2", PIN, f"link{leg}.1", f"link{leg}.2", Pose((lengths[0], 0, 0)))


def five_bar() -> Mechanism:
    """A planar parallel manipulator of two legs (Saha & Schiehlen, section VI.B). Two degrees of freedom:
    drive "leg1.1" and "leg2.1".

    "tip" measures the outer link of leg 1 from that of leg 2. Angles are relative, zero with all rods along
    x: there the loop is open. It is closed for instance, elbows up, at leg1 = (0.5235987755982989,
    0.18094328460308903), leg2 = (0.5235987755982989, 1.6423431861928717), tip = -1.4613999015897827.
    """
    m = Mechanism("five-bar", gravity=DOWN)
    _leg(m, 1, (0.0, 0.0), (0.6, 1.1), (3.0, 1.6))
    _leg(m, 2, (1.2, 0.0), (0.7, 0.8), (2.0, 1.1))
    m.add_joint("tip", PIN, "link2.2", "link1.2", Pose((0.8, 0, 0)), Pose((1.1, 0, 0)))
    return m


def redundant_five_bar() -> Mechanism:
    """Three legs of two slender rods pinned together at one point, with torsion springs at the three bases
    (after Anderson & Critchley, section 4.2). Two degrees of freedom and three base joints to drive.

    "tip2" and "tip3" measure the outer link of leg 1 from those of legs 2 and 3. Angles are relative, zero
    with all rods along x: there the loops are open. They are closed for instance at
    leg1 = (-0.3204902995670617, 1.9823131728623846), leg2 = (3.6794178047978123, -1.8063005635156963),
    leg3 = (-0.5747278096033849, -2.005995380755989).
    """
    m = Mechanism("redundant five-bar", gravity=DOWN)
    _leg(m, 1, (0.0, 0.0), (0.5, 0.6), (1.2, 0.9))
    _leg(m, 2, (1.0, 0.05), (0.45, 0.65), (1.0, 1.1))
    _leg(m, 3, (0.55, 0.95), (0.4, 0.55), (0.8, 0.7))
    m.add_joint("tip2", PIN, "link2.2", "link1.2", Pose((0.65, 0, 0)), Pose((0.6, 0, 0)))
    m.add_joint("tip3", PIN, "link3.2", "link1.2", Pose((0.55, 0, 0)), Pose((0.6, 0, 0)))
    for leg, rest in enumerate((-0.40843914185623786, 3.820338233310322, -0.46730354344408376), start=1):
        m.add_joint_spring(f"spring{leg}", f"leg{leg}.1", stiffness=60.0, rest=rest)
    return m


def jansen() -> Mechanism:
    """A leg of Theo Jansen's strandbeest, with his "holy numbers" in centimetres, in the design position
    with the crank at 60 degrees. One degree of freedom: drive "crank". The frame "toe" walks."""
    m = Mechanism("jansen", gravity=DOWN)
    per_metre, radius = 0.4, 0.01  # plastic tube [kg/m, m]
    axle, hub = (0.0, 0.0, 0.0), (-0.38, -0.078, 0.0)
    pin = (0.15 * math.cos(math.pi / 3), 0.15 * math.sin(math.pi / 3), 0.0)
    top = meet(hub, 0.415, pin, 0.50)
    back = meet(hub, 0.401, top, 0.558)
    knee = meet(pin, 0.619, hub, 0.393)
    heel = meet(knee, 0.367, back, 0.394)
    toe = meet(knee, 0.49, heel, 0.657)
    crank = m.add_body("crank", bar(0.5, axle, pin, 0.02))
    for name, start, end in (("upper_rod", pin, top), ("lower_rod", pin, knee), ("link", hub, knee),
                             ("rear_link", back, heel)):
        m.add_body(name, bar(per_metre * math.dist(start, end), start, end, radius))
    for name, corners in (("rocker", (hub, top, back)), ("foot", (knee, heel, toe))):
        length = sum(math.dist(a, b) for a, b in zip(corners, (*corners[1:], corners[0]), strict=True))
        m.add_body(name, truss(per_metre * length, corners, radius))
    m.add_joint("crank", PIN, m.ground, crank, at=axle)
    m.add_joint("hub_rocker", PIN, m.ground, "rocker", at=hub)
    m.add_joint("hub_link", PIN, m.ground, "link", at=hub)
    m.add_joint("pin_upper", PIN, crank, "upper_rod", at=pin)
    m.add_joint("pin_lower", PIN, crank, "lower_rod", at=pin)
    m.add_joint("top", PIN, "upper_rod", "rocker", at=top)
    m.add_joint("knee", PIN, "link", "lower_rod", at=knee)
    m.add_joint("back", PIN, "rocker", "rear_link", at=back)
    m.add_joint("shank", PIN, "link", "foot", at=knee)
    m.add_joint("heel", PIN, "rear_link", "foot", at=heel)
    m.add_frame("toe", "foot", Pose(toe))
    return m


def andrews() -> Mechanism:
    """Andrews' squeezer mechanism: seven bodies K1..K7, the classic benchmark of multibody codes (Schiehlen
    1990, Multibody Systems Handbook; Hairer & Wanner, section VII.7), with its spring and the drive of
    0.033 N m on K1, without gravity. One degree of freedom: drive "O".

    The design position is the published initial one, in which O, F and E lie on a line. The benchmark's
    angles from there on: beta = O - 0.0617138900142764, Theta = F, gamma = B + 0.455279819163070,
    Phi = G + 0.222668390165886, delta = A5 + 0.487364979543843, Omega = H - 0.222668390165886,
    epsilon = A7 + 1.23054744454982.
    Out of the plane the inertias, which do not matter, are those of flat plates.
    """
    m = Mechanism("andrews", gravity=(0, 0, 0))
    beta, gamma, phi = -0.0617138900142764496, 0.455279819163070380, 0.222668390165885885
    delta, omega, epsilon = 0.487364979543842550, -0.222668390165885885, 1.23054744454982119
    c_gamma, s_gamma = math.cos(gamma), math.sin(gamma)
    c_delta, s_delta = math.cos(delta), math.sin(delta)
    c_epsilon, s_epsilon = math.cos(epsilon), math.sin(epsilon)
    a, b, c = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0), (0.014, 0.072, 0.0)

    def on(origin: tuple[float, float, float], x: float, y: float) -> tuple[float, float, float]:
        return origin[0] + x, origin[1] + y, 0.0

    o = (0.0, 0.0, 0.0)
    f = on(o, 0.007 * math.cos(beta), 0.007 * math.sin(beta))
    e = on(f, -0.028 * math.cos(beta), -0.028 * math.sin(beta))
    d = on(b, 0.018 * s_gamma + 0.02 * c_gamma, -0.018 * c_gamma + 0.02 * s_gamma)
    g = on(a, 0.04 * c_delta, 0.04 * s_delta)
    h = on(a, 0.04 * s_epsilon, -0.04 * c_epsilon)
    for name, mass, inertia, com in (
            ("K1", 0.04325, 2.194e-6, on(o, 0.00092 * math.cos(beta), 0.00092 * math.sin(beta))),
            ("K2", 0.00365, 4.410e-7, on(f, -0.0115 * math.cos(beta), -0.0115 * math.sin(beta))),
            ("K3", 0.02373, 5.255e-6, on(b, 0.01874 * s_gamma + 0.01043 * c_gamma,
                                         -0.01874 * c_gamma + 0.01043 * s_gamma)),
            ("K4", 0.00706, 5.667e-7, on(g, 0.00579 * math.sin(phi + delta), -0.00579 * math.cos(phi + delta))),
            ("K5", 0.07050, 1.169e-5, on(a, 0.02308 * c_delta - 0.00916 * s_delta,
                                         0.02308 * s_delta + 0.00916 * c_delta)),
            ("K6", 0.00706, 5.667e-7, on(h, 0.00579 * math.cos(omega + epsilon), 0.00579 * math.sin(omega + epsilon))),
            ("K7", 0.05498, 1.912e-5, on(a, 0.01228 * s_epsilon - 0.00449 * c_epsilon,
                                         -0.01228 * c_epsilon - 0.00449 * s_epsilon))):
        m.add_body(name, Inertia(mass, com, (inertia / 2, inertia / 2, inertia)))
    for name, parent, child, at in (("O", "ground", "K1", o), ("F", "K1", "K2", f), ("B", "ground", "K3", b),
                                    ("A5", "ground", "K5", a), ("A7", "ground", "K7", a), ("G", "K5", "K4", g),
                                    ("H", "K7", "K6", h), ("E3", "K2", "K3", e), ("E4", "K2", "K4", e),
                                    ("E6", "K2", "K6", e)):
        m.add_joint(name, PIN, parent, child, at=at)
    m.add_spring("spring", m.ground, "K3", c, d, stiffness=4530.0, length=0.07785)
    m.add_wrench("drive", "K1", moment=(0.0, 0.0, 0.033))
    return m


def scissor_lift(stages: int = 3) -> Mechanism:
    """A lifting table: pairs of bars crossing at their centres, one lower end pinned to the ground and one on
    a slider, the platform pinned and sliding likewise. One degree of freedom for any number of stages:
    drive "slide"."""
    if stages < 1:
        raise ModelError(f"scissor_lift: needs at least one stage, got {stages}")
    m = Mechanism(f"scissor lift of {stages}", gravity=DOWN)
    length, angle, block = 1.2, 0.5, (0.1, 0.05, 0.1)
    span, rise = length * math.cos(angle), length * math.sin(angle)
    corner = (span, 0.0, 0.0)
    slider = m.add_body("slider", Inertia.box(2.0, block, corner))
    m.add_joint("slide", Prismatic("x"), m.ground, slider, at=corner)
    # what carries the left and the right lower end of the next stage
    left, right = m.ground, slider
    for k in range(1, stages + 1):
        low, high = (k - 1) * rise, k * rise
        ends = (0.0, low, 0.0), (span, high, 0.0), (span, low, 0.0), (0.0, high, 0.0)
        up = m.add_body(f"up{k}", bar(6.0, ends[0], ends[1], 0.02))
        down = m.add_body(f"down{k}", bar(6.0, ends[2], ends[3], 0.02))
        m.add_joint(f"left{k}", PIN, left, up, at=ends[0])
        m.add_joint(f"right{k}", PIN, right, down, at=ends[2])
        m.add_joint(f"centre{k}", PIN, up, down, at=(span / 2, (low + high) / 2, 0.0))
        left, right = down, up
    height = stages * rise
    platform = m.add_body("platform", Inertia.box(25.0, (1.3, 0.05, 0.8), (span / 2, height, 0.0)))
    top = m.add_body("top_slider", Inertia.box(2.0, block, (span, height, 0.0)))
    m.add_joint("top_left", PIN, left, platform, at=(0.0, height, 0.0))
    m.add_joint("top_slide", Prismatic("x"), platform, top, at=(span, height, 0.0))
    m.add_joint("top_right", PIN, right, top, at=(span, height, 0.0))
    return m


# -- wheel suspensions with the chassis as ground: x forward, y outward, z up; and a bicycle on its road ---
BALL = Spherical()


def quarter_car(parameters: bool = False) -> Mechanism:
    """A five-link suspension with the counts of Kang & Yoon: a lower arm, the knuckle with the wheel on a ball
    joint, two upper links and a tie rod, one spring with damper. In the design position. One degree of
    freedom: drive "arm". There is no tyre: the wheel hangs on the spring. With `parameters`, the spring's "stiffness"
    [N/m], "damping" [N s/m] and "length" [m] at rest stay inputs."""
    m = Mechanism("quarter car")
    spring: dict[str, Number] = {"stiffness": 25000.0, "damping": 1000.0, "length": 0.41}
    if parameters:
        spring = {name: m.parameter(name, float(value)) for name, value in spring.items()}
    a1, a2, b = (0.15, 0.35, 0.2), (-0.2, 0.36, 0.21), (0.01, 0.7, 0.18)
    c1, d1 = (0.1, 0.42, 0.5), (0.02, 0.66, 0.52)
    c2, d2 = (-0.14, 0.43, 0.49), (-0.04, 0.66, 0.51)
    e, f = (-0.14, 0.38, 0.25), (-0.13, 0.69, 0.245)
    arm = m.add_body("lower_arm", Inertia(4.0, (-0.02, 0.52, 0.195), [[0.045, 0.002, 0.0], [0.002, 0.04, 0.001],
                                                                      [0.0, 0.001, 0.075]]))
    knuckle = m.add_body("knuckle_wheel", Inertia(35.0, (0.0, 0.74, 0.31), [[0.9, 0.01, 0.005], [0.01, 1.6, -0.02],
                                                                            [0.005, -0.02, 0.92]]))
    m.add_joint("arm", Revolute(direction(a1, a2)), m.ground, arm, at=a1)
    m.add_joint("knuckle", BALL, arm, knuckle, at=b)
    links = (("upper_link_front", 0.8, c1, d1), ("upper_link_rear", 0.8, c2, d2), ("tie_rod", 0.6, e, f))
    for name, mass, inner, outer in links:
        body = m.add_body(name, slender(mass, inner, outer, along=2.5e-4 * mass))
        m.add_joint(name, Universal("x", cross((1, 0, 0), direction(inner, outer))), m.ground, body, at=inner)
    for name, _, _, outer in links:
        m.add_joint(f"{name}_ball", BALL, name, knuckle, at=outer)
    m.add_spring("spring", m.ground, arm, (-0.02, 0.45, 0.62), (-0.01, 0.56, 0.2), **spring)
    return m


def double_wishbone() -> Mechanism:
    """A steered front suspension: two wishbones, the knuckle between their ball joints, a tie rod from the
    steering rack, the wheel on its bearing, a spring with damper. In the design position. Three degrees of
    freedom: drive "lower_arm" (bump), "rack" (steer) and "wheel" (roll)."""
    m = Mechanism("double wishbone")
    lower_front, lower_rear, lower_ball = (0.2, 0.35, 0.2), (-0.16, 0.36, 0.21), (0.01, 0.72, 0.19)
    upper_front, upper_rear, upper_ball = (0.12, 0.42, 0.48), (-0.14, 0.44, 0.47), (-0.015, 0.66, 0.5)
    inner, outer, centre = (-0.14, 0.33, 0.26), (-0.13, 0.68, 0.27), (0.0, 0.76, 0.32)
    lower = m.add_body("lower_arm", vee(4.2, lower_front, lower_rear, lower_ball, 0.018))
    upper = m.add_body("upper_arm", vee(2.1, upper_front, upper_rear, upper_ball, 0.014))
    upright = bar(5.0, lower_ball, upper_ball, 0.03)
    knuckle = m.add_body("knuckle", upright.combined(bar(1.2, (-0.005, 0.69, 0.28), outer, 0.015),
                                                     Inertia.cylinder(3.0, 0.04, 0.1, "y", (0.0, 0.71, 0.32))))
    rack = m.add_body("rack", Inertia.cylinder(2.5, 0.015, 0.6, "y", (-0.14, 0.03, 0.26)))
    tie_rod = m.add_body("tie_rod", bar(0.7, inner, outer, 0.009))
    wheel = m.add_body("wheel", Inertia.cylinder(21.0, 0.3, 0.2, "y", centre))
    m.add_joint("lower_arm", Revolute(direction(lower_rear, lower_front)), m.ground, lower, at=lower_front)
    m.add_joint("knuckle", BALL, lower, knuckle, at=lower_ball)
    m.add_joint("wheel", Revolute("y"), knuckle, wheel, at=centre)
    m.add_joint("upper_arm", Revolute(direction(upper_rear, upper_front)), m.ground, upper, at=upper_front)
    m.add_joint("rack", Prismatic("y"), m.ground, rack, at=inner)
    m.add_joint("tie_rod", Universal("x", cross((1, 0, 0), direction(inner, outer))), rack, tie_rod, at=inner)
    m.add_joint("upper_ball", BALL, upper, knuckle, at=upper_ball)
    m.add_joint("tie_rod_ball", BALL, tie_rod, knuckle, at=outer)
    m.add_spring("spring", m.ground, lower, (0.0, 0.46, 0.62), (0.0, 0.58, 0.2), stiffness=32000.0, damping=1800.0,
                 length=0.445)
    return m


def whipple_bicycle(free: bool = False) -> Mechanism:
    """Whipple's bicycle with the numbers of Meijaard, Papadopoulos, Ruina and Schwab (2007, Proc. R. Soc. A 463): a
    rigid rider on the frame, two thin wheels that roll without slip. x ahead, y left, z up (theirs: y right, z down);
    origin under the rear wheel of the upright bicycle. Seven coordinates can be chosen, three speeds are independent,
    such as "lean", "steer" and "rear". The frame stands as yaw ("place", with x and y), height, lean and pitch, or with
    `free` in one joint "free"."""
    m = Mechanism("Whipple bicycle", gravity=(0.0, 0.0, -9.81))
    rear, front, tilt = (0.0, 0.0, 0.3), (1.02, 0.0, 0.35), math.pi / 10.0
    frame = m.add_body("frame", Inertia(85.0, (0.3, 0.0, 0.9), [[9.2, 0, -2.4], [0, 11.0, 0], [-2.4, 0, 2.8]]))
    fork = m.add_body("fork", Inertia(4.0, (0.9, 0.0, 0.7), [[0.05892, 0, 0.00756], [0, 0.06, 0],
                                                             [0.00756, 0, 0.00708]]))
    m.add_body("rear_wheel", Inertia(2.0, rear, (0.0603, 0.12, 0.0603)))
    m.add_body("front_wheel", Inertia(3.0, front, (0.1405, 0.28, 0.1405)))
    if free:
        m.add_joint("free", Free(), m.ground, frame, at=(0, 0, 0))
    else:
        for name in ("track", "riser", "hull"):
            m.add_body(name, Inertia())
        m.add_joint("place", Planar("z"), m.ground, "track", at=(0, 0, 0))
        m.add_joint("height", Prismatic("z"), "track", "riser", at=(0, 0, 0))
        m.add_joint("lean", Revolute("x"), "riser", "hull", at=(0, 0, 0))
        m.add_joint("pitch", Revolute("y"), "hull", frame, at=(0, 0, 0))
    m.add_joint("steer", Revolute((-math.sin(tilt), 0.0, math.cos(tilt))), frame, fork, at=(1.1, 0, 0))
    for end, body, centre in (("rear", frame, rear), ("front", fork, front)):
        m.add_joint(end, Revolute("y"), body, f"{end}_wheel", at=centre)
        m.add_constraint(f"{end}_road", RollingDisk(centre[2]), m.ground, f"{end}_wheel", child_pose=Pose(centre))
    return m
