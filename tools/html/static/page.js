// What is shown, and what keys and pointer do. All text goes in as text.

const data = JSON.parse(document.getElementById("data").textContent);
const TABS = ["graph", "memory", "code", "module"];
const KEYS = [
  ["↑ ↓ or k j", "the command before, the command after"],
  ["← → or h l", "the next command to the left, to the right"],
  ["Home End", "the first, the last command"],
  ["Enter", "the code of the chosen command"],
  ["/", "search: Enter goes to the next match"],
  ["n N", "the next match, the match before"],
  ["1 2 3 4", "graph, memory, code, module"],
  ["Esc", "leave the search, or choose nothing"],
  ["?", "this list"],
];
const state = {
  program: null, view: null, layout: null, node: null, near: new Set(), found: new Set(), matches: [], values: [],
  sizes: {}, colour: "kind", tab: "graph", buffer: null, executable: null, elements: new Map(), most: 0,
};
const colours = {};
const byId = (id) => document.getElementById(id);

/** An element; children that are strings become text. */
function element(tag, attributes = {}, children = []) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function table(head, rows) {
  const made = element("table");
  if (head.length) made.append(element("tr", {}, head.map((text) => element("th", { scope: "col" }, [text]))));
  for (const row of rows) {
    made.append(element("tr", {}, row.map((cell) =>
      cell instanceof HTMLTableCellElement ? cell : element("td", {}, [cell]))));
  }
  return made;
}

const numberCell = (value) => element("td", { class: "number" }, [count(value)]);

function link(text, action) {
  const made = element("button", { class: "link", type: "button" }, [text]);
  made.addEventListener("click", action);
  return made;
}

function options(select, rows) {
  select.replaceChildren(...rows.map(([value, text]) => element("option", { value }, [text])));
  select.disabled = rows.length < 2;
}

/** The pen of a canvas that is that large, in pixels of the page. */
function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["--ink", "--quiet", "--paper", "--band", "--edge", "--accent", "--bad", "--warm", "--dot",
    "--reduce", "--map", "--move", "--host"]) colours[name] = style.getPropertyValue(name).trim();
}

const programNumber = () => data.programs.indexOf(state.program);

/** What a profile or a comparison says of a node, or undefined. */
const timeOf = (node) =>
  data.profile?.program === programNumber() ? data.profile.places[node.place.join(":")] : undefined;

function errorOf(node) {
  const entry = data.compare && node.kind === "dispatch" ? entryOf(node) : null;
  return entry ? data.compare.entries[entry.name] ?? data.compare.entries[plainEntry(entry.name)] : undefined;
}

/** An entry for small sizes is compared by the name of the one that it stands in for. */
const plainEntry = (name) => name.replace(/_up_to_\d+(_columns)?$/, "");

/** How much of the chosen colour a node has: `part` from 0 to 1, and the number as text. */
function heatOf(number) {
  const node = state.view.nodes[number];
  const none = { part: 0, text: "", bad: false };
  const value = heatValue(node);
  if (state.colour === "error") {
    const error = errorOf(node);
    if (!error) return none;
    const size = error.absolute ? Math.log10(error.absolute) + 9 : 0;
    return { part: Math.min(Math.max(size / 9, 0), 1), text: error.runs ? `±${number3(error.absolute)}` : "", bad: error.differs };
  }
  if (value === null || state.colour === "kind") return none;
  const text = state.colour === "time" ? timeText(value) : shortBytes(value);
  return { part: state.most ? value / state.most : 0, text, bad: false };
}

const number3 = (value) => (value === null ? "?" : Number(value).toPrecision(2));

function heatValue(node) {
  if (state.colour === "time") return timeOf(node)?.total_seconds ?? null;
  return node.kind === "dispatch" || node.kind === "copy" || node.kind === "fill" ? nodeBytes(node) : null;
}

