// All bodies: equal shapes are instances of one geometry, so that thousands of them are a few calls.
import {
  BoxGeometry, BufferAttribute, BufferGeometry, Color, ConeGeometry, CylinderGeometry, DoubleSide, DynamicDrawUsage,
  FrontSide, Group, InstancedMesh, Matrix4, MeshStandardMaterial, PlaneGeometry, Quaternion, SphereGeometry, Vector3,
} from "three";

const CREASE = Math.cos(0.6); // faces at a larger angle have an edge between them
const joined = new Matrix4();

export const UNIT = {
  box: new BoxGeometry(1, 1, 1),
  sphere: new SphereGeometry(1, 36, 22),
  cylinder: new CylinderGeometry(1, 1, 1, 40).rotateX(Math.PI / 2),
  cone: new ConeGeometry(1, 1, 40).rotateX(Math.PI / 2),
  plane: new PlaneGeometry(1, 1),
};

export function localMatrix(position, turn, scale) {
  const [w, x, y, z] = turn;
  return new Matrix4().compose(new Vector3(...position), new Quaternion(x, y, z, w), new Vector3(...scale));
}

// Normals of corners: the mean of those faces around a vertex that lie nearly in one plane with the corner's own.
function smoothNormals(v, f) {
  const faces = f.length / 3;
  const normals = new Float32Array(3 * faces);
  const start = new Uint32Array(v.length / 3 + 1);
  for (let i = 0; i < faces; i++) {
    const [a, b, c] = [3 * f[3 * i], 3 * f[3 * i + 1], 3 * f[3 * i + 2]];
    const [ux, uy, uz] = [v[b] - v[a], v[b + 1] - v[a + 1], v[b + 2] - v[a + 2]];
    const [wx, wy, wz] = [v[c] - v[a], v[c + 1] - v[a + 1], v[c + 2] - v[a + 2]];
    const [x, y, z] = [uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx];
    const size = Math.hypot(x, y, z) || 1;
    normals.set([x / size, y / size, z / size], 3 * i);
    for (let k = 0; k < 3; k++) start[f[3 * i + k] + 1]++;
  }
  for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
  const fill = start.slice();
  const around = new Uint32Array(f.length);
  for (let i = 0; i < f.length; i++) around[fill[f[i]]++] = (i / 3) | 0;
  const out = new Float32Array(3 * f.length);
  for (let i = 0; i < f.length; i++) {
    const own = 3 * ((i / 3) | 0);
    let [x, y, z] = [0, 0, 0];
    for (let k = start[f[i]]; k < start[f[i] + 1]; k++) {
      const n = 3 * around[k];
      if (normals[own] * normals[n] + normals[own + 1] * normals[n + 1] + normals[own + 2] * normals[n + 2] > CREASE) {
        x += normals[n];
        y += normals[n + 1];
        z += normals[n + 2];
      }
    }
    const size = Math.hypot(x, y, z) || 1;
    out.set([x / size, y / size, z / size], 3 * i);
  }
  return out;
}

function meshGeometry(shape) {
  const geometry = new BufferGeometry();
  const corners = new Float32Array(3 * shape.f.length);
  for (let i = 0; i < shape.f.length; i++) corners.set(shape.v.subarray(3 * shape.f[i], 3 * shape.f[i] + 3), 3 * i);
  geometry.setAttribute("position", new BufferAttribute(corners, 3));
  geometry.setAttribute("normal", new BufferAttribute(smoothNormals(shape.v, shape.f), 3));
  if (shape.h) {
    const colors = new Float32Array(shape.f.length * 3);
    const shade = new Color();
    for (let face = 0; face < shape.f.length / 3; face++) {
      shade.setRGB(shape.h[4 * face], shape.h[4 * face + 1], shape.h[4 * face + 2], "srgb");
      for (let corner = 0; corner < 3; corner++) shade.toArray(colors, 9 * face + 3 * corner);
    }
    geometry.setAttribute("color", new BufferAttribute(colors, 3));
  }
  return geometry;
}

