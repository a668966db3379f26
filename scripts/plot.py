#!/usr/bin/env python3
"""Draws figures of `sateen bench --json` files as SVG, for the documentation.

    scripts/plot.py rates   OUT.svg NAME=FILE,FILE…  …    p99 of the worst second against the rate
    scripts/plot.py seconds OUT.svg NAME=FILE        …    p99 of every second

Times are on a logarithmic scale; of a second the slower of reads and writes counts. A file may hold
several runs: all of them belong to its name. The peaks of an offered load that changes are grey.
"""

import json
import math
import sys

WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 50, 45
COLOURS = ["#0b6e4f", "#c1440e", "#5b5f97", "#8d6b94"]
LOW, HIGH = 0.1, 10_000.0  # milliseconds
RARE = 100  # operations of a second below which its p99 says nothing
PEAK = "#ececec"
CHARACTER = 6.6  # the width of one in the legend, a little more than the average


def p99(second):
    found = [q["p99"] / 1e6 for q in second["latency"] if q and q["count"] >= RARE]
    return max(found, default=None)


def runs(files):
    for file in files.split(","):
        with open(file, encoding="utf-8") as opened:
            yield from json.load(opened)["runs"]


def by_rate(files):
    worst = {}
    for run in runs(files):
        seconds = [p99(s) for s in run["measured"]["timeline"]]
        found = max(value for value in seconds if value is not None)
        rate = run["rate"] / 1000
        worst[rate] = max(found, worst.get(rate, 0))
    return sorted(worst.items())


def by_second(files):
    points = []
    for run in runs(files):
        for number, second in enumerate(run["measured"]["timeline"]):
            value = p99(second)
            if value is not None:
                points.append((number, value))
    return points


def peaks(files):
    """Returns the first and the last second of each peak of the offered load."""
    found = []
    for run in runs(files):
        offered = [second["offered"] for second in run["measured"]["timeline"]]
        whole = offered[: int(run["measured"]["seconds"])] or [0]
        if max(whole) < 1.5 * min(whole):
            continue
        for second, value in enumerate(whole):
            if 2 * value < max(whole) + min(whole):
                continue
            if found and found[-1][1] == second - 1:
                found[-1][1] = second
            else:
                found.append([second, second])
        break
    return found


def place_y(value):
    part = math.log(min(max(value, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def svg(title, across, lines, dots, bursts=()):
    x_max = max(x for _, points in lines for x, _ in points)
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if x_max / s <= 16)

    def place_x(x):
        return LEFT + x / x_max * (WIDTH - LEFT - RIGHT)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{title}</text>',
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{across}</text>',
    ]
    for first, last in bursts:
        left, right = place_x(max(first - 0.5, 0)), place_x(min(last + 0.5, x_max))
        shape = f"M{left:.1f} {TOP}H{right:.1f}V{HEIGHT - BOTTOM}H{left:.1f}Z"
        out.append(f'<path d="{shape}" fill="{PEAK}"/>')
    decade = LOW
    while decade <= HIGH:
        y = place_y(decade)
        label = f"{decade / 1000:g} s" if decade >= 1000 else f"{decade:g} ms"
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        decade *= 10
    # The seconds of a run begin at 0. Its end has a label, too.
    for x in range(0, int(x_max) + (1 if dots else 2), step):
        out.append(
            f'<text x="{place_x(x):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x}</text>'
        )
    legend = LEFT
    for number, (name, points) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        at = [(place_x(x), place_y(y)) for x, y in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if dots:
            out.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in at)
        out.append(f'<path d="M{legend:.0f} 34h18" stroke="{colour}" stroke-width="3"/>')
        out.append(f'<text x="{legend + 24:.0f}" y="38">{name}</text>')
        legend += 24 + len(name) * CHARACTER + 22
    if bursts:
        out.append(f'<path d="M{legend:.0f} 28h18v12h-18z" fill="{PEAK}"/>')
        out.append(f'<text x="{legend + 24:.0f}" y="38">burst</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("rates", "seconds"):
        sys.exit(__doc__)
    kind, target = sys.argv[1:3]
    named = [argument.partition("=") for argument in sys.argv[3:]]
    read = by_rate if kind == "rates" else by_second
    lines = [(name, read(files)) for name, _, files in named]
    titles = {
        "rates": ("p99 of the worst second", "thousand operations a second in the peaks"),
        "seconds": ("p99 of every second", "seconds"),
    }
    with open(target, "w", encoding="utf-8") as out:
        bursts = peaks(named[0][2]) if kind == "seconds" else ()
        out.write(svg(*titles[kind], lines, kind == "rates", bursts))


if __name__ == "__main__":
    main()