function measureHeat() {
  state.most = 0;
  for (const node of state.view?.nodes ?? []) state.most = Math.max(state.most, heatValue(node) ?? 0);
  const legends = {
    bytes: `bar: bytes read and written, at most ${shortBytes(state.most)}`,
    time: data.profile ? `bar: time on ${data.profile.title}, at most ${timeText(state.most)}` : "",
    error: data.compare ? `bar: largest error, ${data.compare.title}` : "",
  };
  byId("legend").textContent = legends[state.colour] ?? "";
}

function openProgram(number) {
  state.program = data.programs[number];
  state.sizes = { ...state.program.sizes };
  state.values = evaluated(state.program, state.sizes);
  options(byId("function"), state.program.functions.map((view, at) => [String(at), functionTitle(view)]));
  const best = state.program.functions.findIndex((view) => view.kind === "export");
  byId("note").textContent = state.program.note;
  fillSizes();
  fillExecutables();
  openFunction(Math.max(best, 0));
}

function functionTitle(view) {
  const commands = view.nodes.filter((node) => node.kind !== "arguments" && node.kind !== "results").length;
  return `${view.name}${view.kind === "initializer" ? ", initializer" : ""} (${commands})`;
}

function openFunction(number) {
  state.view = state.program.functions[number] ?? null;
  byId("function").value = String(number);
  state.node = null;
  state.near = new Set();
  for (const made of state.elements.values()) made.remove();
  state.elements.clear();
  if (state.view) {
    state.inputs = new Map();
    fillBuffers();
    measureHeat();
    arrange();
  }
  search();
  showDetails();
  redraw();
}

/** Places the nodes for the width that there is. */
function arrange() {
  const room = byId("scroller").clientWidth || innerWidth;
  const columns = Math.max(1, Math.min(8, Math.floor((room - 120) / (NODE.least + 20))));
  state.layout = layout(state.view, columns);
  fit(state.layout, room);
  for (const made of state.elements.values()) made.remove();
  state.elements.clear();
  const holder = byId("nodes");
  holder.style.width = `${state.layout.width}px`;
  holder.style.height = `${state.layout.height}px`;
  document.documentElement.dataset.nodes = state.view.nodes.length;
  document.documentElement.dataset.edges = state.view.edges.length;
  document.documentElement.dataset.steps = state.layout.steps;
}

function fillSizes() {
  byId("sizes").replaceChildren(...Object.keys(state.sizes).map((name) => {
    const input = element("input", { type: "number", min: "0", step: "1", value: String(state.sizes[name]) });
    input.addEventListener("change", () => {
      if (!input.checkValidity() || input.value === "") return;
      state.sizes[name] = Number(input.value);
      state.values = evaluated(state.program, state.sizes);
      fillBuffers();
      refresh();
    });
    return element("label", {}, [`${name} = `, input]);
  }));
}

let waiting = false;
/** Draws what is in sight, once a frame. */
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (!state.view) return;
    if (state.tab === "graph") drawGraph();
    if (state.tab === "memory") drawMemory();
  });
}

function refresh() {
  measureHeat();
  for (const made of state.elements.values()) made.remove();
  state.elements.clear();
  showDetails();
  redraw();
}

function choose(number, reveal) {
  state.node = number;
  state.near = new Set();
  if (number !== null) {
    for (const [writer, reader] of state.view.edges) {
      if (writer === number) state.near.add(reader);
      if (reader === number) state.near.add(writer);
    }
    byId("scroller").setAttribute("aria-activedescendant", `node-${number}`);
    if (reveal) revealNode(number);
  } else byId("scroller").removeAttribute("aria-activedescendant");
  document.documentElement.dataset.chosen = number ?? "";
  showDetails();
  redraw();
}

function revealNode(number) {
  const scroller = byId("scroller");
  const into = (start, end, at, room) => (start < at ? start : end > at + room ? end - room : at);
  if (state.tab === "graph") {
    const y = nodeY(number);
    const x = nodeX(number);
    scroller.scrollTop = into(y - 40, y + NODE.height + 40, scroller.scrollTop, scroller.clientHeight);
    scroller.scrollLeft = into(x - 60, x + NODE.width + 20, scroller.scrollLeft, scroller.clientWidth);
    drawGraph(); // the element that is active must be there
  }
  if (state.tab === "memory" && state.buffer !== null) {
    const holder = byId("memory-scroller");
    const x = MEMORY.left + number * memoryScale().across;
    holder.scrollLeft = into(x - 100, x + 100, holder.scrollLeft, holder.clientWidth);
  }
}