// A shape as parts of unit geometries: [kind, geometry, local matrix].
function parts(shape, meshes) {
  const s = shape.s;
  const p = shape.p.slice(0, 3);
  const turn = shape.p.slice(3);
  if (shape.k === "mesh") {
    if (!meshes.has(shape.v)) meshes.set(shape.v, [`mesh${meshes.size}`, meshGeometry(shape)]);
    return [[...meshes.get(shape.v), localMatrix(p, turn, [1, 1, 1])]];
  }
  if (shape.k === "box" || shape.k === "sphere") return [[shape.k, UNIT[shape.k], localMatrix(p, turn, s)]];
  if (shape.k === "plane") return [["plane", UNIT.plane, localMatrix(p, turn, [s[0], s[1], 1])]];
  if (shape.k === "cylinder" || shape.k === "cone") {
    return [[shape.k, UNIT[shape.k], localMatrix(p, turn, [s[0], s[0], s[1]])]];
  }
  if (shape.k === "capsule") {
    const frame = localMatrix(p, turn, [1, 1, 1]);
    const end = (sign) => frame.clone().multiply(localMatrix([0, 0, (sign * s[1]) / 2], [1, 0, 0, 0], [s[0], s[0], s[0]]));
    return [["cylinder", UNIT.cylinder, localMatrix(p, turn, [s[0], s[0], s[1]])],
      ["sphere", UNIT.sphere, end(1)], ["sphere", UNIT.sphere, end(-1)]];
  }
  return [];
}

function materialFor(kind, opacity, colored) {
  return new MeshStandardMaterial({
    roughness: 0.52, metalness: 0.06, vertexColors: colored, transparent: opacity < 1, opacity,
    depthWrite: opacity >= 0.9, side: kind === "plane" || kind.startsWith("mesh") ? DoubleSide : FrontSide,
  });
}

export class Bodies {
  // `opacity` below one: ghosts.
  constructor(models, motions, opacity = 1) {
    this.motions = motions;
    this.group = new Group();
    this.pools = new Map();
    const meshes = new Map();
    motions.forEach((motion, index) => {
      const model = models[motion.track.model];
      model.bodies.forEach((body, b) => {
        for (const shape of body.shapes) {
          const symbol = shape.r === "joint" || shape.r === "ground";
          const own = shape.c ?? (motion.track.color ? [...motion.track.color, 1] : [...body.color, 1]);
          const tint = motion.track.color && !symbol ? motion.track.color : own;
          const shade = shape.h && !motion.track.color ? [1, 1, 1] : tint;
          for (const [kind, geometry, local] of parts(shape, meshes)) {
            const clear = Math.round(own[3] * opacity * 20) / 20;
            const colored = Boolean(shape.h) && !motion.track.color;
            const key = `${kind}|${clear}|${symbol}|${colored}`;
            if (!this.pools.has(key)) this.pools.set(key, { kind, geometry, clear, symbol, colored, items: [] });
            this.pools.get(key).items.push({ motion: index, body: b, local, color: shade });
          }
        }
      });
    });
    const color = new Color();
    for (const pool of this.pools.values()) {
      const mesh = new InstancedMesh(pool.geometry, materialFor(pool.kind, pool.clear, pool.colored), pool.items.length);
      mesh.instanceMatrix.setUsage(DynamicDrawUsage);
      mesh.frustumCulled = false;
      mesh.castShadow = opacity === 1 && pool.clear > 0.5 && pool.kind !== "plane";
      mesh.receiveShadow = opacity === 1 && pool.clear > 0.5;
      pool.items.forEach((item, i) => mesh.setColorAt(i, color.setRGB(item.color[0], item.color[1], item.color[2], "srgb")));
      mesh.userData.items = pool.items;
      pool.mesh = mesh;
      this.group.add(mesh);
    }
    this.update();
  }

  update() {
    for (const pool of this.pools.values()) {
      pool.items.forEach((item, i) => {
        const motion = this.motions[item.motion];
        if (motion.visible) joined.multiplyMatrices(motion.matrices[item.body], item.local);
        else joined.makeScale(0, 0, 0);
        pool.mesh.setMatrixAt(i, joined);
      });
      pool.mesh.instanceMatrix.needsUpdate = true;
      pool.mesh.boundingSphere = null;
      pool.mesh.boundingBox = null;
    }
  }

  showSymbols(on) {
    for (const pool of this.pools.values()) if (pool.symbol) pool.mesh.visible = on;
  }

  // Light up one body of one track.
  highlight(motion, body, on) {
    const color = new Color();
    for (const pool of this.pools.values()) {
      let changed = false;
      pool.items.forEach((item, i) => {
        if (item.motion !== motion || item.body !== body) return;
        color.setRGB(item.color[0], item.color[1], item.color[2], "srgb");
        if (on) color.lerp(new Color(1, 0.75, 0.15), 0.45);
        pool.mesh.setColorAt(i, color);
        changed = true;
      });
      if (changed) pool.mesh.instanceColor.needsUpdate = true;
    }
  }

  dispose() {
    for (const pool of this.pools.values()) {
      pool.mesh.material.dispose();
      pool.mesh.dispose();
      if (pool.kind.startsWith("mesh")) pool.geometry.dispose();
    }
    this.group.removeFromParent();
  }
}
