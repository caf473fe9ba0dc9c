// The script of a sweep's page: sorts and filters the table, draws the grid, and keeps one candidate selected everywhere.
// The charts (page_charts.js) are apart, so that the rest works if they do not.
'use strict';
const page = (() => {
const data = JSON.parse(document.getElementById('sweep').textContent);
const columns = data.columns || {};
const parameters = new Map(data.parameters);
const count = (columns.status || []).length;
const timed = [...Array(count).keys()].filter(i => columns.ratio[i] !== null);
const limit = data.limit;
let chosen = null;
const redraws = [];  // of what shows the chosen candidate
const element = id => document.getElementById(id);
const make = (tag, text, attributes = {}) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

// ---- words
const significant = (value, digits) => {
  if (value === null || !isFinite(value)) return '–';
  const decimals = digits - 1 - Math.floor(Math.log10(Math.abs(value) || 1));
  return value.toFixed(Math.min(12, Math.max(0, decimals)));
};
const scaled = value => {
  for (const [scale, prefix] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (value >= scale) return +(value / scale).toPrecision(3) + ' ' + prefix;
  }
  return String(+value.toPrecision(3));
};
const percent = share => (100 * share).toFixed(share < 0.1 ? 1 : 0) + ' %';
const parameter_words = i =>
  [...parameters].filter(([, values]) => values[i] !== null).map(([name, values]) => name + ' ' + values[i]).join(' · ');
function figure_words(i) {
  if (columns.ratio[i] === null) return columns.status[i];
  const seconds = columns.seconds[i];
  let words = `ratio ${columns.ratio[i].toFixed(3)} (${significant(columns.ratio_low[i], 3)}–${significant(columns.ratio_high[i], 3)})` +
    ` · ${significant(1e3 * seconds, 4)} ms, least ${significant(1e3 * columns.least[i], 4)}`;
  if (data.token_heads > 0) words += ` · ${significant(1e9 * seconds / data.token_heads, 3)} ns per token and ${data.head}`;
  if (limit) {
    words += ` · ${percent(limit.multiply_adds / seconds / limit.multiply_adds_per_second)} of peak, ` +
      `${percent(limit.bytes / seconds / limit.bytes_per_second)} of bandwidth`;
  }
  if (columns.compile_seconds[i] !== null) words += ` · compiled in ${significant(columns.compile_seconds[i], 2)} s`;
  return words;
}
function names_of(i) {
  const names = ['candidate ' + (i + 1)];
  if (i === data.best) names.push('best');
  if (i === data.shipped) names.push('shipped');
  return names.join(', ');
}

// ---- the table
const table = element('table');
const rows = table ? [...table.tBodies[0].rows] : [];
const row_of = new Map(rows.map(row => [+row.dataset.candidate, row]));

function value_for(head, i) {
  const {key, parameter} = head.dataset;
  if (parameter !== undefined) return data.parameters[parameter][1][i];
  if (key === 'number') return i;
  if (key === 'reason') return row_of.get(i).querySelector('.reason').textContent || null;
  return columns[key][i];
}
function sort_by(head) {
  const down = head.getAttribute('aria-sort') === 'ascending';
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const keyed = rows.map(row => [value_for(head, +row.dataset.candidate), row]);
  keyed.sort(([a], [b]) => {  // what has no value comes last either way
    if (a === null || b === null) return (a === null) - (b === null);
    return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
  });
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

const compare = {'=': (a, b) => a === b, '<': (a, b) => a < b, '>': (a, b) => a > b, '<=': (a, b) => a <= b, '>=': (a, b) => a >= b};
function value_named(name, i) {
  if (parameters.has(name)) return parameters.get(name)[i];
  if (name === 'ms') return columns.seconds[i] === null ? null : 1e3 * columns.seconds[i];
  return {ratio: columns.ratio, error: columns.error, compile: columns.compile_seconds}[name]?.[i];
}
function holds(term, i, text) {
  const match = term.match(/^([^<>=]+)(<=|>=|=|<|>)([-+.\de]+)$/i);
  const value = match ? value_named(match[1], i) : undefined;
  if (value === undefined || isNaN(+match[3])) return text.includes(term.toLowerCase());
  return value !== null && compare[match[2]](value, +match[3]);
}
function filter() {
  const terms = element('filter').value.trim().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const i = +row.dataset.candidate;
    const text = terms.length ? row.textContent.toLowerCase() : '';
    row.hidden = !terms.every(term => holds(term, i, text));
    shown += !row.hidden;
  }
  element('filter-count').textContent = `${shown} of ${count}`;
}

if (table) {
  for (const head of table.tHead.rows[0].cells) {
    const button = make('button', undefined, {type: 'button'});
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => sort_by(head));
  }
  for (const row of rows) {
    const head = row.cells[0];
    const button = make('button', head.textContent, {type: 'button', 'aria-pressed': 'false', 'aria-label': 'select candidate ' + head.textContent});
    head.replaceChildren(button);
    row.addEventListener('click', event => {
      if (!event.target.closest('details') && !String(getSelection())) choose(+row.dataset.candidate);
    });
  }
  element('filter').addEventListener('input', filter);
  filter();
}

// ---- the selected candidate
const panel = make('div', undefined, {id: 'chosen', role: 'status'});
panel.hidden = true;
document.body.append(panel);
function choose(i) {
  const before = chosen;
  chosen = i === chosen ? null : i;
  for (const [which, on] of [[before, false], [chosen, true]]) {
    const row = row_of.get(which);
    if (!row) continue;
    row.classList.toggle('chosen', on);
    row.querySelector('th button').setAttribute('aria-pressed', String(on));
  }
  panel.hidden = chosen === null;
  if (chosen !== null) {
    panel.replaceChildren(make('b', names_of(chosen)), `: ${parameter_words(chosen)}\n${figure_words(chosen)}`);
    const show = make('button', 'show in the table', {type: 'button'}), clear = make('button', 'clear', {type: 'button'});
    show.addEventListener('click', () => {
      const row = row_of.get(chosen);
      if (row.hidden) { element('filter').value = ''; filter(); }
      row.scrollIntoView({block: 'center'});
      row.querySelector('th button').focus({preventScroll: true});
    });
    clear.addEventListener('click', () => choose(chosen));
    panel.append(show, clear);
  }
  for (const redraw of redraws) redraw();
}

// ---- two parameters against each other
const axes = data.axes.filter(axis => axis.values.length > 1);
const frontier = (axis, among = timed) => axis.values.map(value => {
  const there = among.filter(i => parameters.get(axis.name)?.[i] === value);
  return there.length ? there.reduce((a, b) => (columns.ratio[b] < columns.ratio[a] ? b : a)) : null;
});
// How much the value of a parameter matters, if all others are the best for it.
function effect(axis) {
  const ratios = frontier(axis).filter(i => i !== null).map(i => columns.ratio[i]);
  return ratios.length ? Math.max(...ratios) / Math.min(...ratios) : 0;
}
function draw_grid() {
  const [down, across] = [element('grid-rows'), element('grid-columns')].map(select => axes[select.value]);
  const all = [...Array(count).keys()];
  const bests = down.values.map(value => frontier(across, timed.filter(i => parameters.get(down.name)[i] === value)));
  const logs = bests.flat().filter(i => i !== null).map(i => Math.abs(Math.log(columns.ratio[i])));
  const widest = Math.min(Math.log(1.25), Math.max(0.02, ...logs));  // deepest from 1.25 on: what is far off needs no shades
  const made = make('table');
  made.append(make('caption', `best ratio; ${down.name} down, ${across.name} across`));
  const value_head = (axis, value, scope) => make('th', value + (value === axis.shipped ? ' (shipped)' : ''), {scope});
  const head = made.createTHead().insertRow();
  head.append(make('th', `${down.name} \\ ${across.name}`, {scope: 'col'}), ...across.values.map(value => value_head(across, value, 'col')));
  const body = made.createTBody();
  down.values.forEach((value, r) => {
    const row = body.insertRow();
    row.append(value_head(down, value, 'row'));
    across.values.forEach((other, c) => {
      const cell = row.insertCell(), best = bests[r][c];
      if (best === null) {
        const tried = all.filter(i => parameters.get(down.name)[i] === value && parameters.get(across.name)[i] === other);
        cell.textContent = tried.length ? [...new Set(tried.map(i => columns.status[i]))].join(', ') : '·';
        if (!tried.length) cell.setAttribute('aria-label', 'not tried');
        return;
      }
      const ratio = columns.ratio[best];
      cell.className = (ratio < 1 ? 'faster' : 'slower') + (best === chosen ? ' chosen' : '');
      cell.style.setProperty('--share', Math.min(1, Math.abs(Math.log(ratio)) / widest).toFixed(3));
      const marks = (best === data.best ? '◆ ' : '') + (value === down.shipped && other === across.shipped ? '■ ' : '');
      const button = make('button', marks + ratio.toFixed(3), {type: 'button', 'aria-pressed': String(best === chosen), title: parameter_words(best)});
      button.addEventListener('click', () => choose(best));
      cell.append(button);
    });
  });
  element('grid').replaceChildren(made);
}
if (element('grid-section') && axes.length > 1 && timed.length) {
  const ranked = axes.map((_, a) => a).sort((a, b) => effect(axes[b]) - effect(axes[a]));
  const selects = [element('grid-rows'), element('grid-columns')];
  selects.forEach((select, s) => {
    select.append(...axes.map((axis, a) => make('option', axis.name, {value: a})));
    select.value = ranked[s];
    select.addEventListener('change', () => {
      if (selects[0].value === selects[1].value) selects[1 - s].value = axes.findIndex((_, a) => String(a) !== select.value);
      draw_grid();
    });
  });
  element('grid-section').hidden = false;
  draw_grid();
  redraws.push(draw_grid);
}
if (table) element('filter').closest('.control').hidden = false;

return {data, columns, parameters, timed, limit, axes, element, make, scaled, frontier, names_of, parameter_words, figure_words, choose,
  chosen: () => chosen, on_choice: redraw => redraws.push(redraw)};
})();
