// The memory view: what lies where in one buffer, from command to command. A rectangle is a value: as wide as it is
// needed, as high as it has bytes.

const MEMORY = { left: 70, top: 8, bottom: 22, least: 5 };

function memoryBuffers() {
  const used = new Set(state.view.ranges.map((range) => range.buffer));
  return [...used].sort((a, b) => (bufferSize(b) ?? 0) - (bufferSize(a) ?? 0));
}

function bufferSize(buffer) {
  const size = valueOf(state.program.buffers[buffer].size);
  if (size !== null) return size;
  let end = 0;
  for (const range of state.view.ranges) {
    if (range.buffer === buffer) end = Math.max(end, (valueOf(range.offset) ?? 0) + (valueOf(range.length) ?? 0));
  }
  return end;
}

function fillBuffers() {
  const rows = memoryBuffers();
  const named = (row) => `${state.program.buffers[row].name}, ${bytesText(bufferSize(row))}`;
  options(byId("buffer"), rows.map((row) => [String(row), named(row)]));
  state.buffer = rows.includes(state.buffer) ? state.buffer : rows[0] ?? null;
  if (state.buffer !== null) byId("buffer").value = String(state.buffer);
}

const rangesOf = (buffer) => state.view.ranges.filter((range) => range.buffer === buffer);

/** The most bytes that are needed at once, and where: a sweep over the ends of all spans. */
function mostNeeded(ranges) {
  const change = new Float64Array(state.view.nodes.length + 1);
  for (const range of ranges) {
    for (const [first, last] of range.spans) {
      change[first] += valueOf(range.length) ?? 0;
      change[last + 1] -= valueOf(range.length) ?? 0;
    }
  }
  let now = 0;
  const found = { bytes: 0, node: 0 };
  for (let node = 0; node < state.view.nodes.length; node++) {
    now += change[node];
    if (now > found.bytes) Object.assign(found, { bytes: now, node });
  }
  return found;
}

function memoryScale() {
  const scroller = byId("memory-scroller");
  const width = scroller.clientWidth;
  const height = scroller.clientHeight;
  const total = state.view.nodes.length;
  return {
    width, height,
    across: Math.max(MEMORY.least, (width - MEMORY.left - 10) / total),
    down: (height - MEMORY.top - MEMORY.bottom) / Math.max(bufferSize(state.buffer), 1),
    left: scroller.scrollLeft,
  };
}

function drawMemory() {
  if (state.buffer === null) {
    byId("usage").textContent = "This function keeps nothing in memory of the program.";
    sized(byId("memory-canvas"), 10, 10);
    byId("live").replaceChildren();
    return;
  }
  const ranges = rangesOf(state.buffer);
  showLive(ranges); // first: what it takes of the height is not the picture's
  const scale = memoryScale();
  byId("memory-width").style.width = `${MEMORY.left + scale.across * state.view.nodes.length + 10}px`;
  const pen = sized(byId("memory-canvas"), scale.width, scale.height);
  pen.font = "11px system-ui, sans-serif";
  pen.save();
  pen.beginPath();
  pen.rect(MEMORY.left, 0, scale.width, scale.height);
  pen.clip();
  pen.translate(MEMORY.left - scale.left, MEMORY.top);
  let drawn = 0;
  for (const range of ranges) drawn += drawRange(pen, range, scale);
  if (state.node !== null) {
    pen.strokeStyle = colours["--accent"];
    pen.lineWidth = 2;
    const x = (state.node + 0.5) * scale.across;
    pen.strokeRect(x, -4, 0, scale.height - MEMORY.bottom);
  }
  pen.restore();
  drawAxes(pen, scale);
  document.documentElement.dataset.ranges = drawn;
  const most = mostNeeded(ranges);
  const size = bufferSize(state.buffer);
  const part = size ? ` (${Math.round((100 * most.bytes) / size)} %)` : "";
  byId("usage").textContent =
    `${count(ranges.length)} values in ${bytesText(size)}; at most ${bytesText(most.bytes)}${part} needed at once, at #${most.node}`;
}

