// What is known of the chosen command, as tables of text.

function bufferName(binding) {
  if (binding.buffers === null) return "unknown";
  return binding.buffers.map((row) => state.program.buffers[row].name).join(" or ");
}

function showDetails() {
  const holder = byId("details");
  if (state.node === null) {
    holder.replaceChildren(
      element("h2", {}, [state.view ? state.view.name : "nothing runs"]),
      element("p", {}, [shortened(state.view?.signature ?? "", 300)]),
      element("p", { class: "quiet" }, ["Choose a command: click it, or use the arrow keys. ? lists the keys."]),
      ...summary(),
    );
    return;
  }
  const node = state.view.nodes[state.node];
  holder.replaceChildren(
    element("h2", {}, [`#${state.node} ${nodeName(node)}`]),
    table([], facts(node)),
    ...overlayDetails(node),
    ...bindingDetails(node),
    ...neighbours("reads what these wrote", (edge) => edge[1] === state.node, 0),
    ...neighbours("what it writes is read by", (edge) => edge[0] === state.node, 1),
    ...codeDetails(node),
  );
  holder.scrollTop = 0;
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

function summary() {
  if (!state.view) return [];
  const kinds = {};
  for (const node of state.view.nodes) kinds[node.kind] = (kinds[node.kind] ?? 0) + 1;
  const rows = Object.entries(kinds).map(([kind, number]) => [kind, numberCell(number)]);
  if (state.view.left_out) rows.push(["not shown", numberCell(state.view.left_out)]);
  return [table(["commands", "number"], rows)];
}

function facts(node) {
  const rows = [["kind", node.kind]];
  const add = (name, text) => text && rows.push([name, text]);
  add("ops", node.ops.map(shortOp).join(", "));
  add("source", node.location);
  const entry = entryOf(node);
  add("entry", entry ? entry.name : node.kind === "dispatch" ? "unknown" : "");
  if (node.kind === "dispatch") {
    add("workload", node.workload.map(quantityText).join(" × "));
    for (const variant of executableOf(node)?.variants ?? []) add(variant.format, groupsText(node, variant));
    add("parameters", node.parameters.map(quantityText).join(", "));
  }
  add("bytes", node.bindings.length && family(node) !== "ends" ? bytesText(nodeBytes(node)) : "");
  add("runs by", node.how ? `hal.${node.how}`.replace("hal.hal.", "hal.") : "");
  return rows;
}

const executableOf = (node) => (node.executables.length === 1 ? state.program.executables[node.executables[0]] : null);

function entryOf(node) {
  const entry = valueOf(node.entry);
  return entry === null ? null : executableOf(node)?.entries[entry] ?? null;
}

/** `16 workgroups of 32×1×1`. */
function groupsText(node, variant) {
  const size = variant.workgroups[valueOf(node.entry) ?? -1];
  const workload = node.workload.map(valueOf);
  if (!size || workload.includes(null)) return "workgroups unknown";
  const groups = workload.map((number, axis) => Math.ceil(number / size[axis]));
  const total = groups.reduce((a, b) => a * b, 1);
  const shared = variant.shared_memory ? `, ${bytesText(variant.shared_memory)} shared` : "";
  return `${count(total)} workgroup${total === 1 ? "" : "s"} of ${size.join("×")}${shared}`;
}

function bindingDetails(node) {
  if (!node.bindings.length) return [];
  const rows = node.bindings.slice(0, 200).map((binding, number) => {
    const offset = valueOf(binding.offset);
    const place = offset ? ` at ${quantityText(binding.offset)}` : "";
    return [
      String(number),
      binding.access,
      element("span", {}, [`${bufferName(binding)}${place}`, element("br"), typeText(binding.type)]),
      binding.length === null ? "" : typeof binding.length === "number" ? numberCell(binding.length)
        : quantityText(binding.length),
    ];
  });
  return [element("h3", {}, ["memory"]), table(["", "access", "buffer and tensor", "bytes"], rows)];
}

function neighbours(title, matches, side) {
  const rows = state.view.edges.filter(matches);
  if (!rows.length) return [];
  const lines = rows.slice(0, 50).map((edge) => {
    const other = state.view.nodes[edge[side]];
    const through = edge[3].map((row) => state.program.buffers[row].name).join(", ");
    const when = edge[2] ? ", in the next turn" : "";
    return [link(`#${edge[side]} ${nodeName(other)}`, () => choose(edge[side], true)), `${through}${when}`];
  });
  if (rows.length > 50) lines.push([`${rows.length - 50} more`, ""]);
  return [element("h3", {}, [title]), table([], lines)];
}

function codeDetails(node) {
  const executable = executableOf(node);
  if (!executable) return [];
  const sizes = executable.variants.map((variant) => `${variant.format}, ${bytesText(variant.bytes)}`);
  return [
    element("h3", {}, ["code"]),
    element("p", {}, [link(`${executable.name}: ${sizes.join("; ")}`, openCode)]),
  ];
}

function overlayDetails(node) {
  const found = [];
  const time = timeOf(node);
  if (time) {
    const rows = [["median", timeText(time.median_seconds)], ["all launches", timeText(time.total_seconds)],
      ["launches", numberCell(time.launches)], ["share", `${(100 * time.share).toFixed(1)} %`]];
    found.push(element("h3", {}, [`profile: ${data.profile.title}`]), table([], rows));
  }
  const error = errorOf(node);
  if (error) {
    const rows = [["compared", `${count(error.runs)} run${error.runs === 1 ? "" : "s"}`],
      ["largest error", number(error.absolute)], ["relative", number(error.relative)]];
    found.push(element("h3", {}, [`comparison: ${data.compare.title}`]), table([], rows));
    for (const line of error.lines) {
      found.push(element("div", { class: / differs /.test(line) ? "bad-text" : "quiet" }, [line]));
    }
  }
  return found;
}

const number = (value) => (value === null ? "unknown" : value && Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(3))));
