"use strict";
// The page of `sim`.
(() => {
  const { el, digits, colors, table, tiles, draw, share, bus, fitted, drawAll, story, headed } = sateen;
  const { command, title, classes, sections } = JSON.parse(document.getElementById("data").textContent);

  // A second in which nothing was due and nothing ended has no latency.
  const latency = (second, field) => (second.done > 0 || second.offered > 0 ? second[field] : null);

  const storyOf = (section) => story(section.reports.map((report) => ({
    name: report.policy, seconds: report.series.map((second) => ({
      p99: latency(second, "p99_ns"), done: second.done, offered: second.offered, stalled: second.stalled_ns / 1e9,
    })),
  })), 1e7, "whether or not a writer came and had to wait");

  const chartsOf = (report) => {
    const { series } = report;
    const stalls = series.map((second) => second.stalled_ns / 1e9);
    const charts = {};
    const put = (key, chart) => { charts[key] = { engine: report.policy, seconds: series.length, stalls, ...chart }; };
    const line = (name, color, get, more) => ({ name, color, values: series.map(get), ...more });
    put("latency", { title: "Latency", log: true, unit: "time", series: [
      line("p50", colors[1], (second) => (second.done > 0 ? second.p50_ns : null)),
      line("p99", colors[0], (second) => latency(second, "p99_ns")),
      line("max", colors[3], (second) => (second.done > 0 ? second.max_ns : null))] });
    const hues = { client: 1, wal: 4, manifest: 7, flush: 5, l0: 6, deep: 2, reclaim: 0 };
    put("io", { title: "Bandwidth by class", steps: true, unit: "bytes", series: classes.map((name, n) =>
      line({ client: "client reads", wal: "WAL", l0: "L0" }[name] || name, colors[hues[name]],
        (second) => second.read_bytes[n] + second.write_bytes[n], { area: true }))
      .filter((one) => one.values.some((value) => value > 0)) });
    put("debt", { title: "Compaction debt", unit: "bytes",
      series: [line("debt", colors[2], (second) => second.debt_bytes, { area: true })] });
    put("level0", { title: "Level 0 and memtables", unit: "count", series: [
      line("runs in level 0", colors[3], (second) => second.level0_runs),
      line("memtables that wait for a flush", colors[5], (second) => second.sealed, { dash: true })] });
    return charts;
  };

  const detail = (section) => {
    const sets = section.reports.map(chartsOf), box = el("div", { class: "charts" }), events = bus();
    const keys = Object.keys(sets[0]);
    const scales = Object.fromEntries(keys.map((key) => [key, share(sets.map((set) => set[key]))]));
    fitted(box, sets.length === 1 ? 2 : Math.min(sets.length, 3), (width) =>
      keys.flatMap((key) => sets.map((set) => draw(set[key], scales[key], events, width))));
    return box;
  };

  const causes = (section) => {
    const lines = section.reports.flatMap((report) => Object.entries(report.stalls).map(([cause, stalls]) =>
      el("li", {}, `${report.policy}, ${cause}: delayed ${stalls.delays} times for ${digits(stalls.delayed_ns / 1e9)} s, ` +
        `stopped ${stalls.stops} times for ${digits(stalls.stopped_ns / 1e9)} s; writers waited ` +
        `${digits(stalls.waited_ns / 1e9)} s, all threads together`)));
    return lines.length > 0 ? [el("h3", { class: "part" }, "Stalls by cause"), el("ul", {}, ...lines)] : [];
  };

  const page = document.getElementById("page");
  const alone = sections.length === 1;
  page.append(el("p", { class: "eyebrow" }, `${title}, simulated${alone ? `: ${sections[0].title}` : ""}`),
    ...headed(alone ? sections[0].headline : sections.map((section) => section.title).join(", ")));
  for (const section of sections) {
    if (!alone) page.append(el("h2", {}, section.title), el("p", { class: "headline" }, section.headline));
    page.append(...storyOf(section),
      tiles(section, ["done", "p99", "p99.9", "longest", "worst second's p99", "stalls", "time stalled",
        "time writers waited", "write amplification", "compaction debt at the end"]),
      el("h3", { class: "part" }, "Second by second"),
      el("p", { class: "note" }, el("span", { class: "swatch band" }), "writes slowed down or stopped. " +
        "Latency counts from when an operation was due, in the second in which it ended. Where none ended, the p99 " +
        "is the age of the oldest that waited."),
      detail(section), ...causes(section),
      el("details", { open: "" }, el("summary", {}, "All figures"), table(section)));
  }
  page.append(el("section", {}, el("h2", {}, "How this was simulated"),
    el("p", {}, "Time is virtual: the engine's control plane ran on a model of the device and of the data. " +
      "The figures say what a policy does, not how fast the engine's code is."), el("code", {}, command)));
  drawAll();
})();