function search() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  state.matches = [];
  if (words.length && state.view) {
    state.view.nodes.forEach((node, number) => {
      const text = searchText(node);
      if (words.every((word) => text.includes(word))) state.matches.push(number);
    });
  }
  state.found = new Set(state.matches);
  byId("nodes").classList.toggle("searching", words.length > 0);
  byId("found").textContent = words.length ? `${count(state.matches.length)} found` : "";
  document.documentElement.dataset.found = state.matches.length;
}

function searchText(node) {
  const types = node.bindings.map((binding) => binding.type);
  const names = node.bindings.map((binding) => bufferName(binding));
  return [node.kind, node.label, node.location, ...node.ops, ...types, ...names].join(" ").toLowerCase();
}

/** The next match from the chosen command on, or the one before. */
function nextMatch(step) {
  if (!state.matches.length) return;
  const at = state.node ?? -1;
  const next = step > 0 ? state.matches.find((number) => number > at) : state.matches.findLast((number) => number < at);
  choose(next ?? state.matches[step > 0 ? 0 : state.matches.length - 1], true);
}

function step(by) {
  const last = state.view.nodes.length - 1;
  choose(state.node === null ? (by > 0 ? 0 : last) : Math.min(Math.max(state.node + by, 0), last), true);
}

/** The nearest node of the same row, else the nearest in order. */
function sideways(by) {
  if (state.node === null) return step(by);
  const { row, column } = state.layout;
  let best = null;
  for (let other = 0; other < state.view.nodes.length; other++) {
    if (row[other] !== row[state.node] || (column[other] - column[state.node]) * by <= 0) continue;
    if (best === null || (column[other] - column[best]) * by < 0) best = other;
  }
  if (best !== null) choose(best, true);
}

function showTab(name) {
  state.tab = name;
  for (const tab of TABS) {
    byId(tab).hidden = tab !== name;
    byId(`tab-${tab}`).setAttribute("aria-selected", tab === name);
    byId(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
  }
  byId("details").hidden = name === "module" || name === "code";
  document.documentElement.dataset.tab = name;
  if (state.node !== null && state.view) revealNode(state.node);
  redraw();
}

const ACTIONS = {
  ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
  ArrowRight: () => sideways(1), l: () => sideways(1), ArrowLeft: () => sideways(-1), h: () => sideways(-1),
  Home: () => choose(0, true), End: () => choose(state.view.nodes.length - 1, true),
  Enter: openCode, n: () => nextMatch(1), N: () => nextMatch(-1),
};

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || byId("help").open) return;
  if (event.target === byId("search")) {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") leaveSearch();
    else return;
    event.preventDefault();
    return;
  }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "Enter" && event.target.tagName === "BUTTON") return;
  const action = keyAction(event.key);
  if (!action) return;
  event.preventDefault();
  action();
}

function keyAction(key) {
  if (key === "?") return showHelp;
  if (key === "/") return () => byId("search").select();
  if (key === "Escape") return () => state.view && choose(null, false);
  if (/^[1-4]$/.test(key)) return () => showTab(TABS[Number(key) - 1]);
  if (state.tab === "code" && ["ArrowUp", "ArrowDown", "j", "k"].includes(key)) {
    return () => nextExecutable(key === "ArrowDown" || key === "j" ? 1 : -1);
  }
  const moves = state.tab === "graph" || state.tab === "memory";
  return moves && state.view ? ACTIONS[key] : undefined;
}

function nextExecutable(by) {
  const last = state.program.executables.length - 1;
  if (last >= 0) showCode(Math.min(Math.max((state.executable ?? -by) + by, 0), last), null);
}

