// What each kind of chart draws with uPlot, from the values that the server gives (dashboards/charts.py). charts.js puts
// them on the page.
"use strict";

window.evenkeelKinds = ({ ink, tips, when, shown }) => {
  const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

  // As the server says it: "0", "<0.1", "0.4", "12", "1,240"; sizes with a letter.
  function valued(value, unit) {
    if (value == null) return "–";
    if (unit === "bytes") return sized(value);
    if (unit === "/s") return `${value > 0 && value < 0.05 ? "<0.1" : value > 0 && value < 9.95 ? value.toFixed(1) : shown(Math.round(value))}/s`;
    return unit ? shown(Math.round(value)) : Math.abs(value) < 0.005 ? "0" : value.toFixed(2);
  }

  function brief(value) {
    for (const [size, letter] of UNITS) if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))} ${letter}`;
    return `${Number(value.toPrecision(3))} `;
  }

  const sized = (value) => (value ? `${brief(value)}B`.replace("k", "K") : "0 B");

  const LINES = [["accent", 1.7, []], ["quiet", 1.3, [4, 3]], ["text", 1, [1, 3]]];

  function measure(given) {
    const straight = given.points;
    return {
      data: given.series,
      options: {
        series: [{}, ...given.names.map((_, i) => {
          const [name, width, dash] = LINES[i % LINES.length];
          return {
            stroke: () => ink()[name], width, dash, fill: i ? undefined : () => tint(ink()[name]),
            paths: straight ? window.uPlot.paths.linear() : window.uPlot.paths.stepped({ align: 1 }),
            // A point of a roll-up may stand between two gaps, where a line would not show it.
            points: { show: straight && given.series[0].length < 60, size: 5, fill: () => ink()[name], stroke: () => ink()[name] },
          };
        })],
        scales: { y: { range: (_, __, max) => [0, Math.max(given.top, (max || 0) * 1.12)] } },
        labels: { values: (_, found) => found.map((v) => (given.unit === "bytes" ? sized(v) : v >= 1e3 ? brief(v).trim() : String(Number(v.toPrecision(3))))) },
        plugins: [tips((u, i) => {
          const said = given.names.map((name, at) => [name, u.data[at + 1][i]]).filter(([, value]) => value != null);
          return said.length ? `${when(u.data[0][i])}  ${said.map(([name, value]) => `${name} ${valued(value, given.unit)}`).join(", ")}` : "";
        }), { hooks: { drawAxes: hairlines } }],
      },
    };
  }

  const STYLES = { drifted: ["bad", 1, false], unverified: ["unsure", 0.75, true], identical: ["accent", 0.55, false], not_applicable: ["quiet", 0.35, false] };

  function counts(given) {
    const sums = given.series[0].map((_, i) => given.series.slice(1).reduce((sum, values) => sum + values[i], 0));
    return {
      data: [given.series[0], sums],
      options: {
        series: [{}, { paths: () => null, points: { show: false } }],
        plugins: [
          tips((u, i) => {
            const said = given.names.map((name, at) => [name, given.series[at + 1][i]]).filter(([, n]) => n);
            return said.length ? `${when(u.data[0][i])}  ${said.map(([name, n]) => `${shown(n)} ${name}`).join(", ")}` : "";
          }),
          { hooks: { draw: (u) => stack(u, given) } },
        ],
      },
    };
  }

  function stack(u, given) {
    const { ctx } = u;
    const px = window.devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    given.series[0].forEach((time, i) => {
      const left = Math.round(u.valToPos(time, "x", true));
      const wide = Math.max(2 * px, Math.round(u.valToPos(time + given.width, "x", true)) - left - px);
      let below = 0;
      given.styles.forEach((style, at) => {
        const n = given.series[at + 1][i];
        if (!n) return;
        const [name, alpha, hatched] = STYLES[style] || ["quiet", 0.5, false];
        const low = u.valToPos(below, "y", true);
        const top = u.valToPos(below + n, "y", true);
        // (One of a thousand is still to be seen: what is drifted stands at the bottom.)
        const high = Math.max(2 * px, low - top - px);
        ctx.globalAlpha = hatched ? 0.25 : alpha;
        ctx.fillStyle = ink()[name];
        ctx.fillRect(left, low - high, wide, high);
        if (hatched) {
          ctx.globalAlpha = 1;
          ctx.strokeStyle = ctx.fillStyle;
          ctx.lineWidth = px;
          ctx.strokeRect(left + px / 2, low - high + px / 2, wide - px, high - px);
        }
        below += n;
      });
    });
    ctx.restore();
  }

  function tint(text) {
    return text.startsWith("rgb(") ? text.replace("rgb(", "rgba(").replace(")", ", 0.09)") : text;
  }

  function hairlines(u) {
    const { ctx } = u;
    ctx.save();
    ctx.strokeStyle = ink().quiet;
    ctx.globalAlpha = 0.6;
    ctx.setLineDash([2, 4]);
    ctx.beginPath();
    for (const rule of u.box.given.rules) {
      const x = Math.round(u.valToPos(rule, "x", true));
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  // ---- a stem for each decision

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
      ctx.fillStyle = ink().accent;
      ctx.globalAlpha = 0.75;
      ctx.fillRect(x - 1.5 * px, y, 3 * px, low - y);
      ctx.globalAlpha = 1;
      if (least[i] != null) {
        ctx.fillStyle = ink().text;
        ctx.fillRect(x - 6 * px, u.valToPos(least[i], "y", true) - px, 12 * px, 2 * px);
        ctx.fillStyle = ink().accent;
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
        scales: { x: { time: true, range: () => given.x } },
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
      ctx.fillStyle = ink().accent;
      ctx.globalAlpha = 0.75;
      ctx.fillRect(left, y, wide, low - y);
      ctx.globalAlpha = 1;
      ctx.fillStyle = ink().text;
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
    to.strokeStyle = ink().quiet;
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
        ctx.fillStyle = kind < 0 ? unknown : ink().accent;
        ctx.globalAlpha = kind < 0 ? 1 : HEAT[kind];
        ctx.fillRect(edge(from), top, edge(to) - edge(from), high);
        from = to;
      }
    });
    ctx.restore();
  }

  return { map: heat, rebalances: stems, steps: bars, measure, counts };
};
