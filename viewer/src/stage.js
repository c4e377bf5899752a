// The stage: camera, light, floor; and where the machine is in it.
import {
  AmbientLight, Box3, Color, DirectionalLight, DoubleSide, Group, HemisphereLight, Mesh, NeutralToneMapping,
  PCFShadowMap, PerspectiveCamera, PlaneGeometry, Quaternion, Scene, ShaderMaterial, ShadowMaterial, Vector3,
  WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";

const SKY = { light: "#f3f5f8", dark: "#161a20" };
const Z = new Vector3(0, 0, 1);

function gridMaterial() {
  return new ShaderMaterial({
    transparent: true, depthWrite: false, side: DoubleSide,
    uniforms: { cell: { value: 1 }, radius: { value: 1 }, color: { value: new Color() }, strength: { value: 1 } },
    vertexShader: `varying vec2 place; void main() { place = position.xy;
      gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }`,
    fragmentShader: `varying vec2 place; uniform float cell, radius, strength; uniform vec3 color;
      float lines(float size, float width) { vec2 p = place / size; vec2 d = fwidth(p);
        vec2 near = abs(fract(p - 0.5) - 0.5) / max(d, 1e-6);
        float soft = 1.0 - clamp(max(d.x, d.y) * 2.0, 0.0, 1.0);
        return (1.0 - min(min(near.x, near.y) / width, 1.0)) * soft; }
      void main() { float fade = 1.0 - smoothstep(0.15, 1.0, length(place) / radius);
        float on = max(lines(cell, 1.0) * 0.45, lines(cell * 5.0, 1.3));
        gl_FragColor = vec4(color, on * fade * strength); }`,
  });
}

export class Stage {
  constructor(canvas, scene) {
    this.renderer = new WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
    this.renderer.toneMapping = NeutralToneMapping;
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = PCFShadowMap;
    const facts = this.renderer.getContext().getExtension("WEBGL_debug_renderer_info");
    const name = facts ? String(this.renderer.getContext().getParameter(facts.UNMASKED_RENDERER_WEBGL)) : "";
    this.slow = /swiftshader|llvmpipe|software/i.test(name); // no graphics card
    this.world = new Scene();
    this.up = new Vector3(...scene.up);
    this.direction = new Vector3(...scene.view).normalize();
    this.camera = new PerspectiveCamera(32, 1, 0.01, 100);
    this.camera.up.copy(this.up);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.zoomToCursor = true;
    this.above = this.below = 0; // pixels that bars cover
    this.content = new Group();
    this.world.add(this.content);
    this.#lights();
    this.#floor();
    this.box = new Box3(new Vector3(-1, -1, -1), new Vector3(1, 1, 1));
    this.setTheme("light");
  }

  #lights() {
    this.key = new DirectionalLight(0xffffff, 1.9);
    this.key.castShadow = true;
    this.key.shadow.mapSize.setScalar(this.slow ? 1024 : 2048);
    this.key.shadow.radius = 3;
    this.key.shadow.bias = -0.0004;
    this.key.shadow.normalBias = 0.02;
    this.fill = new DirectionalLight(0xdfe8ff, 0.9);
    this.sky = new HemisphereLight(0xffffff, 0xc9cfd8, 1.7);
    this.ambient = new AmbientLight(0xffffff, 0.45);
    this.sky.position.copy(this.up);
    this.world.add(this.key, this.key.target, this.fill, this.sky, this.ambient);
  }

  #floor() {
    this.floor = new Group();
    const plane = new PlaneGeometry(1, 1);
    this.shadow = new Mesh(plane, new ShadowMaterial({ opacity: 0.16, depthWrite: false }));
    this.shadow.receiveShadow = true;
    this.shadow.raycast = () => {};
    this.grid = new Mesh(plane, gridMaterial());
    this.grid.raycast = () => {};
    this.floor.add(this.shadow, this.grid);
    this.floor.quaternion.copy(new Quaternion().setFromUnitVectors(Z, this.up));
    this.world.add(this.floor);
  }

  // Set camera, light and floor for a box in the world.
  frame(box) {
    this.box = box.clone();
    const center = box.getCenter(new Vector3());
    const radius = Math.max(box.getSize(new Vector3()).length() / 2, 1e-6);
    this.radius = radius;
    const lowest = lowestAlong(box, this.up);
    const size = 40 * radius;
    this.grid.geometry.dispose();
    this.grid.geometry = this.shadow.geometry = new PlaneGeometry(size, size);
    const foot = center.clone().addScaledVector(this.up, lowest - center.dot(this.up) - 0.012 * radius);
    this.floor.position.copy(foot);
    this.grid.position.z = 0;
    this.shadow.position.z = -0.001 * radius;
    const cell = 10 ** Math.floor(Math.log10(radius / 1.5));
    this.grid.material.uniforms.cell.value = cell * (radius / cell > 7 ? 5 : radius / cell > 3 ? 2 : 1) * 0.5;
    this.grid.material.uniforms.radius.value = 6 * radius;
    const side = new Vector3().crossVectors(this.up, this.direction).normalize();
    this.key.position.copy(center).addScaledVector(this.up, 3 * radius).addScaledVector(side, 1.3 * radius)
      .addScaledVector(this.direction, 1.5 * radius);
    this.key.target.position.copy(center);
    this.fill.position.copy(center).addScaledVector(side, -3 * radius).addScaledVector(this.direction, radius);
    const shadow = this.key.shadow.camera;
    Object.assign(shadow, { left: -1.6 * radius, right: 1.6 * radius, top: 1.6 * radius, bottom: -1.6 * radius,
      near: 0.2 * radius, far: 9 * radius });
    shadow.updateProjectionMatrix();
    this.key.shadow.normalBias = 0.004 * radius;
    this.controls.minDistance = 0.05 * radius;
    this.controls.maxDistance = 12 * radius;
    this.look(this.direction);
  }

  // Look at everything from a direction.
  look(direction) {
    const center = this.box.getCenter(new Vector3());
    const forward = direction.clone().normalize();
    const right = new Vector3().crossVectors(this.up, forward);
    if (right.length() < 1e-3) right.set(1, 0, 0);
    right.normalize();
    const above = new Vector3().crossVectors(forward, right);
    const half = Math.tan((this.camera.fov * Math.PI) / 360);
    const aspect = Math.max(this.camera.aspect, 0.2);
    const free = 1 - Math.min(0.45, (this.above + this.below) / Math.max(this.height ?? 600, 1)); // beside bars
    let distance = 0;
    for (let i = 0; i < 8; i++) {
      const corner = new Vector3(i & 1 ? this.box.max.x : this.box.min.x, i & 2 ? this.box.max.y : this.box.min.y,
        i & 4 ? this.box.max.z : this.box.min.z).sub(center);
      const [x, y, z] = [Math.abs(corner.dot(right)), Math.abs(corner.dot(above)), corner.dot(forward)];
      distance = Math.max(distance, z + (1.08 * y) / (half * free), z + (1.1 * x) / (half * aspect));
    }
    this.camera.position.copy(center).addScaledVector(forward, distance);
    this.camera.near = distance / 200;
    this.camera.far = distance + 60 * this.radius;
    this.camera.updateProjectionMatrix();
    const shift = ((this.below - this.above) / Math.max(this.height ?? 600, 1)) * half * distance;
    center.addScaledVector(above, -shift);
    this.camera.position.addScaledVector(above, -shift);
    this.controls.target.copy(center);
    this.controls.enableDamping = false; // forget how it was turning
    this.controls.update();
    this.controls.enableDamping = true;
  }

  setTheme(theme) {
    this.theme = theme;
    this.world.background = new Color(SKY[theme]);
    const dark = theme === "dark";
    this.grid.material.uniforms.color.value.set(dark ? "#aeb9c9" : "#5b6b80");
    this.grid.material.uniforms.strength.value = dark ? 0.26 : 0.34;
    this.shadow.material.opacity = dark ? 0.42 : 0.17;
    this.sky.intensity = dark ? 1.2 : 1.7;
    this.key.intensity = dark ? 2.1 : 1.9;
  }

  showFloor(on) {
    this.floor.visible = on;
  }

  resize(width, height) {
    this.height = height;
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / Math.max(height, 1);
    this.camera.updateProjectionMatrix();
  }

  draw() {
    this.renderer.render(this.world, this.camera);
  }
}

function lowestAlong(box, up) {
  let lowest = Infinity;
  for (let i = 0; i < 8; i++) {
    lowest = Math.min(lowest, (i & 1 ? box.max.x : box.min.x) * up.x + (i & 2 ? box.max.y : box.min.y) * up.y
      + (i & 4 ? box.max.z : box.min.z) * up.z);
  }
  return lowest;
}
