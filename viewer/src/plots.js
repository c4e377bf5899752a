// Plots beside the picture: curves over time with a cursor; a click or a drag seeks.
import { button, make, number } from "./elements.js";

const COLORS = ["#4f7cac", "#d1495b", "#2a9d6f", "#e07a1f", "#8e5bb5", "#3f9fa8", "#b0679c", "#8a8a3c", "#5f6b7d", "#c2543a"];
const NAMED = 24; // curves that get a name to click on
const SHOWN = 6; // curves that are drawn at first

export class Plots {
  constructor(view, panel) {
    this.view = view;
    this.panel = panel;
    this.list = make("div", "plot-list", null, panel);
    this.plots = [];
    this.more = make("button", "quiet hidden", "Add a plot", panel);
    this.more.type = "button";
    this.more.addEventListener("click", () => this.add(this.groups[this.plots.length % this.groups.length]));
    this.renew();
  }

  // The curves are others: plots of quantities that are still there stay.
  renew() {
    this.groups = [...new Set(this.view.motions.flatMap((m) => m.track.curves.map((c) => c.group)))];
    this.more.classList.toggle("hidden", !this.groups.length);
    for (const plot of [...this.plots]) if (!this.groups.includes(plot.group)) this.remove(plot);
    for (const plot of this.plots) plot.offer();
    if (this.plots.length) return;
    for (const group of this.groups.slice(0, Math.min(3, this.groups.length))) {
      if (group !== "loop error") this.add(group);
    }
  }

  // Curves have grown: they are painted anew when they are drawn next.
  grow() {
    for (const plot of this.plots) plot.image = null;
  }

  add(group) {
    const plot = new Plot(this, group);
    this.plots.push(plot);
    plot.resize();
    return plot;
  }

  remove(plot) {
    this.plots = this.plots.filter((p) => p !== plot);
    plot.element.remove();
  }

  resize() {
    for (const plot of this.plots) plot.resize();
  }

  draw() {
    for (const plot of this.plots) plot.draw();
  }
}

