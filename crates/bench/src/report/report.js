"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { report, sections, sweeps, kinds } = data;
  const NS = "http://www.w3.org/2000/svg";
  const colors = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `var(--c${n})`);

  // ---- small helpers -------------------------------------------------------------------------
  const el = (name, attributes, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "style") node.style.cssText = value;
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const svg = (name, attributes) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const digits = (x) => {
    const size = Math.abs(x);
    return size < 9.995 ? x.toFixed(2) : size < 99.95 ? x.toFixed(1) : x.toFixed(0);
  };
  const scaled = (x, steps, base) => {
    let step = 0;
    while (step + 1 < steps.length && Math.abs(x) >= base) { x /= base; step += 1; }
    return [x, steps[step]];
  };
  const units = {
    time: (ns) => {
      const [x, unit] = scaled(ns, ["ns", "µs", "ms", "s"], 1000);
      return `${unit === "ns" ? x.toFixed(0) : digits(x)} ${unit}`;
    },
    bytes: (bytes) => {
      const [x, unit] = scaled(bytes, ["B", "KB", "MB", "GB", "TB"], 1000);
      return `${unit === "B" ? x.toFixed(0) : digits(x)} ${unit}`;
    },
    count: (n) => {
      if (n < 1000) return Number.isInteger(n) ? String(n) : digits(n);
      const [x, unit] = scaled(n, ["", "k", "M", "G"], 1000);
      return digits(x) + unit;
    },
    rate: (n) => `${units.count(n)}/s`,
    micros: (us) => `${digits(us)} µs`,
    factor: (x) => digits(x),
  };
  const trim = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

  // ---- tables --------------------------------------------------------------------------------
  const judge = (row) => {
    if (!row.ratio) return "";
    const gain = row.higher_is_better ? row.ratio.median : 1 / row.ratio.median;
    return gain > 1.02 ? "good" : gain < 0.98 ? "bad" : "";
  };
  const cell = (spread, unit) => {
    if (!spread) return el("td", {}, "–");
    const td = el("td", {}, units[unit](spread.median));
    if (spread.min !== spread.max) {
      const range = `${units[unit](spread.min)} – ${units[unit](spread.max)}`;
      td.append(el("span", { class: "range" }, range));
    }
    return td;
  };
  const table = (section) => {
    const compared = section.rows.some((row) => row.ratio);
    const head = el("tr", {}, el("th", {}, ""));
    section.engines.forEach((engine) => head.append(el("th", {}, engine)));
    if (compared) head.append(el("th", {}, "ratio"));
    const body = el("tbody", {});
    for (const row of section.rows) {
      const tr = el("tr", {}, el("td", {}, row.label));
      row.cells.forEach((spread) => tr.append(cell(spread, row.unit)));
      if (compared) {
        const td = el("td", { class: `ratio ${judge(row)}` });
        if (row.ratio) {
          td.append(row.ratio.median.toFixed(2));
          if (section.rounds > 1) {
            const range = `${row.ratio.min.toFixed(2)} – ${row.ratio.max.toFixed(2)}`;
            td.append(el("span", { class: "range" }, range));
          }
        }
        tr.append(td);
      }
      body.append(tr);
    }
    return el("div", { class: "wide" }, el("table", {}, el("thead", {}, head), body));
  };
  const tiles = (section) => {
    const box = el("div", { class: "tiles" });
    const wanted = ["throughput", "read p99", "read p99.9", "write p99", "write p99.9", "scan p99",
      "CPU per operation", "peak memory"];
    for (const row of section.rows.filter((row) => wanted.includes(row.label))) {
      const [ours, theirs] = row.cells;
      const tile = el("div", { class: "tile" }, el("div", { class: "what" }, row.label),
        el("div", { class: "value" }, ours ? units[row.unit](ours.median) : "–"));
      if (theirs) {
        const beside = el("div", { class: "beside" },
          `${section.engines[1]} ${units[row.unit](theirs.median)} `);
        if (row.ratio) {
          beside.append(el("span", { class: `nowrap ${judge(row)}` }, `× ${row.ratio.median.toFixed(2)}`));
        }
        tile.append(beside);
      }
      box.append(tile);
    }
    return box;
  };

  // How often and for how long writes were slowed or stopped, by engine (SILK's Fig. 9).
  const stallBars = (section) => {
    const panel = el("div", { class: "stalls" });
    // Of all causes, then of each.
    const rows = ["stalls", "time stalled"].flatMap((what) =>
      section.rows.filter(({ label }) => label === what || label.startsWith(`${what} for `)));
    for (const row of rows) {
      const { label } = row;
      const top = Math.max(...row.cells.map((spread) => (spread ? spread.median : 0)), 0);
      const bars = el("div", {}, el("h3", {}, label.startsWith("stalls") ? label.replace("stalls", "Writes slowed or stopped, times") : label[0].toUpperCase() + label.slice(1)));
      row.cells.forEach((spread, n) => {
        if (!spread) return;
        const width = top > 0 ? (100 * spread.median) / top : 0;
        bars.append(el("div", { class: "stall" }, el("span", { class: "who" }, section.engines[n]),
          el("span", { class: "track" }, el("i", { style: `width:${width.toFixed(1)}%` })),
          el("b", {}, units[row.unit](spread.median))));
      });
      panel.append(bars);
    }
    return panel.childElementCount > 0 ? panel : null;
  };

  // ---- charts --------------------------------------------------------------------------------
  const W = 680, H = 210, LEFT = 58, RIGHT = 10, TOP = 8, BOTTOM = 22;

  // The last second of a closed loop is a part of one and would look like a drop.
  const secondsOf = (run) => {
    const all = run.measured.timeline;
    const whole = Math.floor(run.measured.seconds + 0.05);
    return !run.measured.open_loop && whole >= 2 ? all.slice(0, whole) : all;
  };

  const axis = (max) => {
    if (!(max > 0)) return { max: 1, step: 1 };
    const rough = max / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
    return { max: Math.ceil(max / step) * step, step };
  };

  // A chart: { title, engine, seconds, series: [{ name, color, values, area, dash, extra }],
  //            log, unit, stacked, stalls, ticks }. Charts of a row share their axes. With ticks it
  //            is drawn against these instead of seconds.
  const draw = (chart, shared, bus) => {
    const { seconds: count } = shared;
    const x = (second) => LEFT + ((W - LEFT - RIGHT) * second) / Math.max(count - 1, 1);
    const low = Math.log10(shared.min), high = Math.log10(shared.max);
    const y = chart.log
      ? (v) => H - BOTTOM - ((Math.log10(Math.max(v, shared.min)) - low) / (high - low || 1)) * (H - TOP - BOTTOM)
      : (v) => H - BOTTOM - (v / shared.max) * (H - TOP - BOTTOM);
    const own = (series) => (series.right
      ? (v) => H - BOTTOM - (v / shared.right.max) * (H - TOP - BOTTOM) : y);
    const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
    const label = `${chart.title}, ${chart.engine}, ${chart.ticks ? "by rate" : "by second"}`;
    root.setAttribute("aria-label", label);

    const stalls = chart.stalls || [];
    stalls.forEach((part, second) => {
      if (!(part > 0)) return;
      const width = (W - LEFT - RIGHT) / Math.max(count - 1, 1);
      const left = Math.max(LEFT, x(second) - width / 2);
      const right = Math.min(W - RIGHT, x(second) + width / 2);
      root.append(svg("rect", { class: "band", x: left, y: TOP, width: right - left, height: H - TOP - BOTTOM }));
      const height = Math.max(2, 6 * Math.min(part, 1));
      root.append(svg("rect", { class: "mark", x: left, y: TOP, width: right - left, height: height / 2 }));
    });

    const grid = (value, text) => {
      root.append(svg("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(value), y2: y(value) }));
      const node = svg("text", { x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" });
      node.textContent = trim(text);
      root.append(node);
    };
    if (chart.bars) {
      // Lanes have names, not values.
    } else if (chart.log) {
      for (let p = Math.round(low); p <= Math.round(high); p += 1) grid(10 ** p, units[chart.unit](10 ** p));
    } else {
      for (let v = 0; v <= shared.max * 1.001; v += shared.step) grid(v, units[chart.unit](v));
    }
    const every = chart.ticks ? 1 : [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].find((n) => count / n <= 9) || 7200;
    for (let second = 0; second < count; second += every) {
      const anchor = second === 0 ? "start" : x(second) > W - RIGHT - 16 ? "end" : "middle";
      const node = svg("text", { x: x(second), y: H - 6, "text-anchor": anchor });
      node.textContent = chart.ticks ? chart.ticks[second] : `${second} s`;
      root.append(node);
    }

    if (chart.bars) drawBars(root, chart, (time) => Math.min(Math.max(x(time - 0.5), LEFT), W - RIGHT));

    // Stacked areas first, lines over them.
    const below = new Array(count).fill(0);
    for (const series of chart.bars ? [] : chart.series.filter((series) => series.area)) {
      const top = [], bottom = [];
      for (let second = 0; second < Math.min(count, series.values.length); second += 1) {
        const value = series.values[second] || 0;
        // What belongs to a second is a step as wide as the second; a state is a slope.
        const ends = chart.steps
          ? [Math.max(second - 0.5, 0), Math.min(second + 0.5, Math.max(count - 1, 0))] : [second];
        ends.forEach((end) => bottom.push(`${x(end).toFixed(1)},${y(below[second]).toFixed(1)}`));
        below[second] += value;
        ends.forEach((end) => top.push(`${x(end).toFixed(1)},${y(below[second]).toFixed(1)}`));
      }
      if (top.length === 0) continue;
      root.append(svg("polygon", {
        points: top.concat(bottom.reverse()).join(" "), fill: series.color,
        "fill-opacity": series.faint ? 0.16 : 0.72,
      }));
    }
    for (const series of chart.series.filter((series) => !series.area)) {
      let path = "", pen = false, alone = [];
      series.values.forEach((value, second) => {
        if (value === null || value === undefined) { pen = false; return; }
        const next = series.values[second + 1];
        if (!pen && (next === null || next === undefined)) alone.push([second, value]);
        path += `${pen ? "L" : "M"}${x(second).toFixed(1)} ${own(series)(value).toFixed(1)}`;
        pen = true;
      });
      root.append(svg("path", { class: `line${series.dash ? " dash" : ""}`, d: path, stroke: series.color }));
      alone.forEach(([second, value]) =>
        root.append(svg("circle", { cx: x(second), cy: own(series)(value), r: 2, fill: series.color })));
    }
    const onRight = chart.series.find((series) => series.right);
    if (onRight && shared.right.max > 0) {
      for (let v = shared.right.step; v <= shared.right.max * 1.001; v += shared.right.step) {
        const node = svg("text", { x: W - RIGHT - 3, y: own(onRight)(v) + 12, "text-anchor": "end",
          class: "right" });
        node.textContent = trim(units[onRight.right](v));
        root.append(node);
      }
    }
    root.append(svg("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM }));
    const cursor = svg("line", { class: "cursor", y1: TOP, y2: H - BOTTOM, visibility: "hidden" });
    root.append(cursor);

    const at = el("span", { class: "at" });
    const legend = el("div", { class: "legend" });
    const values = chart.series.map((series) => {
      const value = el("b", {});
      const key = el("i", { class: series.area ? "area" : "", style: `background:${series.color}` +
        (series.faint ? ";opacity:.4" : "") });
      legend.append(el("span", { class: "item" }, key, `${series.name} `, value));
      return value;
    });
    bus.listen((second) => {
      if (second === null) {
        cursor.setAttribute("visibility", "hidden");
        at.textContent = "";
        values.forEach((value) => { value.textContent = ""; });
        return;
      }
      cursor.setAttribute("visibility", "visible");
      cursor.setAttribute("x1", x(second));
      cursor.setAttribute("x2", x(second));
      const stalled = stalls[second] > 0 ? `, writes stalled ${units.time(stalls[second] * 1e9)}` : "";
      at.textContent = chart.ticks ? `at ${chart.ticks[second]}` : `second ${second}${stalled}`;
      chart.series.forEach((series, n) => {
        const value = series.values[second];
        const shown = value === null || value === undefined ? "–" : units[series.right || chart.unit](value);
        values[n].textContent = shown + (series.extra && series.extra[second] ? ` (${series.extra[second]})` : "");
      });
    });
    root.addEventListener("pointermove", (event) => {
      const box = root.getBoundingClientRect();
      const inside = ((event.clientX - box.left) / box.width) * W;
      const second = Math.round(((inside - LEFT) / (W - LEFT - RIGHT)) * Math.max(count - 1, 1));
      bus.send(Math.min(Math.max(second, 0), count - 1));
    });
    root.addEventListener("pointerleave", () => bus.send(null));
    return el("div", { class: "chart" },
      el("h3", {}, chart.title, el("span", { class: "engine" }, chart.engine), at), legend, root);
  };

  // Jobs as bars, one lane for each of a class that runs at a time; pauses are hollow.
  const drawBars = (root, chart, at) => {
    const groups = chart.series.map((series) => ({ ...series, lanes: [] }));
    for (const job of chart.bars) {
      const group = groups.find((group) => group.class === job.class);
      let lane = group.lanes.findIndex((end) => end <= job.start);
      if (lane < 0) lane = group.lanes.push(0) - 1;
      group.lanes[lane] = job.end;
      job.lane = lane;
      job.group = group;
    }
    let first = 0;
    for (const group of groups) { group.first = first; first += group.lanes.length; }
    const height = Math.min((H - TOP - BOTTOM) / Math.max(first, 1), 34);
    for (const group of groups) {
      const node = svg("text", { x: LEFT - 7, "text-anchor": "end",
        y: TOP + (group.first + group.lanes.length / 2) * height + 4 });
      node.textContent = group.name;
      const edge = TOP + group.first * height;
      root.append(node, svg("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: edge, y2: edge }));
    }
    for (const job of chart.bars) {
      const top = TOP + (job.group.first + job.lane) * height + height * 0.14;
      const bar = (from, to, paused) => {
        const node = svg("rect", { x: at(from), y: top, width: Math.max(at(to) - at(from), 0.6),
          height: height * 0.72, fill: job.group.color, class: paused ? "paused" : "job",
          stroke: paused ? job.group.color : "none" });
        const title = svg("title", {});
        title.textContent = `${job.what}${paused ? ", paused" : ""}: ${digits(job.start)} s – ${digits(job.end)} s` +
          (job.written ? `, read ${units.bytes(job.read)}, written ${units.bytes(job.written)}` : "");
        node.append(title);
        root.append(node);
      };
      let from = job.start;
      for (const [start, end] of job.pauses) {
        bar(from, start, false);
        bar(start, end, true);
        from = end;
      }
      bar(from, job.end, false);
    }
    for (const stall of chart.stalled) {
      const x = at(stall.start), width = Math.max(at(stall.end) - x, 0.8);
      root.append(svg("rect", { class: "mark", x, y: TOP, width, height: 3 }));
      const band = svg("rect", { class: "band", x, y: TOP, width, height: H - TOP - BOTTOM });
      const title = svg("title", {});
      title.textContent = `${stall.cause}: ${stall.waits} writes waited, ${units.time(stall.waited_ns)} together, ` +
        `${digits(stall.start)} s – ${digits(stall.end)} s`;
      band.append(title);
      root.append(band);
    }
  };

  const bus = () => {
    const listeners = [];
    return {
      listen: (f) => listeners.push(f),
      send: (second) => listeners.forEach((f) => f(second)),
    };
  };

  const chartsOf = (run) => {
    const seconds = secondsOf(run);
    const engine = run.version.toLowerCase().startsWith(run.engine.toLowerCase())
      ? run.version : `${run.engine} · ${run.version}`;
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
    const throughput = [{ name: "done", color: colors[0], values: done }];
    if (run.measured.open_loop) {
      const offered = seconds.map((second) => second.offered);
      throughput.unshift({ name: "offered", color: colors[7], values: offered, area: true, faint: true });
    }
    put("throughput", { title: "Throughput", steps: true, unit: "rate", series: throughput });
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
      put("jobs", { title: "Jobs", unit: "count", bars: jobs, stalls: [],
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

  // Charts of the same thing share both axes, whatever engine they show.
  const share = (charts) => {
    const seconds = Math.max(...charts.map((chart) => chart.seconds), 1);
    const right = axis(Math.max(0, ...charts.flatMap((chart) =>
      chart.series.filter((series) => series.right).flatMap((series) => series.values))));
    const values = charts.flatMap((chart) => {
      const sums = new Array(chart.seconds).fill(0);
      const lines = [];
      for (const series of chart.series) {
        if (series.area) series.values.forEach((value, n) => { sums[n] += value || 0; });
        else if (!series.right) lines.push(...series.values.filter((value) => value !== null && value !== undefined));
      }
      return lines.concat(sums.filter((sum) => sum > 0));
    });
    const top = values.reduce((a, b) => Math.max(a, b), 0);
    if (charts[0].log) {
      const bottom = values.filter((v) => v > 0).reduce((a, b) => Math.min(a, b), top || 1);
      const min = 10 ** Math.floor(Math.log10(Math.max(bottom, 1)));
      return { seconds, min, max: Math.max(10 ** Math.ceil(Math.log10(Math.max(top, 1))), min * 10) };
    }
    const { max, step } = axis(top);
    return { seconds, min: 0, max, step, right };
  };

  const median = (runs) => {
    const order = [...runs].sort((a, b) => a.measured.ops_per_second - b.measured.ops_per_second);
    return order[Math.floor((order.length - 1) / 2)].round;
  };

  const show = (box, section, runs, round) => {
    const chosen = section.engines.map((engine) => {
      const mine = runs.filter((run) => run.engine === engine);
      const wanted = round === "median" ? median(mine) : Number(round);
      return mine.find((run) => run.round === wanted) || mine[0];
    });
    const sets = chosen.map(chartsOf);
    const keys = [...new Set(sets.flatMap((set) => Object.keys(set)))];
    box.replaceChildren();
    // Side by side, or with `stacked` one above the other, two charts in a row.
    const stacked = report.stacked && sets.length > 1;
    const columns = stacked || sets.length === 1 ? 2 : Math.min(sets.length, 3);
    box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const events = bus();
    const scales = Object.fromEntries(keys.map((key) =>
      [key, share(sets.map((set) => set[key]).filter(Boolean))]));
    const cell = (set, key) => box.append(set[key] ? draw(set[key], scales[key], events) : el("div", {}));
    for (let n = 0; n < keys.length; n += stacked ? 2 : 1) {
      const row = keys.slice(n, n + (stacked ? 2 : 1));
      sets.forEach((set) => {
        row.forEach((key) => cell(set, key));
        if (stacked && row.length === 1) box.append(el("div", {}));
      });
    }
  };

  // Latency against the rate of arrivals, all engines in a chart (vLSM's Fig. 8).
  const sweepCharts = (sweep) => {
    const box = el("div", { class: "charts" });
    box.style.gridTemplateColumns = "repeat(2, minmax(0, 1fr))";
    const chart = (title, curves) => ({ title, engine: sweep.engines.join(", "), log: true, unit: "time",
      seconds: sweep.rates.length, ticks: sweep.rates.map((rate) => trim(units.rate(rate))),
      series: sweep.engines.map((name, n) => ({ name, color: colors[n], values: curves[n] })) });
    const charts = [chart("p99 by rate", sweep.p99), chart("Worst second's p99 by rate", sweep.worst)];
    const scale = share(charts), events = bus();
    charts.forEach((one) => box.append(draw(one, scale, events)));
    return box;
  };

  // ---- the page ------------------------------------------------------------------------------
  const page = document.getElementById("page");
  const machine = report.machine;
  page.append(
    el("h1", {}, "Sateen benchmark"),
    report.headline ? el("p", { class: "headline" }, report.headline) : "",
    el("p", { class: "setting" }, report.setting),
    el("p", { class: "machine" }, `${machine.cpus} processors, ${machine.cpu}, ` +
      `${units.bytes(machine.memory_bytes)} of memory, Linux ${machine.kernel}`),
    el("code", {}, report.command));
  for (const sweep of sweeps) page.append(el("h2", {}, `${sweep.workload}, by rate`), sweepCharts(sweep));
  for (const section of sections) {
    const runs = report.runs.filter((run) =>
      run.workload === section.workload && (run.rate ?? null) === section.rate);
    const rounds = [...new Set(runs.map((run) => run.round))];
    const heading = el("h2", {}, section.title);
    if (rounds.length > 1) heading.append(el("small", {}, `medians of ${rounds.length} rounds, engines in turn`));
    const box = el("div", { class: "charts" });
    const bar = el("div", { class: "bar" });
    if (rounds.length > 1) {
      const select = el("select", { "aria-label": "round" }, el("option", { value: "median" }, "the median round"));
      rounds.forEach((round) => select.append(el("option", { value: round }, `round ${round}`)));
      select.addEventListener("change", () => show(box, section, runs, select.value));
      bar.append(el("label", {}, "Charts show ", select));
    }
    bar.append(el("span", {}, el("span", { class: "swatch",
      style: "background:var(--stall);border-top:2px solid var(--stall-edge)" }), "writes stalled"),
    el("span", {}, "Latency counts from when an operation was due (closed loop: from its start), in the second in which it ended."));
    page.append(heading, tiles(section), ...[stallBars(section)].filter(Boolean), bar, box,
      el("details", { open: "" }, el("summary", {}, "All figures"), table(section)));
    show(box, section, runs, "median");
  }
})();