function leaveSearch() {
  byId("search").value = "";
  search();
  byId("scroller").focus();
  redraw();
}

function showHelp() {
  byId("help").showModal();
}

function showModule() {
  const { about } = data;
  const rows = [
    ["format", about.format], ["producer", about.producer], ["size", bytesText(about.bytes)],
    ["digest", about.digest], ["segments", `${about.segments[0]}, ${bytesText(about.segments[1])}`],
    ...Object.entries(about.attributes),
    ...about.attachments.map((row) => [`attachment ${row.tag}`, `${bytesText(row.bytes)}, not verified`]),
    ...about.imports.map((row) => ["import", `${row.name} ${row.signature}`]),
  ];
  const programs = data.programs.map((program) => [
    program.name, program.profile, program.features.join(", "), numberCell(program.executables.length),
    numberCell(program.executables.flatMap((row) => row.variants).reduce((sum, row) => sum + row.bytes, 0)),
    program.note,
  ]);
  byId("module").replaceChildren(
    element("h2", {}, ["exports"]), ...data.exports.map((text) => element("p", {}, [element("code", {}, [text])])),
    element("h2", {}, ["programs"]),
    table(["name", "profile", "needs", "executables", "bytes of code", ""], programs),
    element("h2", {}, ["module"]), table([], rows),
    ...data.programs.flatMap((program) => [
      element("h2", {}, [`constants of ${program.name}`]),
      table(["name", "type", "bytes"], program.constants.slice(0, 500).map((row) =>
        [row.parameter ? `${row.name}, a parameter` : row.name, row.type, numberCell(row.bytes)])),
    ]),
  );
}

function start() {
  readColours();
  options(byId("program"), data.programs.map((program, at) => [String(at), program.name]));
  const colour = [["kind", "by kind"], ["bytes", "by bytes"]];
  if (data.profile) colour.push(["time", "by time"]);
  if (data.compare) colour.push(["error", "by error"]);
  options(byId("colour"), colour);
  state.colour = data.compare ? "error" : data.profile ? "time" : "kind";
  byId("colour").value = state.colour;
  byId("keys").append(...KEYS.flatMap(([key, what]) => [
    element("dt", {}, [element("kbd", {}, [key])]), element("dd", {}, [what]),
  ]));
  listen();
  showModule();
  showTab("graph");
  const first = Math.max(data.profile?.program ?? data.compare?.program ?? 0, 0);
  if (data.programs.length) {
    openProgram(first);
    byId("program").value = String(first);
  }
  document.documentElement.dataset.ready = "yes";
}

function listen() {
  byId("program").addEventListener("change", (event) => openProgram(Number(event.target.value)));
  byId("function").addEventListener("change", (event) => openFunction(Number(event.target.value)));
  byId("colour").addEventListener("change", (event) => {
    state.colour = event.target.value;
    refresh();
  });
  byId("search").addEventListener("input", () => {
    search();
    redraw();
  });
  byId("help-button").addEventListener("click", showHelp);
  for (const tab of TABS) byId(`tab-${tab}`).addEventListener("click", () => showTab(tab));
  for (const id of ["scroller", "memory-scroller"]) byId(id).addEventListener("scroll", redraw, { passive: true });
  byId("buffer").addEventListener("change", (event) => {
    state.buffer = Number(event.target.value);
    redraw();
  });
  byId("memory-canvas").addEventListener("pointermove", (event) => {
    const range = state.buffer === null ? undefined : pointedRange(event);
    byId("pointed").textContent = range ? rangeText(range) : "";
  });
  byId("memory-canvas").addEventListener("click", (event) => {
    const range = state.buffer === null ? undefined : pointedRange(event);
    if (range) choose(range.writer, false);
  });
  addEventListener("keydown", onKey);
  addEventListener("resize", () => {
    if (state.view) arrange();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    redraw();
  });
}

/** For the console of the browser: what the page holds and shows. */
globalThis.orchestrion = { data, state, drawGraph };
start();
