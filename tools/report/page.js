// The page: a list of rows, what is known of the chosen one, and its code in panes whose lines light each other.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const ladder = data.ladder;
const rows = ladder.rows;
const titles = { program: "Program", ir: "IR", thread: "IR, threads", cuda: "CUDA C", ptx: "PTX", sass: "SASS" };
const state = { row: 0, light: null };
const by = (id) => document.getElementById(id);

function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("data-") || name.startsWith("aria-") || name === "role" || name === "tabindex") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

// ---- Numbers.
function short(value) {
  for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(value) >= unit) return Number((value / unit).toPrecision(3)) + " " + letter;
  return String(Number(value.toPrecision(3)));
}
function milliseconds(ms) {
  if (ms >= 10000) return (ms / 1000).toFixed(0) + " s";
  return ms.toFixed(ms >= 100 ? 1 : ms >= 1 ? 2 : 4) + " ms";
}
const isTimed = rows.some((row) => row.kind === "rung" && row.timing);
const timeOf = (row) => (row.timing ? row.timing.median_ms : isTimed ? 0 : row.least_ms);
const timeText = (row) => (row.timing ? milliseconds(row.timing.median_ms) : !isTimed && row.least_ms ? "\u2265 " + milliseconds(row.least_ms) : "\u2013");

// ---- Colours of words.
const words = {
  program: /^(fn|let|schedule|hand|bench|from|launch|when|for|if|then|else|in|and|or|not|sum|prod|max|min|any|all|count|mean|argmax|argmin|cumsum|inout)$/,
  ir: /^(plan|dim|in|out|temp|clear|table|kernel|warps|grid|cluster|parallel|ordered|each|serial|unroll|vector|on|reg|shared|fill|copy|mma|by|reduce|scan|where|let|if|then|else|and|or|not|pipe|slots|via|scope|acquire|commit|wait|release|role|step|thread|block|args|at|atomic)$/,
  cuda: /^(__global__|__device__|__shared__|__forceinline__|__restrict__|__launch_bounds__|__align__|__syncthreads|extern|const|void|int|unsigned|float|double|long|bool|char|short|if|else|for|while|do|return|static|struct|template|typename|asm|volatile)$/,
  ptx: /^[a-z]+(\.[a-z0-9_:]+)+$|^(ret|bra|exit)$/,
  sass: /^[A-Z][A-Z0-9]+(\.[A-Za-z0-9_]+)*$/,
};
words.thread = words.ir;
function coloured(form, text) {
  const pieces = text.split(/(\/\/.*$|"[^"]*"|[A-Za-z_%$.@][\w.$:]*|\b\d[\w.]*)/);
  const out = [];
  for (const piece of pieces) {
    if (!piece) continue;
    let kind = "";
    if (piece.startsWith("//")) kind = "c";
    else if (piece.startsWith('"')) kind = "s";
    else if (/^\d/.test(piece)) kind = "n";
    else if (words[form] && words[form].test(piece)) kind = "k";
    out.push(kind ? make("span", { class: kind }, piece) : piece);
  }
  return out;
}

// ---- Lines of the forms. Each form knows the line of the form above it.
function formsOf(row) {
  const forms = new Map();
  const add = (name, above, text, origin) => {
    const lines = text.split("\n");
    if (lines[lines.length - 1] === "") lines.pop();
    forms.set(name, { name, above, lines, origin });
  };
  if (ladder.program) add("program", "", ladder.program, []);
  for (const form of row.forms) add(form.name, form.above, form.text, form.origin);
  return forms;
}
// The line itself, those that it stems from, and all that stem from these in the forms below it.
function litBy(forms, name, line) {
  const lit = new Map([[name, new Set([line])]]);
  for (let form = forms.get(name), at = line; form && form.above && forms.has(form.above); form = forms.get(form.above)) {
    at = form.origin[at - 1] || 0;
    if (!at) break;
    lit.set(form.above, new Set([at]));
  }
  const below = (upper, lines) => {
    for (const form of forms.values()) {
      if (form.above !== upper || lit.has(form.name)) continue;
      const found = new Set();
      form.origin.forEach((origin, index) => lines.has(origin) && found.add(index + 1));
      lit.set(form.name, found);
      below(form.name, found);
    }
  };
  below(name, lit.get(name));
  // PTX and SASS stand side by side under CUDA C.
  const above = forms.get(name) && forms.get(name).above;
  if ((name === "ptx" || name === "sass") && lit.has(above)) below(above, lit.get(above));
  return lit;
}

// ---- Differences, line by line: the longest common subsequence between equal beginnings and ends.
function difference(before, now) {
  let head = 0, tail = 0;
  while (head < before.length && head < now.length && before[head] === now[head]) ++head;
  while (tail < before.length - head && tail < now.length - head && before[before.length - 1 - tail] === now[now.length - 1 - tail]) ++tail;
  const a = before.slice(head, before.length - tail), b = now.slice(head, now.length - tail);
  const out = now.slice(0, head).map((_, index) => ["=", index + 1]);
  if (a.length * b.length > 4e6) {
    a.forEach((line) => out.push(["-", line]));
    b.forEach((_, index) => out.push(["+", head + index + 1]));
  } else {
    const width = b.length + 1, common = new Uint16Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; --i) for (let j = b.length - 1; j >= 0; --j) common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) out.push(["=", head + ++j]), ++i;
      else if (i < a.length && (j === b.length || common[(i + 1) * width + j] >= common[i * width + j + 1])) out.push(["-", a[i++]]);
      else out.push(["+", head + ++j]);
    }
  }
  for (let index = now.length - tail; index < now.length; ++index) out.push(["=", index + 1]);
  return out;
}

