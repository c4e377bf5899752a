// The page's side of a live server (live_server.py): sliders and dragging ask it for closed positions, and a run that
// goes on is shown as it grows. Runs inside the start script of the page, which knows `await`.
const base = location.pathname.replace(/[^/]*$/, "");
const ask = async (what, data = null) => {
  const options = data === null ? {} : { method: "POST", body: JSON.stringify(data), headers: { "Content-Type": "application/json" } };
  const answer = await fetch(base + what, { ...options, cache: "no-store", referrerPolicy: "no-referrer" });
  if (!answer.ok) throw new Error(`${what.split("?")[0]}: ${answer.status}`);
  return answer.arrayBuffer();
};
const learn = async () => JSON.parse(new TextDecoder().decode(await ask("facts")));
const facts = await learn();
const scene = new Uint8Array(await ask("scene"));
const moved = facts.moved ? new Float32Array(await ask("position")) : null;
const live = { answered: 0, reached: true, frames: 0, lost: false };
window.bellcrankLive = live;
let api = null;

// One question at a time; of those that wait, only the last counts.
let busy = false;
let waiting = null;
const wish = async (what, data) => {
  waiting = [what, { ...data, time: api.view.motions[0].live ? null : api.view.time }];
  if (busy) return;
  busy = true;
  while (waiting) {
    const [path, question] = waiting;
    waiting = null;
    try {
      const answer = await ask(path, question);
      if (path === "parameter") await remodel(answer);
      else place(new Float32Array(answer));
    } catch (error) {
      lost(error);
      waiting = null;
    }
  }
  busy = false;
};
const place = (numbers) => {
  live.reached = numbers[0] === 1;
  api.view.pause();
  api.setPoses(numbers.slice(1 + facts.sliders.length));
  facts.sliders.forEach((slider, i) => api.setSlider(slider.name, numbers[1 + i]));
  live.answered += 1;
};
// The machine with another value of a parameter; an empty answer: it cannot be closed so, and stays as it was.
const remodel = async (answer) => {
  live.reached = answer.byteLength > 0;
  if (live.reached) {
    live.frames = 0;
    api.view.pause();
    api.remodel(new Uint8Array(answer));
  }
  const { sliders, parameters } = await learn();
  sliders.forEach((slider) => api.setSlider(slider.name, slider.value));
  parameters.forEach((p) => api.setSlider(`parameter ${p.name}`, p.value));
  live.answered += 1;
};
const lost = (error) => {
  live.lost = true;
  api.view.panels.notes.textContent = error instanceof TypeError
    ? "The program that showed this machine has ended." : String(error.message ?? error);
};

// A body that is taken hold of follows the mouse in the plane of the screen.
const grip = () => {
  const { view } = api;
  const { canvas, stage } = view;
  let held = null;
  const target = (event) => {
    const box = canvas.getBoundingClientRect();
    const place = stage.camera.position.clone().set(((event.clientX - box.left) / box.width) * 2 - 1,
      1 - ((event.clientY - box.top) / box.height) * 2, held.depth).unproject(stage.camera);
    return place.sub(view.motions[held.motion].offset).toArray();
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.shiftKey || event.ctrlKey || event.metaKey) return;
    const hit = view.hit(event.clientX, event.clientY);
    if (!hit || hit.body === 0) return;
    held = { ...hit, depth: stage.camera.position.clone().set(...hit.point).project(stage.camera).z, from: [event.clientX, event.clientY] };
    stage.controls.enabled = false;
    canvas.setPointerCapture(event.pointerId);
  }, true);
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    if (!held.moved && Math.hypot(event.clientX - held.from[0], event.clientY - held.from[1]) < 5) return;
    held.moved = true;
    wish("drag", { body: held.body, point: held.at, target: target(event) });
  });
  const free = () => {
    held = null;
    stage.controls.enabled = true;
  };
  canvas.addEventListener("pointerup", free);
  canvas.addEventListener("pointercancel", free);
};

// Frames of a run take the place of the track, one after the other, and so do its curves; it plays on while they come.
const grow = (numbers, curves) => {
  const { view } = api;
  const motion = view.motions[0];
  const poses = 7 * facts.bodies;
  const width = poses + curves.length;
  for (let at = 3; at < numbers.length; at += width + 1) {
    const [time, frame] = [numbers[at], numbers.subarray(at + 1, at + 1 + width)];
    if (live.frames) motion.append(time, frame);
    else {
      Object.assign(motion.track, { times: Float32Array.of(time), poses: frame.slice(0, poses), count: 1,
        curves: curves.map(([group, name, units], i) => ({ group, name, units, values: Float32Array.of(frame[poses + i]) })) });
      view.start = view.time = view.panels.time.min = time;
      view.panels.renewPlots();
    }
    live.frames += 1;
  }
  view.extend();
  view.seek(view.time);
};
const watch = async () => {
  const { view } = api;
  let count = 0;
  let { curves } = facts;
  while (!live.lost) {
    try {
      const numbers = new Float32Array(await ask(`frames?after=${count}`));
      if (numbers[0] < count) live.frames = 0; // another run
      if (numbers.length > 3 && !live.frames) ({ curves } = await learn());
      if (numbers.length > 3 && numbers[2] !== curves.length) { // yet another one, begun since
        [count, live.frames] = [0, 0];
        continue;
      }
      count = numbers[0];
      if (numbers.length > 3) {
        const atEnd = live.frames === 0 || view.time >= view.end - 1e-6;
        grow(numbers, curves);
        if (atEnd && !view.playing) {
          view.loop = false;
          view.last = null;
          view.playing = true;
        }
      }
      await new Promise((done) => { setTimeout(done, numbers.length > 3 ? 40 : numbers[1] ? 100 : 400); });
    } catch (error) {
      lost(error);
    }
  }
};

window.bellcrank.start(scene, {
  sliders: [...facts.sliders, ...facts.parameters.map((p) => ({ ...p, name: `parameter ${p.name}`, label: p.name, group: "Parameters" }))],
  change: (name, value) => {
    const number = facts.parameters.findIndex((p) => `parameter ${p.name}` === name);
    if (number >= 0) wish("parameter", { parameter: number, value });
    else wish("move", { slider: facts.sliders.findIndex((s) => s.name === name), value });
  },
  open: (opened) => {
    api = opened;
    if (facts.live) {
      if (moved) place(moved);
      grip();
      watch();
    }
  },
});
