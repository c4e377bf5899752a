// What is drawn over bodies on demand: arrows of forces and moments, axes of joints, frames, centers of mass, traces.
import {
  Color, DynamicDrawUsage, Group, InstancedMesh, Matrix4, MeshBasicMaterial, MeshStandardMaterial, Quaternion, Vector3,
} from "three";
import { Line2 } from "three/addons/lines/Line2.js";
import { LineGeometry } from "three/addons/lines/LineGeometry.js";
import { LineMaterial } from "three/addons/lines/LineMaterial.js";
import { UNIT, localMatrix } from "./bodies.js";

export const ARROWS = {
  reaction: { label: "reaction", force: "#d1495b", moment: "#8e5bb5" },
  spring: { label: "spring, damper", force: "#2a9d6f", moment: "#2a9d6f" },
  wrench: { label: "external", force: "#e07a1f", moment: "#e07a1f" },
};
const LONGEST = 3; // arrows are cut at this many times the length of the scale

const Z = new Vector3(0, 0, 1);
const at = new Vector3();
const vector = new Vector3();
const turn = new Quaternion();
const scale = new Vector3();
const matrix = new Matrix4();
const none = new Matrix4().makeScale(0, 0, 0);

const overlayMaterial = () => new MeshBasicMaterial({ depthTest: false, depthWrite: false, transparent: true, opacity: 0.92 });

function pool(geometry, material, count, order) {
  const mesh = new InstancedMesh(geometry, material, Math.max(count, 1));
  mesh.instanceMatrix.setUsage(DynamicDrawUsage);
  mesh.frustumCulled = false;
  mesh.renderOrder = order;
  mesh.raycast = () => {};
  if (!count) mesh.visible = false;
  return mesh;
}

export class Arrows {
  constructor(scene, models, motions) {
    this.group = new Group();
    this.factor = 1;
    this.scene = scene;
    this.models = models;
    this.items = [];
    for (const motion of motions) {
      for (const arrow of motion.track.arrows) {
        for (const part of ["force", "moment"]) {
          if (arrow[part]) this.items.push({ motion, arrow, part, color: ARROWS[arrow.kind][part] });
        }
      }
    }
    this.shafts = pool(UNIT.cylinder, overlayMaterial(), this.items.length, 20);
    this.heads = pool(UNIT.cone, overlayMaterial(), 2 * this.items.length, 21);
    const color = new Color();
    this.items.forEach((item, i) => {
      this.shafts.setColorAt(i, color.set(item.color));
      this.heads.setColorAt(2 * i, color);
      this.heads.setColorAt(2 * i + 1, color);
    });
    this.group.add(this.shafts, this.heads);
  }

  get kinds() {
    return [...new Set(this.items.map((i) => `${i.arrow.kind}.${i.part}`))].map((k) => k.split("."));
  }

  // The length [m] of an arrow of the scale's force or moment.
  unit(model) {
    return 0.75 * model.length * this.factor;
  }

  update() {
    this.items.forEach((item, i) => {
      const { motion, arrow, part } = item;
      const model = this.models[motion.track.model];
      for (let d = 0; d < 3; d++) vector.setComponent(d, motion.value(arrow[part], d));
      const size = vector.length();
      const unit = this.unit(model);
      const long = Math.min((size / this.scene.scales[part === "force" ? 0 : 1]) * unit, LONGEST * unit);
      const hidden = !motion.visible || motion.live || !(long > 0.02 * unit);
      if (hidden) {
        this.shafts.setMatrixAt(i, none);
        this.heads.setMatrixAt(2 * i, none);
        this.heads.setMatrixAt(2 * i + 1, none);
        return;
      }
      vector.divideScalar(size);
      turn.setFromUnitVectors(Z, vector);
      at.set(...arrow.point).applyMatrix4(motion.matrices[arrow.body]);
      const r = 0.5 * model.thickness;
      const head = Math.min(7 * r, 0.6 * long);
      const put = (mesh, k, from, length, radius) => {
        matrix.compose(at.clone().addScaledVector(vector, from + length / 2), turn, scale.set(radius, radius, length));
        mesh.setMatrixAt(k, matrix);
      };
      put(this.shafts, i, 0, long - head, r);
      put(this.heads, 2 * i, long - head, head, 2.6 * r);
      if (part === "moment") put(this.heads, 2 * i + 1, Math.max(0, long - 1.8 * head), head, 2.6 * r);
      else this.heads.setMatrixAt(2 * i + 1, none);
    });
    this.shafts.instanceMatrix.needsUpdate = true;
    this.heads.instanceMatrix.needsUpdate = true;
  }
}

// Things that stay where they are on their bodies: [motion, body, matrix, color].
class Fixed {
  constructor(geometry, material, items, order = 12) {
    this.items = items;
    this.mesh = pool(geometry, material, items.length, order);
    const color = new Color();
    items.forEach((item, i) => this.mesh.setColorAt(i, color.set(item[3])));
  }

