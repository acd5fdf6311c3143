// The graph: nodes are elements, of which only those in sight are there; edges, blocks and loops are drawn on a canvas
// that stays in sight.

const FAMILIES = {
  dot: /dot|convolution|fft|cholesky|triangular|ragged/,
  reduce: /reduce|scan|sort|top_k|select_and_scatter/,
  move: /reshape|transpose|slice|pad|concatenate|reverse|gather|scatter|broadcast|iota|set_encoding|copy|fill|constant/,
};

/** What a node is called: its main op without the dialect, or what it is. */
function nodeName(node) {
  if (node.kind === "dispatch") return node.ops.length ? shortOp(node.ops[0]) : node.label;
  const reads = node.label === "read" ? "host reads" : `${node.label} reads`;
  const names = { read: reads, call: `call ${node.label}`, run: "recording that is not known" };
  return names[node.kind] ?? node.label;
}

const shortOp = (op) => op.replace(/^\w+\./, "");

function family(node) {
  if (node.kind === "arguments" || node.kind === "results") return "ends";
  if (node.kind === "copy" || node.kind === "fill") return "move";
  if (node.kind === "read" && node.label !== "read") return "flow";
  if (node.kind !== "dispatch") return "host";
  const op = node.ops[0] ?? "";
  for (const [name, pattern] of Object.entries(FAMILIES)) if (pattern.test(op)) return name;
  return op ? "map" : "host";
}

