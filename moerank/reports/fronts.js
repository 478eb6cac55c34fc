"use strict";
// Fronts of several solvers in one picture. Readers point at a member, tap it, or use the arrow keys to see its details.
const problems = JSON.parse(document.getElementById("fronts").textContent);
const PARTS = ["train", "validation", "test"];
const SVG = "http://www.w3.org/2000/svg";
const SHAPES = [ // with a radius of 1; shapes help where colours look alike
  "M-1 0A1 1 0 1 0 1 0A1 1 0 1 0-1 0Z", "M-.9-.9H.9V.9H-.9Z", "M0-1.1L1.1.9H-1.1Z", "M0-1.3L1.1 0L0 1.3L-1.1 0Z",
  "M-1.1-.9H1.1L0 1.1Z", "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
];
const COLOURS = 7; // of the style sheet, c0 to c6
const REACH = 40; // largest distance of the pointer from a member in pixels
const HINT = "Point at a member, tap it, or use the arrow keys to go from one to the next. Large marks are the chosen members. " +
  "Marks at the lower edge lie below the axis.";
const SEEDS = " A solver with a single run on a fold appears for every seed.";

function make(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function add(name, attributes, parent, ...content) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...content);
  parent.append(made);
  return made;
}

const sizeOf = (member) => member[0].length;
const scoreOf = (problem, member, part, metric) => member[1 + PARTS.indexOf(part) * problem.metrics.length + metric];

// The parts on which any member has values.
function partsOf(problem) {
  const scored = (part) => problem.runs.some((run) => run[5].some((member) => scoreOf(problem, member, part, 0) !== null));
  return PARTS.filter(scored);
}