// ---- The list of rows.
function showRows() {
  const times = rows.map(timeOf).filter((time) => time > 0);
  const least = Math.min(...times) / 2, most = Math.max(...times);
  by("scale").textContent = times.length ? (isTimed ? "milliseconds" : "least milliseconds, hatched: nothing was timed on a GPU") + ", bars on a logarithmic scale" : "";
  const list = by("rows");
  rows.forEach((row, index) => {
    const time = timeOf(row);
    const bar = make("div", { class: row.timing ? "bar" : "bar least" });
    bar.style.width = time > 0 && most > least ? Math.max(1, (100 * Math.log(time / least)) / Math.log(most / least)) + "%" : "0";
    const share = row.timing && row.least_ms && row.kind !== "loops" ? ` ${Math.round((100 * row.least_ms) / row.timing.median_ms)} %` : "";
    const why = row.same_code ? "same code" : row.busiest ? row.busiest + share : row.note || row.backend;
    const item = make("li", { id: "row" + index, role: "option", "aria-selected": "false" }, make("span", {}, row.is_wrong || row.wrong ? "\u2717" : String(row.kind === "rung" ? rungNumber(index) : "\u00b7")),
      make("span", { class: "name" }, row.name + (row.kind === "rung" || row.kind === "loops" ? "" : ` (${row.kind})`)), make("div", { class: "track" }, time > 0 ? bar : ""), make("span", { class: "time" }, timeText(row)), make("span", { class: why.length > 24 ? "why long" : "why" }, why));
    item.addEventListener("click", () => choose(index));
    list.append(item);
  });
}
const rungNumber = (index) => rows.slice(0, index).filter((row) => row.kind === "rung").length;
function rungBefore(index) {
  for (let n = index - 1; n >= 0; --n) if (rows[n].kind === "rung" && rows[n].forms.length) return n;
  return -1;
}

