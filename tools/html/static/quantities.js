// Numbers that depend on the sizes of a call; `values.py` says what each operation means.

const OPERATIONS = {
  add: (x, y) => x + y,
  subtract: (x, y) => x - y,
  multiply: (x, y) => x * y,
  divide: (x, y) => (y === 0 ? null : Math.trunc(x / y)),
  remainder: (x, y) => (y === 0 ? null : x - y * Math.trunc(x / y)),
  align: (x, y) => (y === 0 ? null : Math.ceil(x / y) * y),
  floordiv: (x, y) => (y === 0 ? null : Math.floor(x / y)),
  mod: (x, y) => (y === 0 ? null : x - y * Math.floor(x / y)),
  max: (x, y) => Math.max(x, y),
  min: (x, y) => Math.min(x, y),
  less: (x, y) => Number(x < y),
  at_most: (x, y) => Number(x <= y),
  equal: (x, y) => Number(x === y),
  select: (c, x, y) => (c ? x : y),
};

/** The values of a program's expressions for these sizes; null where there is none. */
function evaluated(program, sizes) {
  const values = [];
  for (const [name, ...operands] of program.expressions) {
    if (name === "size") {
      values.push(sizes[operands[0]] ?? null);
      continue;
    }
    const numbers = operands.map((operand) => (typeof operand === "number" ? operand : values[operand.e]));
    const found = numbers.includes(null) ? null : OPERATIONS[name](...numbers);
    values.push(Number.isSafeInteger(found) ? found + 0 : null);
  }
  return values;
}

/** A quantity as a number, or null. */
const valueOf = (quantity) =>
  quantity === null || typeof quantity === "number" ? quantity : state.values[quantity.e];

const count = (number) => (number === null ? "unknown" : number.toLocaleString("en-US"));

/** A quantity to read: the number, and the expression that it comes from. */
function quantityText(quantity) {
  if (quantity === null) return "unknown";
  if (typeof quantity === "number") return count(quantity);
  return `${count(state.values[quantity.e])} = ${state.program.texts[quantity.e]}`;
}

const bytesText = (number) =>
  number === null ? "unknown" : number === 1 ? "1 byte" : `${count(number)} bytes`;
const timeText = (seconds) =>
  seconds >= 1 ? `${seconds.toFixed(2)} s` : seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(2)} ms`
    : `${(seconds * 1e6).toFixed(1)} µs`;