// At most about `most` round numbers between two limits.
function ticks(low, high, most) {
  const raw = (high - low || 1) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9); value * step <= high + step * 1e-9; value++) values.push(value * step);
  return { values, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

// Limits of the axis: the poorest twentieth of the members, such as those with one feature, gets at most half of it.
function reach(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const high = sorted.at(-1);
  const poor = sorted[Math.floor(sorted.length / 20)];
  return [Math.max(sorted[0], poor - (high - poor)), high];
}

class Explorer {
  constructor(box, problem) {
    Object.assign(this, { box, problem, at: null });
    const seeds = problem.runs.map((run) => run[2]);
    const controls = add("div", { className: "controls" }, box);
    const further = problem.further.map((name, i) => [name, 1 + PARTS.length * problem.metrics.length + i]);
    this.fold = this.choose(controls, "Fold", problem.runs.map((run) => run[1]).sort((a, b) => a - b));
    this.seed = this.choose(controls, "Seed", seeds.sort((a, b) => a - b));
    this.part = this.choose(controls, "Queries", partsOf(problem), "validation");
    this.metric = this.choose(controls, "Metric", problem.metrics);
    this.across = this.choose(controls, "Against", ["features", ...further.map(([name]) => name)]);
    this.further = Object.fromEntries(further);
    this.list(add("details", { open: problem.solvers.length <= 12, hidden: problem.solvers.length < 2 }, box));
    this.key = add("div", { className: "key" }, box);
    this.plot = add("div", { className: "plot" }, box);
    this.hint = add("div", {}, box);
    this.output = add("output", {}, box);
    this.draw();
    window.addEventListener("resize", () => {
      if (this.plot.clientWidth !== this.width) this.draw(); // not if only a bar of the browser comes or goes
    });
  }

  choose(parent, title, values, value) {
    const label = add("label", { hidden: new Set(values).size < 2 }, parent, title + " ");
    const select = add("select", {}, label);
    for (const one of new Set(values)) select.add(new Option(one, one, one === value, one === value));
    select.addEventListener("change", () => this.draw());
    return select;
  }

  list(details) {
    add("summary", {}, details, "Choose solvers");
    const rows = add("div", { className: "solvers" }, details);
    this.boxes = this.problem.solvers.map((solver, number) => {
      const label = add("label", {}, rows);
      const box = add("input", { type: "checkbox", checked: this.problem.shown.includes(number) }, label);
      label.append(solver);
      box.addEventListener("change", () => this.draw());
      return box;
    });
  }

  // The visible solvers differ in colour and shape; the look of a solver depends on which others are visible.
  mark(parent, look, x, y, radius) {
    const position = `translate(${x} ${y}) scale(${radius})`;
    return make("path", { d: SHAPES[look % SHAPES.length], transform: position, class: `c${look % COLOURS} mark` }, parent);
  }

  // The run of a solver on the fold with the selected seed, or its only run there.
  runOf(number) {
    const mine = this.problem.runs.filter((run) => run[0] === number && String(run[1]) === this.fold.value);
    return mine.find((run) => String(run[2]) === this.seed.value) || (mine.length === 1 ? mine[0] : undefined);
  }

  points() {
    const metric = this.problem.metrics.indexOf(this.metric.value);
    const column = this.further[this.across.value];
    const points = [];
    let looks = 0;
    this.key.replaceChildren();
    this.boxes.forEach((box, number) => {
      if (!box.checked) return;
      const look = looks++;
      const entry = add("span", {}, this.key);
      this.mark(make("svg", { viewBox: "-8 -8 16 16" }, entry), look, 0, 0, 5);
      entry.append(this.problem.solvers[number]);
      const run = this.runOf(number);
      if (!run) return;
      run[5].forEach((member, row) => {
        const value = scoreOf(this.problem, member, this.part.value, metric);
        const x = column === undefined ? sizeOf(member) : member[column];
        if (value !== null) points.push({ number, look, run, row, member, x, y: value });
      });
    });
    return points;
  }

  draw() {
    const points = this.points();
    this.plot.replaceChildren();
    const missing = this.boxes.flatMap((box, i) => (box.checked && !this.runOf(i) ? [this.problem.solvers[i]] : []));
    this.at = null;
    this.hint.replaceChildren();
    this.output.replaceChildren();
    for (const text of [HINT + (this.seed.length > 1 ? SEEDS : ""), ...(missing.length ? [`No run on this fold with this seed: ${missing.join(", ")}.`] : [])]) {
      add("div", { className: "note" }, this.hint, text);
    }
    this.drawn = points;
    if (!points.length) return;
    this.width = this.plot.clientWidth;
    const width = Math.max(260, this.width);
    const height = Math.round(Math.min(420, Math.max(260, width * 0.55)));
    const [left, right, top, bottom] = [58, 14, 22, 42];
    const span = (values) => [Math.min(...values), Math.max(...values)];
    const [low, high] = reach(points.map((point) => point.y));
    const [first, last] = span(points.map((point) => point.x));
    const least = this.across.value === "features" ? 0 : first - 0.05 * (last - first);
    const scale = (from, to, start, end) => (value) => start + ((value - from) / (to - from || 1)) * (end - start);
    const [x, y] = [scale(least, last, left, width - right), scale(low, high, height - bottom - 8, top)];
    this.svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0 }, this.plot);
    this.svg.setAttribute("aria-label", `${this.metric.value} against ${this.across.value} of ${this.problem.name}`);
    const most = this.across.value === "features" ? Math.min(width / 70, last) : width / 70; // no half features
    const [rows, columns] = [ticks(low, high, 5), ticks(least, last, most)];
    for (const value of rows.values) {
      make("path", { d: `M${left} ${y(value)}H${width - right}`, class: "grid" }, this.svg);
      make("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, this.svg, value.toFixed(rows.digits));
    }
    for (const value of columns.values) {
      const text = value.toFixed(columns.digits);
      make("text", { x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, this.svg, text);
    }
    make("path", { d: `M${left} ${top - 6}V${height - bottom}H${width - right}`, class: "axis" }, this.svg);
    const title = this.across.value === "features" ? "number of features" : this.across.value;
    make("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, this.svg, title);
    make("text", { x: 4, y: 11 }, this.svg, `${this.metric.value}, ${this.part.value} queries`);
    for (const point of points) Object.assign(point, { px: x(point.x), py: Math.min(y(point.y), height - bottom) });
    for (const run of new Set(points.map((point) => point.run))) {
      const mine = points.filter((point) => point.run === run).sort((a, b) => a.x - b.x);
      const path = mine.map((point, i) => `${i ? "L" : "M"}${point.px.toFixed(1)} ${point.py.toFixed(1)}`).join("");
      // A front in more than two objectives is not a curve in two of them.
      if (this.across.length < 2) make("path", { d: path, class: `c${mine[0].look % COLOURS} line` }, this.svg);
      for (const point of mine) {
        const radius = point.row === run[3] ? 6 : 3;
        this.mark(this.svg, point.look, point.px.toFixed(1), point.py.toFixed(1), radius);
      }
    }
    this.ring = make("circle", { r: 9, class: "ring", visibility: "hidden" }, this.svg);
    this.listen(points.sort((a, b) => a.px - b.px || a.py - b.py));
    // Show a chosen member, else the best one, until the reader points at another.
    const best = points.reduce((highest, point) => (point.y > highest.y ? point : highest));
    this.show(points, points.indexOf(points.find((point) => point.row === point.run[3]) ?? best));
    this.at = null;
  }

  listen(points) {
    const near = (event) => {
      const frame = this.svg.getBoundingClientRect();
      const far = (p) => Math.hypot(p.px - event.clientX + frame.left, p.py - event.clientY + frame.top);
      const nearest = points.reduce((best, point) => (far(point) < far(best) ? point : best));
      if (far(nearest) <= REACH) this.show(points, points.indexOf(nearest));
    };
    this.svg.addEventListener("pointermove", near);
    this.svg.addEventListener("pointerdown", near);
    this.svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = this.at === null ? 0 : this.at + step;
      this.show(points, Math.min(points.length - 1, Math.max(0, next)));
    });
  }

  show(points, at) {
    if (this.at === at) return;
    this.at = at;
    const { run, row, member, number, px, py } = points[at];
    for (const [key, value] of Object.entries({ cx: px, cy: py, visibility: "visible" })) this.ring.setAttribute(key, value);
    const { problem, output } = this;
    output.replaceChildren();
    const size = sizeOf(member);
    const chosen = row === run[3] ? ", chosen" : "";
    const where = `, fold ${run[1]}, seed ${run[2]}`;
    const head = `${problem.solvers[number]}${where}: member ${row + 1} of ${run[5].length}${chosen}`;
    add("b", {}, output, head);
    const lines = partsOf(problem).map((part) => part + ": " + problem.metrics.map((metric, i) => {
      const value = scoreOf(problem, member, part, i);
      return `${metric} ${value === null ? "unknown" : value.toFixed(4)}`;
    }).join(", "));
    for (const [name, column] of Object.entries(this.further)) lines.push(`${name} ${member[column]}`);
    for (const line of lines) add("div", {}, output, line);
    const names = member[0].map((column) => problem.names[column]);
    add("div", {}, output, `${size} feature${size === 1 ? "" : "s"}: ${names.join(", ")}`);
    if (run[4]) {
      const command = `moerank export ${run[4]} --member ${row + 1} --format json`;
      add("div", {}, output, `To export this ranker, run this in the folder of the study: `, add("code", {}, output, command));
    }
  }
}

for (const box of document.querySelectorAll(".explorer")) {
  const name = box.dataset.problem;
  if (problems[name]) new Explorer(box, { name, ...problems[name] });
}