// ---- What is known of a row.
// Text in backticks is code.
function withCode(text) {
  return text.split(/(`[^`]*`)/).map((piece) => (piece.startsWith("`") ? make("code", {}, piece.slice(1, -1)) : piece));
}
function sentence(line) {
  const lead = /^(paid|cost|no change|not why|now|same code|open|next) +/.exec(line);
  return lead ? [make("span", { class: "lead" }, lead[1] + ": "), ...withCode(line.slice(lead[0].length))] : withCode(line);
}
function showDetail(row) {
  const facts = make("dl");
  const fact = (name, value) => value && facts.append(make("dt", {}, name), make("dd", {}, value));
  if (row.timing) {
    const timing = row.timing;
    fact("time", milliseconds(timing.median_ms) + (timing.single ? ", timed once" : timing.launches > 1 ? `, ${timing.launches} launches, rounds ${timing.lowest_ms.toFixed(4)} to ${timing.highest_ms.toFixed(4)}` : "") + (timing.share < 1 ? `, scaled from ${(100 * timing.share).toPrecision(2)} % of the work` : ""));
    if (timing.round_mhz.length) fact("SM clock", timing.round_mhz.join(", ") + " MHz");
    const flops = ladder.work_operations > 8 * ladder.compulsory_bytes;
    fact("rate", short((flops ? ladder.work_operations : ladder.compulsory_bytes) / timing.median_ms * 1e3) + (flops ? "FLOP/s" : "B/s"));
  }
  if (row.kind === "rung" || row.kind === "hand") {
    fact("registers", `${row.registers}${row.spill_bytes ? `, ${row.spill_bytes} bytes spilled` : ", no spills"}`);
    fact("shared memory", row.shared_bytes + " bytes a block of " + row.threads + " threads");
    if (row.occupancy) fact("resident", `${row.occupancy.warps} of ${row.occupancy.most_warps} warps an SM, limited by ${row.occupancy.limit}`);
    fact("SASS", Object.entries(row.instructions).map(([name, count]) => `${count} ${name}`).join(", "));
    fact("compile", row.compile.map((one) => `${one.backend} ${Math.round(one.generate_ms + one.compile_ms)} ms`).join(", "));
  }
  fact("check", row.check);
  fact("note", row.note);
  const parts = make("div");
  if (row.parts.length) parts.append(make("p", { class: "soft" }, `Each part alone needs at least, at the rates of ${ladder.card_title}`));
  const most = Math.max(...row.parts.map((part) => part.least_ms), row.timing ? row.timing.median_ms : 0);
  for (const part of [...row.parts].sort((a, b) => b.least_ms - a.least_ms)) {
    const bar = make("div", { class: "bar least" });
    bar.style.width = (100 * part.least_ms) / most + "%";
    const share = row.timing ? ` ${Math.round((100 * part.least_ms) / row.timing.median_ms)} %` : "";
    parts.append(make("div", { class: "part" + (part.name === row.busiest ? " busiest" : ""), title: `${short(part.amount)} ${part.unit}; ${part.how}` }, make("span", {}, part.name), bar, make("b", {}, milliseconds(part.least_ms) + share)));
  }
  for (const text of row.not_counted) parts.append(make("p", { class: "soft" }, "not counted: " + text));
  const said = make("div");
  for (const line of row.verdict ? row.verdict.split("\n") : []) said.append(make("p", {}, ...sentence(line.trim())));
  if (row.next) said.append(make("p", {}, ...sentence("next " + row.next)));
  by("detail").replaceChildren(make("div", {}, said, parts), facts);
}

// ---- Panes.
// What stands below a line: in the CUDA C what was counted at the sizes of the call, in the forms above what the simulator saw.
const noteSizes = Object.entries(ladder.note_dims || {}).map(([name, value]) => `${name} = ${value}`).join(", ");
function simulatedNote(note) {
  const each = (value) => Number((value / note.requests).toFixed(1));
  const unit = note.space === "shared" ? "passes" : "sectors";
  return `${note.kind} ${note.text}, ${note.space}: ${each(note.asked)} ${unit} a request, ${each(note.needed)} needed; ${short(note.requests)} requests` + (note.sentence ? "\n" + note.sentence.replace(/`/g, "") : "") + (note.cure ? "\ncure: " + note.cure.replace(/`/g, "") : "");
}
function notesAt(form, row) {
  const at = new Map();
  const add = (line, text, remark) => line > 0 && at.set(line, [...(at.get(line) || []), make("div", { class: "note" + (remark ? " remark" : "") }, (remark ? "\u25b2 " : "") + text)]);
  if (form.name === "cuda") for (const access of row.accesses) add(access.line, noteOf(access), access.remark);
  const threads = row.forms.find((each) => each.name === "thread");
  for (const note of row.notes || []) {
    const line = form.name === "program" ? note.line : form.name === "thread" ? note.thread_line : form.name === "ir" && threads ? threads.origin[note.thread_line - 1] || 0 : 0;
    add(line, simulatedNote(note), note.sentence);
  }
  return at;
}
function noteOf(access) {
  const each = (value) => Number((value / access.requests).toFixed(1));
  const needs = access.space === "global" ? `${each(access.sectors)} sectors a request, ${each(access.sectors_needed)} needed; ` : "";
  return `${access.text}${access.tensor ? " of " + access.tensor : ""}: ${needs}${each(access.passes)} passes, ${each(access.passes_needed)} needed; ${short(access.requests)} requests` + (access.remark ? "\n" + access.remark : "");
}
// What is alike in two codes that name things differently: of machine code the operation, of C what is left without names.
function likeness(form, text) {
  if (form === "sass") return text.replace(/^ *[0-9a-f]{4,} +/, "").replace(/^@!?U?P\w+ +/, "").trim().split(" ")[0];
  if (form === "ptx") return text.trim().replace(/^@!?%p\d+\s+/, "").split(/\s/)[0];
  if (form === "cuda") return text.replace(/\/\/.*$/, "").replace(/[A-Za-z_]\w*/g, (word) => (words.cuda.test(word) || /^(fmaf?|__\w+)$/.test(word) ? word : "x")).replace(/\d+u?/g, "0").replace(/\s+/g, "");
  return text.trim();
}
// Lines side by side: [n, m], 0 where the other has none. `difference` gives the order.
function aligned(form, left, right) {
  const pairs = [];
  let n = 0, m = 0;
  for (const [sign] of difference(left.map((text) => likeness(form, text)), right.map((text) => likeness(form, text)))) {
    if (sign === "=") pairs.push([++n, ++m]);
    else if (sign === "-") pairs.push([++n, 0]);
    else pairs.push([0, ++m]);
  }
  // What one has where the other has something else stands beside it.
  const packed = [];
  for (let at = 0; at < pairs.length; ) {
    if (pairs[at][0] && pairs[at][1]) { packed.push(pairs[at++]); continue; }
    const ours = [], theirs = [];
    for (; at < pairs.length && !(pairs[at][0] && pairs[at][1]); ++at) pairs[at][0] ? ours.push(pairs[at][0]) : theirs.push(pairs[at][1]);
    for (let k = 0; k < Math.max(ours.length, theirs.length); ++k) packed.push([ours[k] || 0, theirs[k] || 0, true]);
  }
  return packed;
}
// The part of a hand kernel's file that its machine code stems from, from the kernel's head on.
function usedLines(forms, form) {
  const sass = forms.get("sass");
  if (form.name !== "cuda" || !sass || sass.above !== "cuda") return [0, 0];
  const used = sass.origin.filter((line) => line > 0);
  if (!used.length) return [0, 0];
  let from = used.reduce((a, b) => Math.min(a, b)), to = used.reduce((a, b) => Math.max(a, b));
  while (from > 1 && !form.lines[from - 1].includes("__global__")) --from;
  while (to < form.lines.length && !form.lines[to - 1].startsWith("}")) ++to;
  return [from, to];
}
function codeOf(form, row, before, other, otherName, otherFrom, otherTo) {
  const holder = make("div", { class: "lines" });
  const notes = by("access").checked ? notesAt(form, row) : new Map();
  const line = (number, into = holder) => {
    const node = make("div", { class: "l", "data-n": String(number) }, ...coloured(form.name, form.lines[number - 1]));
    into.append(node);
    if (notes.has(number)) holder.append(...notes.get(number));
    return node;
  };
  if (other) {
    holder.classList.add("pairs");
    const first = otherFrom || 1;
    for (const [n, k, differs] of aligned(form.name, form.lines, other.lines.slice(first - 1, otherTo || other.lines.length))) {
      const m = k && k + first - 1;
      const pair = make("div", { class: "pair" + (differs ? " differs" : "") });
      holder.append(pair);
      if (n) line(n, pair);
      else pair.append(make("div", { class: "gap" }));
      pair.append(m ? make("div", { class: "o", "data-n": String(m) }, ...coloured(form.name, other.lines[m - 1])) : make("div", { class: "gap" }));
    }
  } else if (before) {
    for (const [sign, value] of difference(before.lines, form.lines)) {
      if (sign === "-") holder.append(make("div", { class: "l minus", "data-n": "" }, value));
      else if (sign === "+") line(value).classList.add("plus");
      else line(value);
    }
  } else {
    for (let number = 1; number <= form.lines.length; ++number) line(number);
  }
  return make("div", { class: "code", tabindex: "0", role: "group", "aria-label": titles[form.name] + (otherName ? ", beside " + otherName : ""), "data-form": form.name, "data-main": "1" }, holder);
}
function showPanes() {
  const row = rows[state.row];
  state.forms = formsOf(row);
  const panes = by("panes");
  panes.replaceChildren();
  const earlier = by("diff").checked ? rungBefore(state.row) : -1;
  const beforeForms = earlier >= 0 ? formsOf(rows[earlier]) : null;
  const other = by("beside").value === "" ? null : rows[Number(by("beside").value)];
  const otherForms = other ? formsOf(other) : null;
  for (const form of state.forms.values()) {
    const beside = otherForms && form.name !== "program" ? otherForms.get(form.name) : null;
    const code = codeOf(form, row, form.name !== "program" && beforeForms ? beforeForms.get(form.name) : null, beside, beside ? other.name : "", ...(beside ? usedLines(otherForms, beside) : []));
    const count = beside ? `  ${form.lines.length} and ${beside.lines.length} lines` : `  ${form.lines.length} lines`;
    panes.append(make("section", { class: "pane" + (beside ? " wide" : ""), id: "pane-" + form.name }, make("h3", {}, titles[form.name], beside ? ` \u2014 ${row.name}, beside ${other.name}` : "", make("small", {}, count)), code));
  }
  if (!row.forms.length) panes.append(make("p", { class: "soft" }, row.kind === "rung" || row.kind === "hand" ? "The record holds no code." : "No code of ours runs here."));
}
function mainCode(name) { return document.querySelector(`#pane-${name} .code[data-main]`); }
function lineNode(name, number) {
  const code = mainCode(name);
  return code && code.querySelector(`.l[data-n="${number}"]`);
}
function light(name, number, from) {
  if (state.light && state.light[0] === name && state.light[1] === number) return;
  state.light = [name, number];
  for (const node of document.querySelectorAll(".l.lit, .l.here")) node.classList.remove("lit", "here");
  const lit = litBy(state.forms, name, number);
  const counts = [];
  for (const [form, lines] of lit) {
    let first = null;
    for (const line of lines) {
      const node = lineNode(form, line);
      if (!node) continue;
      node.classList.add("lit");
      if (!first) first = node;
    }
    if (form === name) {
      const here = lineNode(form, number);
      if (here) here.classList.add("here");
      if (here && from === "keys") show(here);
    } else {
      counts.push(lines.size === 1 ? `${titles[form]} line ${[...lines][0]}` : `${lines.size} lines of ${titles[form]}`);
      if (first) show(first);
    }
  }
  by("said").textContent = `${titles[name]} line ${number}: ${counts.join(", ") || "nothing else"}`;
}
// Scrolls a line into its own pane only, not the page.
function show(node) {
  const code = node.closest(".code");
  const top = node.offsetTop - code.offsetTop;
  if (top < code.scrollTop + 20 || top > code.scrollTop + code.clientHeight - 40) code.scrollTop = Math.max(0, top - code.clientHeight / 3);
}

function choose(index) {
  if (index < 0 || index >= rows.length) return;
  state.row = index;
  state.light = null;
  document.querySelectorAll("#rows li").forEach((item, n) => item.setAttribute("aria-selected", String(n === index)));
  by("rows").setAttribute("aria-activedescendant", "row" + index);
  by("row" + index).scrollIntoView({ block: "nearest" });
  by("said").textContent = "";
  showDetail(rows[index]);
  showPanes();
}

// ---- Start.
const sizes = Object.entries(ladder.dims).map(([name, value]) => `${name} = ${value}`).join(", ");
by("title").textContent = ladder.fn + (ladder.schedule ? ` \u201c${ladder.schedule}\u201d` : "");
by("setup").textContent = [ladder.bench, sizes, ladder.device + (ladder.driver ? `, driver ${ladder.driver}` : ""), ladder.arch].filter(Boolean).join(" \u00b7 ");
if (data.record) {
  const list = make("dl");
  for (const [name, value] of Object.entries(data.record)) if (value) list.append(make("dt", {}, name), make("dd", {}, typeof value === "string" ? value : JSON.stringify(value)));
  by("record").replaceChildren(make("h2", {}, "The experiment"), list);
  by("record").hidden = false;
}
by("beside").append(make("option", { value: "" }, "nothing"), ...rows.flatMap((row, index) => (row.forms.length ? [make("option", { value: String(index) }, row.name + (row.kind === "hand" ? " (hand)" : ""))] : [])));
showRows();
by("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
for (const id of ["diff", "access", "beside"]) by(id).addEventListener("change", showPanes);
by("panes").addEventListener("mouseover", (event) => {
  const node = event.target.closest(".code[data-main] .l");
  if (node && node.dataset.n) light(node.closest(".code").dataset.form, Number(node.dataset.n), "mouse");
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT)$/.test(event.target.tagName)) return;
  const code = event.target.closest && event.target.closest(".code[data-main]");
  const step = event.key === "ArrowDown" || event.key === "ArrowRight" ? 1 : event.key === "ArrowUp" || event.key === "ArrowLeft" ? -1 : 0;
  if (!step) return;
  event.preventDefault();
  if (code && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    const form = code.dataset.form, last = state.forms.get(form).lines.length;
    const at = state.light && state.light[0] === form ? state.light[1] + step : 1;
    if (at >= 1 && at <= last) light(form, at, "keys");
    return;
  }
  choose(state.row + step);
});
const first = rows.findIndex((row) => row.kind === "rung");
if (ladder.verb === "compare") {  // the rival beside it from the start
  const rival = rows.findIndex((row, index) => index !== first && row.forms.length && row.kind !== "loops");
  if (rival >= 0) by("beside").value = String(rival);
}
if (noteSizes) by("sizes").textContent = `Below the lines of the program and the IR: every access, counted in the simulator at ${noteSizes}. Below the CUDA C: counted at the sizes of the call.`;
choose(Math.max(0, first));
