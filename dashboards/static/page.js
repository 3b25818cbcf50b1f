// The page in the browser: refreshes the board without a jump, shows times in the viewer's zone, finds, walks by keys.
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

  window.evenkeel = { clock, day, month };

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

  localize(document);
  poll();
})();
