// Charts by Plotly, as SVG: one look, drawn one after the other once the library is inflated.
import {byId, element, inflate} from './dom.js';
import {formatCount, formatFixed, formatInterval, formatSignificant, shorten} from './format.js';
import {inWords, namedInWords, nodes, selectNode} from './state.js';

export const OKABE_ITO = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#8c8c00'];
// Cividis, from much to little: on white paper what leaks most is darkest.
export const CIVIDIS = [
  '#00224e',
  '#123570',
  '#3b496c',
  '#575d6d',
  '#707173',
  '#8a8678',
  '#a59c74',
  '#c3b369',
  '#e1cc55',
  '#fee838',
].reverse();
export const SELECTED_COLOUR = '#d55e00';
const PRINT_WIDTH = 640;
const PRINT_HEIGHT = 330;
const charts = [];

// Plotly reads a little HTML in its texts.
export function forPlotly(text) {
  return String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

export function plotlySymbol(text) {
  return forPlotly(text).replace(/([εe])_([A-Za-z0-9])(?![A-Za-z0-9])/g, '$1<sub>$2</sub>');
}

export function hoverText(position) {
  return [
    `<b>${forPlotly(shorten(nodes.name[position], 50))}</b>`,
    `class ${forPlotly(shorten(nodes.class[position], 50))}, degree ${formatCount(nodes.degree[position])}`,
    `prior ${formatSignificant(nodes.prior_prob[position])}`,
    namedInWords(position),
    `e<sub>R</sub> ${formatFixed(nodes.right_median[position])} (${formatInterval(nodes.right_low[position], nodes.right_high[position])})`,
    ...(nodes.flag[position] ? [forPlotly(shorten(nodes.flag[position], 60))] : []),
  ].join('<br>');
}

export function axis(title, more = {}) {
  const {title: titleMore = {}, ...rest} = more;
  return {
    title: {text: title, standoff: 8, ...titleMore},
    automargin: true,
    zeroline: false,
    showline: true,
    linecolor: '#56606b',
    ticks: 'outside',
    tickcolor: '#56606b',
    gridcolor: '#e6eaee',
    ...rest,
  };
}

export function layoutOf(more) {
  return {
    autosize: true,
    margin: {l: 60, r: 34, t: 14, b: 50},
    paper_bgcolor: '#fff',
    plot_bgcolor: '#fff',
    hovermode: 'closest',
    dragmode: false,
    font: {family: 'system-ui, "Liberation Sans", sans-serif', size: 13, color: '#1b1f24'},
    colorway: OKABE_ITO,
    legend: {orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0, itemclick: false, itemdoubleclick: false},
    hoverlabel: {align: 'left'},
    modebar: {orientation: 'v'},
    uirevision: 'kept',
    ...more,
  };
}

// `figure()` gives {traces, layout}, or {empty: why there is nothing to draw}. `marks()`: shapes that move often.
export function addChart(id, label, figure, marks = null) {
  const chart = {
    place: byId(id),
    figure,
    marks,
    isDrawn: false,
    hasPlot: false,
    drawing: Promise.resolve(),
    shapes: [],
  };
  chart.place.setAttribute('role', 'img');
  chart.place.setAttribute('aria-label', inWords(label));
  charts.push(chart);
  return chart;
}

export function drawChart(chart) {
  // Without a width it is folded away, and would be drawn at a wrong size: `drawInside` makes up for it.
  if (!window.Plotly || !chart.place.clientWidth) return;
  const {empty, traces, layout} = chart.figure();
  const {place} = chart;
  chart.isDrawn = !empty;
  if (empty) {
    // Plotly finishes a drawing later, and must not find it gone by then.
    chart.drawing.then(() => {
      if (chart.isDrawn) return;
      if (chart.hasPlot) Plotly.purge(place);
      chart.hasPlot = false;
      place.classList.add('is-empty');
      place.replaceChildren(inWords(empty));
    });
    return;
  }
  place.classList.remove('is-empty');
  chart.shapes = layout.shapes ?? [];
  const full = chart.marks ? {...layout, shapes: [...chart.shapes, ...chart.marks()]} : layout;
  if (chart.hasPlot) {
    chart.drawing = Promise.all([chart.drawing, Plotly.react(place, traces, full)]);
    return;
  }
  place.replaceChildren();
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: !place.matches('.low, .flat'),
    modeBarButtons: [['zoom2d', 'pan2d', 'resetScale2d', 'toImage']],
  };
  chart.drawing = Plotly.newPlot(place, traces, full, config);
  chart.hasPlot = true;
  place.on('plotly_click', ({points}) => {
    const hit = points.find((point) => Number.isInteger(point.customdata));
    if (hit) selectNode(hit.customdata);
  });
}

// After unfolding: what is inside may be missing, or older than what the reader chose since.
export function drawInside(place) {
  charts.filter((chart) => place.contains(chart.place)).forEach(drawChart);
}

// Only the shapes: cheap, also among thousands of points.
export function moveMarks(chart) {
  if (!chart.isDrawn) return;
  Plotly.relayout(chart.place, {shapes: [...chart.shapes, ...chart.marks()]});
}

export function line(x0, y0, x1, y1, {line: look, ...more} = {}) {
  return {type: 'line', x0, y0, x1, y1, line: {color: '#1b1f24', width: 1.5, ...look}, ...more};
}

export function ring(x, y) {
  return {
    type: 'circle',
    xsizemode: 'pixel',
    ysizemode: 'pixel',
    xanchor: x,
    yanchor: y,
    x0: -8,
    x1: 8,
    y0: -8,
    y1: 8,
    line: {color: SELECTED_COLOUR, width: 3},
  };
}

export async function drawAllCharts() {
  try {
    // A script element, not eval: the page's policy knows the library by its hash.
    document.head.append(element('script', {}, await inflate('library')));
  } catch (failure) {
    console.error(failure);
  }
  for (const chart of charts) {
    await new Promise((resume) => setTimeout(resume)); // lets the reader scroll and click between charts
    try {
      if (!window.Plotly) throw new Error('no Plotly');
      if (!chart.isDrawn) drawChart(chart);
    } catch (failure) {
      console.error(failure);
      chart.place.classList.add('is-empty');
      chart.place.replaceChildren('This chart could not be drawn. The page needs a browser of 2023 or later.');
    }
  }
}

export function resizeForPrint(isPrinting) {
  const size = isPrinting ? {width: PRINT_WIDTH, autosize: false} : {width: null, height: null, autosize: true};
  charts
    .filter((chart) => chart.isDrawn)
    .forEach((chart) => {
      const height = isPrinting ? {height: Math.min(PRINT_HEIGHT, chart.place.clientHeight)} : {};
      Plotly.relayout(chart.place, {...size, ...height});
    });
}
