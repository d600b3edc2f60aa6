// The search: names and headings of search_index.js that hold all words that were written, best first.
"use strict";
const box = document.getElementById("search");
const list = document.getElementById("found");
let chosen = 0;

// Less is better: the name itself, then its last part, its beginning, anything.
function rank(name, words) {
  const lower = name.toLowerCase();
  const last = lower.slice(lower.lastIndexOf(":") + 1);
  const word = words[words.length - 1];
  if (lower === word) return 0;
  if (last === word) return 1;
  if (last.startsWith(word)) return 2;
  return lower.includes(word) ? 3 : 4;
}

function find(text) {
  const full = text.toLowerCase().replace(/\bf::/g, "functions::").replace(/\bl::/g, "links::");
  const words = full.split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return SEARCH_INDEX
    .map((entry) => [entry, (entry[0] + " " + entry[2]).toLowerCase()])
    .filter(([, all]) => words.every((word) => all.includes(word)))
    .map(([entry]) => entry)
    .map((entry) => [rank(entry[0], words), entry[0].length, entry])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1])
    .slice(0, 40)
    .map((row) => row[2]);
}

function show() {
  list.replaceChildren();
  chosen = 0;
  for (const [name, where, about] of find(box.value)) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const small = document.createElement("small");
    link.href = top_ + where;
    link.textContent = name;
    small.textContent = about;
    item.append(link, small);
    list.append(item);
  }
  mark(0);
}

function mark(step) {
  const items = list.children;
  if (!items.length) return;
  items[chosen].classList.remove("chosen");
  chosen = Math.min(Math.max(chosen + step, 0), items.length - 1);
  items[chosen].classList.add("chosen");
}

box.addEventListener("input", show);
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") mark(1);
  if (event.key === "ArrowUp") mark(-1);
  if (event.key === "Enter" && list.children.length) list.children[chosen].querySelector("a").click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== box) {
    event.preventDefault();
    box.focus();
  }
});
