// Names and legends, drawn on a canvas over the picture, so that saved pictures have them, too.
import { Vector3 } from "three";
import { number } from "./elements.js";
import { ARROWS } from "./marks.js";

const point = new Vector3();
const FONT = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

export class Overlay {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  resize(width, height, ratio) {
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  draw(view) {
    const c = this.context;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    c.font = FONT;
    c.textBaseline = "middle";
    this.dark = view.stage.theme === "dark";
    this.taken = [];
    if (view.shown.names) this.#jointNames(view);
    if (view.shown.bodyNames) this.#bodyNames(view);
    if (view.selected) this.#selected(view);
    let bottom = this.height - view.bottomSpace - 16;
    if (view.shown.forces && view.arrows.items.length) bottom = this.#forceLegend(view, bottom);
    if (view.motions.length > 1) this.#trackLegend(view, bottom);
  }

  #project(view, local, matrix) {
    point.set(...local).applyMatrix4(matrix).project(view.stage.camera);
    if (point.z > 1 || Math.abs(point.x) > 1.05 || Math.abs(point.y) > 1.05) return null;
    return [((point.x + 1) / 2) * this.width, ((1 - point.y) / 2) * this.height];
  }

  #label(text, at, strong = false) {
    const c = this.context;
    const width = c.measureText(text).width + 10;
    const box = [at[0] + 8, at[1] - 22, width, 18];
    for (let tries = 0; tries < 6; tries++) {
      const hit = this.taken.some((t) => box[0] < t[0] + t[2] && t[0] < box[0] + box[2] && box[1] < t[1] + t[3]
        && t[1] < box[1] + box[3]);
      if (!hit) break;
      box[1] -= 19;
    }
    this.taken.push(box);
    c.strokeStyle = this.dark ? "rgba(220,228,240,.35)" : "rgba(60,75,95,.35)";
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(at[0], at[1]);
    c.lineTo(box[0] + 3, box[1] + box[3]);
    c.stroke();
    c.fillStyle = this.dark ? "rgba(34,40,50,.88)" : "rgba(255,255,255,.88)";
    c.beginPath();
    c.roundRect(...box, 5);
    c.fill();
    if (strong) c.stroke();
    c.fillStyle = this.dark ? "#e6ebf2" : "#243142";
    c.fillText(text, box[0] + 5, box[1] + 9.5);
  }

  #jointNames(view) {
    const motion = view.motions.find((m) => m.visible);
    if (!motion) return;
    for (const joint of view.scene.models[motion.track.model].joints) {
      const at = this.#project(view, joint.parent_pose.slice(0, 3), motion.matrices[joint.parent]);
      if (at) this.#label(joint.name, at);
    }
  }

  #bodyNames(view) {
    const motion = view.motions.find((m) => m.visible);
    if (!motion) return;
    view.scene.models[motion.track.model].bodies.forEach((body, b) => {
      if (!b || !(body.shapes.length || body.mass)) return;
      const at = this.#project(view, body.com, motion.matrices[b]);
      if (at) this.#label(body.name, at);
    });
  }

  #selected(view) {
    const { motion, body, at } = view.selected;
    const place = this.#project(view, at, view.motions[motion].matrices[body]);
    const model = view.scene.models[view.motions[motion].track.model];
    if (place) this.#label(model.bodies[body].name, place, true);
  }

  // Text that can be read over anything.
  #halo(text, x, y) {
    const c = this.context;
    c.strokeStyle = this.dark ? "rgba(22,26,32,.85)" : "rgba(243,245,248,.9)";
    c.lineWidth = 4;
    c.lineJoin = "round";
    c.strokeText(text, x, y);
    c.fillText(text, x, y);
  }

  #forceLegend(view, bottom) {
    const c = this.context;
    const motion = view.motions.find((m) => m.visible) ?? view.motions[0];
    const unit = view.arrows.unit(view.scene.models[motion.track.model]);
    const center = view.stage.controls.target;
    const pixels = (unit / (2 * center.distanceTo(view.stage.camera.position)
      * Math.tan((view.stage.camera.fov * Math.PI) / 360))) * this.height;
    for (const [kind, part] of view.arrows.kinds.reverse()) {
      const style = ARROWS[kind];
      const scale = view.scene.scales[part === "force" ? 0 : 1];
      const long = Math.max(24, Math.min(pixels, 130));
      const value = (scale * long) / pixels;
      c.strokeStyle = c.fillStyle = style[part];
      c.lineWidth = 2.5;
      const y = bottom - 7;
      c.beginPath();
      c.moveTo(20, y);
      c.lineTo(20 + long - 6, y);
      c.stroke();
      for (const shift of part === "moment" ? [0, 8] : [0]) {
        c.beginPath();
        c.moveTo(20 + long - shift, y);
        c.lineTo(20 + long - shift - 9, y - 4.5);
        c.lineTo(20 + long - shift - 9, y + 4.5);
        c.fill();
      }
      c.fillStyle = this.dark ? "#cfd8e3" : "#3a4757";
      this.#halo(`${number(value, 2)} ${part === "force" ? "N" : "N m"}  ${style.label} ${part}`, 28 + long, y + 0.5);
      bottom -= 22;
    }
    return bottom - 4;
  }

  #trackLegend(view, bottom) {
    const c = this.context;
    const shown = view.motions.slice(0, 12);
    for (const motion of [...shown].reverse()) {
      const [r, g, b] = motion.track.color ?? [0.5, 0.5, 0.5];
      c.globalAlpha = motion.visible ? 1 : 0.35;
      c.fillStyle = `rgb(${r * 255},${g * 255},${b * 255})`;
      c.beginPath();
      c.roundRect(20, bottom - 13, 14, 14, 4);
      c.fill();
      c.fillStyle = this.dark ? "#cfd8e3" : "#3a4757";
      this.#halo(motion.track.label, 42, bottom - 5.5);
      c.globalAlpha = 1;
      bottom -= 22;
    }
    return bottom;
  }
}
