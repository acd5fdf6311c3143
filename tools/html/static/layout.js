// Where each node of a function stands: layers from top to bottom in the order of the data, in time linear in nodes and
// edges. A node stands below all that it reads of, and where it can in the column of the first of them. An edge that
// passes other rows runs in a lane beside the columns, one lane for all readers of one writer.

const NODE = { least: 220, most: 420, width: 220, height: 62, across: 240, down: 100 };
const LANE = 9;
const MOST_LANES = 48;
const CHUNK = 16; // rows whose edges are kept together

function layout(view, columns) {
  const total = view.nodes.length;
  const found = { row: new Int32Array(total), column: new Int32Array(total), rows: 0, columns: 1, steps: 0 };
  const inputs = Array.from({ length: total }, () => []);
  for (const edge of view.edges) if (edge[0] < edge[1]) inputs[edge[1]].push(edge[0]);
  const layer = new Int32Array(total);
  const slot = new Int32Array(total);
  const layers = [];
  let floor = 0;
  let top = 0;
  for (let at = 0; at < total; at++) {
    if (at > 0 && view.nodes[at].block !== view.nodes[at - 1].block) floor = top;
    let place = floor;
    for (const input of inputs[at]) {
      place = Math.max(place, layer[input] + 1);
      found.steps++;
    }
    layer[at] = place;
    top = Math.max(top, place + 1);
    const row = (layers[place] ??= { taken: new Set(), next: 0, most: 0 });
    const wanted = inputs[at].length ? slot[inputs[at][inputs[at].length - 1]] % columns : 0;
    slot[at] = row.taken.has(wanted) ? free(row, found) : wanted;
    row.taken.add(slot[at]);
    row.most = Math.max(row.most, slot[at]);
    found.steps++;
  }
  const first = [];
  for (const row of layers) {
    first.push(found.rows);
    found.rows += row ? Math.floor(row.most / columns) + 1 : 0;
  }
  for (let at = 0; at < total; at++) {
    found.row[at] = first[layer[at]] + Math.floor(slot[at] / columns);
    found.column[at] = slot[at] % columns;
    found.columns = Math.max(found.columns, found.column[at] + 1);
  }
  lanes(view, found);
  found.bands = bands(view, found);
  found.loops = view.loops.map(([first, last]) => {
    const rows = found.row.subarray(first, last + 1);
    return [first, last, rows.reduce((a, b) => Math.min(a, b)), rows.reduce((a, b) => Math.max(a, b))];
  });
  found.left = 26 + 10 * Math.min(depth(view.loops), 6) + LANE * found.lanes;
  found.height = NODE.down * found.rows + 20;
  return found;
}

/** Nodes take the width that there is for the columns that are used. */
function fit(found, room) {
  const each = Math.floor((room - found.left - 10) / found.columns) - 20;
  NODE.width = Math.min(Math.max(each, NODE.least), NODE.most);
  NODE.across = NODE.width + 20;
  found.width = found.left + NODE.across * found.columns;
}

function free(row, found) {
  while (row.taken.has(row.next)) {
    row.next++;
    found.steps++;
  }
  return row.next;
}

/** Short edges go straight down; all others of one writer share a lane. Both are kept by the rows that they are in. */
function lanes(view, found) {
  const long = new Map();
  found.short = [];
  for (const edge of view.edges) {
    const [writer, reader, carried] = edge;
    const down = found.row[reader] - found.row[writer];
    if (!carried && down === 1) found.short.push(edge);
    else if (!carried || down !== 0 || writer !== reader) {
      const key = 2 * writer + (carried ? 1 : 0);
      if (!long.has(key)) long.set(key, { writer, carried: Boolean(carried), readers: [], from: 0, to: 0, lane: 0 });
      long.get(key).readers.push(reader);
    }
    found.steps++;
  }
  found.buses = [...long.values()];
  for (const bus of found.buses) {
    bus.from = bus.to = found.row[bus.writer];
    for (const reader of bus.readers) {
      bus.from = Math.min(bus.from, found.row[reader]);
      bus.to = Math.max(bus.to, found.row[reader]);
    }
  }
  found.buses.sort((a, b) => a.from - b.from || b.to - a.to);
  const ends = [];
  for (const bus of found.buses) {
    let lane = ends.findIndex((end) => end < bus.from);
    if (lane < 0) lane = Math.min(ends.length, MOST_LANES - 1);
    ends[lane] = Math.max(ends[lane] ?? 0, bus.to);
    bus.lane = lane;
  }
  found.lanes = ends.length;
  found.chunks = [];
  const chunk = (at) => (found.chunks[at] ??= { short: [], buses: [], nodes: [] });
  for (const edge of found.short) chunk(Math.floor(found.row[edge[1]] / CHUNK)).short.push(edge);
  for (const bus of found.buses)
    for (let at = Math.floor(bus.from / CHUNK); at <= Math.floor(bus.to / CHUNK); at++) chunk(at).buses.push(bus);
  for (let at = 0; at < view.nodes.length; at++) chunk(Math.floor(found.row[at] / CHUNK)).nodes.push(at);
}

/** The rows of each block, where there are several. */
function bands(view, found) {
  const made = [];
  for (let at = 0; at < view.nodes.length; at++) {
    const block = view.nodes[at].block;
    const last = made[made.length - 1];
    if (last && last.block === block) last.to = Math.max(last.to, found.row[at]);
    else made.push({ block, from: found.row[at], to: found.row[at] });
  }
  return made.length > 1 ? made : [];
}

function depth(loops) {
  const open = [];
  let most = 0;
  for (const [first, last] of loops) {
    while (open.length && open[open.length - 1] < first) open.pop();
    open.push(last);
    most = Math.max(most, open.length);
  }
  return most;
}