  update() {
    this.items.forEach(([motion, body, local], i) => {
      if (motion.visible) this.mesh.setMatrixAt(i, matrix.multiplyMatrices(motion.matrices[body], local));
      else this.mesh.setMatrixAt(i, none);
    });
    this.mesh.instanceMatrix.needsUpdate = true;
  }
}

class Sets {
  constructor(sets) {
    this.sets = sets;
    this.group = new Group();
    for (const set of sets) this.group.add(set.mesh);
  }

  update() {
    for (const set of this.sets) set.update();
  }
}

function axisRod(pose, axis, radius, length, from = -0.5) {
  const [w, x, y, z] = pose.slice(3);
  const direction = new Vector3(...axis).applyQuaternion(new Quaternion(x, y, z, w));
  const q = new Quaternion().setFromUnitVectors(Z, direction);
  const p = new Vector3(...pose.slice(0, 3)).addScaledVector(direction, (from + 0.5) * length);
  return localMatrix(p.toArray(), [q.w, q.x, q.y, q.z], [radius, radius, length]);
}

export function jointAxes(models, motions) {
  const items = [];
  for (const motion of motions) {
    const model = models[motion.track.model];
    for (const joint of model.joints) {
      for (const axis of joint.axes) {
        items.push([motion, joint.parent, axisRod(joint.parent_pose, axis, 0.22 * model.thickness, 0.7 * model.length),
          joint.closing ? "#e07a1f" : "#1f8fe0"]);
      }
    }
  }
  return new Sets([new Fixed(UNIT.cylinder, overlayMaterial(), items, 14)]);
}

export function bodyFrames(models, motions) {
  const items = [];
  const axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  const colors = ["#d94a4a", "#3fa35a", "#3b7dd8"];
  for (const motion of motions) {
    const model = models[motion.track.model];
    model.bodies.forEach((body, b) => axes.forEach((axis, i) => {
      const rod = axisRod([0, 0, 0, 1, 0, 0, 0], axis, 0.25 * model.thickness, 0.28 * model.length, 0);
      items.push([motion, b, rod, colors[i]]);
    }));
  }
  return new Sets([new Fixed(UNIT.cylinder, overlayMaterial(), items, 15)]);
}

export function masses(models, motions) {
  const points = [];
  const shells = [];
  for (const motion of motions) {
    const model = models[motion.track.model];
    model.bodies.forEach((body, b) => {
      if (!body.ellipsoid) return;
      const r = 0.9 * model.thickness;
      points.push([motion, b, localMatrix(body.com, [1, 0, 0, 0], [r, r, r]), "#f2b134"]);
      const half = body.ellipsoid[0].map((h) => Math.max(h, 0.3 * model.thickness));
      shells.push([motion, b, localMatrix(body.com, body.ellipsoid[1], half), "#f2b134"]);
    });
  }
  const glass = new MeshStandardMaterial({ transparent: true, opacity: 0.28, depthWrite: false, roughness: 0.6 });
  return new Sets([new Fixed(UNIT.sphere, overlayMaterial(), points, 16), new Fixed(UNIT.sphere, glass, shells, 11)]);
}

export class Traces {
  constructor(scene, motions) {
    this.group = new Group();
    this.scene = scene;
    this.motions = motions;
    this.lines = [];
    for (const trace of scene.traces) this.add(trace);
  }

  add(trace) {
    this.motions.forEach((motion, index) => {
      if (motion.frames < 2) return;
      const points = new Float32Array(3 * motion.frames);
      for (let f = 0; f < motion.frames; f++) motion.pointAt(trace.body, trace.point, f, at).toArray(points, 3 * f);
      const palette = ["#d1495b", "#1f8fe0", "#2a9d6f", "#e07a1f", "#8e5bb5"];
      const color = motion.track.color
        ? new Color().setRGB(...motion.track.color, "srgb") : new Color(palette[(this.lines.length >> 1) % 5]);
      const make = (opacity, width) => {
        const geometry = new LineGeometry();
        geometry.setPositions(points);
        const line = new Line2(geometry, new LineMaterial({ color, linewidth: width, transparent: true, opacity,
          depthWrite: false }));
        line.frustumCulled = false;
        line.raycast = () => {};
        this.group.add(line);
        return line;
      };
      this.lines.push({ motion, index, trace, whole: make(0.4, 1.6), past: make(0.95, 2.6) });
    });
    this.update();
  }

  clear() {
    for (const line of this.lines) {
      for (const part of [line.whole, line.past]) {
        part.geometry.dispose();
        part.material.dispose();
        part.removeFromParent();
      }
    }
    this.lines = [];
  }

  update() {
    for (const { motion, whole, past } of this.lines) {
      whole.visible = past.visible = motion.visible;
      whole.position.copy(motion.offset);
      past.position.copy(motion.offset);
      past.geometry.instanceCount = Math.max(motion.frame, 0);
    }
  }

  resize(width, height) {
    for (const { whole, past } of this.lines) {
      whole.material.resolution.set(width, height);
      past.material.resolution.set(width, height);
    }
  }
}
