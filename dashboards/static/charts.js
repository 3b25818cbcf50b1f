// Puts charts on the page: makes and keeps them while the board is refreshed, axes, what is said under the cursor or by
// the arrow keys, marks. What each kind draws is in kinds.js.
"use strict";

(() => {
  if (!window.uPlot) return;

  const { clock, month, day } = window.evenkeel;
  const plots = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // light-dark() is resolved only where a property uses it.
  function resolved(name) {
    const probe = document.createElement("span");
    probe.hidden = true;
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  let ink = null;

  function inks() {
    ink = Object.fromEntries(["text", "quiet", "line", "accent", "bad", "unsure"].map((name) => [name, resolved(`--${name}`)]));
  }

  function short(value) {
    for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(value) >= size) return `${value / size}${letter}`;
    return String(value);
  }

  function axes(unit) {
    const font = '12px system-ui, "Segoe UI", sans-serif';
    return [
      { stroke: () => ink.quiet, grid: { show: false }, ticks: { stroke: () => ink.line, width: 1, size: 4 }, font, size: 30,
        values: "{HH}:{mm}", space: 70 },
      { stroke: () => ink.quiet, grid: { stroke: () => ink.line, width: 1 }, ticks: { show: false }, font, size: 58,
        values: (_, found) => found.map((v) => (v === Math.floor(v) ? short(v) : "")), space: unit },
    ];
  }

  function timeValues(u, splits) {
    const long = u.scales.x.max - u.scales.x.min > 3 * 86400;
    return splits.map((s) => {
      const when = new Date(s * 1000);
      const midnight = when.getHours() === 0 && when.getMinutes() === 0;
      return long || midnight ? `${when.getDate()} ${month.format(when)}` : clock(when, false);
    });
  }

  const from0 = (_, __, max) => [0, Math.max(4, (max || 0) * 1.12)];

  // ---- what is said under the cursor, or where the arrow keys have gone

  // Screen readers hear this line alone: what lies inside of an image is not read.
  const spoken = document.createElement("div");
  spoken.className = "unseen";
  spoken.setAttribute("aria-live", "polite");
  document.body.append(spoken);

  function tips(text) {
    let tip;
    return {
      hooks: {
        init: (u) => {
          tip = document.createElement("div");
          tip.className = "tip";
          tip.hidden = true;
          u.over.append(tip);
        },
        setCursor: (u) => {
          const { idx, left } = u.cursor;
          const said = idx == null || left < 0 ? "" : [...marksNear(u, left), text(u, idx)].filter(Boolean).join("  ");
          tip.hidden = !said;
          if (document.activeElement === u.box.node && left >= 0) spoken.textContent = said || `${idx == null ? "" : when(u.data[0][idx])}  nothing`;
          if (!said) return;
          tip.textContent = said;
          const width = tip.offsetWidth;
          tip.style.left = `${Math.max(0, Math.min(u.over.clientWidth - width, u.cursor.left + 12))}px`;
          tip.style.top = "2px";
        },
      },
    };
  }

  const number = new Intl.NumberFormat("en");
  const shown = (value) => (value == null ? "–" : number.format(value));
  const when = (s) => `${day(new Date(s * 1000))}${clock(new Date(s * 1000), true)}`;

  const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  function walk(event) {
    const { plot: u, given } = plots.get(event.currentTarget) || {};
    const [by, rows] = WAYS[event.key] || [0, 0];
    const ends = { Home: 0, End: Infinity };
    if (!u || event.ctrlKey || event.metaKey || event.altKey || !(event.key in WAYS || event.key in ends)) return;
    if (rows && given.kind !== "map") return;
    event.preventDefault();
    const { min, max } = u.scales.x;
    const seen = u.data[0].map((time, i) => [time, i]).filter(([time]) => time >= min && time <= max);
    if (!seen.length) return;
    const here = seen.findIndex(([, i]) => i === u.cursor.idx);
    const to = event.key in ends ? ends[event.key] : (here < 0 ? seen.length - 1 : here + by * (event.shiftKey ? 10 : 1));
    const [time] = seen[Math.max(0, Math.min(seen.length - 1, to))];
    const high = given.kind === "map" ? u.over.clientHeight / given.rows.length : 0;
    const top = Math.max(high / 2, Math.min(u.over.clientHeight - 1 - high / 2, (u.cursor.top >= 0 ? u.cursor.top : high / 2) + rows * high));
    u.setCursor({ left: u.valToPos(time, "x"), top: high ? top : u.over.clientHeight / 2 });
  }

  function leave(event) {
    plots.get(event.currentTarget)?.plot.setCursor({ left: -10, top: -10 });
  }

  // ---- marks: what people noted (the list "Marks" of the page), as a line with a flag on every kind of chart

  let noted = [];

  function readMarks() {
    return [...document.querySelectorAll("#marks [data-at]")].map((node) => [Number(node.dataset.at), node.querySelector(".says")?.textContent || ""]);
  }

  function marksNear(u, left) {
    return noted.filter(([time]) => Math.abs(u.valToPos(time, "x") - left) < 6).map(([time, text]) => `⚑ ${when(time)} ${text}`);
  }

  const marks = { hooks: { draw: (u) => {
    const { ctx } = u;
    const px = window.devicePixelRatio || 1;
    ctx.save();
    ctx.setLineDash([]);
    ctx.fillStyle = ctx.strokeStyle = ink.text;
    ctx.lineWidth = px;
    for (const [time] of noted) {
      if (time < u.scales.x.min || time > u.scales.x.max) continue;
      const x = Math.round(u.valToPos(time, "x", true)) + px / 2;
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x + 8 * px, u.bbox.top + 3.5 * px);
      ctx.lineTo(x, u.bbox.top + 7 * px);
      ctx.fill();
    }
    ctx.restore();
  } } };

  // ---- the charts of the board

  const KINDS = window.evenkeelKinds({ ink: () => ink, tips, when, shown });

  // Lines and stems are moved on; of other kinds the drawing is made of what was given with it: a change is a new chart.
  const MOVES_ON = new Set(["measure", "rebalances"]);
  const shape = (given) => [given.kind, given.points, given.unit, given.names].join();

  function draw() {
    for (const node of [...plots.keys()]) {
      if (!node.isConnected) {
        plots.get(node).plot.destroy();
        plots.delete(node);
      }
    }
    const before = JSON.stringify(noted);
    noted = readMarks();
    if (JSON.stringify(noted) !== before) for (const { plot } of plots.values()) plot.redraw(false);
    for (const node of document.querySelectorAll(".plot")) {
      const given = JSON.parse(node.dataset.plot);
      const known = plots.get(node);
      if (known && known.text === node.dataset.plot) continue;
      if (known && MOVES_ON.has(given.kind) && shape(known.given) === shape(given) && known.dark === dark.matches) {
        Object.assign(known, { text: node.dataset.plot, given });
        known.plot.what = given.series[3];
        known.plot.batch(() => {
          known.plot.setData(given.kind === "rebalances" ? given.series.slice(0, 3) : given.series, false);
          known.plot.setScale("x", { min: given.x[0], max: given.x[1] });
        });
        continue;
      }
      make(node, given);
    }
  }

  function make(node, given) {
    plots.get(node)?.plot.destroy();
    const box = { node, text: node.dataset.plot, given, dark: dark.matches };
    const { data, options } = KINDS[given.kind](given, box);
    const { labels, plugins, scales, ...more } = options;
    const [x, y] = axes(given.kind === "rebalances" || given.kind === "steps" ? 30 : 40);
    x.values = timeValues;
    Object.assign(y, labels);
    box.plot = new window.uPlot({
      width: Math.max(200, node.clientWidth),
      height: node.clientHeight,
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, points: { show: false }, sync: { key: "time", setSeries: false } },
      scales: { x: { time: true, min: given.x[0], max: given.x[1], range: (_, min, max) => (box.plot ? [min, max] : given.x) }, y: { range: from0 }, ...scales },
      axes: [x, y],
      plugins: [...plugins, marks],
      ...more,
    }, null, (u, init) => {
      u.box = box;
      u.what = given.series?.[3];
      node.append(u.root);
      init();
    });
    box.plot.setData(data, false);
    box.plot.setScale("x", { min: given.x[0], max: given.x[1] });
    plots.set(node, box);
    node.onkeydown = walk;
    node.onblur = leave;
  }

  function redraw() {
    inks();
    for (const [node, { given }] of [...plots]) make(node, given);
  }

  dark.addEventListener("change", redraw);
  document.addEventListener("htmx:after:swap", draw);

  let sizing = 0;
  addEventListener("resize", () => {
    clearTimeout(sizing);
    sizing = setTimeout(() => {
      for (const [node, { plot }] of plots) plot.setSize({ width: Math.max(200, node.clientWidth), height: plot.height });
    }, 100);
  });

  inks();
  draw();
})();