class Plot {
  constructor(owner, group) {
    this.owner = owner;
    this.view = owner.view;
    this.element = make("section", "plot", null, owner.list);
    const head = make("header", "", null, this.element);
    this.select = make("select", "", null, head);
    this.select.setAttribute("aria-label", "quantity");
    this.select.addEventListener("change", () => this.choose(this.select.value));
    button("close", "Remove this plot", () => owner.remove(this), head, "small");
    this.canvas = make("canvas", "", null, this.element);
    this.names = make("div", "names", null, this.element);
    const seek = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const part = (event.clientX - box.left - this.left) / (this.width - this.left - 8);
      const { start, end } = this.view;
      this.view.seek(start + Math.min(1, Math.max(0, part)) * (end - start));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      seek(event);
    });
    this.canvas.addEventListener("pointermove", (event) => event.buttons && seek(event));
    this.left = 46;
    this.group = group;
    this.offer();
  }

  // What can be chosen.
  offer() {
    this.select.replaceChildren();
    for (const name of this.owner.groups) make("option", "", name, this.select).value = name;
    this.select.value = this.group;
    this.choose(this.group);
  }

  choose(group) {
    this.group = group;
    const several = this.view.motions.length > 1;
    this.curves = [];
    const names = [];
    this.view.motions.forEach((motion) => {
      motion.track.curves.filter((c) => c.group === group).forEach((curve) => {
        if (!names.includes(curve.name)) names.push(curve.name);
        this.curves.push({ motion, curve, name: curve.name });
      });
    });
    this.on = new Set(several ? names.slice(0, 1) : names.slice(0, SHOWN));
    this.color = (item) => {
      if (!several) return COLORS[names.indexOf(item.name) % COLORS.length];
      const [r, g, b] = item.motion.track.color;
      return `rgb(${r * 255},${g * 255},${b * 255})`;
    };
    this.names.replaceChildren();
    this.values = new Map();
    names.slice(0, NAMED).forEach((name, i) => {
      const chip = make("button", "chip", null, this.names);
      chip.type = "button";
      const dot = make("i", "", null, chip);
      if (!several) dot.style.background = COLORS[i % COLORS.length];
      make("span", "", name, chip);
      this.values.set(name, make("b", "", "", chip));
      const mark = () => {
        chip.classList.toggle("off", !this.on.has(name));
        chip.setAttribute("aria-pressed", String(this.on.has(name)));
      };
      mark();
      chip.addEventListener("click", () => {
        if (!this.on.delete(name)) this.on.add(name);
        mark();
        this.draw(true);
      });
    });
    this.units = this.curves[0]?.curve.units ?? "";
    this.draw(true);
  }

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
    this.draw(true);
  }

  #limits() {
    let [low, high] = [Infinity, -Infinity];
    for (const item of this.curves) {
      if (!this.on.has(item.name) || !item.motion.visible) continue;
      for (let i = 0; i < samples(item).count; i++) {
        const v = item.curve.values[i];
        if (v < low) low = v;
        if (v > high) high = v;
      }
    }
    if (!(high >= low)) return [-1, 1];
    const pad = high > low ? 0.06 * (high - low) : Math.max(0.5 * Math.abs(high), 1e-6);
    return [low - pad, high + pad];
  }

  draw(anew = false) {
    if (!this.width || this.width < 20) return;
    if (anew || !this.image) this.#paint();
    const c = this.canvas.getContext("2d");
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, this.canvas.width, this.canvas.height);
    c.drawImage(this.image, 0, 0);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const { start, end, time } = this.view;
    if (end > start) {
      const x = this.left + ((time - start) / (end - start)) * (this.width - this.left - 8);
      c.strokeStyle = "#d1495b";
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x, 6);
      c.lineTo(x, this.height - 18);
      c.stroke();
    }
    for (const item of this.curves) {
      const place = this.values.get(item.name);
      if (place && item.motion === (this.view.motions.find((m) => m.visible) ?? item.motion)) {
        place.textContent = number(item.curve.times ? valueAt(item.curve, this.view.time) : item.motion.value(item.curve.values, 0), 3);
      }
    }
  }

  #paint() {
    const image = document.createElement("canvas");
    image.width = this.canvas.width;
    image.height = this.canvas.height;
    this.image = image;
    const c = image.getContext("2d");
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const style = getComputedStyle(this.element);
    const ink = style.getPropertyValue("--muted").trim() || "#667";
    const line = style.getPropertyValue("--line").trim() || "#ccd";
    const [low, high] = this.#limits();
    const { start, end } = this.view;
    const [left, right, top, bottom] = [this.left, this.width - 8, 6, this.height - 18];
    const x = (t) => left + ((t - start) / Math.max(end - start, 1e-12)) * (right - left);
    const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
    c.font = "10px system-ui, sans-serif";
    c.fillStyle = ink;
    c.strokeStyle = line;
    c.lineWidth = 1;
    c.textBaseline = "middle";
    c.textAlign = "right";
    for (const v of ticks(low, high, 4)) {
      c.beginPath();
      c.moveTo(left, Math.round(y(v)) + 0.5);
      c.lineTo(right, Math.round(y(v)) + 0.5);
      c.stroke();
      c.fillText(number(v, 4), left - 5, y(v));
    }
    c.textBaseline = "alphabetic";
    c.textAlign = "center";
    for (const t of ticks(start, end, 4)) c.fillText(number(t, 4), Math.min(x(t), right - 8), this.height - 4);
    c.save();
    c.beginPath();
    c.rect(left, 0, right - left, this.height);
    c.clip();
    for (const item of this.curves) {
      if (!this.on.has(item.name) || !item.motion.visible) continue;
      const { times, count } = samples(item);
      c.strokeStyle = this.color(item);
      c.lineWidth = 1.5;
      c.lineJoin = "round";
      c.beginPath();
      for (let i = 0; i < count; i++) c.lineTo(x(times[i]), y(item.curve.values[i]));
      c.stroke();
    }
    c.restore();
  }
}

// A curve has times of its own where the run has more samples than frames.
function samples({ motion, curve }) {
  return curve.times ? { times: curve.times, count: curve.times.length } : { times: motion.track.times, count: motion.frames };
}

function valueAt({ times, values }, time) {
  let [low, high] = [0, times.length - 1];
  if (!(time > times[low])) return values[low];
  if (time >= times[high]) return values[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle;
    else high = middle;
  }
  const step = times[high] - times[low];
  return values[low] + (step > 0 ? ((time - times[low]) / step) * (values[high] - values[low]) : 0);
}

function ticks(low, high, count) {
  const raw = (high - low) / count;
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) out.push(Math.abs(v) < 1e-9 * step ? 0 : v);
  return out;
}
