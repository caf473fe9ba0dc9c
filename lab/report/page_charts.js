// The charts of a sweep's page, drawn by Chart.js.
'use strict';
(() => {
const {data, columns, parameters, timed, limit, element, make, scaled} = page;
if (!timed.length || typeof Chart === 'undefined') return;
let colours, charts = [], printing = false;

function read_colours() {
  const style = getComputedStyle(document.documentElement);
  colours = {};
  for (const name of ['page', 'ink', 'soft', 'grid', 'points', 'line', 'best', 'shipped', 'chosen']) {
    colours[name] = style.getPropertyValue('--' + name).trim();
  }
}

// ---- the words at the pointer, in an element of the page: a small chart has no room for them
const tip = make('div', undefined, {id: 'tip', 'aria-hidden': 'true'});
tip.hidden = true;
document.body.append(tip);
addEventListener('scroll', () => { tip.hidden = true; }, {passive: true, capture: true});
function show_tip({chart, tooltip}) {
  const i = tooltip.dataPoints?.[0]?.raw.i;
  tip.hidden = tooltip.opacity === 0 || i === undefined;
  if (tip.hidden) return;
  tip.replaceChildren(make('b', page.names_of(i)), `\n${page.parameter_words(i)}\n${page.figure_words(i).replaceAll(' · ', '\n')}`);
  const box = chart.canvas.getBoundingClientRect(), {width, height} = tip.getBoundingClientRect();
  const x = box.left + tooltip.caretX + 14, y = box.top + tooltip.caretY + 14;
  tip.style.left = Math.max(4, x + width > innerWidth - 8 ? x - width - 28 : x) + 'px';
  tip.style.top = Math.max(4, y + height > innerHeight - 8 ? y - height - 28 : y) + 'px';
}

// ---- what the charts have in common
// Those drawn first lie on top. `place` says where a candidate is, null if it is not in the chart.
function marked(place) {
  const at = i => (i === null || columns.ratio[i] === null || !place(i) ? [] : [{...place(i), i}]);
  const mark = (i, pointStyle, radius, colour, more = {}) => ({
    data: at(i), pointStyle, pointRadius: radius, pointHoverRadius: radius, pointBackgroundColor: colour, pointBorderColor: colours.page, pointBorderWidth: 1, ...more});
  return [
    {...mark(page.chosen(), 'circle', 7.5, 'transparent', {pointBorderColor: colours.chosen, pointHoverBorderColor: colours.chosen, pointBorderWidth: 2.5, pointHoverBorderWidth: 2.5}), chosen: at},
    mark(data.best, 'rectRot', 6.5, colours.best), mark(data.shipped, 'rect', 5.5, colours.shipped)];
}
const points = among => ({data: among, pointRadius: among.length > 400 ? 1.8 : 2.4, pointHoverRadius: 4,
  pointBackgroundColor: colours.points + '80', pointBorderWidth: 0, pointHoverBorderWidth: 1, pointHoverBorderColor: colours.ink});

function draw(canvas, datasets, scales, plugins, size) {
  const chart = new Chart(canvas, {
    type: 'scatter', data: {datasets}, plugins,
    options: {
      animation: false, responsive: !printing, maintainAspectRatio: false, parsing: false,
      devicePixelRatio: printing ? 2 : undefined,
      font: {family: getComputedStyle(document.body).fontFamily, size: 11},
      interaction: {mode: 'nearest', intersect: true},
      elements: {point: {hitRadius: 4}, line: {borderWidth: 1.5}},
      plugins: {legend: {display: false}, tooltip: {enabled: false, external: show_tip}},
      onHover: (event, found) => { canvas.style.cursor = found.length ? 'pointer' : 'default'; },
      onClick: (event, found) => {
        const i = found.map(({datasetIndex, index}) => datasets[datasetIndex].data[index].i).find(i => i !== undefined);
        if (i !== undefined) page.choose(i);
      },
      scales,
    }});
  if (printing) chart.resize(...size);
  charts.push(chart);
}
const scale = (title, more, ticks = {}, grid = true) => ({
  title: {display: !!title, text: title, color: colours.soft, font: {size: 11}},
  ticks: {color: colours.soft, maxRotation: 0, font: {size: 11}, ...ticks}, grid: {color: colours.grid, display: grid, drawTicks: false, tickLength: 6}, border: {color: colours.soft}, ...more});
const at_values = values => axis => { axis.ticks = values.filter(v => v >= axis.min && v <= axis.max).map(value => ({value})); };
// Powers of ten, and what is between where there are few.
function log_ticks(axis) {
  const decades = Math.log10(axis.max / axis.min), values = [];
  const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
  for (let power = Math.floor(Math.log10(axis.min)); power <= Math.log10(axis.max); power++) {
    values.push(...steps.map(step => +(step * 10 ** power).toPrecision(2)));
  }
  at_values(values)(axis);
}
function stroke(chart, from, to, colour = colours.soft) {
  const {ctx} = chart;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([3, 3]);
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
  ctx.restore();
}
function write(chart, text, x, y, {align = 'left', angle = 0, colour = colours.soft} = {}) {
  const {ctx} = chart;
  ctx.save();
  ctx.translate(x, y);
  ctx.rotate(angle);
  ctx.font = '11px ' + getComputedStyle(document.body).fontFamily;
  ctx.textAlign = align;
  ctx.textBaseline = 'middle';
  ctx.lineWidth = 3;
  ctx.strokeStyle = colours.page;
  ctx.strokeText(text, 0, 0);
  ctx.fillStyle = colour;
  ctx.fillText(text, 0, 0);
  ctx.restore();
}
const shipped_line = {id: 'shipped_line', beforeDatasetsDraw(chart) {
  const {left, right} = chart.chartArea, y = chart.scales.y.getPixelForValue(1);
  stroke(chart, [left, y], [right, y]);
}};

// ---- time against each parameter
const ratios = timed.map(i => columns.ratio[i]);
const least = Math.min(...ratios), greatest = Math.max(...ratios);
const caps = [1.2, 1.5, 2, 4].filter(cap => cap < greatest && cap > least);
const ratio_scale = cap => {
  const min = Math.min(least, 1) - 0.06 * (Math.min(cap, 2) - least) - 0.005, max = Math.max(cap, 1) * 1.02;
  return max / min > 4 ? scale('', {type: 'logarithmic', min: Math.min(least, 1) * 0.93, max, afterBuildTicks: log_ticks}, {callback: value => String(value)}) :
                         scale('', {type: 'linear', min, max}, {maxTicksLimit: 7, includeBounds: false});
};
// Beside each other, so that many at one value can be told apart; always the same way.
const spread = i => (((i + 1) * 0.618034) % 1 - 0.5) * 0.56;
function draw_axes() {
  const select = element('cap');
  if (!select) return;
  const cap = select.value === 'all' ? greatest : +select.value;
  const above = timed.filter(i => columns.ratio[i] > cap).length;
  element('cap-note').textContent = above ? `not drawn: ${above} of ${timed.length}, slower than that` : '';
  for (const canvas of document.querySelectorAll('canvas[data-axis]')) {
    const axis = data.axes[canvas.dataset.axis], values = parameters.get(axis.name);
    const bests = page.frontier(axis), straight = new Set([...bests, data.shipped]);
    const place = i => {
      const x = axis.values.indexOf(values[i]);
      return x < 0 || columns.ratio[i] > cap ? null : {x: x + (straight.has(i) ? 0 : spread(i)), y: columns.ratio[i]};
    };
    const line = bests.flatMap((i, x) => (i === null ? [] : [{x, y: columns.ratio[i], i}]));
    const others = timed.filter(i => !straight.has(i) && place(i)).map(i => ({...place(i), i}));
    const shipped = axis.values.indexOf(axis.shipped);
    const guide = {id: 'guide', beforeDatasetsDraw(chart) {
      const x = chart.scales.x.getPixelForValue(shipped), {top, bottom} = chart.chartArea;
      stroke(chart, [x, top], [x, bottom]);
    }};
    draw(canvas,
      [...marked(place), {data: line, showLine: true, borderColor: colours.line, pointRadius: 2.5, pointHoverRadius: 4.5, pointBackgroundColor: colours.line, pointBorderWidth: 0}, points(others)],
      {x: scale('', {type: 'linear', min: -0.5, max: axis.values.length - 0.5, afterBuildTicks: at_values(axis.values.map((_, x) => x))},
          {autoSkip: axis.values.length > 10, callback: x => (x === shipped ? [String(axis.values[x]), 'shipped'] : String(axis.values[x]))}, false),
        y: ratio_scale(cap)},
      [shipped_line, guide], [225, 200]);
  }
}

// ---- progress
function draw_progress() {
  const line = [];
  for (const i of timed) {
    const y = columns.ratio[i];
    if (!line.length || y < line[line.length - 1].y) line.push({x: i + 1, y, i});
  }
  const top = Math.max(1, line[0].y), bottom = Math.min(1, least), room = 0.08 * (top - bottom) + 0.01;
  const place = i => (line.some(point => point.i === i) ? {x: i + 1, y: columns.ratio[i]} : null);
  const end = {x: columns.status.length, y: line[line.length - 1].y};
  draw(element('progress'),
    [...marked(place), {data: line, pointRadius: 2.5, pointHoverRadius: 4.5, pointBackgroundColor: colours.line, pointBorderWidth: 0},
      {data: [...line, end], showLine: true, stepped: 'before', borderColor: colours.line, pointRadius: 0, pointHitRadius: 0, pointHoverRadius: 0}],
    {x: scale('candidates tried', {type: 'linear', min: 0, max: Math.max(2, columns.status.length)}, {precision: 0, callback: value => String(value)}),
      y: scale('', {type: 'linear', min: bottom - room, max: top + room}, {maxTicksLimit: 7, includeBounds: false})},
    [shipped_line], [345, 280]);
}

// ---- roofline
function draw_roofline() {
  const canvas = element('roofline');
  if (!canvas) return;
  const peak = limit.multiply_adds_per_second, bandwidth = limit.bytes_per_second;
  const intensity = limit.multiply_adds / limit.bytes, ridge = peak / bandwidth;
  const place = i => ({x: intensity, y: limit.multiply_adds / columns.seconds[i]});
  const reached = timed.map(i => place(i).y);
  const x = [Math.min(intensity, ridge) / 6, Math.max(intensity, ridge) * 6];
  const y = [Math.min(x[0] * bandwidth, ...reached) / 2, Math.max(peak, ...reached) * 2.5];
  const roof = [{x: x[0], y: x[0] * bandwidth}, {x: ridge, y: peak}, {x: x[1], y: peak}];
  const names = {id: 'names', beforeDatasetsDraw(chart) {
    const pixel = (px, py) => [chart.scales.x.getPixelForValue(px), chart.scales.y.getPixelForValue(py)];
    stroke(chart, [pixel(intensity, 1)[0], chart.chartArea.bottom], pixel(intensity, Math.min(peak, intensity * bandwidth)));
  }, afterDatasetsDraw(chart) {
    const pixel = (px, py) => [chart.scales.x.getPixelForValue(px), chart.scales.y.getPixelForValue(py)];
    const [from, to] = [pixel(x[0], x[0] * bandwidth), pixel(ridge, peak)];
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    const middle = [(from[0] + to[0]) / 2 + 11 * Math.sin(angle), (from[1] + to[1]) / 2 - 11 * Math.cos(angle)];
    write(chart, `memory ${scaled(bandwidth)}B/s`, ...middle, {align: 'center', angle});
    const [end, height] = pixel(x[1], peak);
    write(chart, `peak ${scaled(peak)} multiply-adds/s`, end - 4, height - 10, {align: 'right'});
    const label = (i, name, seconds, align, colour) => {
      if (!(seconds > 0)) return;
      const [px, py] = pixel(intensity, limit.multiply_adds / seconds);
      write(chart, name, px + (align === 'left' ? 11 : -11), py, {align, colour});
    };
    if (data.best !== data.shipped && data.shipped !== null) label(data.shipped, 'shipped', columns.seconds[data.shipped], 'right', colours.ink);
    label(data.best, data.best === data.shipped ? 'best, shipped' : 'best', columns.seconds[data.best], 'left', colours.ink);
  }};
  draw(canvas,
    [...marked(place), {data: roof, showLine: true, borderColor: colours.ink, pointRadius: 0, pointHitRadius: 0, pointHoverRadius: 0},
      points(timed.map(i => ({...place(i), i})))],
    {x: scale('multiply-adds per byte', {type: 'logarithmic', min: x[0], max: x[1], afterBuildTicks: log_ticks}, {callback: scaled}),
      y: scale('multiply-adds per second', {type: 'logarithmic', min: y[0], max: y[1], afterBuildTicks: log_ticks}, {callback: scaled})},
    [names], [345, 280]);
}

// ---- all of them, anew when colours or sizes change
function draw_all() {
  charts.forEach(chart => chart.destroy());
  charts = [];
  read_colours();
  draw_axes();
  draw_progress();
  draw_roofline();
}
for (const hidden of document.querySelectorAll('.plot, .drawn')) hidden.hidden = false;
if (element('cap')) {
  const select = element('cap');
  select.append(make('option', 'all candidates', {value: 'all'}), ...caps.map(cap => make('option', `up to ${cap} times the shipped time`, {value: cap})));
  select.value = caps.includes(2) ? 2 : 'all';
  select.addEventListener('change', draw_all);
  select.closest('.control').hidden = !caps.length;
}
draw_all();
page.on_choice(() => {
  for (const chart of charts) {
    const [ring] = chart.data.datasets;
    ring.data = ring.chosen(page.chosen());
    chart.update('none');
  }
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw_all);
const paper = on => {
  printing = on;
  document.documentElement.classList.toggle('paper', on);
  draw_all();
};
addEventListener('beforeprint', () => paper(true));
addEventListener('afterprint', () => paper(false));
})();
