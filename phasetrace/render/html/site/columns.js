// Columns of integers, as phasetrace/mapping/columns.py packs them: zlib, bytes by significance, differences.

const WIDTH = 8; // bytes of an integer

export async function unpack(text) {
  const planes = await inflated(bytesOf(text));
  const length = planes.length / WIDTH;
  const column = new Float64Array(length);
  const used = usedPlanes(planes, length);
  let value = 0;
  for (let i = 0; i < length; i++) {
    let zigzag = 0;
    for (let plane = used - 1; plane >= 0; plane--) zigzag = zigzag * 256 + planes[plane * length + i];
    value += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
    column[i] = value;
  }
  return column;
}

// Unpacks every column that is there, all at once.
export async function unpackAll(packed, names) {
  const there = names.filter((name) => packed[name] !== undefined);
  const columns = await Promise.all(there.map((name) => unpack(packed[name])));
  return Object.fromEntries(there.map((name, i) => [name, columns[i]]));
}

function usedPlanes(planes, length) {
  for (let plane = WIDTH; plane > 1; plane--)
    for (let i = (plane - 1) * length; i < plane * length; i++) if (planes[i]) return plane;
  return 1;
}

function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
