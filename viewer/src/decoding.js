// The scene as Python packed it (packing.py): a length, JSON, and floats whose bytes lie plane by plane.

export function decode(bytes) {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const scene = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const planes = bytes.subarray(4 + size);
  const count = planes.length >> 2;
  const plain = new Uint8Array(count * 4);
  for (let plane = 0; plane < 4; plane++) {
    const from = plane * count;
    for (let i = 0; i < count; i++) plain[4 * i + plane] = planes[from + i];
  }
  const floats = new Float32Array(plain.buffer);
  const pick = (ref) => floats.subarray(ref[0], ref[0] + ref[1]);
  for (const model of scene.models) {
    for (const body of model.bodies) {
      for (const shape of body.shapes) {
        for (const key of ["v", "f", "h"]) if (shape[key]) shape[key] = pick(shape[key]);
      }
    }
    for (const soft of model.soft) {
      soft.nodes = pick(soft.nodes);
      soft.shapes = pick(soft.shapes);
      if (soft.faces) soft.faces = pick(soft.faces);
    }
  }
  for (const track of scene.tracks) {
    track.times = pick(track.times);
    track.poses = pick(track.poses);
    track.amplitudes = track.amplitudes.map(pick);
    for (const arrow of track.arrows) {
      arrow.force = arrow.force && pick(arrow.force);
      arrow.moment = arrow.moment && pick(arrow.moment);
    }
    for (const curve of track.curves) {
      curve.values = pick(curve.values);
      curve.times = curve.times && pick(curve.times);
    }
  }
  return scene;
}
