"use strict";
// The page of `bench` and `demo`.
(() => {
  const { el, units, digits, trim, colors, engineColors, explained, table, tiles, draw, share, bus, fitted, drawAll, story, headed } = sateen;
  const { report, sections, sweeps, kinds, brief, notes, engines } = JSON.parse(document.getElementById("data").textContent);

  const nameOf = (run) => (run.version.toLowerCase().startsWith(run.engine.toLowerCase())
    ? run.version : `${run.engine} · ${run.version}`);

  // The part of a second at the end would look like a drop.
  const secondsOf = (run) => {
    const whole = Math.floor(run.measured.seconds + 0.05);
    return whole >= 2 ? run.measured.timeline.slice(0, whole) : run.measured.timeline;
  };

  // How often and for how long writes were slowed down or stopped, by engine (SILK's Fig. 9).
  const stallBars = (section) => {
    const panel = el("div", { class: "stalls" });
    // Of all causes, then of each.
    const rows = ["stalls", "time stalled"].flatMap((what) =>
      section.rows.filter(({ label }) => label === what || label.startsWith(`${what} for `)));
    for (const row of rows) {
      const top = Math.max(...row.cells.map((spread) => (spread ? spread.median : 0)), 0);
      if (top === 0) continue;
      const [what, cause] = row.label.split(" for ");
      const causes = rows.filter(({ label }) => label.startsWith(`${what} for `));
      // A single cause is named beside the total.
      if (cause && causes.length === 1) continue;
      const why = cause || (causes.length === 1 ? causes[0].label.split(" for ")[1] : "");
      const title = `How ${what === "stalls" ? "often" : "long"} writes were slowed or stopped${why ? `: ${why}` : ""}`;
      const bars = el("div", {}, el("h3", {}, explained(title, row.about)));
      row.cells.forEach((spread, n) => {
        if (!spread) return;
        const bar = spread.median > 0
          ? el("span", { class: "track" }, el("i", { style: `width:${((100 * spread.median) / top).toFixed(1)}%;` +
            `background:${engineColors[n % 8]}` }))
          : el("span", { class: "none" }, "none");
        bars.append(el("div", { class: "stall" }, el("span", { class: "who" }, section.engines[n]), bar,
          el("b", {}, spread.median > 0 ? units[row.unit](spread.median) : "")));
      });
      panel.append(bars);
    }
    return panel.childElementCount > 0 ? panel : null;
  };

  const chartsOf = (run) => {
    const seconds = secondsOf(run);
    const engine = nameOf(run);
    const stalls = seconds.map((second) => Math.max(second.stall_ns / 1e9, second.stopped ? 0.001 : 0));
    const charts = {};
    const put = (key, chart) => { charts[key] = { engine, seconds: seconds.length, stalls, ...chart }; };
    kinds.forEach((kind, k) => {
      if (!seconds.some((second) => second.latency[k])) return;
      const line = (name, field, color) => ({
        name, color, values: seconds.map((second) => second.latency[k] && second.latency[k][field]),
      });
      put(`latency ${kind}`, {
        title: `${kind[0].toUpperCase()}${kind.slice(1)} latency`, log: true, unit: "time",
        series: [line("p50", "p50", colors[1]), line("p99", "p99", colors[0]),
          line("p99.9", "p999", colors[2]), line("max", "max", colors[3])],
      });
    });
    const done = seconds.map((second) => second.done.reduce((a, b) => a + b, 0));
    // A class has the same colour whichever engine counts it. SILK's Fig. 11: what each class of
    // I/O moves, over what clients ask for.
    const hues = { wal: 4, flush: 5, compaction: 2, deep: 2, l0: 6, manifest: 7, reclaim: 0, client: 1 };
    const hue = (name, n) => (name in hues ? hues[name] : [6, 0, 7, 1][n % 4]);
    const names = { client: "client reads", wal: "WAL", l0: "L0", deep: "deep" };
    const both = (second, n) => (second.io[n] ? second.io[n][0] + second.io[n][1] : 0);
    const classes = run.measured.io_classes.map((name, n) => ({
      name: names[name] || name, color: colors[hue(name.toLowerCase(), n)], area: true,
      values: seconds.map((second) => both(second, n)),
    })).filter((series) => series.values.some((value) => value > 0));
    const disk = (name, field, color) => ({
      name, color, values: seconds.map((second) => second.disk[field]), dash: true,
    });
    const open = run.measured.open_loop;
    put("io", { title: "Bandwidth by class", steps: true, unit: "bytes", series: [...classes,
      disk("disk written", "written", colors[3]), disk("disk read", "read", colors[1]),
      { name: open ? "offered load" : "load", color: "var(--ink)", right: "rate",
        values: open ? seconds.map((second) => second.offered) : done }] });
    const jobs = (run.measured.jobs || []).map((job) => ({ ...job }))
      .filter((job) => job.start < seconds.length && job.end > 0);
    if (jobs.length > 0) {
      const rank = { flush: 0, l0: 1, deep: 2 };
      const present = [...new Set(jobs.map((job) => job.class))].sort((a, b) => rank[a] - rank[b]);
      put("jobs", { title: "Flushes and compactions", unit: "count", bars: jobs, stalls: [],
        stalled: (run.measured.stalls || []).filter((stall) => stall.start < seconds.length),
        series: present.map((name) => ({ name: names[name] || name, class: name, area: true,
          color: colors[hue(name, 0)],
          // The average number of them that ran in the second.
          values: seconds.map((_, n) => jobs.filter((job) => job.class === name)
            .reduce((sum, job) => sum + Math.max(0, Math.min(job.end, n + 1) - Math.max(job.start, n)), 0)),
        })) });
    }
    const depth = Math.max(...seconds.map((second) => second.levels.length), 0);
    const levels = [];
    for (let n = depth - 1; n >= 0; n -= 1) {
      const size = seconds.map((second) => (second.levels[n] ? second.levels[n].bytes : 0));
      const files = seconds.map((second) => (second.levels[n] ? `${second.levels[n].files} tables` : ""));
      if (size.some((bytes) => bytes > 0)) {
        levels.push({ name: `L${n}`, color: n === 0 ? colors[3] : colors[[0, 1, 5, 4, 2, 6, 0][(n - 1) % 7]],
          values: size, extra: files, area: true });
      }
    }
    const adjusted = run.measured.adjustments || [];
    if (adjusted.length > 0) {
      const why = (what) => seconds.map((_, n) => adjusted
        .filter((one) => one.what === what && Math.floor(one.at) === n)
        .map((one) => one.cause).join(", "));
      const knob = (n) => seconds.map((second) => second.knobs && second.knobs[n]);
      put("tuner", { title: "What the tuner adjusts", steps: true, unit: "bytes", series: [
        { name: "memtable size", color: colors[0], values: knob(1), extra: why("memtable size") },
        { name: "job slots", color: colors[2], right: "count", values: knob(0), extra: why("job slots") }] });
    }
    if (levels.length > 0) put("levels", { title: "Levels", unit: "bytes", series: levels });
    const memory = [{ name: "resident", color: colors[0], values: seconds.map((second) => second.resident) }];
    if (seconds.some((second) => second.debt > 0)) {
      memory.push({ name: "compaction debt", color: colors[2], dash: true,
        values: seconds.map((second) => second.debt) });
    }
    put("memory", { title: "Memory and debt", unit: "bytes", series: memory });
    return charts;
  };

  const median = (runs) => {
    const order = [...runs].sort((a, b) => a.measured.ops_per_second - b.measured.ops_per_second);
    return order[Math.floor((order.length - 1) / 2)].round;
  };

  const chosen = (section, runs, round) => section.engines.map((engine) => {
    const mine = runs.filter((run) => run.engine === engine);
    const wanted = round === "median" ? median(mine) : Number(round);
    return mine.find((run) => run.round === wanted) || mine[0];
  });

  const storyOf = (picked) => {
    const open = picked.some((run) => run.measured.open_loop);
    const whole = (run) => run.measured.timeline.slice(0, Math.max(Math.floor(run.measured.seconds + 0.05), 1));
    const curves = picked.map((run) => ({ name: nameOf(run), seconds: whole(run).map((second) => ({
      p99: second.all ? second.all.p99 : null,
      done: second.done.reduce((a, b) => a + b, 0),
      offered: run.measured.open_loop ? second.offered : 0,
      stalled: Math.max(second.stall_ns / 1e9, second.stopped ? 0.001 : 0),
    })) }));
    return story(curves, report.wait_ns || (open ? 1e7 : null),
      "by the engine's own count, which leaves out waits for the device and in RocksDB's write queue");
  };

  // The charts of each engine, engines side by side.
  const detail = (picked) => {
    const sets = picked.map(chartsOf);
    const keys = [...new Set(sets.flatMap((set) => Object.keys(set)))];
    const box = el("div", { class: "charts" });
    const scales = Object.fromEntries(keys.map((key) => [key, share(sets.map((set) => set[key]).filter(Boolean))]));
    const events = bus();
    fitted(box, sets.length === 1 ? 2 : Math.min(sets.length, 3), (width) => keys.flatMap((key) =>
      sets.map((set) => (set[key] ? draw(set[key], scales[key], events, width) : el("div", { class: "absent" },
        `${nameOf(picked[sets.indexOf(set)])} ${key === "jobs" ? "does not report single flushes and compactions"
          : `reports nothing for the chart "${sets.find((other) => other[key])[key].title}"`}.`)))));
    // What `sateen why` says of the run. Each period begins behind an empty line.
    const causes = picked.filter((run) => run.measured.why).flatMap((run) => [
      el("h3", { class: "part" }, picked.length > 1 ? `Why seconds of ${nameOf(run)} were slow` : "Why seconds were slow"),
      el("p", { class: "note" }, "From the engine's flight recorder. Seconds count back from the end."),
      ...run.measured.why.trim().split("\n\n").map((period) => el("p", { class: "why" }, period))]);
    return [...causes, el("h3", { class: "part" }, "Second by second"),
      el("p", { class: "note" }, el("span", { class: "swatch band" }), "writes slowed down or stopped. " +
        "Latency counts from when an operation was due (closed loop: from its start), in the second in which it ended."),
      box];
  };

  // Latency against the rate of arrivals, all engines in a chart (vLSM's Fig. 8).
  const sweepCharts = (sweep) => {
    const box = el("div", { class: "charts story" });
    const chart = (title, curves) => ({ title, engine: "", log: true, unit: "time", height: 250,
      seconds: sweep.rates.length, ticks: sweep.rates.map((rate) => trim(units.rate(rate))),
      series: sweep.engines.map((name, n) => ({ name, color: engineColors[n % 8], bold: n === 0, values: curves[n] })) });
    const charts = [chart("p99 by rate", sweep.p99), chart("Worst second's p99 by rate", sweep.worst)];
    const scale = share(charts), events = bus();
    fitted(box, 2, (width) => charts.map((one) => draw(one, scale, events, width)));
    return box;
  };

  // ---- the page ------------------------------------------------------------------------------
  const TILES = ["throughput", "read p99", "read p99.9", "write p99", "write p99.9", "scan p99",
    "worst second's p99", "CPU per operation", "peak memory", "compaction debt at the end",
    "database size at the end"];
  const sectionOf = (section, alone) => {
    const runs = report.runs.filter((run) => run.workload === section.workload && (run.rate ?? null) === section.rate);
    const rounds = [...new Set(runs.map((run) => run.round))];
    const first = el("div", {}), rest = el("div", {});
    const show = (round) => {
      const picked = chosen(section, runs, round);
      first.replaceChildren(...storyOf(picked));
      rest.replaceChildren(...(first.querySelector(".charts") ? detail(picked) : []));
      if (first.isConnected) drawAll();
    };
    const bar = el("div", { class: "bar" });
    if (rounds.length > 1) {
      const select = el("select", { "aria-label": "round" }, el("option", { value: "median" }, "the median round"));
      rounds.forEach((round) => select.append(el("option", { value: round }, `round ${round}`)));
      select.addEventListener("change", () => show(select.value));
      bar.append(el("label", {}, "Charts show ", select));
      bar.append(el("span", {}, `Figures are medians of ${rounds.length} rounds, engines in turn.`));
    }
    const parts = alone ? [] : [el("h2", {}, section.title), el("p", { class: "headline" }, section.headline)];
    show("median");
    return [...parts, bar, first, tiles(section, TILES), ...[stallBars(section)].filter(Boolean),
      rest, el("details", { open: "" }, el("summary", {}, "All figures"), table(section))];
  };

  const page = document.getElementById("page");
  const alone = sections.length === 1 && sweeps.length === 0;
  const title = report.headline || (alone ? sections[0].headline : "");
  page.append(el("p", { class: "eyebrow" }, alone ? `Sateen benchmark: ${sections[0].title}` : "Sateen benchmark"),
    ...headed(title || sections.map((section) => section.title).join(", ")),
    ...notes.map((note) => el("p", { class: "headline" }, note)), el("p", { class: "note" }, brief));
  for (const sweep of sweeps) page.append(el("h2", {}, `${sweep.workload}, by rate`), sweepCharts(sweep));
  for (const section of sections) page.append(...sectionOf(section, alone));
  const machine = report.machine;
  page.append(el("section", {}, el("h2", {}, "How this was measured"), el("p", {}, report.setting),
    el("p", {}, `Engines: ${engines[0]}. Devices: ${engines[1]}.`),
    el("p", {}, `${machine.cpus} processors, ${machine.cpu}, ` +
      `${units.bytes(machine.memory_bytes)} of memory, Linux ${machine.kernel}`),
    el("code", {}, report.command)));
  drawAll();
})();
