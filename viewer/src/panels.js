// Everything around the picture: title, buttons, time, what is shown, sliders, help.
import { button, make, number, setIcon } from "./elements.js";
import { Plots } from "./plots.js";

const SPEEDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

export const TOGGLES = [
  ["symbols", "Joint symbols", "y"], ["axes", "Joint axes", "j"], ["names", "Joint names", "n"],
  ["bodyNames", "Body names", "b"], ["frames", "Body frames", "r"], ["forces", "Forces and moments", "a"],
  ["masses", "Centers of mass, inertia", "c"], ["traces", "Traces", "t"], ["ghosts", "Ghost poses", "g"],
  ["floor", "Floor", "l"],
];

export class Panels {
  constructor(view, app) {
    this.view = view;
    this.app = app;
    this.#top();
    this.#bottom();
    this.#show();
    this.#help();
    this.side = make("aside", "side panel", null, app);
    this.plots = new Plots(view, this.side);
    this.sliderPanel = make("section", "sliders panel hidden", null, app);
    this.#offerPlots();
  }

  #offerPlots() {
    const none = !this.plots.groups.length;
    this.plotButton.classList.toggle("hidden", none);
    this.side.classList.toggle("hidden", none || this.app.clientWidth < 760);
  }

  // Other curves than before, as where a run is watched.
  renewPlots() {
    const had = this.plots.groups.length > 0;
    this.plots.renew();
    if (!had) this.#offerPlots();
    this.view.resize();
  }

  #top() {
    const bar = make("header", "top", null, this.app);
    const title = make("div", "title", null, bar);
    make("h1", "", this.view.scene.title, title);
    this.notes = make("p", "", this.view.scene.notes.join(" · "), title);
    const tools = make("nav", "tools", null, bar);
    button("fit", "Show everything (F)", () => this.view.fit(), tools);
    this.sliderButton = button("sliders", "Coordinates (O)", () => this.toggle(this.sliderPanel), tools, "hidden");
    this.showButton = button("eye", "What is shown (V)", () => this.toggle(this.showPanel), tools);
    this.plotButton = button("chart", "Plots (P)", () => this.toggle(this.side), tools);
    button("camera", "Save this picture (S)", () => this.view.download(), tools);
    button("moon", "Light or dark (D)", () => this.view.setTheme(this.view.stage.theme === "dark" ? "light" : "dark"), tools);
    button("help", "Keys (?)", () => this.toggle(this.helpPanel), tools);
  }

  #bottom() {
    this.bar = make("footer", "bottom", null, this.app);
    const { view } = this;
    if (!(view.end > view.start)) this.bar.classList.add("hidden");
    button("back", "One picture back (←)", () => view.step(-1), this.bar);
    this.playButton = button("play", "Play or pause (space)", () => view.toggle(), this.bar, "main");
    button("forward", "One picture on (→)", () => view.step(1), this.bar);
    this.time = make("input", "time", null, this.bar);
    Object.assign(this.time, { type: "range", min: view.start, max: view.end, step: "any", value: view.start });
    this.time.setAttribute("aria-label", "time");
    this.time.addEventListener("input", () => {
      const wanted = Number(this.time.value); // before anything sets it
      view.pause();
      view.seek(wanted);
    });
    this.readout = make("output", "readout", "", this.bar);
    this.speed = make("select", "speed", null, this.bar);
    this.speed.setAttribute("aria-label", "speed");
    for (const s of SPEEDS) make("option", "", `${s}×`, this.speed).value = s;
    this.speed.value = 1;
    this.speed.addEventListener("change", () => view.setSpeed(Number(this.speed.value)));
    this.loopButton = button("repeat", "Again and again", () => {
      view.loop = !view.loop;
      this.loopButton.classList.toggle("on", view.loop);
    }, this.bar, "on");
  }

  #show() {
    const { view } = this;
    this.showPanel = make("section", "show panel hidden", null, this.app);
    make("h2", "", "Show", this.showPanel);
    this.boxes = {};
    for (const [name, label, key] of TOGGLES) {
      if (!view.available(name)) continue;
      const row = make("label", "row", null, this.showPanel);
      const box = make("input", "", null, row);
      box.type = "checkbox";
      box.checked = Boolean(view.shown[name]);
      box.addEventListener("change", () => view.show(name, box.checked));
      make("span", "", label, row);
      make("kbd", "", key.toUpperCase(), row);
      this.boxes[name] = box;
    }
    if (view.arrows.items.length) {
      const row = make("label", "row", null, this.showPanel);
      make("span", "", "Length of arrows", row);
      const scale = make("input", "", null, row);
      Object.assign(scale, { type: "range", min: -2, max: 2, step: 0.05, value: 0 });
      scale.setAttribute("aria-label", "length of arrows");
      scale.addEventListener("input", () => view.setArrowScale(2 ** Number(scale.value)));
    }
    if (view.motions.length > 1) this.#tracks();
    this.bodyInfo = make("div", "body-info hidden", null, this.app);
  }

  #tracks() {
    const { view } = this;
    make("h2", "", "Runs", this.showPanel);
    view.motions.forEach((motion) => {
      const row = make("label", "row", null, this.showPanel);
      const box = make("input", "", null, row);
      Object.assign(box, { type: "checkbox", checked: true });
      const dot = make("i", "dot", null, row);
      const [r, g, b] = motion.track.color ?? [0.5, 0.5, 0.5];
      dot.style.background = `rgb(${r * 255},${g * 255},${b * 255})`;
      make("span", "", motion.track.label, row);
      box.addEventListener("change", () => view.showTrack(motion, box.checked));
    });
    const row = make("label", "row", null, this.showPanel);
    const box = make("input", "", null, row);
    Object.assign(box, { type: "checkbox", checked: view.sideBySide });
    make("span", "", "Side by side", row);
    box.addEventListener("change", () => view.arrange(box.checked));
  }

  #help() {
    this.helpPanel = make("section", "help panel hidden", null, this.app);
    make("h2", "", "Mouse and keys", this.helpPanel);
    const rows = [["drag", "turn"], ["right drag, two fingers", "move"], ["wheel, pinch", "nearer, farther"],
      ["click a body", "its name and mass; trace the point"], ["space", "play, pause"], ["← →", "one picture"],
      ["Home End", "begin, end"], ["+ −", "faster, slower"], ["1 2 3 4", "front, side, top, corner"],
      ...TOGGLES.filter(([name]) => this.view.available(name)).map(([, label, key]) => [key.toUpperCase(), label]),
      ["F", "show everything"], ["P", "plots"], ["D", "light, dark"], ["S", "save a picture"]];
    const table = make("dl", "", null, this.helpPanel);
    for (const [key, what] of rows) {
      make("dt", "", key, table);
      make("dd", "", what, table);
    }
  }

  toggle(panel, on = null) {
    const hide = on === null ? !panel.classList.contains("hidden") : !on;
    for (const other of [this.showPanel, this.helpPanel]) if (other !== panel) other.classList.add("hidden");
    panel.classList.toggle("hidden", hide);
    if (panel === this.side) this.view.resize();
    this.view.dirty = true;
  }

  extend() {
    this.time.max = this.view.end;
    this.plots.grow();
    if (this.view.end > this.view.start) this.bar.classList.remove("hidden");
  }

  update() {
    const { view } = this;
    this.time.value = view.time;
    this.readout.textContent = `${view.time.toFixed(2)} / ${view.end.toFixed(2)} s`;
    setIcon(this.playButton, view.playing ? "pause" : "play");
    if (!this.side.classList.contains("hidden")) this.plots.draw();
  }

  // What was clicked on.
  inform(selected) {
    this.bodyInfo.classList.toggle("hidden", !selected);
    if (!selected) return;
    const { view } = this;
    const model = view.scene.models[view.motions[selected.motion].track.model];
    const body = model.bodies[selected.body];
    this.bodyInfo.replaceChildren();
    make("strong", "", body.name, this.bodyInfo);
    if (body.mass) make("span", "", `${number(body.mass, 4)} kg`, this.bodyInfo);
    const joints = model.joints.filter((j) => j.parent === selected.body || j.child === selected.body).map((j) => j.name);
    if (joints.length) make("span", "", `joints ${joints.slice(0, 6).join(", ")}${joints.length > 6 ? ", …" : ""}`, this.bodyInfo);
    if (view.end > view.start && selected.body) {
      const trace = make("button", "quiet", "Trace this point", this.bodyInfo);
      trace.type = "button";
      trace.addEventListener("click", () => view.addTrace({ body: selected.body, point: selected.at, name: body.name }));
    }
  }

  // Sliders for a feed that answers: [{name, label, min, max, value, units}].
  setSliders(list, onChange) {
    this.sliderPanel.replaceChildren();
    this.sliders = new Map();
    this.sliderButton.classList.toggle("hidden", !list.length);
    this.sliderPanel.classList.toggle("hidden", !list.length);
    let group = null;
    for (const slider of list) {
      if ((slider.group ?? "Coordinates") !== group) {
        group = slider.group ?? "Coordinates";
        make("h2", "", group, this.sliderPanel);
      }
      const row = make("label", "slider", null, this.sliderPanel);
      const head = make("span", "", slider.label ?? slider.name, row);
      const value = make("output", "", "", head);
      const input = make("input", "", null, row);
      Object.assign(input, { type: "range", min: slider.min, max: slider.max, step: "any", value: slider.value });
      const say = () => {
        value.textContent = `${number(Number(input.value), 3)} ${slider.units ?? ""}`;
      };
      say();
      input.addEventListener("input", () => {
        say();
        onChange(slider.name, Number(input.value));
      });
      this.sliders.set(slider.name, { input, say });
    }
  }

  setSlider(name, value) {
    const slider = this.sliders?.get(name);
    if (!slider || document.activeElement === slider.input) return;
    slider.input.value = value;
    slider.say();
  }
}
