// Where bodies are at a time: between two frames positions are interpolated, and turns the short way.
import { Matrix4, Quaternion, Vector3 } from "three";

const first = new Quaternion();
const second = new Quaternion();
const at = new Vector3();
const one = new Vector3(1, 1, 1);

export class Motion {
  constructor(track, bodies) {
    this.track = track;
    this.bodies = bodies;
    this.offset = new Vector3();
    this.visible = true;
    this.matrices = Array.from({ length: bodies }, () => new Matrix4());
    this.live = null; // poses that came from outside, body by body
    this.seek(this.start);
  }

  get frames() {
    return this.track.count ?? this.track.times.length;
  }

  // How far apart the components of a series lie: more than there are frames where a run is still growing.
  get stride() {
    return this.track.times.length;
  }

  // One more frame of a run that goes on: poses body by body, and values of the curves if there are any.
  append(time, numbers) {
    const { track } = this;
    const count = this.frames;
    const size = 7 * this.bodies;
    if (count === this.stride) {
      const [old, room] = [this.stride, Math.max(64, 2 * this.stride)];
      const poses = new Float32Array(size * room);
      for (let c = 0; c < size; c++) poses.set(track.poses.subarray(c * old, c * old + old), c * room);
      const times = new Float32Array(room);
      times.set(track.times);
      Object.assign(track, { poses, times });
      for (const curve of track.curves) {
        const values = new Float32Array(room);
        values.set(curve.values);
        curve.values = values;
      }
    }
    track.curves.forEach((curve, i) => {
      curve.values[count] = numbers[size + i] ?? NaN;
    });
    for (let b = 0; b < this.bodies; b++) {
      let same = 0; // turns do not jump between q and -q
      for (let c = 3; c < 7; c++) same += numbers[7 * b + c] * track.poses[(7 * b + c) * this.stride + count - 1];
      for (let c = 0; c < 7; c++) {
        track.poses[(7 * b + c) * this.stride + count] = numbers[7 * b + c] * (c > 2 && same < 0 ? -1 : 1);
      }
    }
    track.times[count] = time;
    track.count = count + 1;
  }

  get start() {
    return this.track.times[0];
  }

  get end() {
    return this.track.times[this.frames - 1];
  }

  // The frame before a time, and how far it is on the way to the next.
  place(time) {
    const { times } = this.track;
    let low = 0;
    let high = this.frames - 1;
    if (!(time > times[low])) return [0, 0];
    if (time >= times[high]) return [high, 0];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle;
    }
    const step = times[high] - times[low];
    return [low, step > 0 ? (time - times[low]) / step : 0];
  }

  // One number of a series (component, frame) at the present time.
  value(series, component) {
    const base = component * this.stride + this.frame;
    const here = series[base];
    return this.part > 0 ? here + (series[base + 1] - here) * this.part : here;
  }

  seek(time) {
    this.time = time;
    this.live = null;
    [this.frame, this.part] = this.place(time);
    for (let b = 0; b < this.bodies; b++) this.#compose(b);
  }

  setPoses(numbers) {
    this.live = numbers;
    for (let b = 0; b < this.bodies; b++) {
      const k = 7 * b;
      at.set(numbers[k], numbers[k + 1], numbers[k + 2]).add(this.offset);
      first.set(numbers[k + 4], numbers[k + 5], numbers[k + 6], numbers[k + 3]).normalize();
      this.matrices[b].compose(at, first, one);
    }
  }

  refresh() {
    if (this.live) this.setPoses(this.live);
    else this.seek(this.time);
  }

  #compose(b) {
    const { poses } = this.track;
    const n = this.stride;
    const k = 7 * b * n + this.frame;
    at.set(poses[k], poses[k + n], poses[k + 2 * n]);
    first.set(poses[k + 4 * n], poses[k + 5 * n], poses[k + 6 * n], poses[k + 3 * n]).normalize();
    if (this.part > 0) {
      const f = this.part;
      at.x += (poses[k + 1] - poses[k]) * f;
      at.y += (poses[k + n + 1] - poses[k + n]) * f;
      at.z += (poses[k + 2 * n + 1] - poses[k + 2 * n]) * f;
      second.set(poses[k + 4 * n + 1], poses[k + 5 * n + 1], poses[k + 6 * n + 1], poses[k + 3 * n + 1]).normalize();
      first.slerp(second, f);
    }
    this.matrices[b].compose(at.add(this.offset), first, one);
  }

  // Where a point of a body is at a frame, without the track's offset.
  pointAt(body, point, frame, target) {
    const { poses } = this.track;
    const n = this.stride;
    const k = 7 * body * n + frame;
    first.set(poses[k + 4 * n], poses[k + 5 * n], poses[k + 6 * n], poses[k + 3 * n]).normalize();
    target.set(...point).applyQuaternion(first);
    target.x += poses[k];
    target.y += poses[k + n];
    target.z += poses[k + 2 * n];
    return target;
  }
}
