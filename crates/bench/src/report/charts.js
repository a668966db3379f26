"use strict";
// What all pages share: figures with units, tables, explanations of rows, and charts.
const sateen = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const colors = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `var(--c${n})`);
  // The curve of each engine where all are in one chart.
  const engineColors = [colors[0], colors[2], colors[1], colors[3], colors[4], colors[5], colors[6], colors[7]];

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


  // ---- explanations --------------------------------------------------------------------------
  // One box for all: it shows what an element means while it is pointed at, focused or tapped.
  const tip = el("div", { id: "tip", role: "tooltip", hidden: "" });
  const hideTip = () => { tip.hidden = true; };
  const showTip = (node, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const at = node.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(at.left, room - own.width - 8))}px`;
    const below = at.bottom + 6;
    tip.style.top = `${below + own.height < window.innerHeight ? below : Math.max(4, at.top - own.height - 6)}px`;
  };
  const explained = (label, about) => {
    if (!about) return el("span", {}, label);
    const node = el("span", { class: "explained", tabindex: "0", "aria-describedby": "tip" }, label);
    for (const event of ["pointerenter", "focus", "click"]) node.addEventListener(event, () => showTip(node, about));
    for (const event of ["pointerleave", "blur"]) node.addEventListener(event, hideTip);
    return node;
  };
  document.body.append(tip);
  document.addEventListener("scroll", hideTip, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

  // ---- tables --------------------------------------------------------------------------------
  const judged = ({ compared }) =>
    (compared === null || compared.better === null ? "" : compared.better ? "good" : "bad");
  const cell = (spread, unit) => {
    if (!spread) return el("td", {}, "–");
    const td = el("td", {}, units[unit](spread.median));
    if (spread.min !== spread.max) {
      td.append(el("span", { class: "range" }, `${units[unit](spread.min)} – ${units[unit](spread.max)}`));
    }
    return td;
  };
  const table = (section) => {
    const compared = section.rows.some((row) => row.compared);
    const head = el("tr", {}, el("th", {}, ""));
    section.engines.forEach((engine) => head.append(el("th", { scope: "col" }, engine)));
    if (compared) head.append(el("th", { scope: "col" }, explained(section.engines[0],
      `${section.engines[0]} compared with ${section.engines[1]}: the factor between the two figures; of counts below 100 their difference.`), " is"));
    const body = el("tbody", {});
    for (const row of section.rows) {
      const tr = el("tr", {}, el("th", { scope: "row" }, explained(row.label, row.about)));
      row.cells.forEach((spread) => tr.append(cell(spread, row.unit)));
      if (compared) {
        const td = el("td", { class: `compared ${judged(row)}` });
        td.append(row.compared ? row.compared.text : "–");
        if (row.compared && row.compared.range) td.append(el("span", { class: "range" }, row.compared.range));
        tr.append(td);
      }
      body.append(tr);
    }
    return el("div", { class: "wide" }, el("table", {}, el("thead", {}, head), body));
  };
  const tiles = (section, wanted) => {
    const box = el("div", { class: "tiles" });
    // The figures of three and more are for the table.
    if (section.engines.length > 2) return box;
    for (const row of section.rows.filter((row) => wanted.includes(row.label))) {
      const [ours, theirs] = row.cells;
      const tile = el("div", { class: "tile" }, el("div", { class: "what" }, explained(row.label, row.about)),
        el("div", { class: "value" }, ours ? units[row.unit](ours.median) : "–"));
      if (row.cells.length === 2) {
        if (row.compared) tile.append(el("div", { class: `compared ${judged(row)}` }, row.compared.text));
        if (theirs) tile.append(el("div", { class: "beside" }, `${section.engines[1]} ${units[row.unit](theirs.median)}`));
      }
      box.append(tile);
    }
    return box;
  };

  // ---- charts --------------------------------------------------------------------------------
  const LEFT = 58, MARGIN = 12, TOP = 8, BOTTOM = 22, LANE = 13;

  const axis = (max) => {
    if (!(max > 0)) return { max: 1, step: 1 };
    const rough = max / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
    return { max: Math.ceil(max / step) * step, step };
  };

  // A chart: { title, engine, seconds, series: [{ name, color, values, area, dash, extra }],
  //            log, unit, steps, stalls, ticks, lanes, limit, height }. Charts of a row share their
  //            axes. With ticks it is drawn against these instead of seconds. Lanes lie below the
  //            curves: "waits" marks the seconds in which an engine's clients waited, "stalled" how
  //            much of each second its writes were.
  const draw = (chart, shared, bus, width) => {
    const { seconds: count } = shared;
    // The labels of an axis on the right stand outside the data.
    const RIGHT = shared.right && shared.right.used ? 44 : MARGIN;
    const W = Math.max(width, 240), lanes = chart.lanes || [];
    const H = chart.height || 210, FOOT = H + lanes.length * LANE + (lanes.length ? 8 : 0);
    const x = (second) => LEFT + ((W - LEFT - RIGHT) * second) / Math.max(count - 1, 1);
    const low = Math.log10(shared.min), high = Math.log10(shared.max);
    const y = chart.log
      ? (v) => H - BOTTOM - ((Math.log10(Math.max(v, shared.min)) - low) / (high - low || 1)) * (H - TOP - BOTTOM)
      : (v) => H - BOTTOM - (v / shared.max) * (H - TOP - BOTTOM);
    const own = (series) => (series.right
      ? (v) => H - BOTTOM - (v / shared.right.max) * (H - TOP - BOTTOM) : y);
    const root = svg("svg", { viewBox: `0 0 ${W} ${FOOT}`, role: "img", tabindex: "0" });
    const label = `${chart.title}${chart.engine ? `, ${chart.engine}` : ""}, ${chart.ticks ? "by rate" : "by second"}; arrow keys move the cursor`;
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
    const every = chart.ticks ? 1 : [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].find((n) => count / n <= (W - LEFT) / 65) || 7200;
    // Seconds count from 1, as on the terminal: second 1 is the first.
    for (let second = 0; second < count; second += 1) {
      if (!chart.ticks && second > 0 && (second + 1) % every !== 0) continue;
      if (!chart.ticks && second === 0 && every === 2) continue;
      const anchor = second === 0 ? "start" : x(second) > W - RIGHT - 16 ? "end" : "middle";
      const node = svg("text", { x: x(second), y: FOOT - 6, "text-anchor": anchor });
      node.textContent = chart.ticks ? chart.ticks[second] : `${second + 1} s`;
      root.append(node);
    }

    if (chart.limit && chart.limit > shared.min && chart.limit < shared.max) {
      root.append(svg("line", { class: "limit", x1: LEFT, x2: W - RIGHT, y1: y(chart.limit), y2: y(chart.limit) }));
      const node = svg("text", { class: "right", x: W - RIGHT - 3, y: y(chart.limit) - 4, "text-anchor": "end" });
      node.textContent = `above ${trim(units.time(chart.limit))} clients wait`;
      root.append(node);
    }
    if (chart.bars) drawBars(root, chart, W, H, (time) => Math.min(Math.max(x(time - 0.5), LEFT), W - RIGHT), RIGHT);

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
      let path = "", gaps = "", pen = false, last = null, alone = [];
      series.values.forEach((value, second) => {
        if (value === null || value === undefined) { pen = false; return; }
        const next = series.values[second + 1];
        if (!pen && (next === null || next === undefined)) alone.push([second, value]);
        const here = `${x(second).toFixed(1)} ${own(series)(value).toFixed(1)}`;
        if (!pen && last && series.gaps) gaps += `M${last}L${here}`;
        path += `${pen ? "L" : "M"}${here}`;
        last = here;
        pen = true;
      });
      const kind = `line${series.dash ? " dash" : ""}${series.bold ? " bold" : ""}`;
      root.append(svg("path", { class: kind, d: path, stroke: series.color }));
      if (gaps) root.append(svg("path", { class: "line gap", d: gaps, stroke: series.color }));
      alone.forEach(([second, value]) =>
        root.append(svg("circle", { cx: x(second), cy: own(series)(value), r: 2, fill: series.color })));
    }
    const onRight = chart.series.find((series) => series.right);
    if (onRight && shared.right.max > 0) {
      for (let v = shared.right.step; v <= shared.right.max * 1.001; v += shared.right.step) {
        const node = svg("text", { x: W - RIGHT + 5, y: own(onRight)(v) + 4 });
        node.textContent = trim(units[onRight.right](v));
        root.append(node);
      }
    }
    root.append(svg("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM }));
    lanes.forEach((lane, n) => {
      const top = H - BOTTOM + 9 + n * LANE, wide = (W - LEFT - RIGHT) / Math.max(count - 1, 1);
      root.append(svg("rect", { class: "track", x: LEFT, y: top, width: W - LEFT - RIGHT, height: LANE - 4, rx: 2 }),
        svg("rect", { x: LEFT - 8, y: top, width: 4, height: LANE - 4, fill: lane.color }));
      const alike = lanes.filter((other) => other.label === lane.label).length;
      if (n === 0 || lanes[n - 1].label !== lane.label) {
        const node = svg("text", { x: LEFT - 12, y: top + (alike * LANE) / 2 + 2, "text-anchor": "end" });
        node.textContent = lane.label;
        root.append(node);
      }
      lane.parts.forEach((part, second) => {
        if (!(part > 0)) return;
        const left = Math.max(LEFT, x(second) - wide / 2);
        const room = Math.min(W - RIGHT, x(second) + wide / 2) - left;
        const mark = svg("rect", { class: lane.label === "stalled" ? "mark" : "", fill: lane.color, x: left, y: top,
          width: room, height: LANE - 4, "fill-opacity": (0.35 + 0.65 * part).toFixed(2) });
        const title = svg("title", {});
        title.textContent = lane.label === "stalled"
          ? `${lane.name}: writes stalled for ${units.time(part * 1e9)} of second ${second + 1}`
          : `${lane.name}: clients waited in second ${second + 1}`;
        mark.append(title);
        root.append(mark);
      });
    });
    const cursor = svg("line", { class: "cursor", y1: TOP, y2: FOOT - BOTTOM, visibility: "hidden" });
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
    let current = null;
    bus.listen((second) => {
      current = second;
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
      at.textContent = chart.ticks ? `at ${chart.ticks[second]}` : `second ${second + 1}${stalled}`;
      chart.series.forEach((series, n) => {
        const value = series.values[second];
        const shown = value === null || value === undefined ? "–" : units[series.right || chart.unit](value);
        const lane = series.area ? undefined : lanes.find((lane) => lane.name === series.name && lane.label === "stalled");
        const stall = lane && lane.parts[second] > 0 ? `, stalled ${units.time(lane.parts[second] * 1e9)}` : "";
        values[n].textContent = shown + stall + (series.extra && series.extra[second] ? ` (${series.extra[second]})` : "");
      });
    });
    root.addEventListener("pointermove", (event) => {
      const box = root.getBoundingClientRect();
      const inside = ((event.clientX - box.left) / box.width) * W;
      const second = Math.round(((inside - LEFT) / (W - LEFT - RIGHT)) * Math.max(count - 1, 1));
      bus.send(Math.min(Math.max(second, 0), count - 1));
    });
    root.addEventListener("pointerleave", () => bus.send(null));
    root.addEventListener("blur", () => bus.send(null));
    root.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      bus.send(Math.min(Math.max((current === null ? -1 : current) + step, 0), count - 1));
    });
    return el("div", { class: "chart" },
      el("h3", {}, chart.title, " ", el("span", { class: "engine" }, chart.engine), at), legend, root);
  };

  // Jobs as bars, one lane for each of a class that runs at a time; pauses are hollow.
  const drawBars = (root, chart, W, H, at, RIGHT) => {
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
    right.used = charts.some((chart) => chart.series.some((series) => series.right));
    return { seconds, min: 0, max, step, right };
  };

  // Draws `make(width)` into the box once `drawAll` is called, and again when its width changes.
  const undrawn = [];
  const drawAll = () => undrawn.splice(0).forEach((draw) => draw());
  const fitted = (box, columns, make) => {
    let drawn = 0;
    const draw = () => {
      const room = box.clientWidth;
      if (room === drawn || room === 0) return;
      drawn = room;
      const beside = room < 700 ? 1 : columns;
      box.style.setProperty("--columns", beside);
      box.replaceChildren(...make(Math.round((room - 14 * (beside - 1)) / beside) - 26));
    };
    // In the next frame: drawing at once would change the size that is being told.
    undrawn.push(draw);
    new ResizeObserver(() => requestAnimationFrame(draw)).observe(box);
  };

  // The curves of all engines over each other. `curves`: { name, seconds: [{ p99, done, offered,
  // stalled }] }; `limit`: the p99 above which a second counts as bad; `counted`: by whose count writes
  // were stalled.
  const story = (curves, limit, counted) => {
    const box = el("div", { class: "charts story" });
    const seconds = Math.max(...curves.map((curve) => curve.seconds.length), 1);
    if (seconds < 2) return [el("p", { class: "note" }, "Less than two whole seconds: there is no chart by second.")];
    const stalls = curves.some((curve) => curve.seconds.some((second) => second.stalled > 0));
    const of = (field) => curves.map((curve, n) => ({
      name: curve.name, color: engineColors[n % 8], bold: n === 0, gaps: true,
      values: curve.seconds.map((second) => second[field]),
    }));
    const lanesOf = (label, part) => curves.map((curve, n) =>
      ({ name: curve.name, label, color: engineColors[n % 8], parts: curve.seconds.map(part) }));
    // The rule of seconds.rs: where nothing ended although operations were due, clients waited for
    // what ended later. Fewer than 100 operations have no p99.
    const waits = (second, n, all) => {
      if (Math.max(second.done, second.offered) < 100) return 0;
      const later = all.slice(n).find((one) => one.p99 !== null);
      return !later || later.p99 > limit ? 1 : 0;
    };
    const lanes = [...(limit ? lanesOf("waits", waits) : []),
      ...(stalls ? lanesOf("stalled", (second) => Math.min(second.stalled, 1)) : [])];
    const common = { engine: "", seconds, lanes, height: 250 };
    const charts = [];
    if (curves.some((curve) => curve.seconds.some((second) => second.p99 > 0))) {
      charts.push({ ...common, title: "p99 of each second", log: true, unit: "time", series: of("p99"), limit });
    }
    const offered = curves[0].seconds.map((second) => second.offered);
    const load = offered.some((value) => value > 0)
      ? [{ name: "offered", color: colors[7], values: offered, area: true, faint: true }] : [];
    charts.push({ ...common, title: "Operations done in each second", unit: "rate", steps: true,
      series: [...load, ...of("done")] });
    const names = curves.map((curve) => curve.name);
    const nobody = names.length === 1 ? names[0] : names.length === 2 ? `Neither ${names[0]} nor ${names[1]}` : "No engine";
    const events = bus();
    fitted(box, charts.length, (width) => charts.map((chart) => draw(chart, share([chart]), events, width)));
    return [box, el("p", { class: "note" },
      limit ? `Lines "waits" mark the seconds whose p99 is above ${trim(units.time(limit))}. ` : "",
      stalls ? el("span", { class: "swatch stalled" }) : "",
      stalls ? `marks seconds in which an engine slowed down or stopped writes, ${counted}. `
        : `${nobody} ${names.length === 1 ? "did not slow down or stop" : "slowed down or stopped"} writes in any second, ${counted}. `,
      "A dotted curve crosses seconds in which no operation ended. Nothing is smoothed; the part of a second at the end is not drawn.")];
  };

  // The first sentence large, the others below it.
  const headed = (text) => {
    const [first] = text.split(/(?<=\.) (?=[A-Z0-9])/);
    const rest = text.slice(first.length).trim();
    const whole = (part) => part.replaceAll(" × ", "\u00a0×\u00a0").replace(/ (\d+\.)/g, "\u00a0$1");
    return [el("h1", {}, whole(first)), rest ? el("p", { class: "headline" }, whole(rest)) : ""];
  };

  return { el, svg, units, digits, trim, colors, engineColors, explained, table, tiles, draw, share, bus, fitted, drawAll, story, headed };
})();
