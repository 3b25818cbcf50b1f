// Charts of measures (lines of one unit) and of counts (stacked bars), as kinds that page.js draws with uPlot.
"use strict";

// What people noted (the list "Marks" of the page) as lines in a chart with an axis of time, each with a flag on top;
// beside the cursor its text.
window.evenkeelMarks = (ink) => ({
  hooks: {
    draw: (u) => {
      const { ctx } = u;
      const px = window.devicePixelRatio || 1;
      ctx.save();
      ctx.setLineDash([]);
      ctx.strokeStyle = ctx.fillStyle = ink().text;
      ctx.lineWidth = px;
      for (const { dataset } of document.querySelectorAll("#marks [data-at]")) {
        const at = Number(dataset.at);
        if (at < u.scales.x.min || at > u.scales.x.max) continue;
        const x = Math.round(u.valToPos(at, "x", true)) + 0.5;
        ctx.globalAlpha = 0.75;
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x + 7 * px, u.bbox.top + 3.5 * px);
        ctx.lineTo(x, u.bbox.top + 7 * px);
        ctx.fill();
      }
      ctx.restore();
    },
  },
});

window.evenkeelKinds = ({ ink, tips, when, shown, tint, resolved }) => {
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
            // (Of a roll-up a point may stand between two gaps, where a line would not show it.)
            points: { show: straight && given.series[0].length < 60, size: 5, fill: () => ink()[name], stroke: () => ink()[name] },
          };
        })],
        scales: {
          x: { time: true, range: (u, min, max) => (u.ready ? [min, max] : given.x) },
          y: { range: (_, __, max) => [0, Math.max(given.top, (max || 0) * 1.12)] },
        },
        labels: { values: (_, found) => found.map((v) => (given.unit === "bytes" ? sized(v) : v >= 1e3 ? brief(v).trim() : String(Number(v.toPrecision(3))))) },
        plugins: [tips((u, i) => {
          const said = given.names.map((name, at) => [name, u.data[at + 1][i]]).filter(([, value]) => value != null);
          return said.length ? `${when(u.data[0][i])}  ${said.map(([name, value]) => `${name} ${valued(value, given.unit)}`).join(", ")}` : "";
        })],
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
        scales: {
          x: { time: true, range: (u, min, max) => (u.ready ? [min, max] : given.x) },
          y: { range: (_, __, max) => [0, Math.max(4, (max || 0) * 1.12)] },
        },
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
        ctx.fillStyle = resolved(`--${name}`);
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

  return { measure, counts };
};
