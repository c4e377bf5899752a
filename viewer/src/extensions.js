// Springs as coils, dampers as cylinders with rods, rods of fixed length; and bodies that deform.
import {
  BufferAttribute, BufferGeometry, Color, Curve, DoubleSide, Group, Mesh, MeshStandardMaterial, Quaternion, TubeGeometry,
  Vector3,
} from "three";
import { UNIT } from "./bodies.js";

const Z = new Vector3(0, 0, 1);
const a = new Vector3();
const b = new Vector3();
const turn = new Quaternion();

class Helix extends Curve {
  constructor(radius, length, coils) {
    super();
    Object.assign(this, { radius, length, coils });
  }

  getPoint(s, target = new Vector3()) {
    const ramp = Math.min(1, s / 0.08, (1 - s) / 0.08); // ends lie on the axis
    const angle = 2 * Math.PI * this.coils * s;
    return target.set(this.radius * ramp * Math.cos(angle), this.radius * ramp * Math.sin(angle), this.length * s);
  }
}

const material = (color) => new MeshStandardMaterial({ color, roughness: 0.4, metalness: 0.25 });

export class Extensions {
  constructor(models, motions) {
    this.group = new Group();
    this.items = [];
    motions.forEach((motion) => {
      for (const e of models[motion.track.model].extensions) this.#add(motion, e);
    });
    this.update();
  }

  #add(motion, e) {
    this.#ends(motion, e);
    const length = Math.max(a.distanceTo(b), 1e-6);
    const tint = motion.track.color ? new Color().setRGB(...motion.track.color, "srgb") : null;
    const item = { motion, e, length, node: new Group() };
    const put = (geometry, color) => {
      const mesh = new Mesh(geometry, material(tint ?? color));
      mesh.castShadow = true;
      item.node.add(mesh);
      return mesh;
    };
    if (e.kind === "spring") {
      const coils = Math.max(5, Math.min(14, Math.round(length / (1.6 * e.radius))));
      item.coil = put(new TubeGeometry(new Helix(e.radius, length, coils), coils * 18, e.radius * 0.16, 7), 0x6b7f95);
    } else if (e.kind === "damper") {
      item.rod = put(UNIT.cylinder, 0x9aa5b1);
      item.body = put(UNIT.cylinder, 0x56657a);
    } else {
      item.rod = put(UNIT.cylinder, 0x7d8597);
    }
    this.items.push(item);
    this.group.add(item.node);
  }

  #ends(motion, e) {
    a.set(...e.p1).applyMatrix4(motion.matrices[e.first]);
    b.set(...e.p2).applyMatrix4(motion.matrices[e.second]);
  }

  update() {
    for (const item of this.items) {
      item.node.visible = item.motion.visible;
      this.#ends(item.motion, item.e);
      const length = Math.max(a.distanceTo(b), 1e-9);
      item.node.position.copy(a);
      item.node.quaternion.copy(turn.setFromUnitVectors(Z, b.sub(a).divideScalar(length)));
      const r = item.e.radius;
      if (item.coil) item.coil.scale.set(1, 1, length / item.length);
      if (item.rod) {
        const thin = item.body ? 0.35 * r : r;
        item.rod.scale.set(thin, thin, length);
        item.rod.position.z = length / 2;
      }
      if (item.body) {
        const sleeve = Math.min(0.55 * item.length, length);
        item.body.scale.set(0.8 * r, 0.8 * r, sleeve);
        item.body.position.z = sleeve / 2;
      }
    }
  }
}

const AROUND = 10;

export class SoftBodies {
  constructor(models, motions) {
    this.group = new Group();
    this.items = [];
    motions.forEach((motion) => {
      const model = models[motion.track.model];
      model.soft.forEach((soft, k) => this.#add(motion, model, soft, k));
    });
    this.update();
  }

  #add(motion, model, soft, k) {
    const n = soft.nodes.length / 3;
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * (soft.faces ? n : n * AROUND)), 3));
    const index = soft.faces ? Uint32Array.from(soft.faces) : tubeFaces(n);
    geometry.setIndex(new BufferAttribute(index, 1));
    const color = motion.track.color ?? model.bodies[soft.body].color;
    const mesh = new Mesh(geometry, new MeshStandardMaterial({
      color: new Color().setRGB(...color, "srgb"), roughness: 0.5, side: DoubleSide, flatShading: Boolean(soft.faces) }));
    mesh.castShadow = true;
    mesh.frustumCulled = false;
    mesh.matrixAutoUpdate = false;
    this.items.push({ motion, soft, k, n, mesh, nodes: new Float32Array(3 * n) });
    this.group.add(mesh);
  }

  update() {
    for (const item of this.items) {
      const { motion, soft, n, nodes, mesh } = item;
      mesh.visible = motion.visible;
      mesh.matrix.copy(motion.matrices[soft.body]);
      mesh.matrixWorldNeedsUpdate = true;
      const modes = soft.shapes.length / (3 * n);
      nodes.set(soft.nodes);
      const series = motion.track.amplitudes[item.k];
      for (let m = 0; m < modes; m++) {
        const e = motion.value(series, m);
        for (let i = 0; i < 3 * n; i++) nodes[i] += soft.shapes[i * modes + m] * e;
      }
      const position = mesh.geometry.attributes.position;
      if (soft.faces) position.array.set(nodes);
      else tube(nodes, n, soft.radius, position.array);
      position.needsUpdate = true;
      mesh.geometry.computeVertexNormals();
    }
  }
}

function tubeFaces(n) {
  const faces = [];
  for (let i = 0; i + 1 < n; i++) {
    for (let j = 0; j < AROUND; j++) {
      const k = (j + 1) % AROUND;
      const [p, q, r, s] = [i * AROUND + j, i * AROUND + k, (i + 1) * AROUND + j, (i + 1) * AROUND + k];
      faces.push(p, q, r, q, s, r);
    }
  }
  return Uint32Array.from(faces);
}

const tangent = new Vector3();
const side = new Vector3();
const other = new Vector3();

function tube(nodes, n, radius, out) {
  const node = (i, v) => v.fromArray(nodes, 3 * i);
  node(Math.min(1, n - 1), b).sub(node(0, a));
  side.set(Math.abs(b.x) < 0.9 * b.length() ? 1 : 0, Math.abs(b.x) < 0.9 * b.length() ? 0 : 1, 0);
  for (let i = 0; i < n; i++) {
    tangent.copy(node(Math.min(i + 1, n - 1), b)).sub(node(Math.max(i - 1, 0), a)).normalize();
    side.addScaledVector(tangent, -side.dot(tangent)).normalize();
    other.crossVectors(tangent, side);
    for (let j = 0; j < AROUND; j++) {
      const angle = (2 * Math.PI * j) / AROUND;
      const [c, s] = [radius * Math.cos(angle), radius * Math.sin(angle)];
      for (let d = 0; d < 3; d++) {
        out[3 * (i * AROUND + j) + d] = nodes[3 * i + d] + c * side.getComponent(d) + s * other.getComponent(d);
      }
    }
  }
}
