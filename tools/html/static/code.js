// The executables and their code. Code is kept packed and unpacked when it is looked at.

const LINES = 400; // lines of one element: what is out of sight is not laid out

function fillExecutables() {
  const rows = state.program.executables.map((executable, number) => {
    const made = element("div", { class: "executable", role: "option", id: `executable-${number}` }, [executable.name]);
    made.addEventListener("click", () => showCode(number, null));
    return made;
  });
  byId("executables").replaceChildren(...rows);
  byId("text").replaceChildren(element("p", { class: "quiet" }, [
    rows.length ? "Choose an executable." : "This program has no executables.",
  ]));
  state.executable = null;
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** One executable; `entry` is the entry to go to. */
async function showCode(number, entry) {
  state.executable = number;
  for (const row of byId("executables").children) row.setAttribute("aria-selected", "false");
  const row = byId(`executable-${number}`);
  row.setAttribute("aria-selected", "true");
  row.scrollIntoView({ block: "nearest" });
  byId("executables").setAttribute("aria-activedescendant", row.id);
  const executable = state.program.executables[number];
  const holder = byId("text");
  holder.replaceChildren(element("h2", {}, [executable.name]), entriesTable(executable));
  for (const variant of executable.variants) {
    holder.append(element("h3", {}, [`${variant.format} ${variant.version}, ${bytesText(variant.bytes)}` +
      (variant.features.length ? `, needs ${variant.features.join(", ")}` : "")]));
    if (variant.note) holder.append(element("p", { class: "quiet" }, [variant.note]));
    if (!variant.text) continue;
    const text = await unpacked(variant.text);
    if (state.executable !== number) return;
    const target = appendText(holder, text, entry);
    target?.scrollIntoView({ block: "start" });
  }
  document.documentElement.dataset.code = number;
}

/** The text in pieces; gives the piece that starts at the line of the entry's code. */
function appendText(holder, text, entry) {
  const lines = text.split("\n");
  const start = entry === null ? -1 : lines.findIndex((line) => startsEntry(line, entry));
  let found = null;
  const cuts = [0];
  for (let at = 0; at < lines.length; at++) {
    if (at === start || at - cuts[cuts.length - 1] >= LINES) cuts.push(at);
  }
  cuts.forEach((from, place) => {
    const piece = lines.slice(from, cuts[place + 1] ?? lines.length);
    if (!piece.length) return;
    const made = element("pre", {}, [piece.join("\n")]);
    made.style.containIntrinsicSize = `auto ${piece.length * 17}px`;
    if (from === start) found = made;
    holder.append(made);
  });
  return start > 0 ? found : null;
}

/** The line where the code of an entry starts: a kernel of OpenCL C, or an entry of tensor bytecode. */
const startsEntry = (line, entry) =>
  (/\bkernel\b/.test(line) && line.includes(`${entry.name}(`)) || line.startsWith(`entry[${entry.number}]:`);

function entriesTable(executable) {
  const rows = executable.entries.map((entry) => [
    entry.name,
    entry.ops.map(shortOp).join(", "),
    entry.accesses.map((access, at) => `${access} ${typeText(entry.types[at] ?? "") || bytesText(entry.least[at])}`)
      .join("; "),
  ]);
  return table(["entry", "ops", "bindings"], rows);
}

function openCode() {
  if (state.node === null) return;
  const node = state.view.nodes[state.node];
  if (node.executables.length !== 1) return;
  const entry = entryOf(node);
  showTab("code");
  showCode(node.executables[0], entry ? { name: entry.name, number: valueOf(node.entry) } : null);
}