function drawRange(pen, range, scale) {
  const offset = valueOf(range.offset);
  const length = valueOf(range.length);
  if (offset === null || length === null) return 0;
  const node = state.view.nodes[range.writer];
  const heat = heatOf(range.writer);
  let drawn = 0;
  for (const [first, last] of range.spans) {
    const x = first * scale.across;
    const width = (last - first + 1) * scale.across;
    if (x - scale.left > scale.width || x + width < scale.left) continue;
    const height = Math.max(length * scale.down, 1.5);
    pen.globalAlpha = state.colour === "kind" ? 0.55 : 0.15 + 0.85 * heat.part;
    pen.fillStyle = colours[state.colour === "kind" ? FILLS[family(node)] : heat.bad ? "--bad" : "--warm"];
    pen.fillRect(x, offset * scale.down, width, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colours[range.writer === state.node ? "--accent" : "--paper"];
    pen.lineWidth = range.writer === state.node ? 3 : 1;
    pen.strokeRect(x, offset * scale.down, width, height);
    if (width > 60 && height > 14) {
      pen.save();
      pen.beginPath();
      pen.rect(x, offset * scale.down, width - 4, height);
      pen.clip();
      pen.fillStyle = colours["--ink"];
      pen.fillText(`#${range.writer} ${nodeName(node)}`, x + 5, offset * scale.down + Math.min(height / 2 + 4, 16));
      pen.restore();
    }
    drawn++;
  }
  return drawn;
}

const FILLS = {
  dot: "--dot", reduce: "--reduce", map: "--map", move: "--move", host: "--host", flow: "--host", ends: "--host",
};

function drawAxes(pen, scale) {
  pen.fillStyle = colours["--quiet"];
  const size = bufferSize(state.buffer);
  for (let tick = 0; tick <= 4; tick++) {
    pen.fillText(shortBytes((size * tick) / 4), 6, MEMORY.top + 8 + (size * tick * scale.down) / 4 - (tick ? 6 : 0));
  }
  const every = Math.max(1, Math.ceil(70 / scale.across));
  const first = Math.ceil(scale.left / scale.across / every) * every;
  for (let node = first; node < state.view.nodes.length; node += every) {
    const x = MEMORY.left + (node + 0.5) * scale.across - scale.left;
    if (x > scale.width) break;
    pen.fillText(`#${node}`, x - 8, scale.height - 7);
  }
}

function shortBytes(number) {
  const units = ["", " KiB", " MiB", " GiB", " TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit++;
  }
  return `${Number(number.toFixed(1))}${units[unit] || " B"}`;
}

function rangeText(range) {
  const offset = valueOf(range.offset);
  const length = valueOf(range.length);
  const node = state.view.nodes[range.writer];
  const until = range.spans.map(([first, last]) => (first === last ? `at #${first}` : `from #${first} to #${last}`));
  return `bytes ${count(offset)} to ${count(offset === null || length === null ? null : offset + length)}, ` +
    `written by #${range.writer} ${nodeName(node)}, needed ${until.join(" and ")}`;
}

function showLive(ranges) {
  const holder = byId("live");
  if (state.node === null) {
    holder.replaceChildren(element("p", { class: "quiet" }, ["Choose a command to list what is needed there."]));
    return;
  }
  const inside = ([first, last]) => first <= state.node && state.node <= last;
  const live = ranges.filter((range) => range.spans.some(inside));
  const sum = live.reduce((total, range) => total + (valueOf(range.length) ?? 0), 0);
  const rows = live.slice(0, 100).map((range) => [
    link(rangeText(range), () => choose(range.writer, true)),
    numberCell(valueOf(range.length)),
  ]);
  holder.replaceChildren(
    element("h3", {}, [`needed at #${state.node}: ${live.length} values, ${bytesText(sum)}`]),
    table(["value", "bytes"], rows),
  );
}

function pointedRange(event) {
  const scale = memoryScale();
  const box = byId("memory-canvas").getBoundingClientRect();
  const node = Math.floor((event.clientX - box.left - MEMORY.left + scale.left) / scale.across);
  const offset = (event.clientY - box.top - MEMORY.top) / scale.down;
  const inside = ([first, last]) => first <= node && node <= last;
  return rangesOf(state.buffer).findLast((range) => {
    const start = valueOf(range.offset) ?? 0;
    return start <= offset && offset < start + (valueOf(range.length) ?? 0) && range.spans.some(inside);
  });
}
