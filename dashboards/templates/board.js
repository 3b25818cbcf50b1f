// Draws the board's HTML by changing only the nodes that differ, and reports clicks on links to Python.

const ASK_AGAIN_MS = 2000;
const SKIP = new Set(["open"]); // elements that the viewer has opened stay open

function sameKind(old, next) {
  return (
    old.nodeType === next.nodeType &&
    old.nodeName === next.nodeName &&
    (old.nodeType !== Node.ELEMENT_NODE || old.dataset.key === next.dataset.key)
  );
}

function morph(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !SKIP.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...next.attributes]) {
    if (old.getAttribute(name) !== value && !SKIP.has(name)) old.setAttribute(name, value);
  }
  morphChildren(old, next);
}

function morphChildren(old, next) {
  const keyed = new Map();
  for (const child of old.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const known = wanted.dataset?.key && keyed.get(wanted.dataset.key);
    if (known && known !== at) {
      old.insertBefore(known, at);
      at = known;
    }
    if (at && sameKind(at, wanted)) {
      morph(at, wanted);
      at = at.nextSibling;
    } else {
      old.insertBefore(wanted, at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

let place = null;
let asked = null; // target of the last click, until Python has received it

function ask(setTriggerValue, wanted, times) {
  setTriggerValue("go", wanted);
  setTimeout(() => {
    if (asked === wanted && times > 0) ask(setTriggerValue, wanted, times - 1);
  }, ASK_AGAIN_MS);
}

export default function (component) {
  const { parentElement, data, setTriggerValue } = component;
  const root = parentElement.querySelector(".board");
  const next = document.createElement("div");
  next.innerHTML = data.html;
  morphChildren(root, next);
  if (data.place && data.place !== place) {
    if (place !== null) document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
    place = data.place;
  }
  if (asked && data.went === asked.at) asked = null;
  root.onclick = (event) => {
    const link = event.target.closest("a[data-go]");
    // Clicks that open a new tab are left to the browser: the address is a real one.
    if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const { cluster = "", group = "", show = "", span = "" } = link.dataset;
    asked = { cluster, group, show, span, at: performance.now() };
    ask(setTriggerValue, asked, 5);
  };
}