/** `8x64xf32` of `tensor<8x64xf32, …>`. */
const typeText = (type) => type.replace(/^tensor<(.*)>$/, "$1").replace(/, #.*$/, "");

function resultText(node) {
  if (node.kind === "arguments" || node.kind === "results") {
    const names = node.bindings.map((binding) => bufferName(binding));
    return `${names.length}: ${names.slice(0, 6).join(", ")}${names.length > 6 ? ", …" : ""}`;
  }
  const written = node.bindings.filter((binding) => binding.access !== "read");
  if (node.kind === "read") return bytesText(valueOf(node.bindings[0].length));
  const text = (binding) => (binding.type ? typeText(binding.type) : bytesText(valueOf(binding.length)));
  const read = node.bindings.filter((binding) => binding.access !== "write");
  return written.map(text).join(", ") + (read.length ? ` ← ${read.map(text).join(", ")}` : "");
}

const placeText = (node) => node.location.replace(/ \(".*$/, "").replace(/^.*\/(?=[^/]*:\d)/, "");

/** Bytes that a node reads and writes; null if not known. */
function nodeBytes(node) {
  let sum = 0;
  for (const binding of node.bindings) {
    const length = valueOf(binding.length);
    if (length !== null) sum += length;
  }
  return sum;
}

function drawGraph() {
  const scroller = byId("scroller");
  const { layout: at } = state;
  const width = scroller.clientWidth;
  const height = scroller.clientHeight;
  const left = scroller.scrollLeft;
  const top = scroller.scrollTop;
  const canvas = byId("edges");
  const pen = sized(canvas, width, height);
  const first = Math.max(0, Math.floor(top / NODE.down) - 1);
  const last = Math.floor((top + height) / NODE.down) + 1;
  pen.translate(-left, -top);
  drawBands(pen, first, last, left, width);
  const seen = new Set();
  const shown = [];
  for (let chunk = Math.floor(first / CHUNK); chunk <= Math.floor(last / CHUNK); chunk++) {
    const rows = at.chunks[chunk];
    if (!rows) continue;
    for (const edge of rows.short) if (inSight(at.row[edge[1]], first, last + 1)) drawEdge(pen, edge);
    for (const bus of rows.buses) {
      if (seen.has(bus) || bus.from > last || bus.to < first) continue;
      seen.add(bus);
      drawBus(pen, bus, first, last);
    }
    for (const node of rows.nodes) if (inSight(at.row[node], first, last)) shown.push(node);
  }
  showNodes(shown);
  document.documentElement.dataset.shown = shown.length;
}

const inSight = (row, first, last) => row >= first && row <= last;
const nodeX = (node) => state.layout.left + NODE.across * state.layout.column[node];
const nodeY = (node) => 20 + NODE.down * state.layout.row[node];
const isNear = (writer, reader) => writer === state.node || reader === state.node;

function drawBands(pen, first, last, left, width) {
  const { layout: at, view } = state;
  pen.font = "10px system-ui, sans-serif";
  at.bands.forEach((band, place) => {
    if (band.from > last || band.to < first) return;
    const y = NODE.down * band.from + 2;
    if (place % 2 === 0) {
      pen.fillStyle = colours["--band"];
      pen.fillRect(left, y, width, NODE.down * (band.to - band.from + 1) - 2);
    }
    pen.fillStyle = colours["--quiet"];
    const next = view.blocks[band.block];
    const goes = next.length ? `goes on to ${next.map((to) => `block ${to}`).join(" or ")}` : "ends the call";
    pen.textAlign = "right";
    pen.fillText(`block ${band.block}, ${goes}`, left + width - 8, y + 11);
    pen.textAlign = "left";
  });
  const open = [];
  pen.strokeStyle = colours["--warm"];
  pen.fillStyle = colours["--warm"];
  pen.lineWidth = 2;
  for (const [from, to, firstRow, lastRow] of at.loops) {
    while (open.length && open[open.length - 1] < from) open.pop();
    open.push(to);
    const x = 4 + 10 * Math.min(open.length, 6);
    const y = NODE.down * firstRow + 8;
    const end = NODE.down * (lastRow + 1) - 8;
    pen.beginPath();
    pen.moveTo(x + 7, y);
    pen.lineTo(x, y);
    pen.lineTo(x, end);
    pen.lineTo(x + 7, end);
    pen.stroke();
    pen.fillText("loop", x + 2, y - 2);
  }
}

function stroke(pen, near, carried) {
  pen.strokeStyle = colours[near ? "--accent" : carried ? "--warm" : "--edge"];
  pen.lineWidth = near ? 2.5 : 1.2;
  pen.setLineDash(carried ? [5, 4] : []);
}

function drawEdge(pen, [writer, reader]) {
  const x = nodeX(writer) + NODE.width / 2;
  const y = nodeY(writer) + NODE.height;
  const toX = nodeX(reader) + NODE.width / 2;
  const toY = nodeY(reader);
  stroke(pen, isNear(writer, reader), false);
  pen.beginPath();
  pen.moveTo(x, y);
  pen.bezierCurveTo(x, y + 16, toX, toY - 16, toX, toY);
  pen.stroke();
  drawHead(pen, toX, toY);
}

function drawHead(pen, x, y) {
  pen.setLineDash([]);
  pen.beginPath();
  pen.moveTo(x - 4, y - 6);
  pen.lineTo(x, y);
  pen.lineTo(x + 4, y - 6);
  pen.stroke();
}

/** Out of the writer to the lane, along it, and into each reader. */
function drawBus(pen, bus, first, last) {
  const { layout: at } = state;
  const x = at.left - 10 - LANE * bus.lane;
  const own = bus.writer === state.node;
  const near = bus.readers.filter((reader) => reader === state.node);
  const turn = 8 + (bus.lane % 5) * 2;
  stroke(pen, own, bus.carried);
  pen.beginPath();
  if (inSight(at.row[bus.writer], first, last)) {
    const across = nodeX(bus.writer) + 18;
    const y = nodeY(bus.writer) + NODE.height;
    pen.moveTo(across, y);
    pen.lineTo(across, y + turn - 4);
    pen.lineTo(x, y + turn - 4);
  }
  const out = nodeY(bus.writer) + NODE.height + turn - 4;
  const start = bus.carried ? NODE.down * bus.from + 10 : out;
  const end = bus.carried ? out : NODE.down * bus.to + 10;
  pen.moveTo(x, start);
  pen.lineTo(x, Math.max(start, end));
  pen.stroke();
  for (const reader of bus.readers) {
    if (!inSight(at.row[reader], first, last)) continue;
    stroke(pen, own || reader === state.node, bus.carried);
    const into = nodeX(reader) + 30 + (bus.lane % 5) * 6;
    const y = nodeY(reader) - 10;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(into, y);
    pen.lineTo(into, nodeY(reader));
    pen.stroke();
    drawHead(pen, into, nodeY(reader));
  }
  if (near.length && !own) drawLane(pen, bus, x, near[0], turn);
}

/** The part of a lane that leads to the chosen node. */
function drawLane(pen, bus, x, reader, turn) {
  stroke(pen, true, bus.carried);
  pen.beginPath();
  pen.moveTo(x, nodeY(bus.writer) + NODE.height + turn - 4);
  pen.lineTo(x, nodeY(reader) - 10);
  pen.stroke();
}

/** Elements for these nodes and no others. */
function showNodes(shown) {
  const holder = byId("nodes");
  const wanted = new Set(shown);
  for (const [node, made] of state.elements) {
    if (wanted.has(node)) continue;
    made.remove();
    state.elements.delete(node);
  }
  for (const node of shown) {
    let made = state.elements.get(node);
    if (!made) {
      made = nodeElement(node);
      state.elements.set(node, made);
      holder.append(made);
    }
    paint(node, made);
  }
}

function nodeElement(number) {
  const node = state.view.nodes[number];
  const more = node.ops.length > 1 ? ` +${node.ops.length - 1}` : "";
  const made = element("div", { class: `node ${family(node)}`, role: "option", id: `node-${number}` }, [
    element("span", { class: "op" }, [element("span", { class: "value" }), nodeName(node) + more]),
    element("span", { class: "type" }, [resultText(node)]),
    element("span", { class: "place" }, [placeText(node) || node.label]),
    element("span", { class: "heat" }),
  ]);
  made.title = node.ops.join(" ") || node.label;
  made.setAttribute("aria-posinset", number + 1);
  made.setAttribute("aria-setsize", state.view.nodes.length);
  made.setAttribute("aria-label", nodeLabel(number));
  made.style.left = `${nodeX(number)}px`;
  made.style.top = `${nodeY(number)}px`;
  made.style.width = `${NODE.width}px`;
  made.addEventListener("click", () => choose(number, true));
  made.addEventListener("dblclick", () => openCode());
  return made;
}

/** What a screen reader says. */
function nodeLabel(number) {
  const node = state.view.nodes[number];
  const parts = [`${number}: ${nodeName(node)}`, resultText(node), placeText(node), heatOf(number).text];
  return parts.filter(Boolean).join(", ");
}

/** What changes while a node is in sight: chosen or near it, found by the search, its colour. */
function paint(number, made) {
  const heat = heatOf(number);
  made.setAttribute("aria-selected", number === state.node);
  made.classList.toggle("near", state.near.has(number));
  made.classList.toggle("found", state.found.has(number));
  made.classList.toggle("bad", heat.bad);
  made.querySelector(".value").textContent = heat.text;
  made.querySelector(".heat").style.width = `${Math.round(100 * heat.part)}%`;
}
