// The page in the browser: refreshes the board without a jump, shows times in the viewer's zone, draws the charts.
"use strict";

(() => {
  const board = () => document.getElementById("content");
  const refreshMs = Number(document.body.dataset.refresh) || 3000;

  // ---- times in the viewer's zone (the server sends UTC, because one rendering serves everybody)

  const two = (n) => String(n).padStart(2, "0");
  const month = new Intl.DateTimeFormat("en", { month: "short" });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  function clock(at, seconds) {
    return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
  }

  function day(at) {
    return at.toDateString() === new Date().toDateString() ? "" : `${at.getDate()} ${month.format(at)} `;
  }

  function localize(root) {
    for (const node of root.querySelectorAll("time[data-as]")) {
      const at = new Date(node.dateTime);
      node.textContent = day(at) + clock(at, node.dataset.as === "s");
      node.title = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(at, true)} ${zone} · ` +
        `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())} UTC`;
    }
    ages(root);
  }

  function ages(root) {
    for (const node of root.querySelectorAll("[data-age]")) {
      const s = Math.max(0, Math.round(Date.now() / 1000 - Number(node.dataset.age)));
      node.textContent = `updated ${s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`} ago`;
    }
  }

  // ---- refresh

  let failures = 0;

  // Once may be an accident; from the second failure on it is said.
  function answered(well) {
    failures = well ? 0 : failures + 1;
    document.getElementById("away").hidden = failures < 2;
  }

  function show(url) {
    const asked = new URL(url, location.href);
    asked.searchParams.set("part", "main");
    return window.htmx.ajax("GET", asked.pathname + asked.search, { source: board(), target: board(), swap: "innerMorph" });
  }

  let tag = "";

  document.addEventListener("htmx:config:request", (event) => {
    if (tag) event.detail.ctx.request.headers["If-None-Match"] = tag;
  });

  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx, tasks } = event.detail;
    answered(ctx.response.status < 500);
    if (ctx.response.status >= 500) return event.preventDefault();
    tag = ctx.response.headers.get("ETag") || "";
    for (const task of tasks) if (task.fragment) localize(task.fragment);
  });

  document.addEventListener("htmx:after:swap", draw);

  document.addEventListener("htmx:error", () => answered(false));

  setInterval(() => ages(document), 1000);

  function poll() {
    // (After failures the server is asked less often; it may be starting.)
    setTimeout(async () => {
      if (!document.hidden && window.htmx) await show(location.href);
      poll();
    }, refreshMs * Math.min(10, 1 + failures));
  }

  // ---- find as one types (on the overview; elsewhere Enter leads there)

  const find = document.querySelector(".find");
  let typed = 0;
  if (find && find.dataset.live === "yes" && window.htmx) {
    find.addEventListener("input", () => {
      clearTimeout(typed);
      typed = setTimeout(() => {
        const url = new URL(location.href);
        const text = find.q.value.trim();
        if (text) url.searchParams.set("q", text);
        else url.searchParams.delete("q");
        history.replaceState(null, "", url);
        tag = "";
        show(url);
      }, 200);
    });
    find.addEventListener("submit", (event) => event.preventDefault());
  }

  // ---- keyboard

  let at = -1;

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "Escape" && typing) return event.target.blur();
    if (typing) return;
    const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a"));
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("q").select();
    } else if ((event.key === "j" || event.key === "k") && rows.length) {
      at = Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)));
      rows[at].querySelector("a").focus();
      rows[at].scrollIntoView({ block: "nearest" });
    }
  });

  // ---- charts

  const plots = new Map();

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
    ink = Object.fromEntries(["text", "quiet", "line", "accent", "bad"].map((name) => [name, resolved(`--${name}`)]));
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
          const said = u.cursor.idx == null || u.cursor.left < 0 ? "" : text(u, u.cursor.idx);
          tip.hidden = !said;
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

  function lines(given, box) {
    const history = given.kind === "history";
    const names = history ? ["highest", "mean"] : ["lag", "worst partition"];
    const stepped = window.uPlot.paths.stepped({ align: 1 });
    return {
      data: given.series,
      options: {
        series: [
          {},
          { stroke: () => ink.accent, width: 1.7, paths: stepped, points: { show: false }, fill: () => tint(ink.accent) },
          { stroke: () => ink.quiet, width: 1.3, dash: [4, 3], paths: stepped, points: { show: false } },
        ],
        plugins: [
          tips((u, i) => u.data[1][i] == null ? "" : `${when(u.data[0][i])}  ${names[0]} ${shown(u.data[1][i])}, ${names[1]} ${shown(u.data[2][i])}`),
          { hooks: { drawAxes: (u) => hairlines(u, box.given.rules) } },
        ],
      },
    };
  }

  function tint(text) {
    return text.startsWith("rgb(") ? text.replace("rgb(", "rgba(").replace(")", ", 0.09)") : text;
  }

  function hairlines(u, rules) {
    const { ctx } = u;
    ctx.save();
    ctx.strokeStyle = ink.quiet;
    ctx.globalAlpha = 0.6;
    ctx.setLineDash([2, 4]);
    ctx.beginPath();
    for (const rule of rules) {
      const x = Math.round(u.valToPos(rule, "x", true));
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  const WHAT = ["joined", "left", "joined and left", "other cause"];

  function stems(given) {
    return {
      data: given.series.slice(0, 3),
      options: {
        series: [{}, { paths: () => null, points: { show: false } }, { paths: () => null, points: { show: false } }],
        plugins: [
          tips((u, i) => {
            const needed = u.data[2][i] == null ? "" : `, ${shown(u.data[2][i])} needed`;
            const moved = u.data[1][i] == null ? "moves not known" : `${shown(u.data[1][i])} moves`;
            return `${when(u.data[0][i])}  ${WHAT[u.what[i]]}: ${moved}${needed}`;
          }),
          { hooks: { draw: drawStems } },
        ],
      },
    };
  }

  function drawStems(u) {
    const { ctx } = u;
    const px = window.devicePixelRatio || 1;
    const [times, moved, least] = u.data;
    const low = u.valToPos(0, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left - 6 * px, 0, u.bbox.width + 12 * px, u.bbox.top + u.bbox.height + 6 * px);
    ctx.clip();
    for (let i = 0; i < times.length; i++) {
      if (times[i] < u.scales.x.min || times[i] > u.scales.x.max) continue;
      const x = u.valToPos(times[i], "x", true);
      const y = u.valToPos(moved[i] || 0, "y", true);
      ctx.fillStyle = ink.accent;
      ctx.globalAlpha = 0.75;
      ctx.fillRect(x - 1.5 * px, y, 3 * px, low - y);
      ctx.globalAlpha = 1;
      if (least[i] != null) {
        ctx.fillStyle = ink.text;
        ctx.fillRect(x - 6 * px, u.valToPos(least[i], "y", true) - px, 12 * px, 2 * px);
        ctx.fillStyle = ink.accent;
      }
      mark(ctx, u.what[i], x, y - 5 * px, 4.5 * px);
    }
    ctx.restore();
  }

  function mark(ctx, what, x, y, r) {
    ctx.beginPath();
    if (what === 0) { ctx.moveTo(x, y - r); ctx.lineTo(x + r, y + r); ctx.lineTo(x - r, y + r); }
    else if (what === 1) { ctx.moveTo(x, y + r); ctx.lineTo(x + r, y - r); ctx.lineTo(x - r, y - r); }
    else if (what === 2) { ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); }
    else ctx.arc(x, y, r * 0.85, 0, 7);
    ctx.fill();
  }

  // ---- many decisions: a bar for each step; who drags over a time gets the page of it, in finer steps

  function bars(given) {
    const span = (from, to) => {
      const url = new URL(location.href);
      url.searchParams.delete("range");
      for (const [name, at] of [["from", from], ["to", to]]) url.searchParams.set(name, new Date(at * 1000).toISOString().slice(0, 16) + "Z");
      location.assign(url);
    };
    return {
      data: given.series,
      options: {
        series: [{}, ...[1, 2, 3].map(() => ({ paths: () => null, points: { show: false } }))],
        scales: { x: { time: true, range: () => given.x }, y: { range: from0 } },
        plugins: [
          tips((u, i) => u.data[3][i] ? `${when(u.data[0][i])}  ${shown(u.data[3][i])} decisions: ${shown(u.data[1][i])} moves, ${shown(u.data[2][i])} needed` : ""),
          { hooks: {
            draw: (u) => drawBars(u, given.width),
            setSelect: (u) => {
              const [from, to] = [u.select.left, u.select.left + u.select.width].map((x) => u.posToVal(x, "x"));
              if (u.select.width > 5 && to - from >= 60) span(from, to);
            },
          } },
        ],
      },
    };
  }

  function drawBars(u, width) {
    const { ctx } = u;
    const px = window.devicePixelRatio || 1;
    const [times, moved, least] = u.data;
    const low = u.valToPos(0, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, 0, u.bbox.width, u.bbox.top + u.bbox.height + px);
    ctx.clip();
    for (let i = 0; i < times.length; i++) {
      if (!u.data[3][i]) continue;
      const left = u.valToPos(times[i], "x", true);
      const wide = Math.max(px, u.valToPos(times[i] + width, "x", true) - left - px);
      const y = Math.min(low - px, u.valToPos(moved[i], "y", true));
      ctx.fillStyle = ink.accent;
      ctx.globalAlpha = 0.75;
      ctx.fillRect(left, y, wide, low - y);
      ctx.globalAlpha = 1;
      ctx.fillStyle = ink.text;
      ctx.fillRect(left, u.valToPos(least[i], "y", true) - px, wide, 2 * px);
    }
    ctx.restore();
  }

  // ---- a heat map: a line for each partition, a column for each step, darker is more, hatched is not known

  const HEAT = [0.05, 0.16, 0.3, 0.46, 0.62, 0.8, 1];

  function level(value, levels) {
    let found = 0;
    while (found < levels.length && value >= levels[found]) found += 1;
    return found;
  }

  const lineHeight = (given) => Math.max(13, Math.min(22, Math.floor(420 / given.rows.length)));

  function waited(s) {
    return s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
  }

  function heat(given) {
    const count = given.rows.length;
    const columns = (given.x[1] - given.x[0]) / given.width;
    const times = Array.from({ length: columns }, (_, i) => given.x[0] + (i + 0.5) * given.width);
    const longest = Math.max(...given.names.map((name) => name.length));
    const narrow = innerWidth < 720;
    return {
      data: [times, times.map(() => null)],
      options: {
        height: count * lineHeight(given) + 40,
        series: [{}, { paths: () => null, points: { show: false } }],
        scales: { x: { time: true, range: () => given.x }, y: { dir: -1, range: () => [0, count] } },
        labels: {
          size: Math.min(narrow ? 110 : 190, 12 + 7 * longest),
          splits: () => given.names.map((_, i) => i + 0.5),
          values: () => given.names.map((name) => (narrow && name.length > 15 ? `…${name.slice(-14)}` : name)),
          grid: { show: false }, space: 0, font: '11px system-ui, "Segoe UI", sans-serif',
        },
        plugins: [
          tips((u, i) => {
            const row = Math.floor(u.posToVal(u.cursor.top, "y"));
            if (row < 0 || row >= count) return "";
            const value = given.rows[row][i];
            const text = value == null ? "not known" : given.unit ? value ? `${waited(value)} or more` : "0 s" : shown(value);
            return `${given.names[row]}  ${when(given.x[0] + i * given.width)}  ${text}`;
          }),
          { hooks: { draw: (u) => drawHeat(u, given, columns) } },
        ],
      },
    };
  }

  function hatch(ctx, px) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = Math.round(6 * px);
    const to = tile.getContext("2d");
    to.strokeStyle = ink.quiet;
    to.globalAlpha = 0.55;
    to.lineWidth = px;
    to.beginPath();
    for (const from of [-tile.width, 0, tile.width]) {
      to.moveTo(from, tile.height);
      to.lineTo(from + tile.width, 0);
    }
    to.stroke();
    return ctx.createPattern(tile, "repeat");
  }

  function drawHeat(u, given, columns) {
    const { ctx } = u;
    const px = window.devicePixelRatio || 1;
    const unknown = hatch(ctx, px);
    const edge = (i) => Math.round(u.bbox.left + (u.bbox.width * i) / columns);
    const gap = Math.round(px);
    ctx.save();
    given.rows.forEach((row, r) => {
      const top = Math.round(u.valToPos(r, "y", true)) + gap;
      const high = Math.round(u.valToPos(r + 1, "y", true)) - top;
      for (let from = 0; from < columns;) {
        const kind = row[from] == null ? -1 : level(row[from], given.levels);
        let to = from + 1;
        while (to < columns && (row[to] == null ? -1 : level(row[to], given.levels)) === kind) to += 1;
        ctx.fillStyle = kind < 0 ? unknown : ink.accent;
        ctx.globalAlpha = kind < 0 ? 1 : HEAT[kind];
        ctx.fillRect(edge(from), top, edge(to) - edge(from), high);
        from = to;
      }
    });
    ctx.restore();
  }

  const KINDS = {
    map: heat, lag: lines, history: lines, rebalances: stems, steps: bars,
    ...window.evenkeelKinds?.({ ink: () => ink, tips, when, shown, tint, resolved }),
  };

  // Their bars and lines are made of what was given with them: a change is a new chart.
  const ANEW = new Set(["map", "measure", "counts", "steps"]);

  function draw() {
    if (!window.uPlot) return;
    for (const node of [...plots.keys()]) {
      if (!node.isConnected) {
        plots.get(node).plot.destroy();
        plots.delete(node);
      }
    }
    for (const node of document.querySelectorAll(".plot")) {
      const given = JSON.parse(node.dataset.plot);
      const known = plots.get(node);
      if (known && known.text === node.dataset.plot) continue;
      if (known && !ANEW.has(given.kind) && known.given.kind === given.kind && known.mode === matchMedia("(prefers-color-scheme: dark)").matches) {
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
    const box = { text: node.dataset.plot, given, mode: matchMedia("(prefers-color-scheme: dark)").matches };
    const { data, options } = KINDS[given.kind](given, box);
    const { labels, ...more } = options;
    const [x, y] = axes(given.kind === "rebalances" || given.kind === "steps" ? 30 : 40);
    x.values = timeValues;
    Object.assign(y, labels);
    box.plot = new window.uPlot({
      width: Math.max(200, node.clientWidth),
      height: node.clientHeight,
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, points: { show: false }, sync: { key: "time", setSeries: false } },
      scales: { x: { time: true, min: given.x[0], max: given.x[1], range: (_, min, max) => (box.plot ? [min, max] : given.x) }, y: { range: from0 } },
      axes: [x, y],
      ...more,
    }, null, (u, init) => {
      u.what = given.series?.[3];
      u.ready = false;
      node.append(u.root);
      init();
    });
    box.plot.ready = true;
    box.plot.setData(data, false);
    box.plot.setScale("x", { min: given.x[0], max: given.x[1] });
    plots.set(node, box);
  }

  function redraw() {
    inks();
    for (const [node, { given }] of [...plots]) make(node, given);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  let sizing = 0;
  addEventListener("resize", () => {
    clearTimeout(sizing);
    sizing = setTimeout(() => {
      for (const [node, { plot }] of plots) plot.setSize({ width: Math.max(200, node.clientWidth), height: plot.height });
    }, 100);
  });

  localize(document);
  inks();
  draw();
  poll();
})();
