// The viewer: one scene, its time, and what the page offers to others as `window.bellcrank`.
import { Box3, Matrix4, Raycaster, Vector2, Vector3 } from "three";
import { Bodies, localMatrix } from "./bodies.js";
import { decode } from "./decoding.js";
import { Extensions, SoftBodies } from "./extensions.js";
import { Arrows, Traces, bodyFrames, jointAxes, masses } from "./marks.js";
import { Motion } from "./motion.js";
import { Overlay } from "./overlay.js";
import { Panels, TOGGLES } from "./panels.js";
import { make } from "./elements.js";
import { Stage } from "./stage.js";

const GHOSTS = 7;
const SPEED_STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

class View {
  constructor(app, scene, feed) {
    this.app = app;
    this.scene = scene;
    this.feed = feed;
    this.motions = scene.tracks.map((track) => new Motion(track, scene.models[track.model].bodies.length));
    this.start = Math.min(...this.motions.map((m) => m.start));
    this.end = Math.max(...this.motions.map((m) => m.end));
    this.time = this.start;
    this.playing = false;
    this.loop = true;
    this.speed = 1;
    this.sideBySide = scene.side_by_side;
    const given = scene.models.some((m) => m.bodies.some((b) => b.shapes.some((s) => s.r === "visual")));
    this.shown = { symbols: !given, axes: false, names: false, bodyNames: false, frames: false, forces: false,
      masses: false, traces: scene.traces.length > 0, ghosts: false, floor: true, ...scene.shown };
    this.canvas = make("canvas", "picture", null, app);
    this.stage = new Stage(this.canvas, scene);
    this.overlay = new Overlay(make("canvas", "overlay", null, app));
    this.#fill();
    this.panels = new Panels(this, app);
    this.#apply();
    this.stage.controls.addEventListener("change", () => { this.dirty = true; });
    this.#pointer();
    window.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.resize()).observe(app);
    this.resize();
    this.arrange(this.sideBySide);
    const dark = scene.theme ? scene.theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    this.setTheme(dark ? "dark" : "light");
    this.last = null;
    this.loopFrames = (now) => this.#tick(now);
    requestAnimationFrame(this.loopFrames);
  }

  #fill() {
    const { models } = this.scene;
    this.bodies = new Bodies(models, this.motions);
    this.extensions = new Extensions(models, this.motions);
    this.soft = new SoftBodies(models, this.motions);
    this.arrows = new Arrows(this.scene, models, this.motions);
    this.traces = new Traces(this.scene, this.motions);
    this.marks = { axes: jointAxes(models, this.motions), frames: bodyFrames(models, this.motions),
      masses: masses(models, this.motions) };
    this.stage.content.add(this.bodies.group, this.extensions.group, this.soft.group, this.arrows.group,
      this.traces.group, ...Object.values(this.marks).map((m) => m.group));
  }

  // The machine has other sizes: what it looks like is made anew.
  remodel(scene) {
    const parts = [this.bodies, this.extensions, this.soft, this.arrows, this.traces, ...Object.values(this.marks)];
    for (const part of parts) {
      this.stage.content.remove(part.group);
      part.dispose?.();
    }
    this.scene.models = scene.models;
    this.motions.forEach((motion, i) => {
      Object.assign(motion.track, scene.tracks[i], { count: scene.tracks[i].times.length });
      motion.seek(motion.start);
    });
    this.start = this.time = Math.min(...this.motions.map((m) => m.start));
    this.end = Math.max(...this.motions.map((m) => m.end));
    this.panels.renewPlots();
    this.selected = null;
    this.panels.inform(null);
    this.#fill();
    this.#apply();
    this.resize();
  }

  available(name) {
    if (name === "forces") return this.arrows.items.length > 0;
    if (name === "traces" || name === "ghosts") return this.end > this.start;
    return true;
  }

  // -- what is shown -------------------------------------------------------------------------
  show(name, on) {
    if (!(name in this.shown) || !this.available(name)) return;
    this.shown[name] = on;
    if (this.panels.boxes[name]) this.panels.boxes[name].checked = on;
    if (name === "traces" && on && !this.traces.lines.length) this.#traceTips();
    this.#apply();
  }

  #apply() {
    this.bodies.showSymbols(this.shown.symbols);
    for (const [name, marks] of Object.entries(this.marks)) marks.group.visible = this.shown[name];
    this.arrows.group.visible = this.shown.forces;
    this.traces.group.visible = this.shown.traces;
    this.stage.showFloor(this.shown.floor);
    this.#ghosts();
    this.refresh();
  }

  // Without points of the user's: the centers of mass of bodies that carry no other.
  #traceTips() {
    const model = this.scene.models[this.motions[0].track.model];
    const inner = new Set(model.joints.filter((j) => !j.closing).map((j) => j.parent));
    model.bodies.forEach((body, b) => {
      if (b && body.mass && !inner.has(b)) this.traces.add({ body: b, point: body.com, name: body.name });
    });
    this.resize();
  }

  addTrace(trace) {
    this.traces.add(trace);
    this.show("traces", true);
    this.resize();
  }

  #ghosts() {
    this.ghostBodies?.dispose();
    this.ghostBodies = null;
    if (!this.shown.ghosts || !(this.end > this.start)) return;
    const ghosts = [];
    for (const motion of this.motions.filter((m) => m.visible)) {
      for (let i = 0; i < GHOSTS; i++) {
        const ghost = new Motion(motion.track, motion.bodies);
        ghost.offset.copy(motion.offset);
        ghost.seek(motion.start + ((motion.end - motion.start) * i) / (GHOSTS - 1));
        ghosts.push(ghost);
      }
    }
    this.ghostBodies = new Bodies(this.scene.models, ghosts, 0.14);
    this.ghostBodies.showSymbols(false);
    this.stage.content.add(this.ghostBodies.group);
  }

  showTrack(motion, on) {
    motion.visible = on;
    this.#ghosts();
    this.panels.plots.resize();
    this.refresh();
  }

  setArrowScale(factor) {
    this.arrows.factor = factor;
    this.refresh();
  }

  setTheme(theme) {
    this.stage.setTheme(theme);
    this.app.dataset.theme = theme;
    this.panels.plots.resize();
    this.dirty = true;
  }

  // -- where things are ----------------------------------------------------------------------
  // Several runs over each other, or in a grid that faces the viewer.
  arrange(beside) {
    this.sideBySide = beside;
    for (const motion of this.motions) motion.offset.set(0, 0, 0);
    const box = this.bounds(this.motions);
    if (beside && this.motions.length > 1) {
      const { up, direction } = this.stage;
      const right = new Vector3().crossVectors(up, direction).normalize();
      const flat = Math.abs(direction.dot(up)) < 0.4;
      const away = flat ? up : new Vector3().crossVectors(right, up).normalize();
      const [wide, deep] = [extent(box, right) * 1.25, extent(box, away) * 1.35];
      const columns = Math.ceil(Math.sqrt((this.motions.length * 1.5 * deep) / wide));
      this.motions.forEach((motion, i) => {
        motion.offset.copy(right).multiplyScalar((i % columns) * wide)
          .addScaledVector(away, Math.floor(i / columns) * deep * (flat ? -1 : 1));
      });
    }
    for (const motion of this.motions) motion.refresh();
    this.stage.frame(beside ? this.bounds(this.motions) : box);
    this.#ghosts();
    this.refresh();
  }

  // The box around all shapes over all times.
  bounds(motions) {
    const box = new Box3();
    const local = new Matrix4();
    const corner = new Vector3();
    for (const motion of motions) {
      const model = this.scene.models[motion.track.model];
      const now = motion.time;
      const steps = Math.min(motion.frames, 24);
      for (let i = 0; i < steps; i++) {
        motion.seek(motion.start + ((motion.end - motion.start) * i) / Math.max(steps - 1, 1));
        model.bodies.forEach((body, b) => {
          for (const shape of body.shapes) {
            if (shape.k === "plane") continue;
            const [low, high] = shape.box ??= shapeBox(shape);
            local.multiplyMatrices(motion.matrices[b], localMatrix(shape.p.slice(0, 3), shape.p.slice(3), [1, 1, 1]));
            for (let c = 0; c < 8; c++) {
              corner.set(c & 1 ? high[0] : low[0], c & 2 ? high[1] : low[1], c & 4 ? high[2] : low[2]);
              box.expandByPoint(corner.applyMatrix4(local));
            }
          }
        });
        for (const soft of model.soft) {
          for (let n = 0; n < soft.nodes.length; n += 3) {
            box.expandByPoint(corner.fromArray(soft.nodes, n).applyMatrix4(motion.matrices[soft.body]));
          }
        }
      }
      motion.seek(now);
    }
    if (box.isEmpty()) box.set(new Vector3(-0.5, -0.5, -0.5), new Vector3(0.5, 0.5, 0.5));
    return box;
  }

  fit(direction = null) {
    this.stage.look(direction ?? this.stage.direction);
    this.dirty = true;
  }

  // Look from the front, the side, above or a corner.
  from(name) {
    const { up, direction } = this.stage;
    const front = direction.clone().addScaledVector(up, -direction.dot(up));
    const axes = [new Vector3(1, 0, 0), new Vector3(0, 1, 0), new Vector3(0, 0, 1)].filter((a) => Math.abs(a.dot(up)) < 0.5);
    const main = axes.reduce((best, a) => (Math.abs(a.dot(front)) > Math.abs(best.dot(front)) ? a : best));
    main.multiplyScalar(Math.sign(main.dot(front)) || 1);
    const side = new Vector3().crossVectors(up, main);
    const views = { front: main, side, top: up.clone().addScaledVector(main, 0.001), corner: direction };
    if (views[name]) this.fit(views[name]);
  }

  // -- time ----------------------------------------------------------------------------------
  seek(time) {
    this.time = Math.min(this.end, Math.max(this.start, time));
    for (const motion of this.motions) motion.seek(this.time);
    this.refresh();
  }

  // There is more of a run than before.
  extend() {
    this.end = Math.max(...this.motions.map((m) => m.end));
    this.panels.extend();
  }

  refresh() {
    for (const part of [this.bodies, this.extensions, this.soft, this.traces]) part.update();
    if (this.shown.forces) this.arrows.update();
    for (const [name, marks] of Object.entries(this.marks)) if (this.shown[name]) marks.update();
    this.panels?.update();
    this.dirty = true;
  }

  play() {
    if (!(this.end > this.start)) return;
    if (this.time >= this.end) this.seek(this.start);
    this.playing = true;
    this.last = null;
    this.panels.update();
  }

  pause() {
    this.playing = false;
    this.panels.update();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  step(count) {
    this.pause();
    const motion = this.motions.reduce((most, m) => (m.frames > most.frames ? m : most));
    const frame = Math.min(motion.frames - 1, Math.max(0, motion.frame + count + (count < 0 && motion.part > 0 ? 1 : 0)));
    this.seek(motion.track.times[frame]);
  }

  setSpeed(speed) {
    this.speed = speed;
    this.panels.speed.value = speed;
  }

  #tick(now) {
    requestAnimationFrame(this.loopFrames);
    if (this.playing) {
      const passed = this.last === null ? 0 : Math.min((now - this.last) / 1000, 0.25);
      this.last = now;
      let time = this.time + passed * this.speed;
      if (time > this.end) {
        if (this.loop) time = this.start;
        else this.playing = false;
      }
      this.seek(time);
    }
    this.stage.controls.update();
    if (this.dirty) this.draw();
  }

  draw() {
    this.dirty = false;
    this.stage.draw();
    const bare = this.app.classList.contains("film") || this.panels.bar.classList.contains("hidden");
    this.bottomSpace = bare ? 4 : 62;
    this.overlay.draw(this);
    this.drawn = (this.drawn ?? 0) + 1;
  }

  resize() {
    const [width, height] = [this.app.clientWidth, this.app.clientHeight];
    if (!width || !height) return;
    const docked = this.panels && !this.app.classList.contains("film") && !this.panels.side.classList.contains("hidden") && width > 760;
    const room = docked ? width - this.panels.side.offsetWidth : width;
    this.app.style.setProperty("--room", `${room}px`);
    const film = this.app.classList.contains("film");
    this.stage.above = film ? 12 : 62;
    this.stage.below = film || this.panels?.bar.classList.contains("hidden") ? 12 : 70;
    const ratio = this.stage.renderer.getPixelRatio();
    this.stage.resize(room, height);
    this.overlay.resize(room, height, ratio);
    this.traces.resize(room * ratio, height * ratio);
    if (docked) this.panels.plots.resize();
    this.dirty = true;
  }

  // -- mouse and keys ------------------------------------------------------------------------
  #pointer() {
    let down = null;
    this.canvas.addEventListener("pointerdown", (event) => { down = [event.clientX, event.clientY]; });
    this.canvas.addEventListener("pointerup", (event) => {
      if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 5) this.pick(event.clientX, event.clientY);
      down = null;
    });
  }

  // The body at a place of the window.
  hit(x, y) {
    const box = this.canvas.getBoundingClientRect();
    const ray = new Raycaster();
    ray.setFromCamera(new Vector2(((x - box.left) / box.width) * 2 - 1, 1 - ((y - box.top) / box.height) * 2),
      this.stage.camera);
    for (const found of ray.intersectObjects(this.bodies.group.children, false)) {
      const item = found.object.userData.items?.[found.instanceId];
      if (item && found.object.visible) {
        const at = found.point.clone().applyMatrix4(this.motions[item.motion].matrices[item.body].clone().invert());
        return { motion: item.motion, body: item.body, at: at.toArray(), point: found.point.toArray() };
      }
    }
    return null;
  }

  pick(x, y) {
    if (this.selected) this.bodies.highlight(this.selected.motion, this.selected.body, false);
    this.selected = this.hit(x, y);
    if (this.selected) this.bodies.highlight(this.selected.motion, this.selected.body, true);
    this.panels.inform(this.selected);
    this.dirty = true;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT)$/.test(event.target.tagName ?? "")) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const toggle = TOGGLES.find((t) => t[2] === key);
    const at = SPEED_STEPS.indexOf(this.speed);
    const actions = {
      " ": () => this.toggle(), ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
      Home: () => this.seek(this.start), End: () => this.seek(this.end), f: () => this.fit(),
      "+": () => this.setSpeed(SPEED_STEPS[Math.min(at + 1, SPEED_STEPS.length - 1)]),
      "-": () => this.setSpeed(SPEED_STEPS[Math.max(at - 1, 0)]),
      1: () => this.from("front"), 2: () => this.from("side"), 3: () => this.from("top"), 4: () => this.from("corner"),
      p: () => this.panels.toggle(this.panels.side), v: () => this.panels.toggle(this.panels.showPanel),
      "?": () => this.panels.toggle(this.panels.helpPanel), s: () => this.download(),
      d: () => this.setTheme(this.stage.theme === "dark" ? "light" : "dark"),
      o: () => this.feed?.sliders && this.panels.toggle(this.panels.sliderPanel),
      Escape: () => [this.panels.showPanel, this.panels.helpPanel].forEach((p) => p.classList.add("hidden")),
    };
    const action = toggle ? () => this.show(toggle[0], !this.shown[toggle[0]]) : actions[key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // -- pictures ------------------------------------------------------------------------------
  // The picture with names and legends, as a canvas.
  snapshot() {
    this.draw();
    const out = document.createElement("canvas");
    out.width = this.canvas.width;
    out.height = this.canvas.height;
    const c = out.getContext("2d");
    c.drawImage(this.canvas, 0, 0);
    c.drawImage(this.overlay.canvas, 0, 0, out.width, out.height);
    return out;
  }

  download() {
    this.snapshot().toBlob((blob) => {
      const link = make("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${this.scene.title.replace(/[^\w-]+/g, "_") || "picture"}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}

function extent(box, direction) {
  const size = box.getSize(new Vector3());
  return Math.abs(size.x * direction.x) + Math.abs(size.y * direction.y) + Math.abs(size.z * direction.z);
}

function shapeBox(shape) {
  const s = shape.s;
  if (shape.k === "mesh") {
    const [low, high] = [[Infinity, Infinity, Infinity], [-Infinity, -Infinity, -Infinity]];
    for (let i = 0; i < shape.v.length; i++) {
      low[i % 3] = Math.min(low[i % 3], shape.v[i]);
      high[i % 3] = Math.max(high[i % 3], shape.v[i]);
    }
    return [low, high];
  }
  const half = shape.k === "box" ? s.map((v) => v / 2) : shape.k === "sphere" ? s
    : [s[0], s[0], s[1] / 2 + (shape.k === "capsule" ? s[0] : 0)];
  return [half.map((v) => -v), half];
}

// -- what others may call ----------------------------------------------------------------------
const api = {
  ready: false,
  view: null,
  // Show a scene: its bytes (packing.py), and a feed if a program answers: see docs/viewer.md.
  start(bytes, feed = null, app = document.getElementById("app")) {
    api.view?.app.replaceChildren();
    const view = new View(app, decode(bytes), feed);
    api.view = view;
    if (feed?.sliders) view.panels.setSliders(feed.sliders, (name, value) => feed.change?.(name, value));
    feed?.open?.(api);
    view.draw();
    api.ready = true;
    return view;
  },
  seek(time) {
    api.view.pause();
    api.view.seek(time);
    api.view.draw();
  },
  // Poses of all bodies of a track, the ground first: x, y, z, w, x, y, z each.
  setPoses(numbers, track = 0) {
    api.view.motions[track].setPoses(numbers);
    api.view.refresh();
  },
  // The scene of the same machine with other sizes.
  remodel(bytes) {
    api.view.remodel(decode(bytes));
  },
  // Nothing but the picture, for films.
  film(on) {
    api.view.app.classList.toggle("film", on);
    api.view.resize();
    api.view.arrange(api.view.sideBySide);
  },
  // One more frame of a run that is still computed; the page follows it unless it was sent elsewhere in time.
  append(time, numbers, track = 0) { // poses, and values of the track's curves
    const { view } = api;
    const follows = view.time >= view.end && !view.playing;
    view.motions[track].append(time, numbers);
    view.extend();
    if (follows) view.seek(view.end);
  },
  setSlider: (name, value) => api.view.panels.setSlider(name, value),
  show: (name, on = true) => api.view.show(name, on),
  from: (name) => api.view.from(name),
  snapshot: (type = "image/png") => api.view.snapshot().toDataURL(type),
  get time() {
    return api.view.time;
  },
  get duration() {
    return api.view.end - api.view.start;
  },
};
window.bellcrank = api;
